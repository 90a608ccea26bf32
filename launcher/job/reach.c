/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/reach.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "jobs/preflight/fabric.h"
#include "jobs/preflight/preflight.h"
#include "jobs/preflight/reach.h"
#include "launcher/job/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/base/unconst.h"

#define LIMIT_MS 2000
#define LIMIT_MS_MAX 600000
#define LIMIT_VARIABLE "DRARUN_REACH_MS" /* for machines on which nothing is fast */
#define SAID_MAX 16u                     /* lines of pairs; the report has them all */

struct job_reach {
    struct job *job;
    const struct job_spec *spec;
    struct reach *reach;
    struct preflight_worker *workers;
    int64_t limit_ms, began_ms, took_ms;
    bool begun;
};

void job_reach_free(struct job_reach *r)
{
    if (!r)
        return;
    reach_free(r->reach);
    free(r->workers);
    free(r);
}

static void send_line(void *arg, uint32_t worker, const char *line)
{
    struct job_reach *r = arg;
    Drarun__Wire__Reach message = DRARUN__WIRE__REACH__INIT;
    message.line = unconst(line);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(REACH, reach, &message);
    agent_send(&r->job->agents[worker], &envelope);
}

static void note_end(struct job_reach *r)
{
    if (r->took_ms < 0 && reach_over(r->reach)) {
        r->took_ms = clock_ms() - r->began_ms;
        event_del(r->job->preflight.reach_clock);
    }
}

void job_reach_expire(struct job_reach *r)
{
    reach_expire(r->reach);
    note_end(r);
}

/* ---- making ---- */

static int read_limit(int64_t *ret_ms, struct drarun_error *err)
{
    const char *text = getenv(LIMIT_VARIABLE);
    *ret_ms = LIMIT_MS;
    return text ? number_parse(LIMIT_VARIABLE, text, 1, LIMIT_MS_MAX, ret_ms, err) : 0;
}

static bool has_rail(const struct plan *plan)
{
    for (size_t w = 0; w < plan->worker_count; w++) {
        const struct plan_worker *worker = &plan->workers[w];
        if (worker->nic_count > 0 && worker->profile && worker->profile->data == PROFILE_RDMA)
            return true;
    }
    return false;
}

/* Of roles with a rail: without a second worker nobody is to be reached. */
static bool has_pairs(const struct plan *plans, uint32_t count)
{
    size_t workers = 0;
    for (uint32_t p = 0; p < count; p++)
        workers += has_rail(&plans[p]) ? plans[p].worker_count : 0;
    return workers > 1;
}

static size_t count_workers(const struct plan *plans, uint32_t count)
{
    size_t workers = 0;
    for (uint32_t p = 0; p < count; p++)
        workers += plans[p].worker_count;
    return workers;
}

static int fill(struct job_reach *r, const struct plan *plans, uint32_t count,
                struct drarun_error *err)
{
    struct job *job = r->job;
    const struct request_pods *pods = job->request->pods;
    uint64_t seed = 0;
    cleanup_free const json_t **inspections = calloc(job->count, sizeof *inspections);
    r->workers = calloc(job->count, sizeof *r->workers);
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    r->reach = reach_new(job->count, pods->rank_order, seed, r->limit_ms, send_line, r);
    if (!inspections || !r->workers || !r->reach)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < job->count; i++) {
        inspections[i] = job_inspection(job, i);
        r->workers[i] = (struct preflight_worker){.pod = pods->pods[i], .node = pods->nodes[i]};
        if (!job->agents[i].reaches)
            reach_give_up(r->reach, i, "its agent is of an older release, which cannot test NICs");
    }
    for (uint32_t p = 0; p < count; p++)
        if (reach_add_plan(r->reach, r->spec->roles[p].first, p, &plans[p], inspections) < 0)
            return error_set(err, ENOMEM, "out of memory");
    return 0;
}

int job_use_reach(struct job *job, const struct job_spec *spec, const struct plan *plans,
                  uint32_t count, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    if (!pods || !pods->open_nics || count_workers(plans, count) != job->count ||
        !has_pairs(plans, count))
        return 0;
    struct job_reach *r = calloc(1, sizeof *r);
    if (!r)
        return error_set(err, ENOMEM, "out of memory");
    r->job = job;
    r->spec = spec;
    r->took_ms = -1;
    int rc = read_limit(&r->limit_ms, err);
    if (rc == 0)
        rc = fill(r, plans, count, err);
    if (rc == 0)
        job->preflight.reach = TAKE_PTR(r);
    job_reach_free(r);
    return rc;
}

/* ---- running ---- */

int job_reach_begin(struct job_reach *r, struct drarun_error *err)
{
    r->begun = true;
    r->began_ms = clock_ms();
    if (job_start_clock(r->job->preflight.reach_clock, r->limit_ms) < 0 ||
        reach_begin(r->reach) < 0)
        return error_set(err, ENOMEM, "out of memory");
    note_end(r);
    return 0;
}

int job_reach_take(struct job_reach *r, uint32_t worker, const Drarun__Wire__Reach *message,
                   struct drarun_error *err)
{
    int rc = 0;
    if (!r->begun)
        return error_set(err, EPROTO, "lines of NICs that were not asked for");
    if (message->over)
        reach_give_up(r->reach, worker, message->why[0] ? message->why : "its process ended");
    else
        rc = reach_take(r->reach, worker, message->line, err);
    note_end(r);
    return rc;
}

bool job_reach_over(const struct job_reach *r)
{
    return r->begun && reach_over(r->reach);
}

int job_reach_judge(const struct job_reach *r, struct drarun_error *err)
{
    const struct preflight_input input = {
        .spec = r->spec, .workers = r->workers, .count = r->job->count};
    struct preflight preflight;
    int rc = preflight_reach(&input, r->reach, &preflight, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < preflight.count && i < SAID_MAX; i++) {
        struct buf line = BUF_INIT;
        preflight_line(&preflight.list[i], &line);
        if (line.data && (i > 0 || !preflight.list[i].refusal)) /* that one is the error */
            log_note("%s", line.data);
        buf_done(&line);
    }
    if (preflight.count > SAID_MAX)
        log_note("and %zu more pair%s of NICs", preflight.count - SAID_MAX,
                 preflight.count - SAID_MAX == 1 ? "" : "s");
    rc = preflight_result(&preflight, err);
    bool all = preflight.count == 0;
    preflight_done(&preflight);
    if (all)
        log_verbose("the NICs of %u workers reach each other: %zu pairs, %d ms", r->job->count,
                    reach_pair_count(r->reach), (int)r->took_ms);
    return rc;
}

void job_use_fabric_take(struct job *job, struct fabric *fabric)
{
    fabric_free(job->preflight.fabric);
    job->preflight.fabric = fabric;
}

json_t *job_fabric(const struct job *job)
{
    const struct job_reach *r = job->preflight.reach;
    bool over = r && r->took_ms >= 0;
    CLEANUP(json_decrefp) json_t *reached = over ? reach_json(r->reach, r->took_ms) : NULL;
    return job->preflight.fabric ? fabric_json(job->preflight.fabric, reached) : NULL;
}
