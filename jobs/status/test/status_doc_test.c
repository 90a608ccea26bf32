/* SPDX-License-Identifier: Apache-2.0 */
/* The status document. With --documents it prints some, one a line, which
 * tests/test_status_document.py holds against the published schema. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/status/status_doc.h"
#include "lib/base/cleanup.h"

#define NOW_MS INT64_C(1700000100000) /* 2023-11-14T22:15:00Z */

static struct pod_state running(const char *node)
{
    return (struct pod_state){.phase = POD_RUNNING,
                              .claim = CLAIM_ALLOCATED,
                              .devices = 2,
                              .node = node,
                              .ip = "10.98.1.4",
                              .name = "all-reduce-w-1",
                              .since_ms = NOW_MS - 41000,
                              .exit_code = -1};
}

static struct gang gang_in(enum gang_phase phase)
{
    struct gang gang;
    gang_init(&gang, gang_seed("u", 1), NOW_MS - 60000);
    gang.phase = phase;
    gang.phase_since_ms = NOW_MS - 41000;
    gang.timings_ms[GANG_QUEUED] = 19000;
    return gang;
}

static struct status_input input_of(const struct gang *gang, const struct pod_state *workers,
                                    uint32_t count)
{
    return (struct status_input){.now_ms = NOW_MS,
                                 .name = "all-reduce",
                                 .namespace = "train",
                                 .uid = "u",
                                 .created_ms = NOW_MS - 60000,
                                 .attempt = 1,
                                 .gang = gang,
                                 .workers = workers,
                                 .count = count,
                                 .ranks = count * 2,
                                 .launcher = {.pod = "all-reduce-x2x", .lease = 1}};
}

static json_t *build(const struct status_input *input)
{
    json_t *doc = NULL;
    struct drarun_error err = {0};
    if (status_doc_build(input, &doc, &err) < 0)
        fail_msg("%s", err.text);
    return doc;
}

/* A document of a job that waits, with its workers and reasons. */
static json_t *waiting_document(void)
{
    struct pod_state workers[4] = {running("node-1"), running("node-1"), running("node-2")};
    workers[3] = (struct pod_state){.phase = POD_UNSCHEDULED,
                                    .claim = CLAIM_PENDING,
                                    .unschedulable = true,
                                    .reason = "Unschedulable",
                                    .message = "0/4 nodes are available: 4 cannot allocate all "
                                               "claims.",
                                    .since_ms = NOW_MS - 30000,
                                    .exit_code = -1};
    struct gang gang = gang_in(GANG_PLACING);
    struct waiting waiting;
    struct waiting_input why = {.now_ms = NOW_MS, .workers = workers, .count = 4};
    assert_int_equal(waiting_build(&why, &waiting, NULL), 0);
    struct status_input input = input_of(&gang, workers, 4);
    input.waiting = &waiting;
    input.rung = "numaNode";
    json_t *doc = build(&input);
    assert_string_equal(json_string_value(json_object_get(doc, "rung")), "numaNode");
    waiting_done(&waiting);
    return doc;
}

static json_t *ended_document(uint32_t attempt, int status)
{
    struct pod_state workers[2] = {running("node-1"), running("node-2")};
    workers[1].phase = POD_ENDED;
    workers[1].end = POD_END_OOM;
    workers[1].exit_code = 137;
    workers[1].reason = "OOMKilled";
    struct gang gang = gang_in(GANG_ENDED);
    gang.tries = 2;
    gang.timings_ms[GANG_RUNNING] = 3600000;
    CLEANUP(json_decrefp)
    json_t *report =
        json_pack("{s:i, s:{s:s, s:s, s:s}, s:i, s:i}", "status", status, "cause", "kind", "pod",
                  "text", "worker 1 was ended whole", "advice", "raise it", "ranks", 4, "ended", 4);
    struct status_input input = input_of(&gang, workers, 2);
    input.attempt = attempt;
    input.restarts = attempt - 1;
    input.report = report;
    input.result = "failed";
    return build(&input);
}

static json_t *large_document(uint32_t count, bool alternate)
{
    struct pod_state *workers = calloc(count, sizeof *workers);
    assert_non_null(workers);
    for (uint32_t i = 0; i < count; i++) {
        workers[i] = running("node-with-a-rather-long-name-as-clouds-give-them.example.com");
        if (alternate && i % 3 == 0)
            workers[i].phase = POD_PULLING;
    }
    struct gang gang = gang_in(GANG_PULLING);
    struct status_input input = input_of(&gang, workers, count);
    json_t *doc = build(&input);
    free(workers);
    return doc;
}

static void check(const char *what, struct buf *got, const char *expected)
{
    if (got->failed || strcmp(got->data, expected) != 0)
        fail_msg("%s:\n%s\nexpected:\n%s", what, got->data, expected);
    buf_done(got);
}

static void for_people(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    CLEANUP(json_decrefp) json_t *waits = waiting_document();
    CLEANUP(json_decrefp) json_t *ended = ended_document(2, 137);
    status_doc_render(waits, false, NOW_MS, &text);
    check("waiting", &text,
          "train/all-reduce: placing for 41 s, attempt 1\n"
          "claims 3/4 allocated, pods 3/4 running\n"
          "waiting:\n"
          "  workers 3, 30 s: no node has room: 4 nodes: 4 cannot allocate all claims\n"
          "  WORKER    NODE                 PHASE               SINCE  CLAIM      DEVICES\n"
          "  0-1       node-1               running              41 s  allocated  2 devices\n"
          "  2         node-2               running              41 s  allocated  2 devices\n"
          "  3         -                    unscheduled          30 s  pending    -  "
          "Unschedulable\n"
          "times: queued 19 s, placing 41 s\n");
    status_doc_render(ended, false, NOW_MS, &text);
    check("ended", &text,
          "train/all-reduce: failed (137), 41 s ago, attempt 2, restarts 1, given back and tried "
          "again 2 times\n"
          "  worker 1 was ended whole\n"
          "    raise it\n"
          "  WORKER    NODE                 PHASE               SINCE  CLAIM      DEVICES\n"
          "  0         node-1               ended                41 s  allocated  2 devices\n"
          "  1         node-2               ended                41 s  allocated  2 devices  "
          "OOMKilled (137)\n"
          "times: queued 19 s, running 1 h\n");
    status_doc_row(NULL, false, false, NOW_MS, &text);
    status_doc_row(waits, false, false, NOW_MS, &text);
    status_doc_row(ended, false, false, NOW_MS, &text);
    check("list", &text,
          "NAME                     PHASE        WORKERS RESTARTS            AGE  STATE\n"
          "all-reduce               placing          3/4        0          1 min  waiting 30 s for "
          "worker 3: no node has room: 4 nodes: 4 cannot allocate all claims; claims 3/4 "
          "allocated, pods 3/4 running\n"
          "all-reduce               ended            0/2        1          1 min  failed (137)\n");
    status_doc_row(NULL, true, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, "NAMESPACE                NAME        "));
    status_doc_row(ended, true, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, "\ntrain                    all-reduce  "));
    buf_done(&text);
    json_object_set_new(ended, "result", json_string("failed\nother   ended"));
    status_doc_row(ended, false, false, NOW_MS, &text);
    check("one line", &text,
          "all-reduce               ended            0/2        1          1 min  failed; other   "
          "ended (137)\n");
    json_object_set_new(ended, "result", json_string("failed"));
    json_object_set_new(waits, "silence", json_pack("{s:s}", "text", "launcher a is silent"));
    status_doc_row(waits, false, false, NOW_MS, &text);
    check("silent", &text,
          "all-reduce               placing          3/4        0          1 min  launcher a is "
          "silent\n");
    status_doc_render(waits, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, "\n  launcher a is silent; what follows is what it knew; "
                                      "drarun cancel all-reduce ends the job\n"));
    buf_done(&text);
    json_object_del(waits, "silence");
    json_object_set_new(ended, "managedBy", json_string("example.com/far"));
    status_doc_row(ended, false, false, NOW_MS, &text);
    check("managed by another one", &text,
          "all-reduce               ended            0/2        1          1 min  failed (137) "
          "(managed by example.com/far)\n");
    status_doc_render(ended, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, " times\n  managed by example.com/far, not by drarun's "
                                      "controller: what follows is what it reports\n  worker 1"));
    buf_done(&text);
    assert_int_equal(status_doc_exit(waits), -1);
    assert_int_equal(status_doc_exit(ended), 137);
}

/* Two workers of two rails; the second rail of the first does not arrive. */
static json_t *fabric_of(const char *reached)
{
    json_t *fabric = json_pack(
        "{s:{s:i, s:i, s:i, s:i, s:i, s:[s, s], s:[]}, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
        "s:[s, s], s:[{s:{s:i, s:s, s:i}, s:{s:i, s:s, s:i}, s:s, s:s, s:s}]}}",
        "opened", "workers", 2, "rails", 2, "good", 4, "failed", 0, "unknown", 0, "matrix", "..",
        "..", "broken", "reach", "ms", 12, "workers", 2, "rails", 2, "pairs", 4, "reached",
        reached[1] == '.' ? 4 : 3, "failed", reached[1] == '.' ? 0 : 1, "unknown", 0, "matrix",
        reached, "..", "broken", "from", "worker", 0, "device", "mlx5_1", "port", 1, "to", "worker",
        1, "device", "mlx5_1", "port", 1, "result", "failed", "fault", "retry", "why",
        "no acknowledgement");
    assert_non_null(fabric);
    if (reached[1] == '.')
        json_array_clear(json_object_get(json_object_get(fabric, "reach"), "broken"));
    return fabric;
}

static json_t *fabric_document(const json_t *fabric, uint32_t attempt)
{
    struct pod_state workers[2] = {running("node-1"), running("node-2")};
    struct gang gang = gang_in(GANG_RUNNING);
    struct status_input input = input_of(&gang, workers, 2);
    input.attempt = attempt;
    input.fabric = fabric;
    return build(&input);
}

static bool says(const json_t *doc, bool verbose, const char *words)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    status_doc_render(doc, verbose, NOW_MS, &text);
    return strstr(text.data, words) != NULL;
}

/* All that is wrong without being asked, every NIC with -v. */
static void nics(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *good = fabric_of("..");
    CLEANUP(json_decrefp) json_t *bad = fabric_of(".x");
    CLEANUP(json_decrefp) json_t *none = fabric_document(NULL, 1);
    CLEANUP(json_decrefp) json_t *well = fabric_document(good, 1);
    CLEANUP(json_decrefp) json_t *ill = fabric_document(bad, 1);
    CLEANUP(json_decrefp) json_t *next = fabric_document(NULL, 2);
    assert_false(says(none, true, "NICs") || says(well, false, "NICs"));
    assert_true(says(well, true, "NICs: 4 opened; 4 of 4 reach the next worker (12 ms)\n"));
    assert_true(says(ill, false,
                     "NICs: 4 opened; 3 of 4 reach the next worker, 1 failed (12 ms); drarun "
                     "status -v all-reduce shows which\n"));
    assert_false(says(ill, false, "mlx5_1"));
    assert_true(says(ill, true, "  worker 0 mlx5_1 -> worker 1 mlx5_1: no acknowledgement\n"));
    /* a launcher that takes over knows nothing of it; the next attempt has NICs of its own */
    CLEANUP(json_decrefp) json_t *over = status_doc_merge(ill, none);
    CLEANUP(json_decrefp) json_t *later = status_doc_merge(ill, next);
    assert_true(json_equal(json_object_get(over, "fabric"), bad));
    assert_true(json_is_null(json_object_get(later, "fabric")));
}

/* Once the ranks have their numbers, which a launcher that takes over does not know. */
static void roles(void **state)
{
    (void)state;
    struct pod_state workers[3] = {running("node-1"), running("node-2"), running("node-2")};
    struct gang gang = gang_in(GANG_RUNNING);
    struct status_input input = input_of(&gang, workers, 3);
    CLEANUP(json_decrefp) json_t *none = build(&input);
    CLEANUP(json_decrefp)
    json_t *list =
        json_pack("[{s:s, s:i, s:i, s:i}, {s:s, s:i, s:i, s:i}]", "name", "head", "first", 0,
                  "workers", 1, "ranks", 1, "name", "train", "first", 1, "workers", 2, "ranks", 8);
    input.roles = list;
    CLEANUP(json_decrefp) json_t *with = build(&input);
    CLEANUP(json_decrefp) json_t *over = status_doc_merge(with, none);
    assert_true(json_is_null(json_object_get(none, "roles")));
    assert_false(says(none, true, "roles:"));
    assert_true(
        says(with, false, "roles: head (worker 0, 1 rank), train (workers 1-2, 8 ranks)\n"));
    assert_true(json_equal(json_object_get(over, "roles"), list));
}

/* The gang comes back from the document as it was. */
static void over_a_restart(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *doc = waiting_document();
    CLEANUP(json_decrefp) json_t *again = NULL;
    cleanup_free char *text = status_doc_text(doc);
    assert_int_equal(status_doc_parse(text, strlen(text), &again, NULL), 0);
    assert_true(json_equal(doc, again));
    struct gang before = gang_in(GANG_PLACING), after;
    gang_init(&after, 0, NOW_MS);
    gang_load(&after, status_doc_gang(again));
    assert_memory_equal(&before, &after, sizeof before);
}

static void tolerant(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "status document: '[' or '{' expected near end of file"},
        {"[]", "status document: no object"},
        {"{}", "status document: its kind is not given, not DraJobStatus"},
        {"{\"kind\": \"Pod\"}", "status document: its kind is Pod, not DraJobStatus"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct drarun_error err = {0};
        json_t *doc = NULL;
        assert_int_equal(status_doc_parse(bad[i].text, strlen(bad[i].text), &doc, &err), -EINVAL);
        assert_string_equal(err.text, bad[i].error);
        assert_null(doc);
    }
    static const char strange[] = "{\"kind\": \"DraJobStatus\", \"phase\": 7, \"attempt\": \"x\", "
                                  "\"workers\": [1], \"gang\": 3, \"new\": {\"a\": 1}}";
    CLEANUP(json_decrefp) json_t *doc = NULL;
    struct buf text = BUF_INIT;
    assert_int_equal(status_doc_parse(strange, strlen(strange), &doc, NULL), 0);
    assert_null(json_object_get(doc, "phase"));
    assert_null(status_doc_gang(doc));
    assert_non_null(json_object_get(doc, "new"));
    status_doc_row(doc, false, false, NOW_MS, &text);
    check("row", &text,
          "-                        -                0/0        0              -  -\n");
    status_doc_render(doc, false, NOW_MS, &text);
    check("text", &text, "-: - for -, attempt 0\npods 0/0 running\n");
}

static void when_it_will_be_deleted(void **state)
{
    static const struct {
        const char *time, *reason, *line;
    } cases[] = {
        {"2023-11-14T23:15:00Z", "spec",
         "  will be deleted in 1 h, at 2023-11-14T23:15:00Z (spec.ttlSecondsAfterFinished)\n"},
        {"2023-11-14T22:15:30.000Z", "site",
         "  will be deleted in 30 s, at 2023-11-14T22:15:30.000Z (the site's default time to live, "
         "drarun controller --ttl)\n"},
        {"2023-11-14T22:14:59Z", "spec",
         "  will be deleted soon, at 2023-11-14T22:14:59Z (spec.ttlSecondsAfterFinished)\n"},
        {"never", "spec", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp)
        json_t *doc =
            json_pack("{s:s, s:i, s:s, s:{s:s, s:s}}", "name", "job", "attempt", 1, "result",
                      "succeeded", "expiration", "time", cases[i].time, "reason", cases[i].reason);
        struct buf text = BUF_INIT, expected = BUF_INIT;
        buf_printf(&expected, "job: succeeded, - ago, attempt 1\n%s", cases[i].line);
        status_doc_render(doc, false, NOW_MS, &text);
        check(cases[i].time, &text, expected.data);
        buf_done(&expected);
    }
}

/* Of all workers and roles, as the job asks for them. */
static void devices(void **state)
{
    struct pod_state workers[2] = {running("node-1"), running("node-2")};
    struct gang gang = gang_in(GANG_RUNNING);
    struct status_input input = input_of(&gang, workers, 2);
    CLEANUP(json_decrefp)
    json_t *asked = json_pack("{s:s, s:s}", "gpus", "1", "nics", "8+all");
    struct buf text = BUF_INIT;
    (void)state;
    input.asked = asked;
    CLEANUP(json_decrefp) json_t *doc = build(&input);
    status_doc_row(NULL, false, true, NOW_MS, &text);
    status_doc_row(doc, false, true, NOW_MS, &text);
    json_object_del(asked, "gpus");
    json_object_del(json_object_get(doc, "devices"), "gpus");
    status_doc_row(doc, false, true, NOW_MS, &text);
    check(
        "wide", &text,
        "NAME                     PHASE        WORKERS RESTARTS            AGE   RANKS    GPUS    "
        "NICS  LAUNCHER                       STATE\n"
        "all-reduce               running          2/2        0          1 min       4       1   "
        "8+all  all-reduce-x2x                 -\n"
        "all-reduce               running          2/2        0          1 min       4       -   "
        "8+all  all-reduce-x2x                 -\n");
    status_doc_render(doc, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, "\ndevices asked for: 8+all NICs\n"));
    buf_done(&text);
    json_object_set_new(json_object_get(doc, "devices"), "gpus", json_string("1"));
    status_doc_render(doc, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, "\ndevices asked for: 1 GPU, 8+all NICs\n"));
    buf_done(&text);
}

static void merging(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *first = ended_document(1, 137);
    CLEANUP(json_decrefp) json_t *same = ended_document(1, 9);
    CLEANUP(json_decrefp) json_t *next = ended_document(2, 1);
    json_object_set_new(first, "of-another-version", json_integer(1));
    /* the first cause is told once */
    CLEANUP(json_decrefp) json_t *merged = status_doc_merge(first, same);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(merged, "report"), "status")), 137);
    assert_non_null(json_object_get(merged, "of-another-version"));
    assert_null(json_object_get(merged, "history"));
    /* a later attempt has its own, and the earlier one becomes history */
    CLEANUP(json_decrefp) json_t *later = status_doc_merge(merged, next);
    assert_int_equal(status_doc_exit(later), 1);
    const json_t *chapter = json_array_get(json_object_get(later, "history"), 0);
    assert_int_equal(json_integer_value(json_object_get(chapter, "status")), 137);
    CLEANUP(json_decrefp) json_t *again = status_doc_merge(later, next);
    assert_int_equal(json_array_size(json_object_get(again, "history")), 1);
    /* nothing before */
    CLEANUP(json_decrefp) json_t *none = json_object();
    CLEANUP(json_decrefp) json_t *only = status_doc_merge(none, next);
    assert_true(json_equal(only, next));
}

static size_t size_of(const json_t *doc)
{
    cleanup_free char *text = status_doc_text(doc);
    return strlen(text);
}

static void large_jobs(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        size_t lines;
        const char *dropped;
    } cases[] = {
        {1000, 1000, NULL},
        {2500, 2500, "left out"},
        {10000, 2, "are one line"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *doc = large_document(cases[i].count, true);
        const json_t *workers = json_object_get(doc, "workers");
        const char *dropped = json_string_value(json_object_get(workers, "dropped"));
        assert_true(size_of(doc) <= STATUS_DOC_MAX);
        assert_int_equal(json_array_size(json_object_get(workers, "lines")), cases[i].lines);
        assert_true(cases[i].dropped ? dropped && strstr(dropped, cases[i].dropped) : !dropped);
        json_int_t told = 0;
        for (size_t l = 0; l < cases[i].lines; l++) {
            json_t *line = json_array_get(json_object_get(workers, "lines"), l);
            json_t *count = json_object_get(line, "count");
            told += count ? json_integer_value(count) : 1;
        }
        assert_int_equal(told, cases[i].count);
    }
    /* runs of equal workers are one line to people */
    CLEANUP(json_decrefp) json_t *doc = large_document(1000, false);
    struct buf text = BUF_INIT;
    status_doc_render(doc, false, NOW_MS, &text);
    assert_non_null(strstr(text.data, "\n  0-999 "));
    assert_true(text.len < 1000);
    buf_done(&text);
}

static int print_documents(void)
{
    CLEANUP(json_decrefp) json_t *fabric = fabric_of(".x");
    json_t *docs[] = {waiting_document(),
                      ended_document(2, 137),
                      large_document(3, true),
                      large_document(2500, true),
                      large_document(10000, true),
                      fabric_document(fabric, 1),
                      NULL};
    docs[6] = status_doc_merge(docs[0], docs[1]);
    for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
        cleanup_free char *text = status_doc_text(docs[i]);
        puts(text);
        json_decref(docs[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_people), cmocka_unit_test(over_a_restart),
        cmocka_unit_test(tolerant),   cmocka_unit_test(when_it_will_be_deleted),
        cmocka_unit_test(devices),    cmocka_unit_test(merging),
        cmocka_unit_test(large_jobs), cmocka_unit_test(nics),
        cmocka_unit_test(roles),
    };
    if (argc > 1 && strcmp(argv[1], "--documents") == 0)
        return print_documents();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
