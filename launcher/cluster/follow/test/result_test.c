/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "launcher/cluster/follow/result.h"

#define TROUBLE                                                                                    \
    {                                                                                              \
        .code = ECHILD, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "the Job failed"                \
    }

static const struct {
    const char *what;
    struct follow_result_facts facts;
    int rc;
    enum drarun_errkind kind;
    int status;
    const char *says; /* in the error's text */
} rows[] = {
    {"all was read", {.ended = true, .end = FOLLOW_END_READ}, .status = 0},
    {"the job's status", {.ended = true, .exit_status = 3, .end = FOLLOW_END_READ}, .status = 3},
    {"its ranks run", {.runs = true, .trouble = TROUBLE}, .status = 0},
    {"a success whose output is lost",
     {.ended = true, .end = FOLLOW_END_LOST, .leader = "p", .leader_is_gone = true},
     -EIO,
     DRARUN_ERR_INFRASTRUCTURE,
     70,
     "pod p, whose log has it, is gone"},
    {"a failure whose output is lost keeps its status",
     {.ended = true, .exit_status = 3, .end = FOLLOW_END_LOST},
     .status = 3},
    {"left before the end of the output of a success",
     {.ended = true, .end = FOLLOW_END_AWAITED, .interrupted = true, .signo = 2},
     -ECANCELED,
     DRARUN_ERR_INTERRUPTED,
     130,
     "interrupted"},
    {"trouble before the end",
     {.trouble = TROUBLE},
     -ECHILD,
     DRARUN_ERR_INFRASTRUCTURE,
     0,
     "the Job failed"},
    {"trouble after it changes nothing",
     {.ended = true, .exit_status = 1, .end = FOLLOW_END_READ, .trouble = TROUBLE},
     .status = 1},
    {"deleted", {.gone = true}, -ENOENT, DRARUN_ERR_INFRASTRUCTURE, 70, "was deleted"},
    {"deleted by the signal that cancelled it",
     {.gone = true, .signo = -15},
     -ENOENT,
     DRARUN_ERR_INTERRUPTED,
     143,
     "was deleted"},
    {"its time is over", {.timeout_ms = 1500}, -ETIMEDOUT, DRARUN_ERR_TIMEOUT, 70, "within 1.5 s"},
    {"the log as it is, of a job that failed",
     {.once = true, .ended = true, .exit_status = 3, .end = FOLLOW_END_READ},
     .status = 0},
    {"the log as it is, read in part",
     {.once = true, .half_read = true, .leader = "p"},
     -EIO,
     DRARUN_ERR_INFRASTRUCTURE,
     70,
     "no log data came from pod p"},
    {"of a log that broke off, why",
     {.once = true, .half_read = true, .log_err = {.code = EPIPE, .text = "it was closed"}},
     -EIO,
     DRARUN_ERR_INFRASTRUCTURE,
     70,
     "read to its end: it was closed"},
};

static void test_judge(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct follow_result_facts facts = rows[i].facts;
        struct drarun_error err = {0};
        int status = -1;
        facts.job = "j";
        int rc = follow_result_judge(&facts, &status, &err);
        if (rc != rows[i].rc || status != rows[i].status ||
            (rc < 0 && (err.kind != rows[i].kind || !strstr(err.text, rows[i].says))))
            fail_msg("%s: %d, status %d, kind %d: %s", rows[i].what, rc, status, (int)err.kind,
                     err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
