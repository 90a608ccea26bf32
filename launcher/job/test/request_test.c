/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a job's request alone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "jobs/spec/spec.h"
#include "launcher/job/request.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

static void whose_success_is_the_jobs(void **state)
{
    static const struct {
        enum spec_success success;
        uint32_t role, first, count;
    } rows[] = {{SPEC_SUCCESS_ALL, 1, 0, 0},
                {SPEC_SUCCESS_RANK0, 1, 0, 1},
                {SPEC_SUCCESS_ROLE, 0, 0, 3},
                {SPEC_SUCCESS_ROLE, 1, 3, 5},
                {SPEC_SUCCESS_ROLE, 2, 8, 7}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request_program programs[] = {{.ranks = 3}, {.ranks = 5}, {.ranks = 7}};
        struct job_request request = {
            .programs = programs, .program_count = 3, .success_first = 9, .success_count = 9};
        const struct job_spec spec = {.success = rows[i].success, .success_role = rows[i].role};
        request_decide_success(&request, &spec);
        assert_int_equal(request.success_first, rows[i].first);
        assert_int_equal(request.success_count, rows[i].count);
    }
}

/* An option goes before the spec. */
static void ranks_that_may_fail(void **state)
{
    static const struct {
        const char *option;
        bool of_spec;
        const char *says; /* request_continues; NULL: a failure ends the job */
    } rows[] = {{NULL, false, NULL},
                {NULL, true, "failurePolicy.onRankFailure: continue"},
                {"end", true, NULL},
                {"continue", true, "--on-rank-failure continue"},
                {"continue", false, "--on-rank-failure continue"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_request request = {.on_rank_failure = rows[i].option};
        struct job_spec spec = {0};
        if (rows[i].of_spec)
            spec.failure.on_rank_failure = FAILURE_OF_RANK_CONTINUE;
        request_decide_failure(&request, &spec);
        const char *says = request_continues(&request);
        if (rows[i].says)
            assert_string_equal(says, rows[i].says);
        else
            assert_null(says);
    }
}

static void pods_in_the_hosts_network(void **state)
{
    static const struct {
        const char *pods[2];
        bool on_host;
    } rows[] = {{{"", ""}, false},
                {{"hostNetwork: true,", ""}, true},
                {{"", "hostNetwork: true,"}, true},
                {{"hostNetwork: false,", ""}, false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        struct drarun_error err = {0};
        char text[1024];
        snprintf(text, sizeof text,
                 "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: s}\nspec:\n"
                 "  roles:\n"
                 "  - {name: a, template: {spec: {%s containers: [{image: i, command: [a]}]}}}\n"
                 "  - {name: b, template: {spec: {%s containers: [{image: i, command: [b]}]}}}\n",
                 rows[i].pods[0], rows[i].pods[1]);
        int rc = spec_parse("s", text, strlen(text), &spec, &err);
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        assert_int_equal(request_is_on_host(&spec), rows[i].on_host);
        job_spec_done(&spec);
    }
}

/* Two seconds for the report; of a short grace half. */
static void grace_that_ranks_have(void **state)
{
    static const struct {
        int seconds;
        int64_t ms;
    } rows[] = {{30, 28000}, {5, 3000}, {4, 2000}, {3, 1500}, {1, 500}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        struct drarun_error err = {0};
        char text[512];
        snprintf(text, sizeof text,
                 "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: s}\nspec:\n"
                 "  template: {spec: {terminationGracePeriodSeconds: %d, containers: [{image: i, "
                 "command: [a]}]}}\n",
                 rows[i].seconds);
        int rc = spec_parse("s", text, strlen(text), &spec, &err);
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        assert_int_equal(request_grace_ms(&spec), rows[i].ms);
        job_spec_done(&spec);
    }
}

static void signals_before_the_timeout(void **state)
{
    static const struct {
        int signo;
        int64_t before_ms, timeout_ms;
        bool signal_of_spec, timeout_of_spec;
        const char *says; /* NULL: it is fine */
    } rows[] = {
        {0, 90000, 1000, false, false, NULL},
        {SIGUSR1, 1499, 1500, false, false, NULL},
        {SIGUSR1, 1500, 1500, false, false,
         "--signal USR1@1.5s: --timeout is 1.5 s, so the signal cannot come 1.5 s before it: give "
         "a "
         "shorter time or a longer --timeout"},
        {SIGTERM, 60000, 30000, true, true,
         "timeouts.signal TERM@60s: timeouts.total is 30 s, so the signal cannot come 60 s before "
         "it: give a shorter time or a longer timeouts.total"},
        {SIGTERM, 60000, 30000, false, true,
         "--signal TERM@60s: timeouts.total is 30 s, so the signal cannot come 60 s before it: "
         "give a shorter time or a longer timeouts.total"},
        {SIGUSR2, 2000, 0, false, false,
         "--signal USR2@2s: it is sent before --timeout TIME: give that, too"},
        {SIGUSR2, 2000, 1, false, false,
         "--signal USR2@2s: --timeout is 0.001 s, so the signal cannot come 2 s before it: give a "
         "shorter time or a longer --timeout"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct job_request request = {.warn_signo = rows[i].signo,
                                            .warn_before_ms = rows[i].before_ms,
                                            .timeout_ms = rows[i].timeout_ms,
                                            .signal_of_spec = rows[i].signal_of_spec,
                                            .timeout_of_spec = rows[i].timeout_of_spec};
        struct drarun_error err = {0};
        assert_int_equal(request_check_warning(&request, &err), rows[i].says ? -EINVAL : 0);
        assert_int_equal(err.kind, rows[i].says ? DRARUN_ERR_USAGE : 0);
        assert_string_equal(err.text, rows[i].says ? rows[i].says : "");
    }
}

static void slots_of_a_worker(void **state)
{
    struct request_program programs[] = {{.workers = 2, .slots = 4}, {.workers = 3, .slots = 6}};
    struct job_request request = {.programs = programs, .program_count = 2};
    static const uint32_t expected[] = {4, 4, 6, 6, 6, 0};
    (void)state;
    for (uint32_t i = 0; i < ARRAY_LEN(expected); i++)
        assert_int_equal(request_slots(&request, i), expected[i]);
    assert_true(request_may_spawn(&request));
    request.slots = 9; /* for all */
    assert_int_equal(request_slots(&request, 0), 9);
    assert_int_equal(request_slots(&request, 5), 9);
    assert_true(request_may_spawn(&request));
    request = (struct job_request){.programs = programs, .program_count = 2};
    programs[0].slots = 0;
    assert_true(request_may_spawn(&request));
    programs[1].slots = 0;
    assert_false(request_may_spawn(&request));
    assert_int_equal(request_slots(&request, 0), 0);
    request.oversubscribe = true;
    assert_true(request_may_spawn(&request));
}

static void where_its_agents_are(void **state)
{
    static char list[] = "a:1";
    static const struct {
        bool pods, entry, kept, agents, alloc;
        uint32_t workers;
        bool elsewhere, here, remote, of_spec;
    } rows[] = {
        {false, false, false, false, false, 0, false, true, false, false},
        {false, false, false, false, false, 1, false, true, false, false},
        {false, false, false, false, false, 2, false, true, true, false},
        {false, false, false, true, false, 0, true, false, true, false},
        {false, false, false, true, true, 0, true, true, true, false},
        {true, false, false, false, false, 0, true, false, true, true},
        {true, true, false, false, false, 0, true, false, true, false},
        {true, false, true, false, false, 0, true, false, true, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct request_pods pods = {.entry = rows[i].entry, .kept = rows[i].kept};
        const struct job_request request = {.pods = rows[i].pods ? &pods : NULL,
                                            .agents = rows[i].agents ? list : NULL,
                                            .alloc_agents = rows[i].alloc ? list : NULL,
                                            .workers = rows[i].workers};
        assert_int_equal(request_is_elsewhere(&request), rows[i].elsewhere);
        assert_int_equal(request_is_here(&request), rows[i].here);
        assert_int_equal(request_is_remote(&request), rows[i].remote);
        assert_int_equal(request_is_of_spec(&request), rows[i].of_spec);
    }
}

/* What is certain to fail at the job's end fails before its begin. */
static void reports_that_cannot_be_written(void **state)
{
    static const struct {
        const char *path; /* %s: the folder */
        int kind, code;
        const char *says;
    } rows[] = {
        {"%s/report", 0, 0, ""},
        {"/dev/null", 0, 0, ""},
        {"", DRARUN_ERR_USAGE, EINVAL, "--report: expected a file, got \"\""},
        {"-", DRARUN_ERR_USAGE, EINVAL,
         "--report -: expected a file: standard output is the ranks'; /dev/stdout puts the report "
         "behind it, ./- is a file of that name"},
        {"%s", DRARUN_ERR_INFRASTRUCTURE, EISDIR,
         "--report %s: it is a directory; name a file in it"},
        {"%s/nowhere/report", DRARUN_ERR_INFRASTRUCTURE, ENOENT,
         "--report %s/nowhere/report: no file can be made in %s/nowhere/: No such file or "
         "directory"},
        {"%s/plain/report", DRARUN_ERR_INFRASTRUCTURE, ENOTDIR,
         "--report %s/plain/report: no file can be made in %s/plain/: Not a directory"},
    };
    char folder[] = "/tmp/request_test.XXXXXX", plain[64];
    const struct job_request none = {0};
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(request_check_report(&none, &err), 0);
    assert_false(request_reports_to_file(&none));
    assert_non_null(mkdtemp(folder));
    snprintf(plain, sizeof plain, "%s/plain", folder);
    close(open(plain, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[128], says[512];
        struct buf text = BUF_INIT;
        const char *at = strstr(rows[i].path, "%s");
        snprintf(path, sizeof path, "%s%s", at ? folder : rows[i].path, at ? at + 2 : "");
        for (const char *rest = rows[i].says; *rest;) {
            at = strstr(rest, "%s");
            buf_add(&text, rest, at ? (size_t)(at - rest) : strlen(rest));
            buf_add_str(&text, at ? folder : "");
            rest = at ? at + 2 : "";
        }
        snprintf(says, sizeof says, "%s", text.data ? text.data : "");
        buf_done(&text);
        const struct job_request request = {.report_path = path};
        err = (struct drarun_error){0};
        assert_int_equal(request_check_report(&request, &err), -rows[i].code);
        assert_string_equal(err.text, says);
        assert_int_equal(err.kind, rows[i].kind);
    }
    tree_remove(AT_FDCWD, folder);
}

static void on_line(void *arg, const struct log_line *line)
{
    buf_add(arg, line->text + line->prefix, line->length - line->prefix);
}

/* A note where only the command says that a worker has one rank. */
static void ranks_that_a_command_counts(void **state)
{
    static char torchrun[] = "torchrun", shell[] = "sh", c[] = "-c", line[] = "torchrun a.py",
                program[] = "a";
    static char *const by_name[] = {torchrun, NULL}, *const by_shell[] = {shell, c, line, NULL},
                       *const other[] = {program, NULL};
    static const struct {
        char *const *argv;
        uint32_t ranks_per_worker, gpus;
        bool mpirun;
        uint32_t ranks;
        bool note;
    } rows[] = {
        {other, 0, 8, false, 8, false},    {other, 2, 8, false, 2, false},
        {by_name, 0, 8, false, 1, false},  {by_shell, 0, 8, false, 1, true},
        {by_shell, 0, 1, false, 1, false}, {by_shell, 2, 8, false, 2, false},
    };
    (void)state;
    log_setup("t", LOG_NORMAL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_INIT;
        const struct spec_role role = {.ranks_per_worker = rows[i].ranks_per_worker};
        log_divert(on_line, &text);
        uint32_t ranks = request_count_ranks(&role, rows[i].mpirun, rows[i].argv, rows[i].gpus);
        log_divert(NULL, NULL);
        assert_int_equal(ranks, rows[i].ranks);
        buf_add(&text, "", 1);
        assert_string_equal(
            text.data,
            rows[i].note
                ? "one rank on each worker, not one for each of its 8 GPUs: its command runs "
                  "torchrun, which starts the other processes; for another number set "
                  "ranksPerWorker or --ranks-per-worker\n"
                : "");
        buf_done(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_success_is_the_jobs),
        cmocka_unit_test(ranks_that_may_fail),
        cmocka_unit_test(pods_in_the_hosts_network),
        cmocka_unit_test(grace_that_ranks_have),
        cmocka_unit_test(signals_before_the_timeout),
        cmocka_unit_test(slots_of_a_worker),
        cmocka_unit_test(where_its_agents_are),
        cmocka_unit_test(reports_that_cannot_be_written),
        cmocka_unit_test(ranks_that_a_command_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
