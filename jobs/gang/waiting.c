/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/waiting_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* One worker's wait, to be sorted by its words. */
struct entry {
    char *text;
    const char *node, *pod, *advice;
    int64_t since_ms;
    uint32_t worker;
    bool stuck;
};

static void entries_free(struct entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(entries[i].text);
    free(entries);
}

static int by_text(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->worker > y->worker) - (x->worker < y->worker);
}

static int by_count(const void *a, const void *b)
{
    const struct waiting_reason *x = a, *y = b;
    if (x->stuck != y->stuck)
        return x->stuck ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    uint32_t first = x->count ? x->workers[0] : 0, second = y->count ? y->workers[0] : 0;
    return (first > second) - (first < second);
}

void waiting_done(struct waiting *waiting)
{
    for (uint32_t r = 0; r < waiting->count; r++) {
        free(waiting->reasons[r].text);
        free(waiting->reasons[r].node);
        free(waiting->reasons[r].workers);
    }
    free(waiting->reasons);
    *waiting = (struct waiting){0};
}

/* How many entries from the first have its words. */
static uint32_t run_length(const struct entry *entries, uint32_t count)
{
    uint32_t n = 1;
    while (n < count && strcmp(entries[n].text, entries[0].text) == 0)
        n++;
    return n;
}

/* The node of all of them, or NULL. */
static const char *shared_node(const struct entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!entries[i].node || strcmp(entries[i].node, entries[0].node) != 0)
            return NULL;
    return entries[0].node;
}

/* False without memory. */
static bool group(const struct entry *entries, uint32_t count, struct waiting_reason *reason)
{
    const char *node = shared_node(entries, count);
    struct buf text = BUF_INIT;
    reason->count = count;
    reason->workers = calloc(count, sizeof *reason->workers);
    reason->node = node ? strdup(node) : NULL;
    if (!reason->workers || (node && !reason->node))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t since = entries[i].since_ms;
        reason->workers[i] = entries[i].worker;
        reason->stuck |= entries[i].stuck;
        if (since && (!reason->since_ms || since < reason->since_ms))
            reason->since_ms = since;
    }
    worker_wait_text(entries[0].text, entries[0].pod, count, entries[0].advice, &text);
    reason->text = text.failed ? NULL : buf_take(&text);
    buf_done(&text);
    return reason->text != NULL;
}

static int group_all(struct entry *entries, uint32_t count, struct waiting *waiting,
                     struct drarun_error *err)
{
    qsort(entries, count, sizeof *entries, by_text);
    waiting->reasons = calloc(count + 1, sizeof *waiting->reasons);
    if (!waiting->reasons)
        return error_set(err, ENOMEM, "waiting: out of memory");
    for (uint32_t i = 0; i < count;) {
        uint32_t n = run_length(entries + i, count - i);
        if (!group(entries + i, n, &waiting->reasons[waiting->count++]))
            return error_set(err, ENOMEM, "waiting: out of memory");
        i += n;
    }
    qsort(waiting->reasons, waiting->count, sizeof *waiting->reasons, by_count);
    return 0;
}

static int wait_of_workers(const struct waiting_input *input, struct waiting *waiting,
                           struct drarun_error *err)
{
    cleanup_free char *missing = devices_missing(input->prediction);
    struct entry *entries = calloc(input->count + 1, sizeof *entries);
    uint32_t count = 0;
    int rc = entries ? 0 : error_set(err, ENOMEM, "waiting: out of memory");
    for (uint32_t i = 0; rc == 0 && i < input->count; i++) {
        struct worker_wait wait;
        worker_wait(input, i, missing, &wait);
        if (wait.text.failed)
            rc = error_set(err, ENOMEM, "waiting: out of memory");
        else if (wait.text.len > 0)
            entries[count++] = (struct entry){.text = buf_take(&wait.text),
                                              .node = wait.node,
                                              .pod = wait.pod,
                                              .advice = wait.advice,
                                              .since_ms = wait.since_ms,
                                              .worker = i,
                                              .stuck = wait.stuck};
        buf_done(&wait.text);
    }
    if (rc == 0)
        rc = group_all(entries, count, waiting, err);
    if (entries)
        entries_free(entries, count);
    return rc;
}

static int wait_of_job(struct worker_wait *wait, struct waiting *waiting, struct drarun_error *err)
{
    waiting->reasons = calloc(1, sizeof *waiting->reasons);
    if (wait->text.failed || !waiting->reasons) {
        buf_done(&wait->text);
        return error_set(err, ENOMEM, "waiting: out of memory");
    }
    waiting->count = 1;
    waiting->reasons[0] = (struct waiting_reason){
        .text = buf_take(&wait->text), .since_ms = wait->since_ms, .whole = true};
    buf_done(&wait->text);
    return 0;
}

/* named: with its pod's name. *ret_same: as worker_wait has it. */
static char *words_of(const struct pod_state *worker, bool named, size_t *ret_same)
{
    const struct waiting_input input = {.workers = worker, .count = 1};
    struct worker_wait wait;
    struct buf text = BUF_INIT;
    worker_wait(&input, 0, NULL, &wait);
    if (wait.text.len > 0)
        worker_wait_text(wait.text.data, named ? wait.pod : NULL, 1, wait.advice, &text);
    char *words = text.failed || wait.text.failed || text.len == 0 ? NULL : buf_take(&text);
    *ret_same = wait.same;
    buf_done(&wait.text);
    buf_done(&text);
    return words;
}

char *waiting_of_worker(const struct pod_state *worker)
{
    size_t same;
    return words_of(worker, true, &same);
}

static void wait_of_launcher(const struct pod_state *pod, struct waiting_launcher *ret)
{
    struct buf out = BUF_INIT;
    cleanup_free char *waits = words_of(pod, false, &ret->same);
    if (!waits)
        return;
    buf_printf(&out, "pod %s%s%s: ", pod->name ? pod->name : "?", pod->node ? " on " : "",
               pod->node ? pod->node : "");
    ret->why = out.len;
    ret->same += out.len;
    buf_add_str(&out, waits);
    ret->text = out.failed ? NULL : buf_take(&out);
    buf_done(&out);
}

static void wait_without_pod(struct pod_state *state, const struct news *job_news,
                             struct waiting_launcher *ret)
{
    struct worker_wait wait;
    state->phase = POD_ABSENT;
    const struct waiting_input input = {.workers = state, .count = 1, .job_news = job_news};
    worker_wait(&input, 0, NULL, &wait);
    ret->same = wait.same;
    ret->text = wait.text.failed ? NULL : buf_take(&wait.text);
    buf_done(&wait.text);
}

void waiting_of_launcher(const json_t *pod, const struct news *pod_news,
                         const struct news *job_news, struct waiting_launcher *ret_launcher)
{
    struct waiting_launcher launcher = {0};
    struct pod_state state;
    pod_state_read(pod, NULL, false, pod_news, &state);
    if (!pod) {
        launcher.fails = news_get(job_news, NEWS_CREATE_FAILED) != NULL;
        wait_without_pod(&state, job_news, &launcher);
    } else {
        launcher.fails = state.reason || waiting_for_kubelet(&state);
        if (state.phase != POD_RUNNING && state.phase != POD_ENDED)
            wait_of_launcher(&state, &launcher);
    }
    *ret_launcher = launcher;
}

void waiting_launcher_done(struct waiting_launcher *launcher)
{
    free(launcher->text);
    *launcher = (struct waiting_launcher){0};
}

/* Before all others: without a launcher the workers wait in any case. */
static int add_launcher(const char *words, struct waiting *waiting, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    struct waiting_reason *more =
        realloc(waiting->reasons, (waiting->count + 1) * sizeof *waiting->reasons);
    if (more)
        waiting->reasons = more;
    buf_printf(&text, "the launcher does not start: %s", words);
    if (!more || text.failed) {
        buf_done(&text);
        return error_set(err, ENOMEM, "waiting: out of memory");
    }
    memmove(more + 1, more, waiting->count++ * sizeof *more);
    more[0] = (struct waiting_reason){.text = buf_take(&text), .whole = true};
    return 0;
}

int waiting_build(const struct waiting_input *input, struct waiting *ret_waiting,
                  struct drarun_error *err)
{
    struct waiting waiting = {.workers = input->count, .now_ms = input->now_ms};
    struct worker_wait wait;
    for (uint32_t i = 0; i < input->count; i++) {
        const struct pod_state *w = &input->workers[i];
        waiting.claims += w->claim != CLAIM_NONE;
        waiting.allocated += w->claim == CLAIM_ALLOCATED;
        waiting.running += w->phase == POD_RUNNING;
    }
    int rc = job_wait(input, &wait) ? wait_of_job(&wait, &waiting, err)
                                    : wait_of_workers(input, &waiting, err);
    if (rc == 0 && input->launcher)
        rc = add_launcher(input->launcher, &waiting, err);
    if (rc < 0) {
        waiting_done(&waiting);
        return rc;
    }
    *ret_waiting = waiting;
    return 0;
}
