/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/through.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/waiting.h"
#include "jobs/status/drajob.h"
#include "launcher/cluster/client/dra_job.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/follow/result.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/watch.h"

#define TURN_MS 60000
#define ASK_MS 1000 /* before the API server is asked again */
#define SAY_MS 1000 /* before something is said of waiting */
#define PROGRESS_MS 1000

struct follow_through {
    struct cluster *cluster;
    struct follow_options options; /* with job, namespace and uid our own */
    follow_ended_fn ended;
    void *arg;
    struct event *look;     /* when to look at what there is to do, while nothing is followed */
    struct follow *follow;  /* what was made of it; NULL: nothing yet */
    struct kube_call *call; /* that asks what there is */
    struct kube_watch *object, *map; /* what there is; NULL: not known yet */
    json_t *found; /* the ConfigMap that was there, while it is asked whose it is, and later where
                    * it is an earlier job's; NULL: none */
    char *uid;     /* of the DraJob, meanwhile */
    bool made;     /* there is something to follow, it was answered */
    bool again;    /* what was followed is gone, */
    struct drarun_error lost;            /* and how; code 0: it ended with status */
    bool decided;                        /* it is over, as status and err say */
    int64_t ask_ms, say_ms, progress_ms; /* when to do so; 0: never */
    struct waiting_told told;            /* by say_reason */
    bool over;
    int status;
    struct drarun_error err; /* code 0: none so far */
};

void follow_through_look(struct follow_through *t)
{
    if (t->follow)
        follow_look(t->follow);
    else if (!t->over)
        event_active(t->look, EV_TIMEOUT, 0);
}

/* ---- what there is ---- */

/* Following goes on asking by itself, and tells what is refused. */
static void cannot_ask(struct follow_through *t, const struct drarun_error *err)
{
    if (!t->options.patient)
        t->err = *err;
    else if (err->code == EACCES)
        t->made = true;
    else
        t->ask_ms = clock_ms() + ASK_MS;
}

static void on_event(const json_t *object, void *arg)
{
    (void)object;
    follow_through_look(arg);
}

static void on_changed(const json_t *object, const json_t *before, void *arg)
{
    (void)object, (void)before;
    follow_through_look(arg);
}

static void on_synced(void *arg)
{
    follow_through_look(arg);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    struct follow_through *t = arg;
    if (err && err->code == EACCES)
        t->err = *err;
    else if (err)
        log_note("%s", err->text);
    follow_through_look(t);
}

static int watch(struct follow_through *t, const struct kube_resource *resource, const char *name,
                 struct kube_watch **ret_watch)
{
    static const struct kube_watch_events events = {.added = on_event,
                                                    .changed = on_changed,
                                                    .deleted = on_event,
                                                    .synced = on_synced,
                                                    .trouble = on_trouble};
    const struct kube_watch_options options = {
        .target = {.resource = resource, .namespace_ = t->options.namespace, .name = name}};
    return kube_watch_new(t->cluster->client, &options, &events, t, ret_watch, &t->err);
}

static void watch_both(struct follow_through *t)
{
    char map[JOB_MAP_NAME_SIZE];
    job_map_name(t->options.job, map);
    if (watch(t, &kube_dra_jobs, t->options.job, &t->object) == 0)
        watch(t, &kube_config_maps, map, &t->map);
    t->say_ms = clock_ms() + SAY_MS;
    if (t->options.progress)
        t->progress_ms = clock_ms() + PROGRESS_MS;
}

static void judge_again(struct follow_through *t, const json_t *object)
{
    t->decided = !drajob_is_suspended(object) || drajob_has_ended(object);
    if (t->decided) {
        t->err = t->lost;
        return;
    }
    log_note("the job %s is suspended", t->options.job);
    watch_both(t);
}

static bool is_hidden(const struct drarun_error *err)
{
    return err && (err->code == ENOENT || err->code == EACCES);
}

/* If a DraJob is deleted and made again, the objects of the earlier one may be there still, until
 * the garbage collector deletes them: they tell of another job's end. */
static void on_job(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct follow_through *t = arg;
    t->call = NULL;
    bool own = !err && kube_is_owned_by(answer->body, t->uid) &&
               kube_is_owned_by(t->found, kube_uid(answer->body));
    if (own || (err && err->code == EACCES))
        t->made = true;
    else if (err && err->code != ENOENT)
        cannot_ask(t, err);
    else
        watch_both(t);
    follow_through_look(t);
}

static void ask_for_job(struct follow_through *t, const json_t *object)
{
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = t->options.namespace, .name = t->options.job};
    free(t->uid);
    t->uid = strdup(kube_uid(object));
    if (!t->uid)
        error_set(&t->err, ENOMEM, "out of memory");
    else
        kube_get(t->cluster->client, &target, on_job, t, &t->call, &t->err);
}

static void on_object(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct follow_through *t = arg;
    t->call = NULL;
    if (t->again)
        judge_again(t, err ? NULL : answer->body);
    else if (t->found && is_hidden(err))
        t->made = true;
    else if (is_hidden(err))
        job_map_none(t->options.job, t->options.namespace, &t->err);
    else if (err)
        cannot_ask(t, err);
    else if (t->found)
        ask_for_job(t, answer->body);
    else
        watch_both(t);
    follow_through_look(t);
}

static void ask_for_object(struct follow_through *t)
{
    const struct kube_target target = {
        .resource = &kube_dra_jobs, .namespace_ = t->options.namespace, .name = t->options.job};
    kube_get(t->cluster->client, &target, on_object, t, &t->call, &t->err);
}

static void on_map(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct follow_through *t = arg;
    t->call = NULL;
    bool owned =
        !err && json_object_get(json_object_get(answer->body, "metadata"), "ownerReferences");
    if (owned)
        t->found = json_incref(unconst(answer->body));
    if (!err && !owned) /* run --here, which makes no DraJob */
        t->made = true;
    else if (!err || err->code == ENOENT)
        ask_for_object(t);
    else
        cannot_ask(t, err);
    follow_through_look(t);
}

static void ask_for_map(struct follow_through *t)
{
    char map[JOB_MAP_NAME_SIZE];
    const struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = t->options.namespace, .name = map};
    job_map_name(t->options.job, map);
    json_decref(TAKE_PTR(t->found));
    t->ask_ms = 0;
    kube_get(t->cluster->client, &target, on_map, t, &t->call, &t->err);
}

/* ---- the course of it ---- */

static const json_t *object_of(const struct follow_through *t)
{
    return t->object ? kube_watch_find(t->object, t->options.namespace, t->options.job) : NULL;
}

static bool is_known(const struct follow_through *t)
{
    return t->object && kube_watch_synced(t->object);
}

/* It is no earlier job's. */
static bool has_own_map(const struct follow_through *t)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(t->options.job, name);
    const json_t *map = kube_watch_find(t->map, t->options.namespace, name);
    return map && (!t->found || strcmp(kube_uid(map), kube_uid(t->found)) != 0);
}

/* A client makes the objects of its DraJob by itself, and no controller need tell of it. What was
 * suspended has left a ConfigMap that is going. */
static bool is_made_by_client(const struct follow_through *t)
{
    return !t->again && drajob_is_of_client(object_of(t)) && has_own_map(t);
}

static void awaited(const struct follow_through *t, struct buf *text)
{
    dra_job_add_words(object_of(t), t->options.job, text);
}

static void say(const struct follow_through *t)
{
    struct buf text = BUF_INIT;
    awaited(t, &text);
    if (text.data)
        log_note("%s", text.data);
    buf_done(&text);
}

/* Once for each reason: from say_ms on, where that is another one than was said last. */
static void say_reason(struct follow_through *t, int64_t now)
{
    struct buf text = BUF_INIT;
    int64_t next_ms = 0;
    awaited(t, &text);
    if (text.data && waiting_tell(&t->told, text.data, now, &next_ms))
        log_note("%s", text.data);
    t->say_ms = next_ms ? next_ms : now;
    buf_done(&text);
}

/* t->err: what stands against it. */
static enum dra_job_state judge(struct follow_through *t)
{
    if (t->made)
        return DRA_JOB_MADE;
    if (t->decided)
        return DRA_JOB_ENDED;
    if (t->err.code || !is_known(t))
        return DRA_JOB_AWAITED;
    if (is_made_by_client(t))
        return DRA_JOB_MADE;
    int state = dra_job_judge(object_of(t), t->options.job, &t->status, &t->err);
    if (state == DRA_JOB_AWAITED && t->options.once) {
        say(t);
        return DRA_JOB_ENDED;
    }
    return state < 0 ? DRA_JOB_ENDED : (enum dra_job_state)state;
}

static void stop_asking(struct follow_through *t)
{
    kube_call_cancel(TAKE_PTR(t->call));
    kube_watch_free(TAKE_PTR(t->object));
    kube_watch_free(TAKE_PTR(t->map));
    t->ask_ms = t->say_ms = t->progress_ms = 0;
    event_del(t->look);
}

/* It may free us. */
static void finish(struct follow_through *t)
{
    stop_asking(t);
    t->over = true;
    t->ended(t->arg);
}

/* Its launcher Job was deleted, or its launcher has seen its pods go, which it takes for a loss. */
static bool may_be_suspended(const struct follow_through *t, int rc)
{
    return !t->options.uid && !t->options.once &&
           (rc == -ENOENT ||
            (rc == 0 && t->status == error_exit_status(DRARUN_ERR_INFRASTRUCTURE)));
}

static void on_followed(void *arg)
{
    struct follow_through *t = arg;
    struct drarun_error err = {0};
    int rc = follow_result(t->follow, &t->status, &err);
    struct drarun_error *kept = may_be_suspended(t, rc) ? &t->lost : &t->err;
    *kept = rc < 0 ? err : (struct drarun_error){0};
    follow_free(TAKE_PTR(t->follow));
    if (kept == &t->err) {
        finish(t);
        return;
    }
    t->again = true;
    t->made = false;
    ask_for_object(t);
    follow_through_look(t);
}

static int follow_it(struct follow_through *t)
{
    struct follow_options options = t->options;
    if (object_of(t) && !is_made_by_client(t))
        options.uid = drajob_launcher(object_of(t));
    int rc = follow_new(t->cluster, &options, on_followed, t, &t->follow, &t->err);
    if (rc == 0)
        stop_asking(t);
    return rc;
}

/* ---- waiting ---- */

/* It may free us. */
static void tell_progress(const struct follow_through *t)
{
    struct buf text = BUF_INIT;
    awaited(t, &text);
    if (text.data)
        t->options.progress(t->options.arg, text.data);
    buf_done(&text);
}

static void check_limits(struct follow_through *t, int64_t now)
{
    const struct follow_options *o = &t->options;
    if (o->stop && *o->stop)
        follow_interrupted(o->job, &t->err);
    else if (o->timeout_ms && now - o->since_ms >= o->timeout_ms)
        follow_timed_out(o->job, o->timeout_ms, &t->err);
}

static void sooner(int64_t *until, int64_t ms)
{
    if (ms && ms < *until)
        *until = ms;
}

static void wait_on(struct follow_through *t, int64_t now)
{
    int64_t until = now + TURN_MS;
    bool known = is_known(t), tell = known && t->progress_ms && now >= t->progress_ms;
    if (known && t->say_ms && now >= t->say_ms)
        say_reason(t, now);
    if (tell)
        t->progress_ms = now + PROGRESS_MS;
    sooner(&until, t->ask_ms);
    sooner(&until, known && t->say_ms > now ? t->say_ms : 0);
    sooner(&until, known ? t->progress_ms : 0);
    if (t->options.timeout_ms)
        sooner(&until, t->options.since_ms + t->options.timeout_ms);
    int64_t left = until - clock_ms();
    struct timeval after = timeval_from_ms(left > 0 ? left : 0);
    event_add(t->look, &after);
    if (tell)
        tell_progress(t);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct follow_through *t = arg;
    int64_t now = clock_ms();
    (void)fd, (void)what;
    if (t->over || t->follow)
        return;
    if (t->ask_ms && now >= t->ask_ms)
        ask_for_map(t);
    enum dra_job_state state = judge(t);
    if (state == DRA_JOB_MADE && follow_it(t) == 0)
        return;
    if (state == DRA_JOB_AWAITED && !t->err.code)
        check_limits(t, now);
    if (state == DRA_JOB_ENDED || t->err.code)
        finish(t);
    else
        wait_on(t, now);
}

/* ---- beginning and end ---- */

void follow_through_free(struct follow_through *t)
{
    if (!t)
        return;
    follow_free(t->follow);
    if (t->look) {
        stop_asking(t);
        event_free(t->look);
    }
    waiting_told_done(&t->told);
    json_decref(t->found);
    free(t->uid);
    free(unconst(t->options.job));
    free(unconst(t->options.namespace));
    free(unconst(t->options.uid));
    free(t);
}

static int copy_options(struct follow_through *t, const struct follow_options *options)
{
    t->options = *options;
    t->options.since_ms = clock_ms();
    t->options.job = strdup(options->job);
    t->options.namespace = strdup(options->namespace);
    t->options.uid = options->uid ? strdup(options->uid) : NULL;
    return t->options.job && t->options.namespace && (t->options.uid || !options->uid) ? 0
                                                                                       : -ENOMEM;
}

static int begin(struct follow_through *t, const struct follow_options *options)
{
    t->look = event_new(t->cluster->base, -1, 0, on_look, t);
    if (copy_options(t, options) < 0 || !t->look)
        return error_set(&t->err, ENOMEM, "out of memory");
    if (options->uid)
        return follow_it(t);
    ask_for_map(t);
    follow_through_look(t);
    return t->err.code ? -t->err.code : 0;
}

int follow_through_new(struct cluster *cluster, const struct follow_options *options,
                       follow_ended_fn ended, void *arg, struct follow_through **ret_through,
                       struct drarun_error *err)
{
    struct follow_through *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, ENOMEM, "out of memory");
    *t = (struct follow_through){.cluster = cluster, .ended = ended, .arg = arg};
    int rc = begin(t, options);
    if (rc < 0) {
        error_kind(err, t->err.kind, t->err.code, "%s", t->err.text);
        follow_through_free(t);
        return rc;
    }
    *ret_through = t;
    return 0;
}

int follow_through_result(const struct follow_through *t, int *ret_status, struct drarun_error *err)
{
    *ret_status = t->status;
    return t->err.code ? error_kind(err, t->err.kind, t->err.code, "%s", t->err.text) : 0;
}

static void on_ended(void *arg)
{
    (void)arg; /* over tells */
}

int follow_through_until_end(struct cluster *cluster, const struct follow_options *options,
                             int *ret_status, struct drarun_error *err)
{
    struct follow_through *t = NULL;
    int rc = follow_through_new(cluster, options, on_ended, NULL, &t, err);
    if (rc < 0)
        return rc;
    while (!t->over && cluster_loop(cluster) == 0)
        ;
    rc = t->over ? follow_through_result(t, ret_status, err)
                 : error_set(err, EINVAL, "the event loop ended before the job");
    follow_through_free(t);
    return rc;
}
