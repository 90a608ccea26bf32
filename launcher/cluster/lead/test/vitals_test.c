/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of ranks that hang, and of data that moves over TCP. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <event2/event.h>
#include <cmocka.h>

#include "launcher/cluster/lead/private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/wire.pb-c.h"

#define WORKERS 2
#define RANKS 25
#define MIB (UINT64_C(1) << 20)

static struct {
    struct buf text;
    int64_t now_ms, every_ms;
    struct event *clock;
} world;

static void note(const char *format, const char *text)
{
    if (world.text.len)
        buf_add_str(&world.text, "; ");
    buf_add_str(&world.text, format);
    buf_add_str(&world.text, text);
}

int64_t __wrap_lead_now(void);
int64_t __wrap_lead_now(void)
{
    return world.now_ms;
}

/* Visible, for a shared libevent that calls event_add itself. */
__attribute__((visibility("default"))) int __wrap_event_add(struct event *event,
                                                            const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after)
{
    world.clock = event;
    world.every_ms = after->tv_sec * 1000 + after->tv_usec / 1000;
    return 0;
}

void __wrap_job_ask_vitals(struct job *job, bool ranks);
void __wrap_job_ask_vitals(struct job *job, bool ranks)
{
    (void)job;
    note("ask", ranks ? " ranks" : "");
}

void __wrap_job_stop(struct job *job, const struct drarun_error *err);
void __wrap_job_stop(struct job *job, const struct drarun_error *err)
{
    (void)job;
    assert_int_equal(err->kind, DRARUN_ERR_PREFLIGHT);
    assert_int_equal(err->code, ENETUNREACH);
    note("stop: ", err->text);
}

void __wrap_lead_event(struct lead *lead, enum reason reason, const char *text);
void __wrap_lead_event(struct lead *lead, enum reason reason, const char *text)
{
    (void)lead;
    note(reason == REASON_SILENT         ? "silent: "
         : reason == REASON_TCP_FALLBACK ? "fallback: "
                                         : "another: ",
         text);
}

static struct pod_state pods[WORKERS];

const struct pod_state *__wrap_board_workers(struct board *board, uint32_t attempt);
const struct pod_state *__wrap_board_workers(struct board *board, uint32_t attempt)
{
    (void)board;
    assert_int_equal(attempt, 3);
    return pods;
}

static void on_line(void *arg, const struct log_line *line)
{
    (void)arg;
    if (line->level > LOG_NORMAL)
        return;
    note("log ", "");
    buf_add(&world.text, line->text + line->prefix, line->length - line->prefix - 1);
}

static void is_said(const char *expected)
{
    assert_string_equal(world.text.data ? world.text.data : "", expected);
    buf_reset(&world.text);
}

struct made {
    struct job_spec spec;
    struct cluster cluster;
    struct lead lead;
};

static void made_init(struct made *m)
{
    *m = (struct made){.spec = {.workers = WORKERS, .hang_after = 8000}};
    m->cluster.base = event_base_new();
    assert_non_null(m->cluster.base);
    m->lead = (struct lead){.cluster = &m->cluster, .spec = &m->spec};
    m->lead.attempt.ranks = RANKS;
    m->lead.render.attempt = 3;
    pods[0].node = "n0";
    pods[1].node = "n1";
    world.now_ms = 1000000;
    world.every_ms = -1;
    log_divert(on_line, NULL);
}

static void made_done(struct made *m)
{
    lead_leave_vitals(&m->lead);
    event_base_free(m->cluster.base);
    log_divert(NULL, NULL);
    buf_done(&world.text);
    world.text = (struct buf)BUF_INIT;
}

static void how_often_it_looks(void **state)
{
    static const struct {
        int64_t hang_after;
        enum spec_network network;
        uint32_t workers;
        int64_t every_ms; /* -1: never */
    } rows[] = {
        {0, SPEC_NETWORK_ANY, 2, -1},          {0, SPEC_NETWORK_RDMA, 1, -1},
        {0, SPEC_NETWORK_RDMA, 2, 10000},      {1, SPEC_NETWORK_ANY, 2, 1000},
        {4000, SPEC_NETWORK_ANY, 2, 1000},     {4004, SPEC_NETWORK_ANY, 2, 1001},
        {119996, SPEC_NETWORK_ANY, 2, 29999},  {120004, SPEC_NETWORK_ANY, 2, 30000},
        {120004, SPEC_NETWORK_RDMA, 2, 10000}, {120004, SPEC_NETWORK_RDMA, 1, 30000},
        {39996, SPEC_NETWORK_RDMA, 2, 9999},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m);
        m.spec.hang_after = rows[i].hang_after;
        m.spec.network = rows[i].network;
        m.spec.workers = rows[i].workers;
        lead_watch_vitals(&m.lead);
        assert_int_equal(world.every_ms, rows[i].every_ms);
        is_said(rows[i].every_ms < 0 ? "" : "ask");
        assert_int_equal(m.lead.vitals != NULL, rows[i].every_ms >= 0);
        made_done(&m);
    }
}

/* What all workers answer, each half of it. */
static void answer(struct made *m, uint64_t net_bytes, uint64_t rdma_bytes, uint64_t cpu_us)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        Drarun__Wire__Vitals vitals = DRARUN__WIRE__VITALS__INIT;
        vitals.net_bytes = net_bytes / WORKERS;
        vitals.rdma_bytes = rdma_bytes / WORKERS;
        vitals.cpu_us = cpu_us / WORKERS;
        lead_take_vitals(&m->lead, i, &vitals);
    }
}

static void answer_ranks(struct made *m, Drarun__Wire__RankVitals *ranks, size_t count)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        Drarun__Wire__Vitals vitals = DRARUN__WIRE__VITALS__INIT;
        Drarun__Wire__RankVitals *list[RANKS + 1];
        vitals.n_ranks = 0;
        vitals.ranks = list;
        for (size_t k = 0; k < count; k++)
            if (ranks[k].rank % WORKERS == i)
                list[vitals.n_ranks++] = &ranks[k];
        lead_take_vitals(&m->lead, i, &vitals);
    }
}

/* The clock is due. */
static void look(struct made *m, int64_t after_ms)
{
    world.now_ms += after_ms;
    event_active(world.clock, EV_TIMEOUT, 1);
    event_base_loop(m->cluster.base, EVLOOP_NONBLOCK);
    is_said("ask");
}

static void answers_that_do_not_count(void **state)
{
    struct made m;
    Drarun__Wire__Vitals vitals = DRARUN__WIRE__VITALS__INIT;
    (void)state;
    made_init(&m);
    lead_take_vitals(&m.lead, 0, &vitals); /* nobody has asked */
    lead_watch_vitals(&m.lead);
    is_said("ask");
    answer(&m, 0, 0, 0);
    look(&m, 8000);
    lead_take_vitals(&m.lead, WORKERS, &vitals); /* there is none */
    lead_take_vitals(&m.lead, 0, &vitals);
    lead_take_vitals(&m.lead, 0, &vitals); /* again */
    is_said("");
    lead_take_vitals(&m.lead, 1, &vitals);
    is_said("ask ranks");
    made_done(&m);
}

#define HANGS                                                                                      \
    "no progress for 8 s (hangAfter): no output, no network, no CPU time. State of the ranks:"

/* Ranks in the same state are told together, by their numbers. */
static void ranks_that_hang(void **state)
{
    static char name[] = "python", sleeps[] = "S", disk[] = "D",
                stack[] = "\nfutex_wait\n\ndo_it\n", wchan[] = "futex", nothing[] = "";
    Drarun__Wire__RankVitals ranks[5];
    struct made m;
    (void)state;
    made_init(&m);
    lead_watch_vitals(&m.lead);
    is_said("ask");
    answer(&m, 0, 0, 0);
    look(&m, 7999);
    answer(&m, 0, 0, 0);
    is_said("");
    look(&m, 1);
    answer(&m, 0, 0, 0);
    is_said("ask ranks");
    for (uint32_t i = 0; i < 5; i++) {
        drarun__wire__rank_vitals__init(&ranks[i]);
        ranks[i].rank = i;
        ranks[i].pid = 100 + i;
        ranks[i].name = name;
        ranks[i].state = sleeps;
        ranks[i].wchan = wchan;
        ranks[i].stack = nothing;
    }
    ranks[1].pid = 0;
    ranks[3].state = disk;
    ranks[3].wchan = nothing;
    ranks[3].stack = stack;
    ranks[4].rank = RANKS; /* there is none */
    answer_ranks(&m, ranks, 5);
    is_said("log " HANGS "\n  ranks 0,2: python sleeps (S) in futex\n  rank 1: no process\n  rank "
            "3: python waits and cannot be interrupted (D): futex_wait < do_it; silent: " HANGS
            "\n  ranks 0,2: python sleeps (S) in futex\n  rank 1: no process\n  rank 3: python "
            "waits and cannot be interrupted (D): futex_wait < do_it");
    look(&m, 8000); /* it is said once */
    answer(&m, 0, 0, 0);
    is_said("");
    look(&m, 1000);
    answer(&m, 0, 0, 1000000);
    is_said("log the job makes progress again");
    made_done(&m);
}

static void what_each_state_is_called(void **state)
{
    static const struct {
        char state[4];
        const char *words;
    } rows[] = {
        {"R", "x runs (R)"},       {"S", "x sleeps (S)"},
        {"T", "x is stopped (T)"}, {"t", "x is stopped (t)"},
        {"I", "x is (I)"},         {"Z", "x has ended and was not reaped by its parent (Z)"},
        {"", "x is ()"},
    };
    static char name[] = "x", nothing[] = "";
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        Drarun__Wire__RankVitals rank = DRARUN__WIRE__RANK_VITALS__INIT;
        struct made m;
        char expected[512];
        made_init(&m);
        lead_watch_vitals(&m.lead);
        answer(&m, 0, 0, 0);
        buf_reset(&world.text);
        look(&m, 8000);
        answer(&m, 0, 0, 0);
        buf_reset(&world.text);
        rank.pid = 1;
        rank.name = name;
        rank.state = unconst(rows[i].state);
        rank.wchan = rank.stack = nothing;
        answer_ranks(&m, &rank, 1);
        snprintf(expected, sizeof expected,
                 "log " HANGS "\n  rank 0: %s; silent: " HANGS "\n  rank 0: %s", rows[i].words,
                 rows[i].words);
        is_said(expected);
        made_done(&m);
    }
}

/* No more than people read. */
static void ranks_with_many_stories(void **state)
{
    static const uint32_t counts[] = {20, 21, 25};
    static const char *const ends[] = {"rank 19: p19 sleeps (S)", "\n  and 1 others",
                                       "\n  and 5 others"};
    static char names[RANKS][16], sleeps[] = "S", nothing[] = "";
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        Drarun__Wire__RankVitals ranks[RANKS];
        struct made m;
        made_init(&m);
        lead_watch_vitals(&m.lead);
        answer(&m, 0, 0, 0);
        buf_reset(&world.text);
        look(&m, 8000);
        answer(&m, 0, 0, 0);
        buf_reset(&world.text);
        for (uint32_t r = 0; r < counts[i]; r++) {
            drarun__wire__rank_vitals__init(&ranks[r]);
            snprintf(names[r], sizeof names[r], "p%u", r);
            ranks[r].rank = r;
            ranks[r].pid = 1;
            ranks[r].name = names[r];
            ranks[r].state = sleeps;
            ranks[r].wchan = ranks[r].stack = nothing;
        }
        answer_ranks(&m, ranks, counts[i]);
        size_t lines = 0;
        for (const char *at = strstr(world.text.data, "silent: "); (at = strstr(at, "\n  rank "));
             at++)
            lines++;
        assert_int_equal(lines, 20);
        /* the story of rank 19 may not be the last: those of the first worker come before */
        if (i > 0)
            assert_string_equal(world.text.data + world.text.len - strlen(ends[i]), ends[i]);
        else
            assert_non_null(strstr(world.text.data, ends[i]));
        buf_reset(&world.text);
        made_done(&m);
    }
}

/* Data of a job that asks for RDMA, once it has moved 256 MiB a worker over TCP. */
static void data_that_moves_over_tcp(void **state)
{
    static const struct {
        enum spec_network network;
        enum spec_fallback fallback;
        const char *node; /* of the second worker */
        uint64_t net, rdma;
        bool told;
    } rows[] = {
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT, "n1", 512 * MIB, 0, true},
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_FAIL, "n1", 512 * MIB, 0, true},
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT, "n1", 512 * MIB - 2, 0, false},
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT, "n1", 520 * MIB, 52 * MIB - 2, true},
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT, "n1", 520 * MIB, 52 * MIB, false},
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT, "n0", 512 * MIB, 0, false},
        {SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT, NULL, 512 * MIB, 0, false},
        {SPEC_NETWORK_ANY, SPEC_FALLBACK_REPORT, "n1", 512 * MIB, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        char text[512], expected[1200];
        made_init(&m);
        m.spec.network = rows[i].network;
        m.spec.on_tcp_fallback = rows[i].fallback;
        pods[1].node = rows[i].node;
        lead_watch_vitals(&m.lead);
        is_said("ask");
        answer(&m, 0, 0, 0);
        is_said("");
        look(&m, 1000);
        answer(&m, rows[i].net, rows[i].rdma, 0);
        snprintf(
            text, sizeof text,
            "the job asks for RDMA (network: rdma), but its data moves over TCP: %d MiB "
            "through network interfaces, %d MiB by RDMA since its start; NCCL_DEBUG=INFO shows "
            "why, network: any allows it",
            (int)(rows[i].net / MIB), (int)(rows[i].rdma / MIB));
        snprintf(expected, sizeof expected, "fallback: %s; %s%s", text,
                 rows[i].fallback == SPEC_FALLBACK_FAIL ? "stop: " : "log ", text);
        is_said(rows[i].told ? expected : "");
        look(&m, 1000); /* once */
        answer(&m, 2 * rows[i].net, rows[i].rdma, 0);
        buf_reset(&world.text);
        made_done(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_often_it_looks),      cmocka_unit_test(answers_that_do_not_count),
        cmocka_unit_test(ranks_that_hang),         cmocka_unit_test(what_each_state_is_called),
        cmocka_unit_test(ranks_with_many_stories), cmocka_unit_test(data_that_moves_over_tcp),
    };
    log_setup("t", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
