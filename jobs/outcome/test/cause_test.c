/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/outcome/cause.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* Ranks 0 to 3 are program 0 on two workers, rank 4 is program 1. */
static const struct rank_block blocks[] = {{0, 2, 0, 0}, {2, 2, 1, 0}, {4, 1, 1, 1}};

enum event_kind { END, CONNECT, ABORT, FAILURE, LOSS, TIMEOUT, INTERRUPT, SETTLE };

struct event {
    enum event_kind kind;
    bool first; /* it must be the first cause */
    struct cause_end end;
    const char *text;
};

#define EVENTS_MAX 6

/* Ends in short: every one ran 1.24 s. */
#define WHO(n)                                                                                     \
    .rank = (n), .worker = (n) / 2 > 1 ? 1 : (n) / 2, .host = (n) < 2 ? "node-a" : "node-b"
#define ENDED(n, ...) .kind = END, .end = {WHO(n), .ran_us = 1240000, __VA_ARGS__}
#define FINE .api = CAUSE_API_PMIX, .finalized = true
#define STDERR(s) .stderr_tail = (s), .stderr_tail_length = sizeof(s) - 1

static const struct scene {
    const char *name;
    struct event events[EVENTS_MAX];
    size_t count;
    uint32_t singletons;
    enum cause_kind kind;
    int status;
    uint32_t ended;
    const char *explained;
} scenes[] = {
    {"nothing yet", {{0}}, 0, 0, CAUSE_NONE, 0, 0, ""},
    {"hostname",
     {{ENDED(0)}, {ENDED(1)}, {ENDED(2)}, {ENDED(3)}, {ENDED(4)}},
     5,
     0,
     CAUSE_NONE,
     0,
     5,
     ""},
    {"orderly MPI",
     {{CONNECT, .end = {WHO(0), FINE}},
      {ENDED(0, FINE)},
      {ENDED(1, FINE)},
      {ENDED(2, FINE)},
      {ENDED(3, FINE)},
      {ENDED(4)}},
     6,
     0,
     CAUSE_NONE,
     0,
     5,
     ""},
    {"exit",
     {{ENDED(3, .code = 7), .first = true}},
     1,
     0,
     CAUSE_EXIT,
     7,
     1,
     "rank 3 of program 1 on worker 1 (node-b) exited with status 7 after 1.24 s\n"},
    {"the crash is named once, its echo never",
     {{CONNECT, .end = {WHO(0), FINE}},
      {ENDED(3, .signo = SIGSEGV, .core = true, STDERR("one\ntwo")), .first = true},
      {ENDED(0, .code = 1, STDERR("peer vanished"))},
      {ABORT, .end = {WHO(1), .code = 1}, .text = "peer vanished"},
      {ENDED(1, .signo = SIGABRT)},
      {ENDED(2, .signo = SIGTERM, .by_us = true)}},
     6,
     0,
     CAUSE_SIGNAL,
     139,
     4,
     "rank 3 of program 1 on worker 1 (node-b) was killed by signal 11 (SIGSEGV), core dumped, "
     "after 1.24 s\n"
     "  its last lines on stderr:\n    one\n    two\n"},
    {"what we ended is no cause",
     {{ENDED(0, .signo = SIGKILL, .by_us = true)},
      {ENDED(1, .code = 3, .by_us = true)},
      {ENDED(2, .code = 5), .first = true}},
     3,
     0,
     CAUSE_EXIT,
     5,
     3,
     "rank 2 of program 1 on worker 1 (node-b) exited with status 5 after 1.24 s\n"},
    {"a crash takes the place of its echo",
     {{ABORT, .first = true, .end = {WHO(1), .code = 14}, .text = "peer vanished"},
      {ENDED(3, .signo = SIGSEGV)},
      {ENDED(0, .code = 1)}},
     3,
     0,
     CAUSE_SIGNAL,
     139,
     2,
     "rank 3 of program 1 on worker 1 (node-b) was killed by signal 11 (SIGSEGV), after 1.24 s\n"},
    {"so does the end of a rank that its peers missed",
     {{ENDED(0, .signo = SIGABRT, .api = CAUSE_API_PMIX), .first = true},
      {ENDED(3, .signo = SIGKILL, .oom = true)}},
     2,
     0,
     CAUSE_SIGNAL,
     137,
     2,
     "rank 3 of program 1 on worker 1 (node-b) was ended by the kernel's OOM killer, signal 9 "
     "(SIGKILL), after 1.24 s\n"
     "  the ranks need more memory than their control group or machine has\n"},
    {"an abort() that no other end follows",
     {{ENDED(0, .signo = SIGABRT), .first = true}, {ENDED(3, .code = 1, .api = CAUSE_API_PMIX)}},
     2,
     0,
     CAUSE_SIGNAL,
     134,
     2,
     "rank 0 of program 1 on worker 0 (node-a) was killed by signal 6 (SIGABRT), after 1.24 s\n"},
    {"a lost worker takes the place of its echo",
     {{ENDED(0, .signo = SIGABRT, .api = CAUSE_API_PMIX), .first = true},
      {LOSS, .end = {WHO(3)}, .text = "worker 1 (node-b) was lost"}},
     2,
     0,
     CAUSE_FAILURE,
     70,
     1,
     "worker 1 (node-b) was lost\n"},
    {"of any echo",
     {{ABORT, .first = true, .end = {WHO(1), .code = 14}, .text = "peer vanished"},
      {LOSS, .end = {WHO(3)}, .text = "worker 1 (node-b) was lost"},
      {ENDED(1, .code = 14)}},
     3,
     0,
     CAUSE_FAILURE,
     70,
     1,
     "worker 1 (node-b) was lost\n"},
    {"a worker that is lost with its rank, and one that is lost later",
     {{ENDED(3, .code = 7), .first = true},
      {LOSS, .end = {WHO(3)}, .text = "worker 1 (node-b) was lost"},
      {SETTLE},
      {LOSS, .end = {WHO(0)}, .text = "worker 0 (node-a) was lost"}},
     4,
     0,
     CAUSE_EXIT,
     7,
     1,
     "rank 3 of program 1 on worker 1 (node-b) exited with status 7 after 1.24 s\n"},
    {"an abort keeps its place against exits",
     {{ABORT, .first = true, .end = {WHO(1), .code = 14}}, {ENDED(3, .code = 5)}},
     2,
     0,
     CAUSE_ABORT,
     14,
     1,
     "rank 1 of program 1 on worker 0 (node-a) aborted the job with status 14\n"},
    {"a crash after an abort of its own takes no place",
     {{ABORT, .first = true, .end = {WHO(3), .code = 15}},
      {ABORT, .end = {WHO(1), .code = 15}},
      {ENDED(1, .signo = SIGSEGV, .api = CAUSE_API_PMI1)},
      {ENDED(3, .signo = SIGSEGV, .api = CAUSE_API_PMI1)}},
     4,
     0,
     CAUSE_ABORT,
     15,
     2,
     "rank 3 of program 1 on worker 1 (node-b) aborted the job with status 15 after 1.24 s\n"},
    {"an exit in the midst of MPI takes the place of its echo",
     {{ABORT, .first = true, .end = {WHO(3), .code = 14}},
      {ABORT, .end = {WHO(2), .code = 14}},
      {ENDED(2, .code = 14, .api = CAUSE_API_PMIX)},
      {ENDED(1, .code = 5, .api = CAUSE_API_PMIX)},
      {ENDED(3, .code = 14, .api = CAUSE_API_PMIX)}},
     5,
     0,
     CAUSE_EXIT,
     5,
     3,
     "rank 1 of program 1 on worker 0 (node-a) exited with status 5 after 1.24 s\n"},
    {"an echo that overtakes the crash by far",
     {{ENDED(0, .code = 1), .first = true},
      {SETTLE},
      {ENDED(3, .signo = SIGSEGV)},
      {ENDED(2, .signo = SIGBUS)}},
     4,
     0,
     CAUSE_EXIT,
     1,
     3,
     "rank 0 of program 1 on worker 0 (node-a) exited with status 1 after 1.24 s\n"
     "  later became known: rank 3 of program 1 on worker 1 (node-b) was killed by signal 11 "
     "(SIGSEGV), after 1.24 s\n"},
    {"one that UCX ended, likewise",
     {{ENDED(0, .signo = SIGABRT), .first = true}, {SETTLE}, {ENDED(3, .signo = SIGSEGV)}},
     3,
     0,
     CAUSE_SIGNAL,
     134,
     2,
     "rank 0 of program 1 on worker 0 (node-a) was killed by signal 6 (SIGABRT), after 1.24 s\n"
     "  later became known: rank 3 of program 1 on worker 1 (node-b) was killed by signal 11 "
     "(SIGSEGV), after 1.24 s\n"},
    {"abort, and the end that follows it brings the last lines",
     {{ABORT, .first = true, .end = {WHO(2), .code = 7}, .text = "no such mesh"},
      {ENDED(0, .signo = SIGTERM, .by_us = true, STDERR("other"))},
      {ENDED(2, .code = 7, STDERR("mesh.c:3\n"))}},
     3,
     0,
     CAUSE_ABORT,
     7,
     2,
     "rank 2 of program 1 on worker 1 (node-b) aborted the job with status 7 after 1.24 s: no such "
     "mesh\n"
     "  its last lines on stderr:\n    mesh.c:3\n"},
    {"abort 256",
     {{ABORT, .first = true, .end = {WHO(4), .code = 256}}},
     1,
     0,
     CAUSE_ABORT,
     1,
     0,
     "rank 4 of program 2 on worker 1 (node-b) aborted the job with status 256\n"},
    {"abort -1",
     {{ABORT, .first = true, .end = {WHO(4), .code = -1}}},
     1,
     0,
     CAUSE_ABORT,
     255,
     0,
     "rank 4 of program 2 on worker 1 (node-b) aborted the job with status -1\n"},
    {"no finalize",
     {{ENDED(1, .api = CAUSE_API_PMI1), .first = true}},
     1,
     0,
     CAUSE_NO_FINALIZE,
     1,
     1,
     "rank 1 of program 1 on worker 0 (node-a) exited with status 0 after 1.24 s without "
     "finalizing\n"
     "  every rank of an MPI program must call MPI_Finalize before it exits; the job's status is "
     "1\n"},
    {"no init, after the others connected",
     {{CONNECT, .end = {WHO(0), FINE}}, {ENDED(2), .first = true}},
     2,
     0,
     CAUSE_NO_INIT,
     1,
     1,
     "rank 2 of program 1 on worker 1 (node-b) exited with status 0 after 1.24 s without "
     "connecting "
     "to PMIx, as other ranks did\n"
     "  the others would wait for it forever: either all ranks of a program call MPI_Init or none "
     "does; the job's status is 1\n"},
    {"no init, before the others connected",
     {{ENDED(2)}, {ENDED(1)}, {CONNECT, .first = true, .end = {WHO(3), .api = CAUSE_API_PMI1}}},
     3,
     0,
     CAUSE_NO_INIT,
     1,
     2,
     "rank 2 of program 1 on worker 1 (node-b) exited with status 0 after 1.24 s without "
     "connecting "
     "to PMI-1, as other ranks did\n"
     "  the others would wait for it forever: either all ranks of a program call MPI_Init or none "
     "does; the job's status is 1\n"},
    {"another program need not connect",
     {{ENDED(4)}, {CONNECT, .end = {WHO(0), FINE}}, {ENDED(0, FINE)}},
     3,
     0,
     CAUSE_NONE,
     0,
     2,
     ""},
    {"a failure before init is the failure",
     {{CONNECT, .end = {WHO(0), FINE}}, {ENDED(2, .code = 3), .first = true}},
     2,
     0,
     CAUSE_EXIT,
     3,
     1,
     "rank 2 of program 1 on worker 1 (node-b) exited with status 3 after 1.24 s\n"},
    {"OOM",
     {{ENDED(0, .signo = SIGKILL, .oom = true), .first = true}},
     1,
     0,
     CAUSE_SIGNAL,
     137,
     1,
     "rank 0 of program 1 on worker 0 (node-a) was ended by the kernel's OOM killer, signal 9 "
     "(SIGKILL), after 1.24 s\n"
     "  the ranks need more memory than their control group or machine has\n"},
    {"a pipe",
     {{ENDED(0, .signo = SIGPIPE), .first = true}},
     1,
     0,
     CAUSE_SIGNAL,
     141,
     1,
     "rank 0 of program 1 on worker 0 (node-a) was killed by signal 13 (SIGPIPE), after 1.24 s\n"
     "  it wrote to a pipe or socket whose reader had gone: a closed standard output, as with \"| "
     "head\", or a peer\n"},
    {"a signal without a name",
     {{ENDED(0, .signo = 60), .first = true}},
     1,
     0,
     CAUSE_SIGNAL,
     188,
     1,
     "rank 0 of program 1 on worker 0 (node-a) was killed by signal 60, after 1.24 s\n"},
    {"127",
     {{ENDED(0, .code = 127), .first = true}},
     1,
     0,
     CAUSE_EXIT,
     127,
     1,
     "rank 0 of program 1 on worker 0 (node-a) exited with status 127 after 1.24 s\n"
     "  127 is a shell's status for a command that it did not find, and the dynamic linker's for a "
     "shared library\n"},
    {"139",
     {{ENDED(0, .code = 139), .first = true}},
     1,
     0,
     CAUSE_EXIT,
     139,
     1,
     "rank 0 of program 1 on worker 0 (node-a) exited with status 139 after 1.24 s\n"
     "  139 is a shell's status for a program that was killed by signal 11 (SIGSEGV)\n"},
    {"the end is not told twice",
     {{ENDED(0)}, {ENDED(0, .code = 3)}, {ENDED(5, .code = 3)}},
     3,
     0,
     CAUSE_NONE,
     0,
     1,
     ""},
    {"failure",
     {{FAILURE, .first = true, .text = "./app: no such file"}, {ENDED(0, .code = 1)}},
     2,
     0,
     CAUSE_FAILURE,
     127,
     1,
     "./app: no such file\n"},
    {"timeout",
     {{TIMEOUT, .first = true}, {INTERRUPT}},
     2,
     0,
     CAUSE_TIMEOUT,
     124,
     0,
     "the job did not end within 1.50 s (--timeout)\n"},
    {"interrupted",
     {{INTERRUPT, .first = true}, {TIMEOUT}},
     2,
     0,
     CAUSE_INTERRUPTED,
     130,
     0,
     "the job was interrupted by signal 2 (SIGINT)\n"},
    {"singletons",
     {{ENDED(0)}, {ENDED(1)}, {ENDED(2)}, {ENDED(3)}, {ENDED(4)}},
     5,
     4,
     CAUSE_NONE,
     0,
     5,
     "4 of 5 ranks had an MPI library loaded and none connected to drarun: each seems to have run "
     "as a job of one rank\n"
     "  was this MPI built without PMIx and PMI-1, or does the program hold an MPI of another kind "
     "than the one that it calls?\n"},
    {"one rank with a library is no sign",
     {{ENDED(0)}, {ENDED(1)}, {ENDED(2)}, {ENDED(3)}, {ENDED(4)}},
     5,
     1,
     CAUSE_NONE,
     0,
     5,
     ""},
    {"a short life and foreign bytes",
     {{.kind = END,
       .first = true,
       .end = {WHO(0), .code = 2, .ran_us = 3500,
               STDERR("a\xff"
                      "b\x1b[31m\r\n\n\tna\xc3\xafve \xe2\x82\x00"
                      "\xed\xa0\x80!")}}},
     1,
     0,
     CAUSE_EXIT,
     2,
     1,
     "rank 0 of program 1 on worker 0 (node-a) exited with status 2 after 3 ms\n"
     "  its last lines on stderr:\n    a?b?[31m\n\n    \tna\xc3\xafve \x3f\x3f\x3f"
     "\x3f\x3f\x3f"
     "!\n"},
};

static bool apply(struct cause *cause, const struct event *event)
{
    struct drarun_error err = {0};
    const struct cause_end *end = &event->end;
    switch (event->kind) {
    case END:
        return cause_rank_end(cause, end);
    case CONNECT:
        return cause_connected(cause, end->rank, end->api);
    case ABORT:
        return cause_abort(cause, end->rank, end->worker, end->host, end->code,
                           event->text ? event->text : "");
    case FAILURE:
        error_kind(&err, DRARUN_ERR_NOT_FOUND, 2, "%s", event->text);
        return cause_failure(cause, &err);
    case LOSS: /* of the rank's worker */
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, 104, "%s", event->text);
        return cause_worker_failure(cause, end->worker, end->host, &err);
    case TIMEOUT:
        return cause_timeout(cause, 1500);
    case INTERRUPT:
        return cause_interrupted(cause, SIGINT);
    case SETTLE:
        cause_settle(cause);
        return false;
    }
    return false;
}

static void check_json(const struct cause *cause, const struct scene *scene)
{
    json_t *report = cause_json(cause);
    assert_non_null(report);
    assert_int_equal(json_integer_value(json_object_get(report, "status")), scene->status);
    assert_int_equal(json_integer_value(json_object_get(report, "ended")), scene->ended);
    assert_int_equal(json_integer_value(json_object_get(report, "ranks")), 5);
    json_t *inner = json_object_get(report, "cause");
    assert_int_equal(json_is_null(inner), scene->kind == CAUSE_NONE);
    const char *text = json_string_value(json_object_get(inner, "text"));
    if (text) { /* the sentence is the explanation's first line, but for the option */
        assert_memory_equal(scene->explained, text, strlen(text));
        assert_null(strstr(text, "--timeout"));
    } else {
        assert_int_equal(scene->kind, CAUSE_NONE);
    }
    json_decref(report);
}

static void play(const struct scene *scene, const struct rankmap *map)
{
    struct cause *cause = cause_new(map);
    struct buf text = BUF_INIT;
    assert_non_null(cause);
    for (size_t e = 0; e < scene->count; e++)
        if (apply(cause, &scene->events[e]) != scene->events[e].first)
            fail_msg("%s: event %zu", scene->name, e);
    cause_singletons(cause, scene->singletons);
    if (cause_kind(cause) != scene->kind || cause_status(cause) != scene->status ||
        cause_ended(cause) != scene->ended)
        fail_msg("%s: kind %d, status %d, %u ended", scene->name, cause_kind(cause),
                 cause_status(cause), cause_ended(cause));
    buf_add_str(&text, "");
    cause_explain(cause, true, &text);
    if (strcmp(text.data, scene->explained) != 0)
        fail_msg("%s:\n%s instead of\n%s", scene->name, text.data, scene->explained);
    check_json(cause, scene);
    buf_done(&text);
    cause_free(cause);
}

static void tells_the_first_cause(void **state)
{
    (void)state;
    struct rankmap map;
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 2, &map, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++)
        play(&scenes[i], &map);
    rankmap_done(&map);
}

static void the_report_has_all_of_a_signal(void **state)
{
    (void)state;
    const uint32_t ranks = 1;
    struct rankmap map;
    struct cause_end end = {.host = "here",
                            .signo = SIGILL,
                            .core = true,
                            .ran_us = 2000000,
                            .stderr_tail = "x",
                            .stderr_tail_length = 1};
    assert_int_equal(rankmap_build(&ranks, 1, 1, 0, &map, NULL), 0);
    struct cause *cause = cause_new(&map);
    assert_true(cause_rank_end(cause, &end));
    json_t *report = cause_json(cause);
    json_t *expected = json_pack(
        "{s:i, s:{s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:b, s:b, s:f, s:s}, s:i, s:i}", "status", 132,
        "cause", "kind", "signal", "text",
        "rank 0 on worker 0 (here) was killed by signal 4 (SIGILL), core dumped, after 2.00 s",
        "advice",
        "the program holds an instruction that this CPU lacks, as when it was built with "
        "-march=native on another machine, or jumped into data",
        "signal", SIGILL, "rank", 0, "worker", 0, "host", "here", "core", 1, "oom", 0, "ran_s", 2.0,
        "stderr", "x", "ranks", 1, "ended", 1);
    assert_true(json_equal(report, expected));
    json_decref(report);
    json_decref(expected);
    cause_free(cause);
    cause_free(NULL);
    rankmap_done(&map);
}

/* A signal that we sent before the timeout is not called somebody else's. */
static void a_warning_that_kills_is_ours(void **state)
{
    (void)state;
    const uint32_t ranks = 1;
    for (int warned = 0; warned < 2; warned++) {
        struct rankmap map;
        struct cause_end end = {.host = "here", .signo = SIGTERM};
        struct buf text = BUF_INIT;
        assert_int_equal(rankmap_build(&ranks, 1, 1, 0, &map, NULL), 0);
        struct cause *cause = cause_new(&map);
        if (warned)
            cause_warned(cause, SIGTERM, 90000);
        assert_true(cause_rank_end(cause, &end));
        cause_explain(cause, true, &text);
        assert_non_null(strstr(text.data, warned ? "  drarun sent it 90.00 s before the job's "
                                                   "timeout: the program must handle it"
                                                 : "  drarun did not send it"));
        buf_done(&text);
        cause_free(cause);
        rankmap_done(&map);
    }
}

/* What the agent knows of a rank comes before what its status usually means. */
static void the_agents_advice_is_told(void **state)
{
    (void)state;
    const uint32_t ranks = 1;
    struct rankmap map;
    struct buf text = BUF_INIT;
    struct cause_end end = {
        .host = "here", .code = 127, .advice = "its process 7 is\x1b elsewhere"};
    assert_int_equal(rankmap_build(&ranks, 1, 1, 0, &map, NULL), 0);
    struct cause *cause = cause_new(&map);
    assert_true(cause_rank_end(cause, &end));
    cause_explain(cause, true, &text);
    assert_string_equal(text.data, "rank 0 on worker 0 (here) exited with status 127\n"
                                   "  its process 7 is? elsewhere\n");
    json_t *report = cause_json(cause);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(report, "cause"), "advice")),
        "its process 7 is? elsewhere");
    json_decref(report);
    buf_done(&text);
    cause_free(cause);
    rankmap_done(&map);
}

/* What a rank spawned is expected to use what the rank used: it waits for them. */
static void ranks_that_come_later_count(void **state)
{
    const uint32_t one = 1;
    struct rankmap map, more;
    (void)state;
    assert_int_equal(rankmap_build(&one, 1, 1, 0, &map, NULL), 0);
    assert_int_equal(rankmap_build(&one, 1, 1, 0, &more, NULL), 0);
    struct cause *cause = cause_new(&map);
    assert_false(cause_connected(cause, 0, CAUSE_API_PMIX));
    assert_int_equal(cause_grow(cause, 2, 2), 0);
    assert_int_equal(rankmap_append(&map, &more, NULL), 0);
    assert_int_equal(cause_api_of(cause, 1), CAUSE_API_NONE);
    assert_int_equal(cause_api_of(cause, 0), CAUSE_API_PMIX);
    assert_false(cause_connected(cause, 1, cause_api_of(cause, 0)));
    assert_true(cause_rank_end(cause, &(struct cause_end){.rank = 1, .host = "here"}));
    assert_int_equal(cause_kind(cause), CAUSE_NO_INIT);
    assert_int_equal(cause_ended(cause), 1);
    cause_free(cause);
    rankmap_done(&more);
    rankmap_done(&map);
}

static struct cause_end end_of(uint32_t rank, int code, bool by_us)
{
    return (struct cause_end){.rank = rank, .worker = 0, .host = "a", .code = code, .by_us = by_us};
}

/* The ranks that decide have all ended well: the job is over, and how the others end is of no
 * matter. */
static void some_ranks_decide(void **state)
{
    struct rankmap map;
    struct cause_end end;
    (void)state;
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 2, &map, NULL), 0);
    struct cause *cause = cause_new(&map);
    cause_decide_by(cause, 2, 2);
    end = end_of(4, 0, false);
    assert_false(cause_rank_end(cause, &end));
    end = end_of(3, 0, false);
    assert_false(cause_rank_end(cause, &end));
    end = end_of(2, 0, false);
    assert_true(cause_rank_end(cause, &end));
    end = end_of(0, 3, false);
    assert_false(cause_rank_end(cause, &end));
    assert_int_equal(cause_kind(cause), CAUSE_DONE);
    assert_int_equal(cause_status(cause), 0);
    json_t *report = cause_json(cause);
    assert_true(json_is_null(json_object_get(report, "cause")));
    json_decref(report);
    cause_free(cause);
    rankmap_done(&map);
}

static struct cause *make_continuing(struct rankmap *ret_map)
{
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 2, ret_map, NULL), 0);
    struct cause *cause = cause_new(ret_map);
    cause_continue(cause, "failurePolicy.onRankFailure: continue");
    return cause;
}

static void expect_explained(const struct cause *cause, const char *expected)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "");
    cause_explain(cause, true, &text);
    assert_string_equal(text.data, expected);
    buf_done(&text);
}

/* Independent ranks: nothing ends, all is listed, and the first failure is the cause at the end. */
static void ranks_may_fail_alone(void **state)
{
    struct rankmap map;
    struct cause *cause = make_continuing(&map);
    const struct cause_end ends[] = {
        {WHO(1), .code = 3, .stderr_tail = "bad\n", .stderr_tail_length = 4},
        {WHO(2), .signo = SIGSEGV},
        {WHO(4)},
        {WHO(3), .code = 9},
    };
    (void)state;
    assert_false(cause_rank_end(cause, &ends[0]));
    assert_false(cause_rank_end(cause, &ends[1]));
    assert_false(cause_rank_end(cause, &ends[2]));
    assert_int_equal(cause_kind(cause), CAUSE_NONE);
    assert_int_equal(cause_failed(cause), 2);
    assert_false(cause_may_change(cause));
    assert_false(cause_rank_end(cause, &ends[3]));
    cause_conclude(cause);
    assert_true(cause_ran_to_end(cause));
    assert_int_equal(cause_status(cause), 3);
    expect_explained(cause, "rank 1 of program 1 on worker 0 (node-a) exited with status 3, and 2 "
                            "more ranks failed\n"
                            "  its last lines on stderr:\n    bad\n"
                            "  other ranks that failed:\n"
                            "    rank 2 of program 1 on worker 1 (node-b) was killed by signal 11 "
                            "(SIGSEGV)\n"
                            "    rank 3 of program 1 on worker 1 (node-b) exited with status 9\n");
    json_t *report = cause_json(cause);
    json_t *failures = json_object_get(report, "failures");
    assert_int_equal(json_integer_value(json_object_get(report, "failed")), 3);
    assert_int_equal(json_array_size(failures), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(failures, 1), "signal")),
                     SIGSEGV);
    json_decref(report);
    cause_free(cause);
    rankmap_done(&map);
}

/* Others could wait for such a rank without end. */
static void ranks_that_are_needed_end_the_job(void **state)
{
    static const char advice[] =
        "  other ranks could wait for it, so it ended the job: ranks may only fail "
        "(failurePolicy.onRankFailure: continue) without MPI_Init or after MPI_Finalize\n";
    static const struct {
        struct event before;
        struct cause_end end;
        bool first;
    } cases[] = {
        {{.kind = SETTLE}, {WHO(1), .code = 3, .api = CAUSE_API_PMIX}, true},
        {{.kind = CONNECT, .end = {WHO(0), FINE}}, {WHO(1), .code = 3}, true},
        {{.kind = CONNECT, .end = {WHO(0), FINE}}, {WHO(1), FINE, .code = 3}, false},
        {{.kind = CONNECT, .end = {WHO(0), FINE}}, {WHO(4), .code = 3}, false},
        {{.kind = END, .end = {WHO(2), .code = 3}}, {WHO(1), .api = CAUSE_API_PMI1}, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rankmap map;
        struct buf text = BUF_INIT;
        struct cause *cause = make_continuing(&map);
        assert_false(apply(cause, &cases[i].before));
        if (cause_rank_end(cause, &cases[i].end) != cases[i].first)
            fail_msg("case %zu", i);
        assert_int_equal(cause_status(cause), cases[i].first ? 3 : 0);
        cause_conclude(cause);
        assert_int_equal(cause_status(cause), 3);
        cause_explain(cause, true, &text);
        assert_int_equal(text.data && strstr(text.data, advice), cases[i].first);
        buf_done(&text);
        cause_free(cause);
        rankmap_done(&map);
    }
}

/* What ends the job in earnest is the cause, and says that ranks had failed. */
static void failures_before_another_end(void **state)
{
    struct rankmap map;
    struct cause *cause = make_continuing(&map);
    const struct cause_end end = {WHO(1), .code = 3};
    (void)state;
    assert_false(cause_rank_end(cause, &end));
    assert_true(cause_timeout(cause, 1500));
    cause_conclude(cause);
    assert_false(cause_ran_to_end(cause));
    assert_int_equal(cause_status(cause), 124);
    expect_explained(cause, "the job did not end within 1.50 s (--timeout); before that, 1 rank "
                            "failed\n"
                            "  other ranks that failed:\n"
                            "    rank 1 of program 1 on worker 0 (node-a) exited with status 3\n");
    cause_free(cause);
    rankmap_done(&map);
}

/* Those that decide have ended, one of them with a failure: the job is over, and has failed. */
static void those_that_decide_may_fail(void **state)
{
    struct rankmap map;
    struct cause *cause = make_continuing(&map);
    struct cause_end end = end_of(2, 3, false);
    (void)state;
    cause_decide_by(cause, 2, 2);
    assert_false(cause_rank_end(cause, &end));
    end = end_of(3, 0, false);
    assert_true(cause_rank_end(cause, &end));
    assert_int_equal(cause_kind(cause), CAUSE_EXIT);
    assert_int_equal(cause_status(cause), 3);
    cause_free(cause);
    rankmap_done(&map);
}

/* Before that a failure of any rank is the job's, and one that we ended has not succeeded. */
static void others_may_fail_the_job(void **state)
{
    struct rankmap map;
    struct cause_end end;
    (void)state;
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 2, &map, NULL), 0);
    struct cause *cause = cause_new(&map);
    cause_decide_by(cause, 0, 1);
    end = end_of(4, 5, false);
    assert_true(cause_rank_end(cause, &end));
    end = end_of(0, 0, true);
    assert_false(cause_rank_end(cause, &end));
    assert_int_equal(cause_kind(cause), CAUSE_EXIT);
    assert_int_equal(cause_status(cause), 5);
    cause_free(cause);
    rankmap_done(&map);
}

/* Who has the report alone takes the error from it. */
static void the_report_has_the_error(void **state)
{
    static const struct {
        const char *cause;
        enum drarun_errkind error;
    } rows[] = {
        {"null", DRARUN_ERR_NONE},
        {"{}", DRARUN_ERR_NONE},
        {"{\"kind\": 3}", DRARUN_ERR_NONE},
        {"{\"kind\": \"exit\", \"exit\": 69}", DRARUN_ERR_NONE},
        {"{\"kind\": \"pod\", \"end\": \"oom\"}", DRARUN_ERR_NONE},
        {"{\"kind\": \"timeout\"}", DRARUN_ERR_TIMEOUT},
        {"{\"kind\": \"interrupted\", \"signal\": 15}", DRARUN_ERR_INTERRUPTED},
        {"{\"kind\": \"failure\"}", DRARUN_ERR_INFRASTRUCTURE},
        {"{\"kind\": \"failure\", \"error\": \"of a later release\"}", DRARUN_ERR_INFRASTRUCTURE},
    };
    struct rankmap map;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *cause = json_loads(rows[i].cause, JSON_DECODE_ANY, NULL);
        assert_int_equal(cause_reported_error(cause), rows[i].error);
        json_decref(cause);
    }
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 2, &map, NULL), 0);
    for (int kind = DRARUN_ERR_USAGE; kind <= DRARUN_ERR_TIMEOUT; kind++) {
        const struct drarun_error err = {.kind = (enum drarun_errkind)kind, .code = 1, .text = "x"};
        struct cause *cause = cause_new(&map);
        assert_true(cause_failure(cause, &err));
        json_t *report = cause_json(cause);
        assert_int_equal(cause_reported_error(json_object_get(report, "cause")), kind);
        json_decref(report);
        cause_free(cause);
    }
    rankmap_done(&map);
}

static void the_report_has_whose_end_it_is(void **state)
{
    static const struct {
        const char *cause;
        bool rank, launcher;
    } rows[] = {
        {"null", false},
        {"{\"kind\": 3}", false},
        {"{\"kind\": \"exit\", \"exit\": 143}", true},
        {"{\"kind\": \"signal\", \"signal\": 15}", true},
        {"{\"kind\": \"abort\"}", true},
        {"{\"kind\": \"no-finalize\"}", true},
        {"{\"kind\": \"no-init\"}", true},
        {"{\"kind\": \"pod\", \"end\": \"failed\"}", false},
        {"{\"kind\": \"launcher-lost\"}", false, true},
        {"{\"kind\": \"failure\"}", false},
        {"{\"kind\": \"timeout\"}", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *cause = json_loads(rows[i].cause, JSON_DECODE_ANY, NULL);
        assert_int_equal(cause_reported_rank(cause), rows[i].rank);
        assert_int_equal(cause_reported_launcher(cause), rows[i].launcher);
        json_decref(cause);
    }
}

static void every_kind_has_its_words(void **state)
{
    (void)state;
    for (int i = CAUSE_NONE + 1; i < CAUSE_DONE; i++) {
        enum cause_kind kind = (enum cause_kind)i;
        assert_non_null(cause_kind_name(kind));
        assert_non_null(cause_kind_status(kind));
        assert_non_null(cause_kind_meaning(kind));
        assert_non_null(cause_kind_cure(kind));
    }
    assert_null(cause_kind_meaning(CAUSE_DONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_ranks_decide),
        cmocka_unit_test(others_may_fail_the_job),
        cmocka_unit_test(a_warning_that_kills_is_ours),
        cmocka_unit_test(ranks_may_fail_alone),
        cmocka_unit_test(ranks_that_are_needed_end_the_job),
        cmocka_unit_test(failures_before_another_end),
        cmocka_unit_test(those_that_decide_may_fail),
        cmocka_unit_test(tells_the_first_cause),
        cmocka_unit_test(the_report_has_all_of_a_signal),
        cmocka_unit_test(the_agents_advice_is_told),
        cmocka_unit_test(ranks_that_come_later_count),
        cmocka_unit_test(the_report_has_the_error),
        cmocka_unit_test(the_report_has_whose_end_it_is),
        cmocka_unit_test(every_kind_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
