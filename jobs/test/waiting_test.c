/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences. Those of one worker stand beside the objects that they come from, in
 * tests/data/pods (the argument): "waits". */
#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/waiting.h"
#include "lib/base/cleanup.h"

#define NOW_MS INT64_C(1700000100000)

static const char *folder;

static void check_text(const char *what, struct buf *got, const char *expected)
{
    const char *text = got->data ? got->data : "";
    if (got->failed || strcmp(text, expected) != 0)
        fail_msg("%s:\n%s\nexpected:\n%s", what, text, expected);
    buf_done(got);
}

static bool check_file(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CLEANUP(json_decrefp) json_t *file = json_load_file(path, 0, NULL);
    const char *expected = json_string_value(json_object_get(file, "waits"));
    if (!expected)
        return false;
    struct news news = {0};
    struct pod_state worker;
    struct waiting waiting;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(file, "events"), i, event) news_add(&news, event);
    pod_state_read(json_object_get(file, "pod"), json_object_get(file, "claim"),
                   json_is_true(json_object_get(file, "wantsClaim")), &news, &worker);
    struct waiting_input input = {.now_ms = NOW_MS, .workers = &worker, .count = 1};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    struct buf got = BUF_INIT;
    buf_add_str(&got, waiting.count ? waiting.reasons[0].text : "");
    check_text(name, &got, expected);
    waiting_done(&waiting);
    news_done(&news);
    return true;
}

static void words_of_one_worker(void **state)
{
    (void)state;
    size_t checked = 0;
    cleanup_dir DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".json"))
            checked += check_file(entry->d_name);
    assert_true(checked >= 25);
}

static struct pod_state worker(enum pod_phase phase, enum claim_phase claim, const char *node)
{
    return (struct pod_state){.phase = phase,
                              .claim = claim,
                              .node = node,
                              .since_ms = NOW_MS - 41000,
                              .exit_code = -1,
                              .image = "example/app:1"};
}

static void sixteen(struct pod_state workers[16])
{
    for (int i = 0; i < 16; i++)
        workers[i] = worker(POD_RUNNING, CLAIM_ALLOCATED, i < 8 ? "node-1" : "node-2");
    for (int i = 12; i < 16; i++) {
        workers[i] = worker(POD_UNSCHEDULED, CLAIM_PENDING, NULL);
        workers[i].unschedulable = true;
        workers[i].reason = "Unschedulable";
        workers[i].message = "0/4 nodes are available: 4 cannot allocate all claims.";
    }
    workers[3] = worker(POD_PULLING, CLAIM_ALLOCATED, "node-1");
    workers[4] = worker(POD_PULLING, CLAIM_ALLOCATED, "node-1");
    workers[3].since_ms = NOW_MS - 3000;
}

static char class[] = "class dranet", driver[] = "device.driver == \"dra.net\"";
static char request[] = "request nic-0, nic-1", names[] = "nic-0, nic-1";
static char rdma[] = "device.attributes[\"dra.net\"].rdma == true";
static char shortage[] = "worker 12 of 16 has no node: those for request nic-1 are taken by claims "
                         "or earlier workers on 4 nodes";

static struct predict_term terms[] = {
    {.where = class, .text = driver, .ruled_out = 8},
    {.where = request, .text = rdma, .ruled_out = 0},
};

static void all_reasons(void **state)
{
    (void)state;
    struct pod_state workers[16];
    sixteen(workers);
    struct predict_need need = {
        .requests = names, .devices = 16, .admitted = 8, .terms = terms, .term_count = 2};
    struct prediction prediction = {
        .needs = &need, .need_count = 1, .count = 16, .placed = 12, .shortage = shortage};
    struct waiting_input input = {
        .now_ms = NOW_MS, .workers = workers, .count = 16, .prediction = &prediction};
    struct waiting waiting;
    struct buf text = BUF_INIT;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, 0, &text);
    check_text("line", &text,
               "claims 12/16 allocated, pods 10/16 running; waiting 41 s for 4 workers (12-15): no "
               "device of class dranet with rdma == true left: those for request nic-1 are taken "
               "by claims or earlier workers on 4 nodes (and 1 other reason)");
    waiting_line(&waiting, 60, &text);
    check_text("narrow", &text, "claims 12/16 allocated, pods 10/16 running; waiting 41 s ...");
    waiting_text(&waiting, &text);
    check_text("text", &text,
               "claims 12/16 allocated, pods 10/16 running; waiting:\n"
               "  workers 12-15 (4) 41 s: no device of class dranet with rdma == true left: those "
               "for request nic-1 are taken by claims or earlier workers on 4 nodes\n"
               "  workers 3-4 on node-1 41 s: image example/app:1 is being pulled\n");
    CLEANUP(json_decrefp) json_t *json = waiting_json(&waiting);
    assert_int_equal(json_array_size(json_object_get(json, "reasons")), 2);
    const json_t *second = json_array_get(json_object_get(json, "reasons"), 1);
    assert_string_equal(json_string_value(json_object_get(second, "workers")), "3-4");
    assert_string_equal(json_string_value(json_object_get(second, "node")), "node-1");
    waiting_done(&waiting);

    /* without the slices the scheduler's words are all there is */
    input.prediction = NULL;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_string_equal(waiting.reasons[0].text,
                        "no node has room: 4 nodes: 4 cannot allocate all claims");
    waiting_done(&waiting);

    /* where no device can ever do, the term that rules them out is named */
    input.prediction = &prediction;
    need.admitted = 0;
    terms[1].ruled_out = 8;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_string_equal(waiting.reasons[0].text,
                        "no device of class dranet with rdma == true: device.driver == \"dra.net\" "
                        "(class dranet) rules out 8, rdma == true (request nic-0, nic-1) rules out "
                        "8 of 16");
    waiting_done(&waiting);
}

/* Never 1,000 equal lines. */
static void a_thousand(void **state)
{
    (void)state;
    static struct pod_state workers[1000];
    struct waiting waiting;
    struct buf text = BUF_INIT;
    for (int i = 0; i < 1000; i++)
        workers[i] = worker(POD_PULLING, CLAIM_ALLOCATED, i % 2 ? "node-1" : "node-2");
    struct waiting_input input = {.now_ms = NOW_MS, .workers = workers, .count = 1000};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_text(&waiting, &text);
    check_text("text", &text,
               "claims 1000/1000 allocated, pods 0/1000 running; waiting:\n"
               "  workers 0-999 (1000) 41 s: image example/app:1 is being pulled\n");
    waiting_done(&waiting);
    static char images[1000][32];
    for (int i = 0; i < 1000; i++) {
        snprintf(images[i], sizeof images[i], "example/app:%d", i);
        workers[i].image = images[i];
    }
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_int_equal(waiting.count, 1000);
    waiting_text(&waiting, &text);
    size_t lines = 0;
    for (const char *c = text.data; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 22);
    assert_non_null(strstr(text.data, "and 980 other reasons\n"));
    buf_done(&text);
    waiting_done(&waiting);
}

static void whole_jobs(void **state)
{
    (void)state;
    struct pod_state workers[2] = {worker(POD_ABSENT, CLAIM_ABSENT, NULL),
                                   worker(POD_ABSENT, CLAIM_ABSENT, NULL)};
    CLEANUP(json_decrefp)
    json_t *job = json_pack("{s:{s:{s:s}}, s:{s:b}}", "metadata", "labels",
                            "kueue.x-k8s.io/queue-name", "team-a", "spec", "suspend", 1);
    CLEANUP(json_decrefp)
    json_t *workload = json_pack(
        "{s:{s:[{s:s, s:s, s:s, s:s, s:s}]}}", "status", "conditions", "type", "QuotaReserved",
        "status", "False", "reason", "Pending", "message",
        "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu "
        "in flavor default, 8 more needed",
        "lastTransitionTime", "2023-11-14T22:00:00Z");
    struct waiting waiting;
    struct buf text = BUF_INIT;
    struct waiting_input input = {
        .now_ms = NOW_MS, .workers = workers, .count = 2, .worker_job = job, .workload = workload};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, 0, &text);
    check_text("queue", &text,
               "claims 0/2 allocated, pods 0/2 running; waiting 15 min: queue team-a has not "
               "admitted it: couldn't assign flavors to pod set worker: insufficient unused quota "
               "for nvidia.com/gpu in flavor default, 8 more needed");
    waiting_done(&waiting);

    json_object_del(json_object_get(job, "metadata"), "labels");
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, 0, &text);
    check_text("suspended", &text,
               "claims 0/2 allocated, pods 0/2 running; waiting: the job is suspended");
    waiting_done(&waiting);

    struct gang_decision decision = {
        .phase = GANG_RELEASING, .next_ms = NOW_MS + 12000, .clock = GANG_CLOCK_NONE};
    input.decision = &decision;
    input.worker_job = NULL;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, 0, &text);
    check_text("pause", &text,
               "claims 0/2 allocated, pods 0/2 running; waiting: not all workers could be had: "
               "their devices were given back, next try in 12 s");
    waiting_done(&waiting);

    struct news news = {0};
    CLEANUP(json_decrefp)
    json_t *quota = json_pack(
        "{s:s, s:s, s:s}", "reason", "FailedCreate", "message",
        "Error creating: pods \"all-reduce-w-0-x\" is forbidden: exceeded quota: q, requested: "
        "pods=1, used: 4, limited: 4",
        "lastTimestamp", "2023-11-14T22:14:00Z");
    news_add(&news, quota);
    input.decision = NULL;
    input.job_news = &news;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, 0, &text);
    check_text("quota", &text,
               "claims 0/2 allocated, pods 0/2 running; waiting 41 s for 2 workers (0-1): its pod "
               "is refused: pods \"all-reduce-w-0-x\" is forbidden: exceeded quota: q, requested: "
               "pods=1, used: 4, limited: 4");
    waiting_done(&waiting);
    news_done(&news);

    bool inspected[2] = {true, false};
    workers[0] = worker(POD_RUNNING, CLAIM_NONE, "node-1");
    workers[1] = worker(POD_RUNNING, CLAIM_NONE, "node-2");
    input = (struct waiting_input){
        .now_ms = NOW_MS, .workers = workers, .count = 2, .inspected = inspected};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, 0, &text);
    check_text("agent", &text,
               "pods 2/2 running; waiting 41 s for worker 1: its agent has not reported yet");
    waiting_done(&waiting);
}

static void ranges(void **state)
{
    (void)state;
    static const uint32_t workers[] = {0, 1, 2, 3, 7, 9, 10};
    struct buf text = BUF_INIT;
    worker_ranges(workers, 7, 10, &text);
    check_text("ranges", &text, "0-3,7,9-10");
    worker_ranges(workers, 7, 2, &text);
    check_text("cut", &text, "0-3,7,...");
    worker_ranges(workers, 0, 2, &text);
    check_text("none", &text, "");
}

static void scheduler(void **state)
{
    (void)state;
    static const struct {
        const char *message, *words;
    } cases[] = {
        {"0/4 nodes are available: 1 Insufficient cpu, 3 cannot allocate all claims. still not "
         "schedulable, preemption: 0/4 nodes are available: 4 Preemption is not helpful for "
         "scheduling.",
         "4 nodes: 1 Insufficient cpu, 3 cannot allocate all claims"},
        {"0/1 nodes are available: 1 node(s) had untolerated taint {a: b}. preemption: 0/1 nodes "
         "are available: 1 Preemption is not helpful for scheduling.",
         "1 node: 1 node(s) had untolerated taint {a: b}"},
        {"no nodes available to schedule pods", "no nodes available to schedule pods"},
        {"0/x nodes", "0/x nodes"},
        {"", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *words = scheduler_words(cases[i].message);
        if (cases[i].words)
            assert_string_equal(words, cases[i].words);
        else
            assert_null(words);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_one_worker),
        cmocka_unit_test(all_reasons),
        cmocka_unit_test(a_thousand),
        cmocka_unit_test(whole_jobs),
        cmocka_unit_test(ranges),
        cmocka_unit_test(scheduler),
    };
    folder = argc > 1 ? argv[1] : "tests/data/pods";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
