/* SPDX-License-Identifier: Apache-2.0 */
/* What running ranks do: whether they hang, and whether TCP carries what RDMA should
 * (docs/design/018-inspection.md, "Vitals"; jobs/gang/silence judges). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/silence.h"
#include "jobs/ranks/worker_ranges.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/wire.pb-c.h"

#define LOOK_MIN_MS 1000
#define LOOK_MAX_MS 30000
#define LOOK_TCP_MS 10000 /* where TCP is watched for, at most */
#define LOOKS 4           /* in hangAfter */
#define STORIES_MAX 20
#define RANGES_MAX 16

struct lead_vitals {
    struct lead *lead;
    struct event *clock;
    struct silence silence;
    struct silence_counts sum; /* of those that have answered */
    bool *answered;            /* by worker, this time */
    uint32_t answers;
    bool of_ranks; /* each rank's doings were asked for */
    struct strlist stories;
    uint32_t *story; /* by rank, from 1; 0: nothing is known of it */
};

static bool wants_rdma(const struct job_spec *spec)
{
    return spec->network == SPEC_NETWORK_RDMA && spec->workers > 1;
}

static bool on_several_nodes(struct lead *lead)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 1; i < lead->spec->workers; i++)
        if (workers[0].node && workers[i].node && strcmp(workers[0].node, workers[i].node) != 0)
            return true;
    return false;
}

/* ---- asking ---- */

static void ask(struct lead_vitals *v, bool of_ranks)
{
    v->of_ranks = of_ranks;
    v->answers = 0;
    v->sum = (struct silence_counts){0};
    memset(v->answered, 0, v->lead->spec->workers * sizeof *v->answered);
    memset(v->story, 0, v->lead->attempt.ranks * sizeof *v->story);
    strlist_done(&v->stories);
    job_ask_vitals(v->lead->job, of_ranks);
}

static int64_t look_every_ms(const struct job_spec *spec)
{
    int64_t ms = spec->hang_after > 0 ? spec->hang_after / LOOKS : LOOK_MAX_MS;
    int64_t most = wants_rdma(spec) ? LOOK_TCP_MS : LOOK_MAX_MS;
    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > most ? most : ms;
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
    struct lead_vitals *v = arg;
    (void)fd, (void)what;
    ask(v, false);
}

/* ---- a job that hangs ---- */

static const char *state_words(const char *state)
{
    switch (state[0]) {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps";
    case 'D':
        return "waits and cannot be interrupted";
    case 'T':
    case 't':
        return "is stopped";
    case 'Z':
        return "has ended and was not reaped by its parent";
    default:
        return "is";
    }
}

static void tell_story(const Drarun__Wire__RankVitals *rank, struct buf *out)
{
    if (!rank->pid)
        buf_add_str(out, "no process");
    else
        buf_printf(out, "%s %s (%s)%s%s", rank->name, state_words(rank->state), rank->state,
                   rank->wchan[0] ? " in " : "", rank->wchan);
    const char *between = ": ";
    for (const char *line = rank->stack; *(line += strspn(line, "\n"));) {
        size_t length = strcspn(line, "\n");
        buf_printf(out, "%s%.*s", between, (int)length, line);
        between = " < ";
        line += length;
    }
}

static void note_rank(struct lead_vitals *v, const Drarun__Wire__RankVitals *rank)
{
    struct buf text = BUF_INIT;
    if (rank->rank >= v->lead->attempt.ranks)
        return;
    tell_story(rank, &text);
    for (size_t i = 0; text.data && !v->story[rank->rank] && i < v->stories.count; i++)
        if (strcmp(v->stories.items[i], text.data) == 0)
            v->story[rank->rank] = (uint32_t)i + 1;
    if (text.data && !v->story[rank->rank]) {
        strlist_add(&v->stories, text.data);
        v->story[rank->rank] = (uint32_t)v->stories.count;
    }
    buf_done(&text);
}

static void add_group(const struct lead_vitals *v, uint32_t story, struct buf *out)
{
    cleanup_free uint32_t *ranks = calloc(v->lead->attempt.ranks, sizeof *ranks);
    uint32_t count = 0;
    for (uint32_t r = 0; ranks && r < v->lead->attempt.ranks; r++)
        if (v->story[r] == story)
            ranks[count++] = r;
    if (count == 0)
        return;
    buf_printf(out, "\n  rank%s ", count > 1 ? "s" : "");
    worker_ranges(ranks, count, RANGES_MAX, out);
    buf_printf(out, ": %s", v->stories.items[story - 1]);
}

static void tell_hang(struct lead_vitals *v)
{
    struct buf text = BUF_INIT;
    buf_printf(&text,
               "no progress for %" PRId64
               " s (hangAfter): no output, no network, no CPU time. State of the ranks:",
               silence_lasts_ms(&v->silence, lead_now()) / 1000);
    for (uint32_t i = 1; i <= v->stories.count && i <= STORIES_MAX; i++)
        add_group(v, i, &text);
    if (v->stories.count > STORIES_MAX)
        buf_printf(&text, "\n  and %zu others", v->stories.count - STORIES_MAX);
    if (text.data) {
        log_note("%s", text.data);
        lead_event(v->lead, REASON_SILENT, text.data);
    }
    buf_done(&text);
}

/* ---- TCP in place of RDMA ---- */

static void tell_fallback(struct lead_vitals *v)
{
    struct drarun_error err = {0};
    bool fail = v->lead->spec->on_tcp_fallback == SPEC_FALLBACK_FAIL;
    error_kind(&err, DRARUN_ERR_PREFLIGHT, ENETUNREACH,
               "the job asks for RDMA (network: rdma), but its data moves over TCP: %" PRIu64
               " MiB through network interfaces, %" PRIu64
               " MiB by RDMA since its start; NCCL_DEBUG=INFO shows why, network: any allows it",
               silence_net_bytes(&v->silence) >> 20, silence_rdma_bytes(&v->silence) >> 20);
    lead_event(v->lead, REASON_TCP_FALLBACK, err.text);
    if (fail)
        job_stop(v->lead->job, &err);
    else
        log_note("%s", err.text);
}

/* ---- answers ---- */

static void all_answered(struct lead_vitals *v)
{
    struct lead *lead = v->lead;
    const struct job_spec *spec = lead->spec;
    if (v->of_ranks) {
        tell_hang(v);
        return;
    }
    enum silence_event event =
        silence_step(&v->silence, &v->sum, spec->workers, lead_now(), spec->hang_after);
    if (event == SILENCE_RESUMED)
        log_note("the job makes progress again");
    if (wants_rdma(spec) && on_several_nodes(lead) && silence_fell_back(&v->silence, spec->workers))
        tell_fallback(v);
    else if (event == SILENCE_HANGS)
        ask(v, true);
}

void lead_take_vitals(void *arg, uint32_t worker, const struct Drarun__Wire__Vitals *vitals)
{
    struct lead *lead = arg;
    struct lead_vitals *v = lead->vitals;
    if (!v || worker >= lead->spec->workers || v->answered[worker])
        return;
    v->answered[worker] = true;
    v->answers++;
    v->sum.rdma_bytes += vitals->rdma_bytes;
    v->sum.net_bytes += vitals->net_bytes;
    v->sum.loop_bytes += vitals->loop_bytes;
    v->sum.output_bytes += vitals->output_bytes;
    v->sum.cpu_us += vitals->cpu_us;
    for (size_t i = 0; v->of_ranks && i < vitals->n_ranks; i++)
        note_rank(v, vitals->ranks[i]);
    if (v->answers == lead->spec->workers)
        all_answered(v);
}

/* ---- from begin to end ---- */

void lead_watch_vitals(struct lead *lead)
{
    struct timeval every = timeval_from_ms(look_every_ms(lead->spec));
    if (lead->spec->hang_after <= 0 && !wants_rdma(lead->spec))
        return;
    struct lead_vitals *v = lead->vitals = calloc(1, sizeof *v);
    if (v) {
        v->lead = lead;
        v->answered = calloc(lead->spec->workers, sizeof *v->answered);
        v->story = calloc(lead->attempt.ranks, sizeof *v->story);
        v->clock = event_new(lead->cluster->base, -1, EV_PERSIST, on_clock, v);
    }
    if (!v || !v->answered || !v->story || !v->clock || event_add(v->clock, &every) < 0) {
        log_error("the job is not watched for hangs: out of memory");
        lead_leave_vitals(lead);
        return;
    }
    ask(v, false);
}

void lead_leave_vitals(struct lead *lead)
{
    struct lead_vitals *v = lead->vitals;
    lead->vitals = NULL;
    if (!v)
        return;
    if (v->clock)
        event_free(v->clock);
    strlist_done(&v->stories);
    free(v->answered);
    free(v->story);
    free(v);
}
