/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/outcome/cause.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/outcome/cause_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define FAILED_TAILS 16 /* ranks that failed whose last lines are kept */

/* ---- the object ---- */

struct cause *cause_new(const struct rankmap *map)
{
    struct cause *cause = calloc(1, sizeof *cause);
    if (!cause)
        return NULL;
    cause->map = map;
    cause->apps = calloc(map->apps, sizeof *cause->apps);
    cause->ended = calloc(map->ranks, sizeof *cause->ended);
    cause->aborted = calloc(map->ranks, sizeof *cause->aborted);
    if (!cause->apps || !cause->ended || !cause->aborted) {
        cause_free(cause);
        return NULL;
    }
    return cause;
}

void cause_free(struct cause *cause)
{
    if (!cause)
        return;
    for (uint32_t a = 0; cause->apps && a < cause->map->apps; a++)
        cause_story_done(&cause->apps[a].idle);
    cause_story_done(&cause->first);
    cause_story_done(&cause->crash);
    for (uint32_t i = 0; i < cause->failed_count; i++)
        cause_story_done(&cause->failed[i]);
    free(cause->failed);
    free(cause->apps);
    free(cause->ended);
    free(cause->aborted);
    free(cause);
}

int cause_grow(struct cause *cause, uint32_t ranks, uint32_t apps)
{
    const struct rankmap *map = cause->map;
    struct cause_app *more = realloc(cause->apps, apps * sizeof *more);
    if (!more)
        return -ENOMEM;
    cause->apps = more;
    bool *ended = realloc(cause->ended, ranks * sizeof *ended);
    if (!ended)
        return -ENOMEM;
    cause->ended = ended;
    bool *aborted = realloc(cause->aborted, ranks * sizeof *aborted);
    if (!aborted)
        return -ENOMEM;
    cause->aborted = aborted;
    memset(more + map->apps, 0, (apps - map->apps) * sizeof *more);
    memset(ended + map->ranks, 0, (ranks - map->ranks) * sizeof *ended);
    memset(aborted + map->ranks, 0, (ranks - map->ranks) * sizeof *aborted);
    return 0;
}

static struct cause_app *app_of(struct cause *cause, uint32_t rank)
{
    return &cause->apps[rankmap_place(cause->map, rank).app];
}

void cause_decide_by(struct cause *cause, uint32_t first, uint32_t count)
{
    cause->decisive_first = first;
    cause->decisive_count = count;
    cause->decisive_left = count;
}

void cause_continue(struct cause *cause, const char *asked)
{
    cause->continues = asked;
}

/* The rank has ended, and not the job: were it and its like all that the job was for? */
static bool is_done(struct cause *cause, uint32_t rank)
{
    bool decisive = rank - cause->decisive_first < cause->decisive_count;
    return decisive && --cause->decisive_left == 0;
}

/* Which a rank may have alone (cause_continue). */
static bool is_failure(enum cause_kind kind)
{
    return kind == CAUSE_EXIT || kind == CAUSE_SIGNAL;
}

/* ---- events ---- */

bool cause_connected(struct cause *cause, uint32_t rank, enum cause_api api)
{
    if (rank >= cause->map->ranks || api == CAUSE_API_NONE)
        return false;
    struct cause_app *app = app_of(cause, rank);
    if (app->api != CAUSE_API_NONE)
        return false;
    app->api = api;
    bool failed = is_failure(app->idle.kind);
    if (app->idle.kind == CAUSE_NONE || !cause_tell_take(cause, &app->idle))
        return false;
    cause->needed = failed;
    return true;
}

enum cause_api cause_api_of(const struct cause *cause, uint32_t rank)
{
    return cause->apps[rankmap_place(cause->map, rank).app].api;
}

/* What this end would be as a first cause. */
static enum cause_kind judge(const struct cause_app *app, const struct cause_end *end)
{
    if (end->by_us)
        return CAUSE_NONE;
    if (end->signo != 0)
        return CAUSE_SIGNAL;
    if (end->code != 0)
        return CAUSE_EXIT;
    if (end->api != CAUSE_API_NONE)
        return end->finalized ? CAUSE_NONE : CAUSE_NO_FINALIZE;
    return app->api != CAUSE_API_NONE ? CAUSE_NO_INIT : CAUSE_NONE;
}

/* Until a rank of its program connects nobody knows whether it should have. */
static void remember_idle(struct cause_app *app, const struct cause_end *end)
{
    bool idle = !end->by_us && end->signo == 0 && end->code == 0 && end->api == CAUSE_API_NONE;
    if (idle && app->api == CAUSE_API_NONE && app->idle.kind == CAUSE_NONE)
        app->idle = cause_story_of_end(end, CAUSE_NO_INIT);
}

/* No other rank can wait for this one. */
static bool is_independent(const struct cause_app *app, const struct cause_end *end)
{
    return end->api != CAUSE_API_NONE ? end->finalized : app->api == CAUSE_API_NONE;
}

/* False without memory: then the job ends. */
static bool add_failed(struct cause *cause, const struct cause_end *end, enum cause_kind kind)
{
    if (cause->failed_count == cause->failed_size) {
        uint32_t size = cause->failed_size ? 2 * cause->failed_size : 16;
        struct cause_story *more = realloc(cause->failed, size * sizeof *more);
        if (!more)
            return false;
        cause->failed = more;
        cause->failed_size = size;
    }
    struct cause_end own = *end;
    if (cause->failed_count >= FAILED_TAILS)
        own.stderr_tail_length = 0;
    cause->failed[cause->failed_count++] = cause_story_of_end(&own, kind);
    return true;
}

/* The rank has failed, and the others go on. */
static bool let_fail(struct cause *cause, const struct cause_end *end, enum cause_kind kind)
{
    struct cause_app *app = app_of(cause, end->rank);
    if (!cause->continues || !is_failure(kind) || !is_independent(app, end) ||
        !add_failed(cause, end, kind))
        return false;
    /* if a rank of its program connects later, that one waits for it */
    if (end->api == CAUSE_API_NONE && app->idle.kind == CAUSE_NONE)
        app->idle = cause_story_of_end(end, kind);
    return true;
}

/* The ranks that decide have all ended, the last of them now. */
static bool end_decided(struct cause *cause, const struct cause_end *end)
{
    struct cause_story story = {.kind = CAUSE_DONE};
    if (!is_done(cause, end->rank) || cause->ended_count == cause->map->ranks)
        return false;
    if (cause->failed_count > 0)
        story = cause_story_copy(&cause->failed[0]);
    return cause_tell_take(cause, &story);
}

static bool is_crash(const struct cause_end *end)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (end->signo == signals[i])
            return true;
    return end->oom;
}

/* After the first cause: the aborting rank's own end brings its last lines, and a crash that was
 * overtaken on its way by another rank's exit is told beside it. */
static void add_to_first(struct cause *cause, const struct cause_end *end)
{
    struct cause_story *first = &cause->first;
    if (first->kind == CAUSE_ABORT && first->rank == end->rank) {
        struct cause_story own = cause_story_of_end(end, CAUSE_ABORT);
        first->ran_us = own.ran_us;
        if (!first->tail)
            first->tail = TAKE_PTR(own.tail);
        cause_story_done(&own);
    }
    if (cause->aborted[end->rank])
        return;
    if (cause_story_may_echo(first) && cause->crash.kind == CAUSE_NONE && !end->by_us &&
        is_crash(end))
        cause->crash = cause_story_of_end(end, CAUSE_SIGNAL);
}

bool cause_may_change(const struct cause *cause)
{
    return !cause->settled && (cause_story_may_echo(&cause->first) || cause_pod_may_follow(cause));
}

void cause_settle(struct cause *cause)
{
    cause->settled = true;
}

/* Whether this end rather than the first cause began it all. A lost agent's rank says nothing new.
 */
static bool is_stronger(const struct cause *cause, enum cause_kind kind,
                        const struct cause_end *end)
{
    /* a rank that has aborted gave its reason; how it then ends, MPICH even by a crash, is none */
    if (!cause_may_change(cause) || cause_pod_may_follow(cause) || end->rank == cause->first.rank ||
        cause->aborted[end->rank])
        return false;
    /* an MPI library whose peer has vanished aborts before it exits, unlike one who leaves of
     * itself */
    bool left = end->api != CAUSE_API_NONE && !end->finalized;
    return (kind == CAUSE_SIGNAL && (is_crash(end) || end->signo == SIGKILL)) ||
           (kind == CAUSE_NO_FINALIZE && cause->first.kind == CAUSE_ABORT) ||
           (kind == CAUSE_EXIT && left && cause->first.kind == CAUSE_ABORT);
}

static void replace_first(struct cause *cause, const struct cause_end *end, enum cause_kind kind)
{
    cause_story_done(&cause->first);
    cause->first = cause_story_of_end(end, kind);
}

bool cause_rank_end(struct cause *cause, const struct cause_end *end)
{
    if (end->rank >= cause->map->ranks || cause->ended[end->rank])
        return false;
    cause->ended[end->rank] = true;
    cause->ended_count++;
    if (cause->first.kind != CAUSE_NONE) {
        enum cause_kind now = judge(app_of(cause, end->rank), end);
        if (is_stronger(cause, now, end))
            replace_first(cause, end, now);
        else
            add_to_first(cause, end);
        return false;
    }
    if (cause_connected(cause, end->rank, end->api))
        return true;
    struct cause_app *app = app_of(cause, end->rank);
    enum cause_kind kind = judge(app, end);
    if (kind == CAUSE_NONE) {
        remember_idle(app, end);
        return !end->by_us && end_decided(cause, end);
    }
    if (let_fail(cause, end, kind))
        return end_decided(cause, end);
    cause->needed = cause->continues && is_failure(kind);
    struct cause_story story = cause_story_of_end(end, kind);
    return cause_tell_take(cause, &story);
}

bool cause_abort(struct cause *cause, uint32_t rank, uint32_t worker, const char *host, int status,
                 const char *text)
{
    if (rank >= cause->map->ranks)
        return false;
    struct cause_story story = {.kind = CAUSE_ABORT,
                                .rank = rank,
                                .worker = worker,
                                .code = status,
                                .host = cause_clean_text(host),
                                .text = cause_clean_text(text)};
    cause->aborted[rank] = true;
    return cause_tell_take(cause, &story);
}

bool cause_failure(struct cause *cause, const struct drarun_error *err)
{
    struct cause_story story = {
        .kind = CAUSE_FAILURE, .error = err->kind, .text = cause_clean_text(err->text)};
    return cause_tell_take(cause, &story);
}

/* Not of a rank's own worker: that the rank has ended is then no echo. */
static bool loss_is_stronger(const struct cause *cause, uint32_t worker)
{
    return !cause->settled && cause_story_may_echo(&cause->first) && cause->first.worker != worker;
}

bool cause_worker_failure(struct cause *cause, uint32_t worker, const char *node,
                          const struct drarun_error *err)
{
    struct cause_story story = {.kind = CAUSE_FAILURE,
                                .error = err->kind,
                                .worker = worker,
                                .of_worker = true,
                                .host = cause_clean_text(node),
                                .text = cause_clean_text(err->text)};
    if (!loss_is_stronger(cause, worker))
        return cause_tell_take(cause, &story);
    cause_story_done(&cause->first);
    cause->first = story;
    return false;
}

bool cause_timeout(struct cause *cause, int64_t limit_ms)
{
    struct cause_story story = {.kind = CAUSE_TIMEOUT, .limit_ms = limit_ms};
    return cause_tell_take(cause, &story);
}

bool cause_interrupted(struct cause *cause, int signo)
{
    struct cause_story story = {.kind = CAUSE_INTERRUPTED, .signo = signo};
    return cause_tell_take(cause, &story);
}

void cause_warned(struct cause *cause, int signo, int64_t before_ms)
{
    cause->warned_signo = signo;
    cause->warned_ms = before_ms;
}

void cause_singletons(struct cause *cause, uint32_t ranks_with_mpi_library)
{
    cause->singletons = ranks_with_mpi_library;
}

/* ---- the result ---- */

void cause_conclude(struct cause *cause)
{
    if (cause->first.kind != CAUSE_NONE || cause->failed_count == 0)
        return;
    cause->first = cause_story_copy(&cause->failed[0]);
    cause->ran_to_end = true;
    cause->settled = true;
}

bool cause_ran_to_end(const struct cause *cause)
{
    return cause->ran_to_end;
}

uint32_t cause_failed(const struct cause *cause)
{
    return cause->failed_count;
}

enum cause_kind cause_kind(const struct cause *cause)
{
    return cause->first.kind;
}

uint32_t cause_ended(const struct cause *cause)
{
    return cause->ended_count;
}

int cause_status(const struct cause *cause)
{
    const struct cause_story *first = &cause->first;
    switch (first->kind) {
    case CAUSE_NONE:
    case CAUSE_DONE:
        return 0;
    case CAUSE_EXIT:
        return first->code;
    case CAUSE_SIGNAL:
    case CAUSE_INTERRUPTED:
        return 128 + first->signo;
    case CAUSE_ABORT:
        return (first->code & 0xff) ? first->code & 0xff : 1;
    case CAUSE_NO_FINALIZE:
    case CAUSE_NO_INIT:
        return 1;
    case CAUSE_FAILURE:
        return error_exit_status(first->error);
    case CAUSE_TIMEOUT:
        return error_exit_status(DRARUN_ERR_TIMEOUT);
    case CAUSE_POD:
        return cause_pod_end_status(first->end);
    case CAUSE_LAUNCHER:
        return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
    }
    return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}

/* A job of one rank is the same alone as under a launcher. */
bool cause_were_singletons(const struct cause *cause)
{
    if (cause->first.kind != CAUSE_NONE || cause->singletons < 2 ||
        cause->ended_count < cause->map->ranks)
        return false;
    for (uint32_t a = 0; a < cause->map->apps; a++)
        if (cause->apps[a].api != CAUSE_API_NONE)
            return false;
    return true;
}
