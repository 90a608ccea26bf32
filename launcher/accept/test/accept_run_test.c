/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of tests, what their ends say, records, verdicts. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/accept/cluster.h"
#include "launcher/accept/job.h"
#include "launcher/accept/record.h"
#include "launcher/accept/show.h"
#include "launcher/accept/trial.h"
#include "launcher/files/spec_file.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/streams/sink.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define TABLE(wrong)                                                                               \
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 1 iters: 5 "    \
    "agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"                                    \
    "#  Rank  0 Group  0 Pid     10 on          a device  0 [0000:8f:00] NVIDIA B200\n"            \
    "#  Rank  1 Group  0 Pid     11 on          b device  0 [0000:8f:00] NVIDIA B200\n#\n"         \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "    \
    "time   algbw   busbw #wrong\n"                                                                \
    "        1024           256     float     sum      -1    10.00    0.10    0.10      0    "     \
    "10.00    0.10    0.10      0\n"                                                               \
    "        2048           512     float     sum      -1    10.00    0.20    0.20      " wrong    \
    "    10.00    0.20    0.30      0\n"                                                           \
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.17\n"

#define RANK(code, more)                                                                           \
    "{\"status\": " #code ", \"cause\": {\"kind\": \"exit\", \"exit\": " #code                     \
    ", \"text\": \"rank 3 on "                                                                     \
    "worker 1 (x) exited with status " #code " after 5 ms\"" more "}}"
#define FAILURE(code, error)                                                                       \
    "{\"status\": " #code ", \"cause\": {\"kind\": \"failure\", \"error\": \"" error               \
    "\", \"text\": \"what failed\"}}"

static struct cluster_end end_of(const char *report)
{
    struct cluster_end end = {.report = json_loads(report, 0, NULL)};
    assert_non_null(end.report);
    return end;
}

static const struct trial_shape pair = {.workers = 2, .ranks = 2};

static struct accept_answer judge(const char *report, const char *out)
{
    struct cluster_end end = end_of(report);
    struct accept_answer answer = {0};
    struct drarun_error fatal = {0};
    assert_int_equal(trial_judge(&end, &pair, out, strlen(out), &answer, &fatal), 0);
    json_decref(end.report);
    return answer;
}

static struct accept_answer succeed(const char *out)
{
    return judge("{\"status\": 0, \"cause\": null}", out);
}

static void test_best_row_counts(void **state)
{
    (void)state;
    struct accept_answer answer = succeed(TABLE("0"));
    assert_int_equal(answer.outcome, ACCEPT_MEASURED);
    assert_true(answer.busbw > 0.299 && answer.busbw < 0.301);
}

static void test_wrong_data_fails(void **state)
{
    (void)state;
    struct accept_answer answer = succeed(TABLE("7"));
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_string_equal(answer.reason, "its data was wrong");
    answer = judge(RANK(1, ""), TABLE("7"));
    assert_string_equal(answer.reason, "its data was wrong");
    answer = judge(RANK(1, ""), TABLE("7") "# Wrong data of        : rank 1 on b (NVIDIA B200 "
                                           "0000:8f:00): 7 elements\n");
    assert_string_equal(answer.reason, "its data was wrong: rank 1 on b (NVIDIA B200 0000:8f:00): "
                                       "7 elements");
    assert_true(answer.ran); /* the job is not to blame */
    answer = judge(RANK(1, ""), TABLE("0") "# Avg bus bandwidth    : 0.17 FAILED\n");
    assert_string_equal(answer.reason, "the average, 0.17 GB/s, is below what the benchmark was "
                                       "told to reach");
    assert_true(answer.ran);
    answer = succeed("hello\n");
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_non_null(strstr(answer.reason, "no figure"));
    assert_false(answer.ran);
}

/* A test that ends with 0 all the same, as behind a pipe. */
static void test_run_without_an_end_fails(void **state)
{
    static const char died[] = TABLE("0"), *end = "# Out of bounds";
    char text[2 * sizeof died];
    (void)state;
    snprintf(text, sizeof text, "%.*s", (int)(strstr(died, end) - died), died);
    struct accept_answer answer = succeed(text);
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_non_null(strstr(answer.reason, "the run did not end, after 2 sizes"));
    snprintf(text, sizeof text, "%sb: Test NCCL failure x.cu:1 'internal error / '\n", died);
    answer = succeed(text);
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_non_null(strstr(answer.reason, "the run failed on b: Test NCCL failure x.cu:1"));
    snprintf(text, sizeof text, "%.*s%s", (int)(strstr(died, end) - died), died, died);
    assert_int_equal(succeed(text).outcome, ACCEPT_FAILED); /* the last one is complete */
    snprintf(text, sizeof text, "%s%s", died, died);
    assert_int_equal(succeed(text).outcome, ACCEPT_MEASURED);
}

static void test_errors_of_devices(void **state)
{
    (void)state;
    static const char looked[] = TABLE("0") "# Errors looked for on : RDMA ports: 2\n";
    struct accept_answer answer = succeed(looked);
    assert_int_equal(answer.outcome, ACCEPT_MEASURED);
    assert_string_equal(answer.not_looked, "");
    answer = succeed(TABLE("0"));
    assert_int_equal(answer.outcome, ACCEPT_MEASURED);
    assert_non_null(strstr(answer.not_looked, "output does not tell of them"));
    answer = succeed(TABLE("0") "# Errors looked for on : RDMA ports: 2\n"
                                "# Errors not looked for : GPUs: no NVML in the image\n"
                                "# Errors of devices : n1: mlx5_0 port 1 symbol_error +3\n"
                                "# Errors of devices : n1: mlx5_1 port 1 symbol_error +9\n");
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_string_equal(answer.reason, "errors were counted while it ran: n1: mlx5_0 port 1 "
                                       "symbol_error +3, and others");
    assert_string_equal(answer.not_looked, "GPUs: no NVML in the image");
    assert_true(answer.ran && answer.busbw > 0.299);
}

static void test_end_of_a_job(void **state)
{
    (void)state;
    struct accept_answer answer =
        judge(RANK(9, ", \"stderr\": \"first\\nNCCL WARN cuda failure\\n\""), "");
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_string_equal(
        answer.reason,
        "rank 3 on worker 1 (x) exited with status 9 after 5 ms: NCCL WARN cuda failure");
    answer = judge(FAILURE(70, "infrastructure"), "");
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_string_equal(answer.reason, "what failed");
    assert_false(answer.refused);
    answer = judge(FAILURE(76, "preflight"), "");
    assert_true(answer.outcome == ACCEPT_FAILED && answer.refused);
    assert_int_equal(judge(FAILURE(69, "cluster"), "").outcome, ACCEPT_NOT_RUN);
    assert_int_equal(judge(FAILURE(75, "capacity"), "").outcome, ACCEPT_NOT_RUN);
    answer = judge("{\"status\": 129, \"cause\": {\"kind\": \"interrupted\", \"signal\": 1}}", "");
    assert_int_equal(answer.outcome, ACCEPT_NOT_RUN);
    assert_string_equal(answer.reason, "the job ended without a word");
    answer = judge("{\"status\": 137, \"cause\": {\"kind\": \"pod\", \"end\": \"oom\", \"text\": "
                   "\"worker 0 was killed\"}}",
                   "");
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    answer = judge("{\"status\": 65, \"cause\": {\"kind\": \"pod\", \"text\": \"it is lost\"}}",
                   ""); /* which no rank has said */
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    answer =
        judge("{\"status\": 70, \"cause\": {\"kind\": \"launcher-lost\", \"text\": \"launcher a "
              "was lost\"}}",
              ""); /* its Lease, or its node */
    assert_int_equal(answer.outcome, ACCEPT_NOT_RUN);
    assert_string_equal(answer.reason, "launcher a was lost");
}

/* Its number is a rank's word, and no failure of ours. */
static void test_status_of_a_rank(void **state)
{
    struct accept_answer answer = {0};
    struct drarun_error fatal = {0};
    (void)state;
    assert_int_equal(judge(RANK(69, ""), "").outcome, ACCEPT_FAILED);
    assert_int_equal(judge(RANK(75, ""), "").outcome, ACCEPT_FAILED);
    assert_false(judge(RANK(76, ""), "").refused);
    assert_int_equal(judge(RANK(143, ""), "").outcome, ACCEPT_NOT_RUN); /* somebody ended it */
    struct cluster_end end = end_of(RANK(64, ", \"stderr\": \"-b x: expected a size\""));
    assert_int_equal(trial_judge(&end, &pair, "", 0, &answer, &fatal), -EINVAL);
    assert_int_equal(fatal.kind, DRARUN_ERR_SPEC);
    assert_string_equal(fatal.text, "the job of a test is refused: rank 3 on worker 1 (x) exited "
                                    "with status 64 after 5 ms: -b x: expected a size");
    json_decref(end.report);
}

#define HEAD "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1024\n# Using devices\n"
#define OF(rank, host)                                                                             \
    "#  Rank  " rank " Group  0 Pid     10 on          " host                                      \
    " device  0 [0000:8f:00] NVIDIA B200\n"
#define ROW                                                                                        \
    "        1024           256     float     sum      -1    10.00    0.10    9.00      0    "     \
    "10.00    0.10    9.00      0\n"
#define END "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 9\n"

/* nccl-tests without MPI: a pair's figures would be those of one node. */
static void test_processes_that_measured_alone(void **state)
{
    static const struct trial_shape one = {.workers = 1, .ranks = 1},
                                    eight = {.workers = 1, .ranks = 8};
    static const struct {
        const struct trial_shape *shape;
        const char *out, *why;
    } rows[] = {
        {&pair, HEAD OF("0", "a") OF("1", "b") ROW END, NULL},
        {&pair, HEAD OF("0", "a") HEAD OF("0", "b") ROW END ROW END, "rank 0 is on a and on b"},
        {&pair, HEAD HEAD OF("0", "a") OF("0", "b") ROW ROW END END, "rank 0 is there 2 times"},
        {&pair, HEAD OF("0", "a") OF("1", "a") ROW END, "all ranks are on a, of 2 workers"},
        {&eight, HEAD OF("0", "a") ROW END HEAD OF("0", "a") ROW END, "one rank measured, of 8"},
        {&eight, HEAD OF("0", "a") OF("1", "a") ROW END HEAD OF("0", "a") OF("1", "a") ROW END,
         NULL},
        {&one, HEAD OF("0", "a") ROW END, NULL},
        /* a job that began again */
        {&pair, HEAD OF("0", "a") OF("1", "b") ROW END HEAD OF("0", "b") OF("1", "a") ROW END,
         NULL},
        /* each node, then both */
        {&pair,
         HEAD OF("0", "a") ROW END HEAD OF("0", "b") ROW END HEAD OF("0", "a") OF("1", "b") ROW END,
         NULL},
        {&pair, HEAD ROW END, NULL}, /* no rank is known */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_end end = end_of("{\"status\": 0, \"cause\": null}");
        struct accept_answer answer = {0};
        struct drarun_error fatal = {0};
        int rc =
            trial_judge(&end, rows[i].shape, rows[i].out, strlen(rows[i].out), &answer, &fatal);
        assert_int_equal(rc, rows[i].why ? -EINVAL : 0);
        if (rows[i].why)
            assert_non_null(strstr(fatal.text, rows[i].why));
        else
            assert_int_equal(answer.outcome, ACCEPT_MEASURED);
        json_decref(end.report);
    }
    struct cluster_end end = end_of(RANK(1, ""));
    struct accept_answer answer = {0};
    struct drarun_error fatal = {0};
    static const char out[] = HEAD HEAD OF("0", "a") OF("0", "b") ROW;
    assert_int_equal(trial_judge(&end, &pair, out, strlen(out), &answer, &fatal), -EINVAL);
    assert_int_equal(fatal.kind, DRARUN_ERR_SPEC);
    assert_non_null(strstr(fatal.text, "nccl-tests must be built with MPI=1"));
    /* each node, and both were to follow: the wire between them may be what is broken */
    static const char before[] = HEAD OF("0", "a") ROW END HEAD OF("0", "b") ROW END;
    assert_int_equal(trial_judge(&end, &pair, before, strlen(before), &answer, &fatal), 0);
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    json_decref(end.report);
}

/* It says nothing of a node, and would name all of them. */
static void test_least_of_one_rank(void **state)
{
    const struct trial_shape one = {.workers = 1, .ranks = 1, .floor_alone = 40};
    static const char out[] = HEAD OF("0", "a") "1024 256 float sum -1 5.00 0.20 0.00 0 "
                                                "5.00 0.20 0.00 0\n" END,
                      root[] = HEAD OF("0", "a") ROW END;
    struct cluster_end end = end_of("{\"status\": 0, \"cause\": null}");
    struct accept_answer answer = {0};
    struct drarun_error fatal = {0};
    (void)state;
    assert_int_equal(trial_judge(&end, &one, root, strlen(root), &answer, &fatal), 0);
    assert_int_equal(trial_judge(&end, &one, out, strlen(out), &answer, &fatal), -EINVAL);
    assert_int_equal(fatal.kind, DRARUN_ERR_USAGE);
    assert_non_null(strstr(fatal.text, "--min-alone 40: the bus bandwidth of one rank is 0"));
    json_decref(end.report);
}

/* There was no end of a job. */
static void test_run_that_fails(void **state)
{
    static const struct {
        struct drarun_error err;
        int rc;
        enum accept_outcome outcome;
        const char *reason;
    } rows[] = {
        {{.code = EACCES, .kind = DRARUN_ERR_CLUSTER, .text = "quota"}, 0, ACCEPT_NOT_RUN, "quota"},
        {{.code = ETIMEDOUT, .kind = DRARUN_ERR_CAPACITY, .text = "no room"},
         0,
         ACCEPT_NOT_RUN,
         "no room"},
        {{.code = ECANCELED, .kind = DRARUN_ERR_INTERRUPTED, .text = "the job was cancelled"},
         0,
         ACCEPT_NOT_RUN,
         "the job was cancelled"},
        {{.code = EIO, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "its output was not read"},
         0,
         ACCEPT_NOT_RUN,
         "its output was not read"},
        {{.code = ETIMEDOUT, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "no answer within 60 s"},
         0,
         ACCEPT_NOT_RUN,
         "no answer within 60 s"},
        {{.code = EBUSY, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "the job's Lease is lost"},
         0,
         ACCEPT_NOT_RUN,
         "the job's Lease is lost"},
        {{.code = ETIME,
          .kind = DRARUN_ERR_INFRASTRUCTURE,
          .text = "the launcher has not started within 5 min (timeouts.imagePull)"},
         0,
         ACCEPT_NOT_RUN,
         "the launcher has not started within 5 min (timeouts.imagePull)"},
        {{.code = ECONNREFUSED, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "no API server"},
         0,
         ACCEPT_NOT_RUN,
         "no API server"},
        {{.code = ECONNRESET, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "its answer was lost"},
         0,
         ACCEPT_NOT_RUN,
         "its answer was lost"},
        {{.code = EINVAL, .kind = DRARUN_ERR_SPEC, .text = "image x: InvalidImageName"},
         -EINVAL,
         ACCEPT_MEASURED,
         "the job of a test is refused: image x: InvalidImageName"},
        {{.code = ENOENT, .kind = DRARUN_ERR_USAGE, .text = "no kubeconfig"},
         -EINVAL,
         ACCEPT_MEASURED,
         "the job of a test is refused: no kubeconfig"},
        {{0}, 0, ACCEPT_NOT_RUN, "the job ended without a word"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cluster_end end = {.err = rows[i].err};
        struct accept_answer answer = {0};
        struct drarun_error fatal = {0};
        assert_int_equal(
            trial_judge(&end, &pair, TABLE("0"), sizeof TABLE("0") - 1, &answer, &fatal),
            rows[i].rc);
        assert_int_equal(answer.outcome, rows[i].outcome);
        assert_string_equal(rows[i].rc ? fatal.text : answer.reason, rows[i].reason);
    }
}

/* An image that is not there yet says nothing of its node. */
static void test_end_that_comes_late(void **state)
{
    const struct trial_wait pulls = {.pulls = true,
                                     .reason = "waiting 9 s for 1 worker (1): image x:1 of the "
                                               "ranks is being pulled; pods 1/2 running"},
                            hangs = {.reason = "waiting 9 s for 1 worker (1): its node does not "
                                               "answer"};
    struct accept_answer answer = {0};
    (void)state;
    trial_judge_late(false, &pulls, 900000, &answer);
    assert_int_equal(answer.outcome, ACCEPT_NOT_RUN);
    assert_string_equal(answer.reason,
                        "no rank had printed anything after 15 min: waiting 9 s for 1 worker "
                        "(1): image x:1 of the ranks is being pulled; pods 1/2 running");
    trial_judge_late(false, &hangs, 900000, &answer); /* it was pulled, and its agent hangs */
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_string_equal(answer.reason, "it had not ended after 15 min");
    trial_judge_late(true, &pulls, 900000, &answer); /* it was there for an earlier attempt */
    assert_int_equal(answer.outcome, ACCEPT_FAILED);
    assert_string_equal(answer.reason, "it had not ended after 15 min");
}

static void test_what_is_waited_for(void **state)
{
#define LINES(lines)                                                                               \
    "{\"phase\": \"pulling\", \"workers\": {\"lines\": [" lines "]}, \"waiting\": {\"text\": "     \
    "\"waiting: for it\"}}"
    static const struct {
        const char *doc;
        bool pulls;
    } rows[] = {
        {LINES("{\"phase\": \"running\"}, {\"phase\": \"pulling\"}"), true},
        {LINES("{\"phase\": \"running\"}, {\"phase\": \"bound\"}"), false},
        {LINES("{\"phase\": \"pulling\", \"reason\": \"ErrImagePull\"}"), false},
        {LINES("3"), false},
    };
    struct trial_wait wait;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *doc = json_loads(rows[i].doc, 0, NULL);
        assert_non_null(doc);
        trial_wait_read(doc, &wait);
        assert_int_equal(wait.pulls, rows[i].pulls);
        assert_string_equal(wait.reason, "waiting: for it");
        json_decref(doc);
    }
    trial_wait_read(NULL, &wait);
    assert_false(wait.pulls);
    assert_string_equal(wait.reason, "");
}

/* What a job waits for before it has its nodes is not the test's time. */
static void test_time_of_waiting(void **state)
{
    static const struct {
        const char *doc;
        struct trial_wait wait;
    } table[] = {
        {"{\"phase\": \"queued\", \"timings\": {\"queued\": 9}}", {.waits = true, .waited_ms = 9}},
        {"{\"phase\": \"placing\", \"timings\": {\"queued\": 9, \"placing\": 5}}",
         {.waits = true, .waited_ms = 14}},
        {"{\"phase\": \"releasing\"}", {.waits = true}},
        {"{\"phase\": \"running\", \"timings\": {\"queued\": 9, \"placing\": 5, \"pulling\": 100, "
         "\"releasing\": 1, \"running\": 50}}",
         {.waited_ms = 15}},
        {"{\"phase\": \"running\", \"attempt\": 3, \"timings\": {\"placing\": 5, \"running\": 50}, "
         "\"history\": [{\"attempt\": 1, \"timings\": {\"queued\": 100, \"running\": 7}}, "
         "{\"attempt\": 2, \"timings\": {\"placing\": 20, \"releasing\": 3}}]}",
         {.waited_ms = 128}},
        {"{\"phase\": \"running\", \"attempt\": 3, \"timings\": {\"placing\": 5}, "
         "\"history\": [{\"attempt\": 2, \"timings\": {\"queued\": 20}}]}",
         {.unknown = true, .waited_ms = 25}},
        /* attempt 2 goes on with the wait of attempt 1; attempt 3 is a restart */
        {"{\"phase\": \"running\", \"attempt\": 3, \"updated\": \"2026-11-28T10:00:20Z\", "
         "\"timings\": {\"placing\": 2000, \"running\": 8000}, \"history\": [{\"attempt\": 1, "
         "\"updated\": \"2026-11-28T10:00:05Z\", \"timings\": {\"placing\": 4000, "
         "\"releasing\": 1000}}, {\"attempt\": 2, \"updated\": \"2026-11-28T10:00:10Z\", "
         "\"timings\": {\"placing\": 5000, \"releasing\": 2000, \"running\": 3000}}]}",
         {.waited_ms = 9000}},
        {"{}", {.not_led = true}},
    };
    struct trial_wait wait;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        json_t *doc = json_loads(table[i].doc, 0, NULL);
        assert_non_null(doc);
        trial_wait_read(doc, &wait);
        assert_int_equal(wait.waits, table[i].wait.waits);
        assert_int_equal(wait.not_led, table[i].wait.not_led);
        assert_int_equal(wait.unknown, table[i].wait.unknown);
        assert_int_equal(wait.waited_ms, table[i].wait.waited_ms);
        json_decref(doc);
    }
    trial_wait_read(NULL, &wait);
    assert_true(wait.not_led);
}

static void test_time_that_is_left(void **state)
{
    const struct trial_wait ran = {0}, waited = {.waited_ms = 900}, waits = {.waits = true},
                            none = {.not_led = true}, unknown = {.unknown = true};
    unsigned looks = 1;
    (void)state;
    assert_int_equal(trial_left(&ran, 1000, 1000, 0), 0);
    assert_int_equal(trial_left(&waited, 1000, 1000, 0), 900);
    assert_int_equal(trial_left(&waits, 1000, 9000, 0), 1000);
    assert_int_equal(trial_left(&none, 1000, 1000, 0), 0);
    while (trial_left(&unknown, 1000, 1000, looks) > 0 && looks < 100)
        looks++;
    assert_in_range(looks, 2, 99); /* an outage may pass, and a job must end */
}

/* ---- jobs ---- */

static json_t *base_of(const char *text)
{
    struct drarun_error err = {0};
    json_t *given = json_loads(text, 0, NULL), *base = NULL;
    assert_non_null(given);
    if (accept_job_base(given, &base, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(given);
    return base;
}

static void test_job_is_put_on_its_nodes(void **state)
{
    (void)state;
    json_t *base = base_of(
        "{\"image\": \"i\", \"command\": [\"c\"], \"devices\": {\"gpus\": {\"count\": 8}}}");
    const struct accept_place place = {
        .name = "accept-1", .run = "r", .nodes = {"a", "b"}, .count = 2, .priority_class = "low"};
    json_t *job = accept_job_make(base, &place),
           *wanted = json_loads(
               "{\"apiVersion\": \"drarun.dev/v1alpha1\", \"kind\": \"DraJob\", "
               "\"metadata\": {\"name\": \"accept-1\", "
               "\"labels\": {\"drarun-accept\": \"r\"}}, \"spec\": {\"workers\": 2, "
               "\"placement\": {\"spread\": \"node\"}, "
               "\"devices\": {\"gpus\": "
               "{\"count\": 8}}, \"onPreflightWarning\": \"fail\", "
               "\"failurePolicy\": {\"rules\": "
               "[{\"on\": {\"cause\": \"preempted\"}, \"action\": \"ignore\"}, "
               "{\"on\": {\"cause\": \"evicted\"}, \"action\": \"ignore\"}]}, "
               "\"ttlSecondsAfterFinished\": 0, \"timeouts\": "
               "{\"queue\": \"5m\", \"nodes\": \"5m\", \"allocation\": \"5m\"}, \"template\": "
               "{\"spec\": {\"containers\": "
               "[{\"name\": \"worker\", \"image\": "
               "\"i\", \"command\": [\"c\"]}], \"priorityClassName\": \"low\", \"tolerations\": "
               "[{\"key\": \"drarun.dev/unfit\", \"operator\": \"Exists\"}], "
               "\"affinity\": {\"nodeAffinity\": "
               "{\"requiredDuringSchedulingIgnoredDuringExecution\": "
               "{\"nodeSelectorTerms\": [{\"matchFields\": "
               "[{\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": "
               "[\"a\"]}]}, {\"matchFields\": "
               "[{\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": "
               "[\"b\"]}]}]}}}}}}}",
               0, NULL);
    assert_non_null(wanted);
    if (!json_equal(job, wanted))
        fail_msg("%s", json_dumps(job, 0));
    json_decref(wanted);
    json_decref(job);
    json_decref(base);
}

static void test_what_the_operator_says_stays(void **state)
{
    (void)state;
    json_t *base = base_of(
        "{\"apiVersion\": \"drarun.dev/v1alpha1\", \"kind\": \"DraJob\", "
        "\"spec\": {\"timeouts\": {\"queue\": \"1h\"}, \"failurePolicy\": {\"restarts\": 1}, "
        "\"onPreflightWarning\": \"report\", \"template\": {\"spec\": "
        "{\"tolerations\": [{\"key\": \"k\"}], "
        "\"containers\": [{\"image\": \"x\", \"command\": [\"y\"]}]}}}}");
    const struct accept_place place = {.name = "n", .run = "r", .nodes = {"a"}, .count = 1};
    json_t *job = accept_job_make(base, &place), *spec = json_object_get(job, "spec");
    json_t *pod = json_object_get(json_object_get(spec, "template"), "spec");
    assert_string_equal(json_string_value(json_object_get(spec, "onPreflightWarning")), "report");
    assert_null(json_object_get(json_object_get(spec, "timeouts"), "allocation"));
    assert_null(json_object_get(json_object_get(spec, "failurePolicy"), "rules"));
    assert_int_equal(json_array_size(json_object_get(pod, "tolerations")), 2);
    assert_null(json_object_get(pod, "priorityClassName"));
    assert_null(json_object_get(json_object_get(pod, "affinity"), "podAntiAffinity"));
    json_decref(job);
    json_decref(base);
}

/* ---- nodes ---- */

static void assert_why_not(const char *node, const char *pod, const char *expected)
{
    json_t *object = json_loads(node, 0, NULL), *spec = pod ? json_loads(pod, 0, NULL) : NULL;
    assert_true(object && (spec || !pod));
    json_t *why = accept_why_not(object, spec);
    if (expected)
        assert_string_equal(json_string_value(why), expected);
    else
        assert_null(why);
    json_decref(why);
    json_decref(spec);
    json_decref(object);
}

#define READY(status)                                                                              \
    ", \"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": \"" status "\"}]}}"
#define TAINTED(key, effect)                                                                       \
    "{\"spec\": {\"taints\": [{\"key\": \"nvidia.com/gpu\", \"effect\": \"NoSchedule\"}, "         \
    "{\"key\": \"node-role.kubernetes.io/" key "\", \"effect\": \"" effect "\"}]}" READY("True")

static void test_nodes_that_cannot_be_tested(void **state)
{
    static const char tolerant[] = "{\"tolerations\": [{\"operator\": \"Exists\"}]}";
    (void)state;
    assert_why_not("{\"spec\": {}" READY("True"), "{}", NULL);
    assert_why_not("{\"spec\": {}" READY("Unknown"), "{}", "it is not ready");
    assert_why_not("{\"spec\": {}}", "{}", "it has never been ready");
    assert_why_not("{\"spec\": {\"unschedulable\": true}" READY("True"), NULL, "it is cordoned");
    assert_why_not(TAINTED("control-plane", "PreferNoSchedule"), "{}", NULL);
    assert_why_not(TAINTED("control-plane", "NoSchedule"), tolerant, NULL);
    assert_why_not(TAINTED("master", "NoSchedule"), "{}",
                   "the job does not tolerate its taint node-role.kubernetes.io/master: give the "
                   "job a toleration, or choose the nodes with --nodes");
    assert_why_not(TAINTED("control-plane", "NoSchedule"), NULL, NULL); /* the user has named it */
    assert_why_not(TAINTED("gpu", "NoSchedule"), "{}", NULL); /* a webhook may tolerate it */
}

/* ---- the process of a job ---- */

/* Of the process of a job, in memory that it shares with us. */
struct stops {
    volatile sig_atomic_t signals, over;
};
static struct stops *stops;

static void on_stop(int signo)
{
    (void)signo;
    stops->signals++;
}

static void count_stops(void)
{
    struct sigaction count = {.sa_handler = on_stop};
    sigaction(SIGTERM, &count, NULL);
    stops->signals = 0;
    stops->over = -1; /* it counts */
    while (stops->over != 1)
        usleep(1000);
}

/* In the place of drarun-cluster's, by the name of the job. */
static int run_job(const struct cluster_run *run)
{
    const char *name = run->spec->job.name;
    size_t tables = strcmp(name, "talks") == 0 ? 10000 : 1;
    struct buf shown = BUF_INIT;
    if (!run->here || strcmp(run->image, "agent:1") != 0)
        return error_kind(&run->ret_end->err, DRARUN_ERR_USAGE, EINVAL, "it is not as asked for");
    if (strcmp(name, "killed") == 0)
        raise(SIGKILL);
    while (strcmp(name, "hangs") == 0)
        pause();
    if (strcmp(name, "counts") == 0)
        count_stops();
    if (strcmp(name, "no-api") == 0)
        return error_kind(&run->ret_end->err, DRARUN_ERR_CLUSTER, EACCES, "no rights");
    signal(SIGTERM, SIG_IGN); /* a job that is ended so comes to an end */
    for (size_t i = 0; i < tables; i++)
        run->reader->read(run->reader->arg, TABLE("0"), sizeof TABLE("0") - 1, &shown);
    run->reader->end(run->reader->arg, &shown);
    run->ret_end->report = json_pack("{s:i, s:n}", "status", 0, "cause");
    return 0;
}

struct ended {
    bool ended, fatal;
    struct accept_answer answer;
};

static void on_answer(const struct accept_answer *answer, const struct drarun_error *fatal,
                      void *arg)
{
    *(struct ended *)arg = (struct ended){true, fatal != NULL, *answer};
}

static const struct accept_order asked = {
    .image = "agent:1", .here = true, .timeout_ms = 60000, .run = run_job};

static void test_process_of_a_job(void **state)
{
    static const struct {
        const char *name;
        enum accept_outcome outcome;
        const char *reason;
        bool stop;
    } rows[] = {
        {"measures", ACCEPT_MEASURED, "", false},
        {"no-api", ACCEPT_NOT_RUN, "no rights", false},
        {"killed", ACCEPT_NOT_RUN, "the process that ran its job was killed", false},
        {"hangs", ACCEPT_NOT_RUN, "the process that ran its job was killed", true},
        {"talks", ACCEPT_FAILED,
         "its ranks printed more than 1 MiB to standard output: let them print less, as with "
         "NCCL_DEBUG=WARN",
         false},
    };
    struct event_base *loop = event_base_new();
    json_t *base = base_of("{\"image\": \"i\", \"command\": [\"c\"]}");
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct accept_place place = {
            .name = rows[i].name, .run = "r", .nodes = {"a"}, .count = 1};
        struct drarun_error err = {0};
        struct ended ended = {0};
        struct trial *trial = NULL;
        json_t *job = accept_job_make(base, &place);
        if (trial_start(loop, &asked, job, on_answer, &ended, &trial, &err) < 0)
            fail_msg("%s: %s", rows[i].name, err.text);
        json_decref(job);
        if (rows[i].stop)
            trial_stop(trial);
        while (!ended.ended)
            event_base_loop(loop, EVLOOP_ONCE);
        assert_false(ended.fatal);
        assert_string_equal(ended.answer.reason, rows[i].reason);
        assert_int_equal(ended.answer.outcome, rows[i].outcome);
    }
    json_decref(base);
    event_base_free(loop);
}

/* A second signal would mean that the job is left as it is. */
static void test_stopped_twice(void **state)
{
    struct event_base *loop = event_base_new();
    json_t *base = base_of("{\"image\": \"i\", \"command\": [\"c\"]}");
    const struct accept_place place = {.name = "counts", .run = "r", .nodes = {"a"}, .count = 1};
    struct drarun_error err = {0};
    struct ended ended = {0};
    struct trial *trial = NULL;
    json_t *job = accept_job_make(base, &place);
    (void)state;
    stops = mmap(NULL, sizeof *stops, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(stops != MAP_FAILED);
    if (trial_start(loop, &asked, job, on_answer, &ended, &trial, &err) < 0)
        fail_msg("%s", err.text);
    while (stops->over == 0)
        usleep(1000);
    trial_stop(trial);
    while (stops->signals == 0)
        usleep(1000);
    trial_stop(trial);
    stops->over = 1;
    while (!ended.ended)
        event_base_loop(loop, EVLOOP_ONCE);
    assert_int_equal(ended.answer.outcome, ACCEPT_MEASURED);
    assert_int_equal(stops->signals, 1);
    munmap(stops, sizeof *stops);
    json_decref(job);
    json_decref(base);
    event_base_free(loop);
}

static void test_job_that_is_none(void **state)
{
    struct event_base *loop = event_base_new();
    struct drarun_error err = {0};
    struct ended ended = {0};
    struct trial *trial = NULL;
    json_t *job =
        json_loads("{\"spec\": {\"image\": \"i\", \"command\": [\"c\"], \"wrkers\": 1}}", 0, NULL);
    (void)state;
    assert_true(trial_start(loop, &asked, job, on_answer, &ended, &trial, &err) < 0);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_int_equal(strncmp(err.text, "the job of a test is refused: its spec:", 39), 0);
    assert_non_null(strstr(err.text, "wrkers"));
    json_decref(job);
    event_base_free(loop);
}

/* ---- records ---- */

struct bed {
    char dir[64];
    struct strlist names;
    json_t *nodes, *order;
};

static struct bed bed_new(void)
{
    struct bed bed = {.dir = "/tmp/accept-test-XXXXXX",
                      .nodes = json_pack("{s:s, s:s}", "n0", "uid-a", "n1", "uid-b"),
                      .order = json_pack("{s:i}", "a", 1)};
    assert_non_null(mkdtemp(bed.dir));
    strlist_add(&bed.names, "n0");
    strlist_add(&bed.names, "n1");
    return bed;
}

static void bed_done(struct bed *bed)
{
    tree_remove(AT_FDCWD, bed->dir);
    strlist_done(&bed->names);
    json_decref(bed->nodes);
    json_decref(bed->order);
}

static struct record *open_again(const struct bed *bed, bool again)
{
    struct drarun_error err = {0};
    struct record *record = NULL;
    if (record_open(bed->dir, bed->nodes, bed->order, again, &record, &err) < 0)
        fail_msg("%s", err.text);
    return record;
}

static void add(struct record *record, unsigned wave, const char *a, const char *b, double busbw)
{
    struct drarun_error err = {0};
    const char *names[2] = {a, b};
    struct accept_answer answer = {.outcome = ACCEPT_MEASURED, .busbw = busbw};
    assert_int_equal(record_add(record, wave, names, &answer, &err), 0);
}

static double found(const struct record *record, unsigned wave, const char *a, const char *b)
{
    const char *names[2] = {a, b};
    struct accept_answer answer;
    return record_find(record, wave, names, &answer) ? answer.busbw : -1;
}

static void test_record_goes_on(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct record *record = open_again(&bed, false);
    char path[600], run[16];
    snprintf(path, sizeof path, "%s", record_path(record));
    snprintf(run, sizeof run, "%s", record_run(record));
    add(record, 1, "n0", NULL, 5);
    add(record, 1, "n1", NULL, 6);
    record_free(record);
    FILE *file = fopen(path, "a"); /* killed in the middle of a line */
    fputs("{\"kind\":\"test\",\"wave\":2,\"no", file);
    fclose(file);
    record = open_again(&bed, false);
    assert_string_equal(record_path(record), path);
    assert_string_equal(record_run(record), run);
    assert_int_equal(record_known(record), 2);
    assert_true(found(record, 1, "n1", NULL) == 6 && found(record, 2, "n0", "n1") < 0);
    add(record, 2, "n0", "n1", 7);
    record_free(record);
    record = open_again(&bed, false);
    assert_true(found(record, 2, "n0", "n1") == 7);
    const char *again[2] = {"n0", NULL};
    struct accept_answer ran = {.outcome = ACCEPT_FAILED, .ran = true, .refused = true}, read;
    struct drarun_error err = {0};
    assert_int_equal(record_add(record, 3, again, &ran, &err), 0);
    snprintf(ran.reason, sizeof ran.reason, "b: Test NCCL failure '\xc3\xa9\xc3"); /* cut */
    assert_int_equal(record_add(record, 4, again, &ran, &err), 0);
    record_free(record);
    record = open_again(&bed, false);
    assert_true(record_find(record, 4, again, &read));
    assert_string_equal(read.reason, "b: Test NCCL failure '\xc3\xa9?");
    assert_true(record_find(record, 3, again, &read) && read.ran && read.refused);
    record_free(record);
    record = open_again(&bed, true);
    assert_int_equal(record_known(record), 0);
    record_free(record);
    bed_done(&bed);
}

/* Two that wrote one record would run each test twice, and mix their lines. */
static void test_record_in_use(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct drarun_error err = {0};
    struct record *record = open_again(&bed, false), *second = NULL;
    assert_int_equal(record_open(bed.dir, bed.nodes, bed.order, false, &second, &err), -EBUSY);
    assert_non_null(strstr(err.text, "another drarun accept is running these tests: it writes /"));
    second = open_again(&bed, true);
    assert_string_not_equal(record_path(second), record_path(record));
    record_free(second);
    record_free(record);
    bed_done(&bed);
}

#define STARTED 8

/* One that is started with others: 'y' when it has a record of its own. */
static void start_one(const struct bed *bed, const int start[2], const int said[2],
                      const int hold[2])
{
    struct drarun_error err = {0};
    struct record *record = NULL;
    char byte;
    if (fork() != 0)
        return;
    close(start[1]);
    close(hold[1]);
    (void)!read(start[0], &byte, 1);
    byte = record_open(bed->dir, bed->nodes, bed->order, false, &record, &err) == 0 ? 'y'
           : err.code == EBUSY                                                      ? 'n'
                                                                                    : '?';
    (void)!write(said[1], &byte, 1);
    (void)!read(hold[0], &byte, 1);
    _exit(0);
}

static void test_records_of_one_moment(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    int start[2], said[2], hold[2], with_record = 0;
    assert_true(pipe(start) == 0 && pipe(said) == 0 && pipe(hold) == 0);
    for (int i = 0; i < STARTED; i++)
        start_one(&bed, start, said, hold);
    close(start[1]);
    for (int i = 0; i < STARTED; i++) {
        char byte = 0;
        assert_int_equal(read(said[0], &byte, 1), 1);
        assert_true(byte == 'y' || byte == 'n');
        with_record += byte == 'y';
    }
    assert_int_equal(with_record, 1);
    close(hold[1]);
    for (int i = 0; i < STARTED; i++)
        wait(NULL);
    for (int i = 0; i < 2; i++)
        close(said[i]);
    close(start[0]);
    close(hold[0]);
    bed_done(&bed);
}

static void test_other_order_begins_anew(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct record *record = open_again(&bed, false);
    add(record, 1, "n0", NULL, 5);
    record_free(record);
    json_object_set_new(bed.order, "a", json_integer(2));
    record = open_again(&bed, false);
    assert_int_equal(record_known(record), 0);
    record_free(record);
    bed_done(&bed);
}

/* Of another cluster whose nodes have the same names, or of a node that was replaced. */
static void test_other_nodes_begin_anew(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct record *record = open_again(&bed, false);
    add(record, 1, "n0", NULL, 5);
    record_free(record);
    json_object_set_new(bed.nodes, "n1", json_string("uid-c"));
    record = open_again(&bed, false);
    assert_int_equal(record_known(record), 0);
    record_free(record);
    json_object_set_new(bed.nodes, "n1", json_string("uid-b"));
    record = open_again(&bed, false);
    assert_int_equal(record_known(record), 1);
    record_free(record);
    bed_done(&bed);
}

static void test_history(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct drarun_error err = {0};
    json_t *verdict = json_loads("{\"nodes\": [{\"name\": \"n0\", \"state\": \"bad\"}, {\"name\": "
                                 "\"n1\", \"state\": \"passed\"}]}",
                                 0, NULL);
    for (int i = 0; i < 3; i++) {
        struct record *record = open_again(&bed, false);
        assert_int_equal(record_known(record), 0); /* one that has ended is not gone on with */
        assert_int_equal(record_end(record, verdict, &err), 0);
        record_free(record);
    }
    struct record *record = open_again(&bed, false);
    json_t *history = record_history(record),
           *wanted = json_loads(
               "{\"n0\": {\"runs\": 3, \"bad\": 3}, \"n1\": {\"runs\": 3, \"bad\": 0}}", 0, NULL);
    assert_true(json_equal(history, wanted));
    record_free(record);
    json_decref(history);
    json_decref(wanted);
    json_object_set_new(bed.nodes, "n0", json_string("uid-c")); /* replaced under its name */
    record = open_again(&bed, true);
    history = record_history(record);
    wanted = json_loads("{\"n1\": {\"runs\": 3, \"bad\": 0}}", 0, NULL);
    assert_true(json_equal(history, wanted));
    record_free(record);
    json_decref(history);
    json_decref(wanted);
    json_decref(verdict);
    bed_done(&bed);
}

static void test_record_that_cannot_be_written(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct drarun_error err = {0};
    struct record *record = NULL;
    assert_true(record_open("/proc/nowhere/x", bed.nodes, bed.order, false, &record, &err) < 0);
    assert_non_null(strstr(err.text, "/proc/nowhere"));
    bed_done(&bed);
}

/* ---- verdicts ---- */

static void test_verdict(void **state)
{
    (void)state;
    struct bed bed = bed_new();
    struct accept *plan = NULL;
    struct accept_options options = {.alone_only = true, .floor_alone = 10};
    struct drarun_error err = {0};
    assert_int_equal(accept_new(2, &options, &plan, &err), 0);
    for (int wave = 0; wave < 2; wave++) {
        size_t count;
        accept_wave(plan, &count);
        for (size_t i = 0; i < count; i++) {
            struct accept_answer answer = {.busbw = wave == 0 && i == 0 ? 20 : 5,
                                           .not_looked = "GPUs: no NVML"};
            accept_answer(plan, i, &answer);
        }
        assert_int_equal(accept_advance(plan, &err), 0);
    }
    json_t *left = json_pack("{s:s}", "n9", "it is cordoned");
    json_t *history = json_pack("{s:{s:i, s:i}}", "n1", "runs", 4, "bad", 1);
    json_t *verdict = accept_verdict(plan, &bed.names, left, history);
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    accept_verdict_text(verdict, &out);
    assert_string_equal(out.data,
                        "NODE  VERDICT  ALONE GB/s  PAIR GB/s  PAIRS\n"
                        "n1    bad            5.00          -      0  bad in 1 of 4 earlier runs  "
                        "alone, twice: 5 GB/s, below 10\n"
                        "n9    unknown           -          -      0  it is cordoned\n"
                        "n0    passed        20.00          -      0\n"
                        "not looked at on 2 nodes: GPUs: no NVML\n"
                        "1 passed, 1 bad, 0 suspect, 1 unknown\n");
    assert_int_equal(accept_verdict_status(verdict), 1);
    buf_reset(&out);
    accept_verdict_junit(verdict, &out);
    assert_string_equal(
        out.data,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">\n"
        " <testsuite name=\"drarun accept\" tests=\"3\" failures=\"1\" errors=\"0\" "
        "skipped=\"1\">\n"
        "  <testcase classname=\"drarun.accept.node\" name=\"n0\"><system-out>20.00 GB/s alone; "
        "not "
        "looked at: GPUs: no NVML</system-out></testcase>\n"
        "  <testcase classname=\"drarun.accept.node\" name=\"n1\"><failure type=\"bad\" "
        "message=\"alone, twice: 5 GB/s, below 10\"/><system-out>5.00 GB/s alone; not looked at: "
        "GPUs: no NVML</system-out></testcase>\n"
        "  <testcase classname=\"drarun.accept.node\" name=\"n9\"><skipped message=\"it is "
        "cordoned\"/></testcase>\n"
        " </testsuite>\n</testsuites>\n");
    buf_reset(&out);
    accept_verdict_html(verdict, &out);
    assert_non_null(strstr(out.data, "<p class=\"big failed\">1 passed, 1 bad, 0 suspect, 1 "
                                     "unknown</p>"));
    assert_non_null(strstr(out.data, "<td class=\"text\">n1</td><td class=\"text low\">bad</td>"
                                     "<td>5.00</td><td class=\"faint\">-</td><td>0</td><td "
                                     "class=\"text\">alone, twice: 5 GB/s, below 10; bad in 1 of 4 "
                                     "earlier runs</td>"));
    assert_non_null(strstr(out.data, "<pre>not looked at on 2 nodes: GPUs: no NVML\n</pre>"));
    json_object_set_new(verdict, "notCompared", json_pack("[s, s]", "a < b", "c"));
    buf_reset(&out);
    accept_verdict_text(verdict, &out);
    assert_non_null(strstr(out.data, "\nnot compared: a < b\nnot compared: c\nnot looked at "));
    buf_reset(&out);
    accept_verdict_junit(verdict, &out);
    assert_non_null(strstr(out.data, "  <system-out>not compared: a &lt; b\nnot compared: "
                                     "c</system-out>\n </testsuite>"));
    json_decref(verdict);
    json_decref(left);
    json_decref(history);
    accept_free(plan);
    bed_done(&bed);
}

static bool is_pair(const struct accept_test *test, uint32_t a, uint32_t b)
{
    return (test->node == a && test->partner == b) || (test->node == b && test->partner == a);
}

/* n0 and n1 fail together, n7 alone. */
static void answer_wave(struct accept *plan, const char *reason)
{
    size_t count;
    const struct accept_test *tests = accept_wave(plan, &count);
    for (size_t i = 0; i < count; i++) {
        struct accept_answer answer = {.busbw = 20, .ran = true};
        if (is_pair(&tests[i], 0, 1) || tests[i].node == 7 || tests[i].partner == 7) {
            answer.outcome = ACCEPT_FAILED;
            snprintf(answer.reason, sizeof answer.reason, "%s", reason);
        }
        accept_answer(plan, i, &answer);
    }
}

/* A reason that was cut within a character is one all the same, and so is the path it is of. */
static void test_reasons_that_were_cut(void **state)
{
    (void)state;
    const struct accept_options options = {0};
    struct drarun_error err = {0};
    struct accept *plan = NULL;
    struct strlist names = STRLIST_INIT;
    char reason[2 * ACCEPT_REASON] = "x";
    size_t count;
    for (size_t i = 1; i + 3 < sizeof reason; i += 3)
        memcpy(reason + i, "\xe2\x82\xac", 3);
    for (int i = 0; i < 8; i++)
        strlist_addf(&names, "n%d", i);
    assert_int_equal(accept_new(8, &options, &plan, &err), 0);
    while (accept_wave(plan, &count), count > 0) {
        answer_wave(plan, reason);
        assert_int_equal(accept_advance(plan, &err), 0);
    }
    json_t *verdict = accept_verdict(plan, &names, NULL, NULL), *said;
    assert_non_null(verdict);
    assert_int_equal(json_array_size(json_object_get(verdict, "paths")), 1);
    said = json_object_get(json_array_get(json_object_get(verdict, "nodes"), 7), "reason");
    assert_non_null(strstr(json_string_value(said), "alone, twice: x\xe2\x82\xac"));
    said = json_object_get(json_array_get(json_object_get(verdict, "paths"), 0), "reason");
    assert_non_null(strstr(json_string_value(said), "x\xe2\x82\xac"));
    json_decref(verdict);
    strlist_done(&names);
    accept_free(plan);
}

/* Whatever a server or a benchmark said. */
static void test_pages_of_unkind_words(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    json_t *verdict = json_loads(
        "{\"nodes\": [{\"name\": \"n0\", \"state\": \"suspect\", \"pairs\": 1, \"reason\": "
        "\"<b>\\u0001\\\"&\"}], \"paths\": [{\"nodes\": [\"n0\", \"n1\"], \"reason\": \"slow > "
        "2\"}], "
        "\"passed\": 0, \"bad\": 0, \"suspect\": 1, \"unknown\": 0}",
        0, NULL);
    assert_non_null(verdict);
    accept_verdict_junit(verdict, &out);
    assert_non_null(strstr(out.data, "tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\""));
    assert_non_null(strstr(out.data, "message=\"&lt;b&gt;?&quot;&amp;\""));
    assert_non_null(
        strstr(out.data, "name=\"n0 and n1\"><failure type=\"path\" message=\"slow &gt; 2\"/>"));
    accept_verdict_html(verdict, &out);
    assert_null(strstr(out.data, "<b>"));
    json_decref(verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_row_counts),
        cmocka_unit_test(test_wrong_data_fails),
        cmocka_unit_test(test_run_without_an_end_fails),
        cmocka_unit_test(test_errors_of_devices),
        cmocka_unit_test(test_end_of_a_job),
        cmocka_unit_test(test_status_of_a_rank),
        cmocka_unit_test(test_processes_that_measured_alone),
        cmocka_unit_test(test_least_of_one_rank),
        cmocka_unit_test(test_run_that_fails),
        cmocka_unit_test(test_end_that_comes_late),
        cmocka_unit_test(test_what_is_waited_for),
        cmocka_unit_test(test_time_of_waiting),
        cmocka_unit_test(test_time_that_is_left),
        cmocka_unit_test(test_job_is_put_on_its_nodes),
        cmocka_unit_test(test_what_the_operator_says_stays),
        cmocka_unit_test(test_nodes_that_cannot_be_tested),
        cmocka_unit_test(test_process_of_a_job),
        cmocka_unit_test(test_stopped_twice),
        cmocka_unit_test(test_job_that_is_none),
        cmocka_unit_test(test_record_goes_on),
        cmocka_unit_test(test_record_in_use),
        cmocka_unit_test(test_records_of_one_moment),
        cmocka_unit_test(test_other_order_begins_anew),
        cmocka_unit_test(test_other_nodes_begin_anew),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_record_that_cannot_be_written),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_reasons_that_were_cut),
        cmocka_unit_test(test_pages_of_unkind_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
