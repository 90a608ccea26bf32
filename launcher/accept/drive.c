/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/drive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "launcher/accept/cluster.h"
#include "launcher/accept/job.h"
#include "launcher/accept/trial.h"
#include "launcher/programs/signals.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct slot {
    struct drive *drive;
    size_t test;
    unsigned tries;
    char job[32];
    struct trial *trial; /* NULL: free */
    bool asked;          /* how long the job has waited */
    struct cluster_read wait;
};

struct drive {
    struct cluster *cluster;
    const struct accept_order *order;
    const json_t *job;
    const char *priority_class;
    const struct strlist *names;
    struct accept *plan;
    struct record *record;

    struct slot *slots;
    size_t next, running;
    bool stopping;
    int rc; /* the first error ends all */
    struct drarun_error *err;
};

static void names_of(const struct drive *d, size_t test, const char *names[2])
{
    size_t count;
    const struct accept_test *t = &accept_wave(d->plan, &count)[test];
    names[0] = d->names->items[t->node];
    names[1] = t->partner == ACCEPT_NOBODY ? NULL : d->names->items[t->partner];
}

static void stop_all(struct drive *d)
{
    d->stopping = true;
    for (uint32_t i = 0; i < d->order->parallel; i++)
        if (d->slots[i].trial)
            trial_stop(d->slots[i].trial);
}

static void break_off(struct drive *d, const struct drarun_error *why)
{
    if (d->rc == 0)
        d->rc = error_kind(d->err, why->kind, why->code, "%s", why->text);
    stop_all(d);
}

/* ---- one test ---- */

static int start(struct slot *slot, struct drarun_error *err);

static void say(const struct drive *d, size_t test, const struct accept_answer *answer)
{
    const char *names[2];
    names_of(d, test, names);
    log_note("%s%s%s: %s: %s", names[0], names[1] ? " and " : "", names[1] ? names[1] : "",
             answer->outcome == ACCEPT_FAILED ? "failed" : "not run", answer->reason);
}

static void finish(struct drive *d, size_t test, const struct accept_answer *answer)
{
    const char *names[2];
    struct drarun_error err = {0};
    names_of(d, test, names);
    accept_answer(d->plan, test, answer);
    if (record_add(d->record, accept_wave_number(d->plan), names, answer, &err) < 0)
        break_off(d, &err);
}

static void forget_wait(struct slot *slot)
{
    cluster_read_drop(&slot->wait);
    slot->asked = false;
}

static void on_answer(const struct accept_answer *answer, const struct drarun_error *fatal,
                      void *arg)
{
    struct slot *slot = arg;
    struct drive *d = slot->drive;
    struct drarun_error err = {0};
    slot->trial = NULL;
    forget_wait(slot);
    d->running--;
    if (fatal)
        break_off(d, fatal);
    if (d->stopping)
        return; /* what was ended by us says nothing */
    if (answer->outcome != ACCEPT_MEASURED)
        say(d, slot->test, answer);
    if (answer->outcome == ACCEPT_NOT_RUN && slot->tries < d->order->tries) {
        if (start(slot, &err) < 0)
            break_off(d, &err);
        return;
    }
    finish(d, slot->test, answer);
}

static int start(struct slot *slot, struct drarun_error *err)
{
    struct drive *d = slot->drive;
    uint32_t unique;
    const char *names[2];
    if (getrandom(&unique, sizeof unique, 0) != (ssize_t)sizeof unique)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    snprintf(slot->job, sizeof slot->job, "accept-%08x", unique);
    names_of(d, slot->test, names);
    const struct accept_place place = {.name = slot->job,
                                       .run = record_run(d->record),
                                       .nodes = {names[0], names[1]},
                                       .count = names[1] ? 2 : 1,
                                       .priority_class = d->priority_class};
    CLEANUP(json_decrefp) json_t *job = accept_job_make(d->job, &place);
    if (!job)
        return error_set(err, ENOMEM, "out of memory");
    slot->tries++;
    int rc = trial_start(d->cluster->base, d->order, job, on_answer, slot, &slot->trial, err);
    d->running += rc == 0;
    return rc;
}

/* ---- one wave ---- */

/* Those that an earlier process answered are taken from the record. */
static bool find_next(struct drive *d, size_t *ret_test)
{
    size_t count;
    const struct accept_test *tests = accept_wave(d->plan, &count);
    for (; d->next < count; d->next++) {
        struct accept_answer known;
        const char *names[2];
        names_of(d, d->next, names);
        if (tests[d->next].answered)
            continue;
        if (!record_find(d->record, accept_wave_number(d->plan), names, &known)) {
            *ret_test = d->next++;
            return true;
        }
        accept_answer(d->plan, d->next, &known);
    }
    return false;
}

static void fill_slots(struct drive *d)
{
    struct drarun_error err = {0};
    for (uint32_t i = 0; i < d->order->parallel && !d->stopping; i++) {
        struct slot *slot = &d->slots[i];
        if (slot->trial)
            continue;
        *slot = (struct slot){.drive = d};
        if (!find_next(d, &slot->test))
            return;
        if (start(slot, &err) < 0)
            break_off(d, &err);
    }
}

/* Where drarun run makes the jobs. */
static const char *namespace_of(const struct drive *d)
{
    const json_t *metadata = json_object_get(d->job, "metadata");
    const char *own = json_string_value(json_object_get(metadata, "namespace"));
    const char *given = d->order->cluster.namespace;
    return given ? given : own ? own : d->cluster->namespace;
}

/* After each turn of the loop. All are asked at once: an answer may take a minute. */
static void look_at_due(struct drive *d)
{
    for (uint32_t i = 0; i < d->order->parallel; i++) {
        struct slot *slot = &d->slots[i];
        struct trial_wait wait;
        if (!slot->trial || !trial_is_due(slot->trial))
            continue;
        if (!slot->asked)
            accept_ask_wait(d->cluster, slot->job, namespace_of(d), &slot->wait);
        slot->asked = true;
        if (slot->wait.call)
            continue;
        accept_take_wait(d->cluster, &slot->wait, &wait);
        slot->asked = false;
        trial_go_on(slot->trial, &wait);
    }
}

static int run_wave(struct drive *d)
{
    size_t count;
    accept_wave(d->plan, &count);
    log_note("%s: %zu test%s", accept_wave_name(d->plan), count, count == 1 ? "" : "s");
    d->next = 0;
    for (fill_slots(d); d->running > 0; fill_slots(d)) {
        if (event_base_loop(d->cluster->base, EVLOOP_ONCE) != 0)
            return error_set(d->err, EINVAL, "the event loop ended in the middle of a wave");
        look_at_due(d);
    }
    return d->rc;
}

static void on_signal(void *arg, int signo)
{
    struct drive *d = arg;
    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT)
        return;
    if (d->rc == 0) {
        log_note("ending %zu jobs; the next drarun accept with the same words goes on from here",
                 d->running);
        d->rc = error_set(d->err, ECANCELED, "interrupted");
    }
    stop_all(d);
}

static int run_waves(struct drive *d)
{
    size_t count;
    int rc = 0;
    while (rc == 0 && (accept_wave(d->plan, &count), count > 0)) {
        rc = run_wave(d);
        if (rc == 0)
            rc = accept_advance(d->plan, d->err);
    }
    return rc;
}

int drive(struct cluster *cluster, const struct accept_order *order, const json_t *job,
          const char *priority_class, const struct strlist *names, struct accept *plan,
          struct record *record, struct drarun_error *err)
{
    struct drive d = {.cluster = cluster,
                      .order = order,
                      .job = job,
                      .priority_class = priority_class,
                      .names = names,
                      .plan = plan,
                      .record = record,
                      .err = err};
    d.slots = calloc(order->parallel, sizeof *d.slots);
    int rc = d.slots ? 0 : error_set(err, ENOMEM, "out of memory");
    struct signals *signals = rc == 0 ? signals_new(cluster->base, on_signal, &d, err) : NULL;
    if (rc == 0)
        rc = signals ? run_waves(&d) : -err->code;
    signals_free(signals);
    for (uint32_t i = 0; d.slots && i < order->parallel; i++) {
        forget_wait(&d.slots[i]);
        trial_free(d.slots[i].trial);
    }
    free(d.slots);
    return rc;
}
