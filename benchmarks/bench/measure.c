/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

static double machine_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static backend_clock *clock_of(const struct measure_case *m)
{
    return m->world->clock ? m->world->clock : machine_clock;
}

static void layout_of(const struct measure_case *m, struct layout *ret)
{
    size_t size = element_size(m->type);
    m->collective->layout(m->bytes / size, size, m->world->ranks, ret);
}

/* ---- memory ---- */

void measure_needs(const struct measure_case *m, unsigned unaligned, size_t *ret_send,
                   size_t *ret_recv)
{
    struct layout l;
    size_t size = element_size(m->type), shift = unaligned * size;
    layout_of(m, &l);
    /* in place the receive buffer holds all that is sent, or the send buffer all that comes */
    *ret_send = (l.send > l.recv ? l.send : l.recv) * size + shift;
    *ret_recv = *ret_send;
}

#define FILLING 0x3f /* of each type a number that no arithmetic is slow with */

/* The machine's memory that was never written is the kernel's one page of zeros, which is read from
 * the cache however much of it there is. */
static void touch(const struct backend *backend, const struct measure_memory *memory)
{
    const struct data data = {backend, memory->staging};
    if (backend->room)
        return; /* a device's own */
    data_set(&data, FILLING, memory->send_bytes, memory->send);
    data_set(&data, FILLING, memory->recv_bytes, memory->recv);
}

int measure_memory_new(const struct measure_case *largest, unsigned unaligned, bool check,
                       struct measure_memory *ret, struct drarun_error *err)
{
    const struct backend *backend = largest->backend;
    struct measure_memory memory = {0};
    measure_needs(largest, unaligned, &memory.send_bytes, &memory.recv_bytes);
    memory.send = backend->alloc(memory.send_bytes);
    memory.recv = backend->alloc(memory.recv_bytes);
    memory.wanted = check ? backend->alloc(memory.recv_bytes) : NULL;
    memory.staging = malloc(DATA_STAGING_BYTES);
    if (memory.send && memory.recv && (memory.wanted || !check) && memory.staging) {
        touch(backend, &memory);
        *ret = memory;
        return 0;
    }
    measure_memory_done(backend, &memory);
    return error_set(
        err, ENOMEM, "no room for %s buffers of %zu bytes: give a smaller --maxbytes%s",
        check ? "three" : "two", memory.recv_bytes, check ? ", or --check 0, which needs two" : "");
}

void measure_memory_done(const struct backend *backend, struct measure_memory *memory)
{
    char *const buffers[] = {memory->send, memory->recv, memory->wanted};
    for (size_t i = 0; i < ARRAY_LEN(buffers); i++)
        if (buffers[i])
            backend->release(buffers[i]);
    free(memory->staging);
    *memory = (struct measure_memory){0};
}

/* ---- one call ---- */

static struct transfer transfer_of(const struct measure_case *m,
                                   const struct measure_memory *memory, const struct layout *l,
                                   size_t shift, bool in_place)
{
    size_t size = element_size(m->type);
    char *send = memory->send + shift, *recv = memory->recv + shift;
    struct transfer t = {send, recv, l->count, m->type, m->op, m->root};
    if (in_place && !m->collective->apart) { /* all is in the receive buffer */
        t.send = recv + m->world->rank * l->send_offset * size;
        t.recv = recv + m->world->rank * l->recv_offset * size;
    }
    return t;
}

/* Every rank takes the same steps in the same order. */
static void step(const struct measure_case *m, bool alone)
{
    if (m->progress)
        progress_step(m->progress, alone, NULL);
}

static void step_into(const struct measure_case *m, const char *how)
{
    char what[64];
    snprintf(what, sizeof what, "%s of %zu bytes%s", m->collective->name, m->bytes, how);
    if (m->progress)
        progress_step(m->progress, false, what);
}

static bool is_empty(const struct measure_case *m, const struct transfer *t)
{
    return t->count == 0 && !m->collective->bare; /* as nccl-tests: a size below 16 bytes a rank */
}

static int call(const struct measure_case *m, const struct transfer *t, struct drarun_error *err)
{
    if (is_empty(m, t))
        return 0;
    step(m, false);
    return m->collective->run(m->backend, m->world, t, err);
}

int measure_warm(const struct measure_case *m, const struct measure_memory *memory, size_t shift,
                 unsigned calls, struct drarun_error *err)
{
    struct layout l;
    int rc = 0;
    layout_of(m, &l);
    const struct transfer t = transfer_of(m, memory, &l, shift, false);
    step_into(m, ", warm-up");
    for (unsigned i = 0; rc == 0 && i < calls; i++)
        rc = call(m, &t, err);
    return rc < 0 ? rc : backend_finish(m->backend, err);
}

/* ---- time ---- */

struct clocking {
    double all, *each;
};

/* What a plan makes of each iteration, decided before any is timed. */
struct pace {
    unsigned calls;
    bool groups;  /* the calls start together */
    bool waits;   /* for each call, */
    bool meets;   /* and for all ranks after it */
    bool ends;    /* waits for all of its calls */
    bool apart;   /* a barrier follows, which is not part of the time */
    bool clocked; /* is timed by itself */
    bool marks;   /* is timed where it runs: elsewhere it would have to be waited for */
};

static struct pace pace_of(const struct measure_case *m, const struct measure_plan *plan,
                           const struct transfer *t)
{
    bool apart = plan->blocking == 3, waits = plan->blocking == 1 || plan->blocking == 2;
    bool marks = plan->each && m->backend->mark && !apart;
    return (struct pace){
        .calls = is_empty(m, t) ? 0 : plan->agg,
        .groups = m->backend->group && plan->agg > 1 && !waits,
        .waits = waits,
        .meets = plan->blocking == 1,
        .ends = apart || (plan->each && !marks),
        .apart = apart,
        .clocked = apart || plan->each,
        .marks = marks,
    };
}

static int set_marks(const struct measure_case *m, const struct pace *pace, unsigned from,
                     unsigned to, struct drarun_error *err)
{
    int rc = 0;
    for (unsigned i = from; rc == 0 && pace->marks && i <= to; i++)
        rc = m->backend->mark(i, err);
    return rc;
}

static int read_marks(const struct measure_case *m, const struct measure_plan *plan,
                      const struct pace *pace, double *each, struct drarun_error *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && pace->marks && i < plan->iters; i++) {
        rc = m->backend->between(i, &each[i], err);
        each[i] /= plan->agg;
    }
    return rc;
}

/* The first call's step was taken before the clock was read: below 1 us each store counts. */
static int one_iteration(const struct measure_case *m, const struct pace *pace,
                         const struct transfer *t, struct drarun_error *err)
{
    int rc = pace->groups ? m->backend->group(true, err) : 0;
    for (unsigned a = 0; rc == 0 && a < pace->calls; a++) {
        if (a > 0)
            step(m, false);
        rc = m->collective->run(m->backend, m->world, t, err);
        if (rc == 0 && pace->waits)
            rc = backend_finish(m->backend, err);
        if (rc == 0 && pace->meets)
            rc = m->backend->barrier(err);
    }
    if (rc == 0 && pace->groups)
        rc = m->backend->group(false, err);
    return rc == 0 && pace->ends ? backend_finish(m->backend, err) : rc;
}

/* The usual paces have loops of their own: what an iteration of any pace decides is some per cent
 * of a call below 1 us. */

/* One call, a barrier: nothing but the call, to its end, is between two readings of the clock. */
static int one_and_barrier(const struct measure_case *m, unsigned iters, const struct transfer *t,
                           double *each, double *inside, struct drarun_error *err)
{
    const struct backend *backend = m->backend;
    const struct backend_world *world = m->world;
    const struct collective *collective = m->collective;
    backend_clock *now = clock_of(m);
    double sum = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < iters; i++) {
        step(m, false);
        double before = now();
        rc = collective->run(backend, world, t, err);
        rc = rc < 0 ? rc : backend_finish(backend, err);
        double took = now() - before;
        sum += took;
        if (each)
            each[i] = took;
        rc = rc < 0 ? rc : backend->barrier(err);
    }
    *inside = sum;
    return rc;
}

/* One call after the other. */
static int back_to_back(const struct measure_case *m, unsigned iters, const struct transfer *t,
                        struct drarun_error *err)
{
    const struct backend *backend = m->backend;
    const struct backend_world *world = m->world;
    const struct collective *collective = m->collective;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < iters; i++) {
        step(m, false);
        rc = collective->run(backend, world, t, err);
    }
    return rc;
}

static int any_pace(const struct measure_case *m, const struct measure_plan *plan,
                    const struct transfer *t, const struct pace *pace, double *each, double *inside,
                    struct drarun_error *err)
{
    backend_clock *now = clock_of(m);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < plan->iters; i++) {
        if (pace->calls > 0)
            step(m, false);
        double before = pace->clocked ? now() : 0;
        rc = pace->marks ? m->backend->mark(i, err) : 0;
        rc = rc < 0 ? rc : one_iteration(m, pace, t, err);
        double took = pace->clocked ? now() - before : 0;
        *inside += pace->apart ? took : 0;
        if (each)
            each[i] = took / plan->agg;
        if (rc == 0 && pace->apart)
            rc = m->backend->barrier(err);
    }
    return rc < 0 ? rc : set_marks(m, pace, plan->iters, plan->iters, err);
}

static int iterate(const struct measure_case *m, const struct measure_plan *plan,
                   const struct transfer *t, const struct pace *pace, struct clocking *c,
                   struct drarun_error *err)
{
    backend_clock *now = clock_of(m);
    double begin = now(), inside = 0;
    int rc = 0;
    if (pace->calls == 1 && pace->apart && !pace->waits)
        rc = one_and_barrier(m, plan->iters, t, c->each, &inside, err);
    else if (pace->calls == 1 && !pace->clocked && !pace->waits)
        rc = back_to_back(m, plan->iters, t, err);
    else
        rc = any_pace(m, plan, t, pace, c->each, &inside, err);
    if (rc == 0)
        rc = backend_finish(m->backend, err);
    c->all = pace->apart ? inside : now() - begin;
    return rc < 0 ? rc : read_marks(m, plan, pace, c->each, err);
}

static int average(const struct measure_case *m, enum average how, double *seconds,
                   struct drarun_error *err)
{
    double mine = how == AVERAGE_RANK0 && m->world->rank != 0 ? 0 : *seconds;
    int rc = m->backend->agree(&mine, 1,
                               how == AVERAGE_MIN   ? AGREE_MIN
                               : how == AVERAGE_MAX ? AGREE_MAX
                                                    : AGREE_SUM,
                               err);
    if (rc == 0)
        *seconds = how == AVERAGE_MEAN ? mine / m->world->ranks : mine;
    return rc;
}

/* One call at least, and those asked for at the pace of the timed ones: what a processor learns of
 * calls without barriers is of no use to calls with them. All begin together afterwards. */
static int settle(const struct measure_case *m, const struct measure_plan *plan,
                  const struct transfer *t, const struct pace *timed, struct drarun_error *err)
{
    struct measure_plan untimed = *plan;
    struct pace pace = *timed;
    struct clocking ignored = {0};
    untimed.iters = plan->settle;
    pace.marks = false;
    int rc = call(m, t, err);
    rc = rc < 0 ? rc : iterate(m, &untimed, t, &pace, &ignored, err);
    return rc < 0 ? rc : m->backend->barrier(err);
}

static int time_it(const struct measure_case *m, const struct measure_plan *plan,
                   const struct transfer *t, struct measured *ret, struct drarun_error *err)
{
    const struct pace pace = pace_of(m, plan, t);
    struct clocking c = {0};
    if (plan->each && !(c.each = calloc(plan->iters, sizeof *c.each)))
        return error_set(err, ENOMEM, "out of memory");
    step_into(m, "");
    int rc = set_marks(m, &pace, 0, plan->iters, err); /* they are made here, and not in the time */
    rc = rc < 0 ? rc : settle(m, plan, t, &pace, err);
    rc = rc < 0 ? rc : iterate(m, plan, t, &pace, &c, err);
    ret->seconds = c.all / plan->iters / plan->agg;
    rc = rc < 0 ? rc : m->backend->share(&ret->seconds, ret->ranks, sizeof ret->seconds, err);
    rc = rc < 0 ? rc : average(m, plan->average, &ret->seconds, err);
    if (rc == 0 && plan->each)
        rc = m->backend->agree(c.each, plan->iters, AGREE_MAX, err);
    ret->each = c.each;
    return rc;
}

/* ---- data ---- */

static int check_once(const struct measure_case *m, const struct measure_memory *memory,
                      const struct layout *l, size_t shift, bool in_place, unsigned round,
                      struct measured *ret, struct drarun_error *err)
{
    size_t size = element_size(m->type);
    const struct check c = {
        .data = {m->backend, memory->staging},
        .pattern = {m->type, m->op, m->collective->reduces ? m->world->ranks : 1, round},
        .rank = m->world->rank,
        .ranks = m->world->ranks,
        .root = m->root,
        .layout = *l,
    };
    struct transfer t = transfer_of(m, memory, l, shift, in_place);
    step(m, true);
    data_set(&c.data, 0, memory->recv_bytes - shift, memory->recv + shift);
    data_set(&c.data, 0, l->send * size, unconst(t.send));
    m->collective->fill(&c, unconst(t.send));
    int rc = call(m, &t, err);
    rc = rc < 0 ? rc : backend_finish(m->backend, err);
    if (rc < 0)
        return rc;
    step(m, true);
    size_t looked_at = m->collective->expected(&c, memory->wanted);
    double mine = (double)data_wrong(&c.data, &c.pattern, t.recv, memory->wanted, looked_at);
    rc = backend_finish(m->backend, err); /* of the copies that made and got it */
    if (rc < 0)
        return rc;
    step(m, false);
    rc = m->backend->share(&mine, ret->wrong_ranks, sizeof mine, err);
    for (unsigned i = 0; rc == 0 && i < m->world->ranks; i++)
        ret->wrong += ret->wrong_ranks[i];
    return rc;
}

void measured_done(struct measured *m)
{
    free(TAKE_PTR(m->ranks));
    free(TAKE_PTR(m->each));
    free(TAKE_PTR(m->wrong_ranks));
}

int measure(const struct measure_case *m, const struct measure_plan *plan,
            const struct measure_memory *memory, size_t shift, bool in_place, struct measured *ret,
            struct drarun_error *err)
{
    static unsigned round;
    struct measured result = {.wrong = -1};
    layout_of(m, &result.layout);
    const struct transfer t = transfer_of(m, memory, &result.layout, shift, in_place);
    result.ranks = calloc(m->world->ranks, sizeof *result.ranks);
    result.wrong_ranks = calloc(m->world->ranks, sizeof *result.wrong_ranks);
    int rc = result.ranks && result.wrong_ranks ? time_it(m, plan, &t, &result, err)
                                                : error_set(err, ENOMEM, "out of memory");
    if (rc < 0) {
        measured_done(&result);
        return rc;
    }
    size_t size = element_size(m->type);
    double bytes = m->collective->bytes(result.layout.count, size, m->world->ranks);
    result.algbw = result.seconds > 0 ? bytes / 1e9 / result.seconds : 0;
    result.busbw = result.algbw * m->collective->factor(m->world->ranks);
    if (plan->check && !m->collective->bare && (m->collective->in_place || !in_place))
        result.wrong = 0;
    for (unsigned i = 0; rc == 0 && result.wrong == 0 && i < plan->check; i++)
        rc = check_once(m, memory, &result.layout, shift, in_place, ++round, &result, err);
    if (rc < 0)
        measured_done(&result);
    else
        *ret = result;
    return rc;
}
