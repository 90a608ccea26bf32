/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/cancel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/client/launcher_silence.h"
#include "launcher/cluster/client/lease.h"
#include "launcher/cluster/client/lease_life.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"
#include "lib/kube/list.h"

/* Each but the last has one call under way. */
enum cancel_phase {
    CANCEL_DOCUMENT = 1, /* the job's document is read: it may have ended */
    CANCEL_JOB,          /* the wish is written to the launcher Job */
    CANCEL_MAP,          /* or, where there is none, to the ConfigMap of run --here */
    CANCEL_LAUNCHERS,    /* the pods of the launcher Job are listed */
    CANCEL_LEASE,        /* the launcher's Lease is read */
    CANCEL_HOLDER,       /* and the pod of a launcher that is silent */
    CANCEL_OBJECT,       /* the DraJob is read */
    CANCEL_OBJECT_GOES,  /* and deleted */
    CANCEL_OWNER_GOES,   /* the launcher Job, or the ConfigMap, is deleted */
    CANCEL_PODS,         /* the job's pods are listed */
    CANCEL_POD_GOES,     /* and those of lost nodes deleted, one after the other */
    CANCEL_OVER,
};

enum cancel_event {
    CANCEL_DONE = 1, /* the phase has done what it is for */
    CANCEL_ABSENT,   /* there is no such object */
    CANCEL_ENDED,    /* the job had ended before */
    CANCEL_ALONE,    /* nobody leads the job who would end it */
    CANCEL_SILENT,   /* its launcher is silent */
    CANCEL_LATER,    /* that was an earlier job: another one has its name, and goes on */
    CANCEL_ENOUGH,   /* there is nothing more to do */
    CANCEL_FAILED,   /* in any phase: as err says */
};

struct cancel_step {
    enum cancel_phase phase;
    enum cancel_event event;
    enum cancel_phase next;
};

static const struct cancel_step steps[] = {
    {CANCEL_DOCUMENT, CANCEL_ENDED, CANCEL_OBJECT},
    {CANCEL_DOCUMENT, CANCEL_DONE, CANCEL_JOB},
    {CANCEL_DOCUMENT, CANCEL_ENOUGH, CANCEL_OVER},

    {CANCEL_JOB, CANCEL_DONE, CANCEL_LAUNCHERS},
    {CANCEL_JOB, CANCEL_ABSENT, CANCEL_MAP},

    {CANCEL_MAP, CANCEL_DONE, CANCEL_LEASE},
    {CANCEL_MAP, CANCEL_ABSENT, CANCEL_OBJECT},

    {CANCEL_LAUNCHERS, CANCEL_DONE, CANCEL_LEASE},

    {CANCEL_LEASE, CANCEL_ENOUGH, CANCEL_OVER},
    {CANCEL_LEASE, CANCEL_ALONE, CANCEL_OWNER_GOES},
    {CANCEL_LEASE, CANCEL_SILENT, CANCEL_HOLDER},

    {CANCEL_HOLDER, CANCEL_DONE, CANCEL_OWNER_GOES},

    {CANCEL_OBJECT, CANCEL_DONE, CANCEL_OBJECT_GOES},
    {CANCEL_OBJECT, CANCEL_ABSENT, CANCEL_OWNER_GOES},

    {CANCEL_OBJECT_GOES, CANCEL_DONE, CANCEL_OWNER_GOES},
    {CANCEL_OBJECT_GOES, CANCEL_ENOUGH, CANCEL_OVER},

    {CANCEL_OWNER_GOES, CANCEL_DONE, CANCEL_PODS},
    {CANCEL_OWNER_GOES, CANCEL_LATER, CANCEL_JOB},
    {CANCEL_OWNER_GOES, CANCEL_ENOUGH, CANCEL_OVER},

    {CANCEL_PODS, CANCEL_DONE, CANCEL_POD_GOES},
    {CANCEL_PODS, CANCEL_ENOUGH, CANCEL_OVER},

    {CANCEL_POD_GOES, CANCEL_DONE, CANCEL_POD_GOES},
    {CANCEL_POD_GOES, CANCEL_ENOUGH, CANCEL_OVER},
};

static const char *const event_names[] = {
    [CANCEL_DONE] = "done",     [CANCEL_ABSENT] = "absent", [CANCEL_ENDED] = "ended",
    [CANCEL_ALONE] = "alone",   [CANCEL_SILENT] = "silent", [CANCEL_LATER] = "later",
    [CANCEL_ENOUGH] = "enough", [CANCEL_FAILED] = "failed",
};

struct cancel {
    struct cluster *cluster;
    const char *name, *namespace;
    bool ended_only; /* a job that goes on is left alone */
    cancel_fn fn;
    void *arg;
    enum cancel_phase phase;
    struct kube_call *call;          /* what is asked: one of the two */
    struct kube_listing *listing;    /* the other is NULL */
    json_t *doc;                     /* of a job that had ended before; else NULL */
    int64_t kept_ms;                 /* when the ConfigMap with it was created; 0: not known */
    bool rest;                       /* the ConfigMap is left of a job whose Job is gone */
    bool here;                       /* the owner is the ConfigMap */
    char *owner_uid, *object_uid;    /* of what is deleted; NULL: of any uid */
    json_t *pods;                    /* as they were listed last */
    size_t next;                     /* of them: the one to delete */
    bool silent;                     /* its launcher is, as follows */
    struct launcher_silence silence; /* of the Lease */
    struct drarun_error err;         /* code 0: none */
};

static void on_answer(const struct kube_answer *answer, const struct drarun_error *err, void *arg);

static enum cancel_event fail(struct cancel *c, const struct drarun_error *err)
{
    c->err = *err;
    return CANCEL_FAILED;
}

/* What is not there is deleted. */
static bool is_deleted(const struct drarun_error *err)
{
    return !err || err->code == ENOENT;
}

/* Without it an object of any uid would be deleted: also one that a later job has. */
static enum cancel_event keep_uid(struct cancel *c, const char *text, char **uid,
                                  enum cancel_event then)
{
    free(*uid);
    *uid = strdup(text);
    if (*uid)
        return then;
    error_set(&c->err, ENOMEM, "out of memory");
    return CANCEL_FAILED;
}

static int get_one(struct cancel *c, const struct kube_resource *resource, const char *name)
{
    const struct kube_target target = {
        .resource = resource, .namespace_ = c->namespace, .name = name};
    return kube_get(c->cluster->client, &target, on_answer, c, &c->call, &c->err);
}

static int delete_one(struct cancel *c, const struct kube_resource *resource, const char *name,
                      const struct kube_delete *options)
{
    const struct kube_target target = {
        .resource = resource, .namespace_ = c->namespace, .name = name};
    return kube_delete(c->cluster->client, &target, options, on_answer, c, &c->call, &c->err);
}

static int list_pods(struct cancel *c, const char *label)
{
    char selector[96];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = c->namespace};
    const struct kube_select select = {.labels = selector};
    snprintf(selector, sizeof selector, "%s=%s", label, c->name);
    return kube_list(c->cluster->client, &target, &select, on_answer, c, &c->listing, &c->err);
}

static void keep_pods(struct cancel *c, const struct kube_answer *answer)
{
    json_decref(c->pods);
    c->pods = json_incref(json_object_get(answer->body, "items"));
    c->next = 0;
}

static const json_t *owners_of(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "ownerReferences");
}

/* ---- a job that had ended before ---- */

static int ask_document(struct cancel *c)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(c->name, name);
    return get_one(c, &kube_config_maps, name);
}

static json_t *end_in(const json_t *map)
{
    json_t *doc = NULL;
    if (job_map_status(map, &doc, NULL) < 0)
        return NULL;
    if (status_doc_exit(doc) < 0)
        json_decref(TAKE_PTR(doc));
    return doc;
}

static enum cancel_event take_document(struct cancel *c, const struct kube_answer *answer,
                                       const struct drarun_error *err)
{
    if (err && err->kind == DRARUN_ERR_INFRASTRUCTURE) /* there is nobody to be asked more */
        return fail(c, err);
    const json_t *map = err ? NULL : answer->body;
    c->doc = end_in(map);
    if (!c->doc)
        return c->ended_only ? CANCEL_ENOUGH : CANCEL_DONE;
    c->here = !owners_of(map);
    c->kept_ms = kube_created_ms(map);
    const char *owner =
        c->here ? kube_uid(map) : value_text_or(json_array_get(owners_of(map), 0), "uid", "");
    return keep_uid(c, owner, &c->owner_uid, CANCEL_ENDED);
}

static void say_end(const struct cancel *c)
{
    struct buf how = BUF_INIT;
    status_doc_end(c->doc, lead_now(), &how);
    log_note("job %s had ended before: %s; its remaining objects are deleted", c->name,
             how.data ? how.data : "?");
    buf_done(&how);
}

/* ---- its DraJob: also of one of which nothing is made yet, or nothing is left ---- */

static int ask_object(struct cancel *c)
{
    return get_one(c, &kube_dra_jobs, c->name);
}

/* A DraJob is created before the document of its job. */
static bool is_of_later_job(const struct cancel *c, const json_t *object)
{
    return c->kept_ms && kube_created_ms(object) > c->kept_ms;
}

static enum cancel_event take_object(struct cancel *c, const struct kube_answer *answer,
                                     const struct drarun_error *err)
{
    if (!err && c->ended_only && is_of_later_job(c, answer->body))
        return CANCEL_ABSENT;
    if (!err)
        return keep_uid(c, kube_uid(answer->body), &c->object_uid, CANCEL_DONE);
    /* it may be there, and run once it is resumed */
    if (err->code != ENOENT && err->code != EACCES)
        return fail(c, err);
    log_verbose("%s", err->text);
    if (c->doc || c->rest || c->object_uid)
        return CANCEL_ABSENT;
    error_kind(&c->err, DRARUN_ERR_USAGE, ENOENT, "there is no job %s in namespace %s", c->name,
               c->namespace);
    return CANCEL_FAILED;
}

static int ask_object_away(struct cancel *c)
{
    const struct kube_delete this = {.propagation = "Background", .uid = c->object_uid};
    return delete_one(c, &kube_dra_jobs, c->name, &this);
}

static enum cancel_event take_object_away(struct cancel *c, const struct kube_answer *answer,
                                          const struct drarun_error *err)
{
    (void)answer;
    if (!is_deleted(err))
        return fail(c, err);
    return c->doc || c->rest ? CANCEL_DONE : CANCEL_ENOUGH;
}

/* ---- one that goes on: its launcher is asked ---- */

static int write_wish(struct cancel *c, const struct kube_resource *resource, const char *name)
{
    static const struct kube_write again = {.repeat = true};
    const struct kube_target owner = {
        .resource = resource, .namespace_ = c->namespace, .name = name};
    CLEANUP(json_decrefp)
    json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", CANCEL_ANNOTATION, "now");
    return patch ? kube_merge_patch(c->cluster->client, &owner, patch, &again, on_answer, c,
                                    &c->call, &c->err)
                 : error_set(&c->err, ENOMEM, "out of memory");
}

static int ask_job(struct cancel *c)
{
    return write_wish(c, &kube_jobs, c->name);
}

static int ask_map(struct cancel *c)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(c->name, name);
    c->here = true;
    return write_wish(c, &kube_config_maps, name);
}

static enum cancel_event take_wish(struct cancel *c, const struct kube_answer *answer,
                                   const struct drarun_error *err)
{
    (void)answer;
    if (!err)
        return CANCEL_DONE;
    return err->code == ENOENT ? CANCEL_ABSENT : fail(c, err);
}

/* One that has an owner is no run's --here: its Job was deleted, as that of a DraJob which is
 * suspended, and it goes later. */
static enum cancel_event take_map_wish(struct cancel *c, const struct kube_answer *answer,
                                       const struct drarun_error *err)
{
    c->rest = !err && owners_of(answer->body);
    return c->rest ? keep_uid(c, kube_uid(answer->body), &c->owner_uid, CANCEL_ABSENT)
                   : take_wish(c, answer, err);
}

/* ---- whether it may do it ---- */

static int ask_launchers(struct cancel *c)
{
    return list_pods(c, "batch.kubernetes.io/job-name");
}

static enum cancel_event take_launchers(struct cancel *c, const struct kube_answer *answer,
                                        const struct drarun_error *err)
{
    if (err)
        return fail(c, err);
    keep_pods(c, answer);
    return CANCEL_DONE;
}

static bool has_phase(const json_t *pod, const char *phase)
{
    const char *now = json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));
    return now && strcmp(now, phase) == 0;
}

/* The kubelet may be late to tell that it runs: then its Lease does. */
static bool is_running(const json_t *pod, const char *holder)
{
    bool holds = holder && strcmp(kube_name(pod), holder) == 0;
    bool over = has_phase(pod, "Succeeded") || has_phase(pod, "Failed");
    return has_phase(pod, "Running") || (holds && !over);
}

/* A pod of the launcher Job runs. */
static bool has_launcher(const struct cancel *c, const json_t *lease)
{
    size_t i;
    json_t *pod;
    const char *holder =
        json_string_value(json_object_get(json_object_get(lease, "spec"), "holderIdentity"));
    json_array_foreach(c->pods, i, pod)
    {
        if (is_running(pod, holder))
            return true;
    }
    return false;
}

static int ask_lease(struct cancel *c)
{
    return get_one(c, &kube_leases, c->name);
}

static bool is_held(const json_t *lease, int64_t now)
{
    return lease && now - lease_life_sign(lease) < LEASE_S * 1000;
}

/* If the Lease cannot be read, nobody counts as its holder. */
static enum cancel_event take_lease(struct cancel *c, const struct kube_answer *answer,
                                    const struct drarun_error *err)
{
    const json_t *lease = err ? NULL : answer->body;
    int64_t now = kube_client_now(c->cluster->client);
    if (!c->here && !has_launcher(c, lease))
        return CANCEL_ALONE;
    c->silent = lease && now && launcher_silence_of_lease(lease, now, &c->silence);
    if (c->silent)
        return launcher_silence_has_pod(&c->silence) ? CANCEL_SILENT : CANCEL_ALONE;
    return c->here && !is_held(lease, now) ? CANCEL_ALONE : CANCEL_ENOUGH;
}

static int ask_holder(struct cancel *c)
{
    return get_one(c, &kube_pods, c->silence.holder);
}

static enum cancel_event take_holder(struct cancel *c, const struct kube_answer *answer,
                                     const struct drarun_error *err)
{
    if (!err)
        launcher_silence_add_pod(&c->silence, answer->body);
    return CANCEL_DONE;
}

/* ---- without its launcher ---- */

static void say_silent(const struct cancel *c)
{
    struct buf text = BUF_INIT;
    launcher_silence_text(&c->silence, &text);
    log_note("%s; job %s is cancelled without it: its pods, claims and status are deleted",
             text.data ? text.data : "its launcher is silent", c->name);
    buf_done(&text);
}

static int ask_owner_away(struct cancel *c)
{
    const struct kube_delete options = {.propagation = "Background", .uid = c->owner_uid};
    char map[JOB_MAP_NAME_SIZE];
    job_map_name(c->name, map);
    if (c->silent)
        say_silent(c);
    return delete_one(c, c->here ? &kube_config_maps : &kube_jobs, c->here ? map : c->name,
                      &options);
}

/* What was found was an earlier job's, which the garbage collector deletes. */
static enum cancel_event turn_to_later_job(struct cancel *c)
{
    json_decref(TAKE_PTR(c->doc));
    free(TAKE_PTR(c->owner_uid));
    c->rest = c->here = false;
    return c->ended_only ? CANCEL_ENOUGH : CANCEL_LATER;
}

static enum cancel_event take_owner_away(struct cancel *c, const struct kube_answer *answer,
                                         const struct drarun_error *err)
{
    (void)answer;
    if (err && err->code == EBUSY && c->owner_uid) /* it has another uid */
        return turn_to_later_job(c);
    if (!is_deleted(err))
        return fail(c, err);
    if (c->doc)
        say_end(c);
    return c->silent ? CANCEL_DONE : CANCEL_ENOUGH;
}

static int ask_pods(struct cancel *c)
{
    return list_pods(c, "drarun.dev/job");
}

/* A lost node has no kubelet that would confirm the deletion: their pods are deleted by force. */
static enum cancel_event find_lost(struct cancel *c)
{
    for (; c->next < json_array_size(c->pods); c->next++) {
        const json_t *pod = json_array_get(c->pods, c->next);
        if (strcmp(kube_name(pod), c->silence.holder) == 0 || launcher_silence_has_lost_node(pod))
            return CANCEL_DONE;
    }
    return CANCEL_ENOUGH;
}

static enum cancel_event take_pods(struct cancel *c, const struct kube_answer *answer,
                                   const struct drarun_error *err)
{
    if (err)
        return fail(c, err);
    keep_pods(c, answer);
    return find_lost(c);
}

static int ask_pod_away(struct cancel *c)
{
    const json_t *pod = json_array_get(c->pods, c->next);
    const struct kube_delete options = {.uid = kube_uid(pod), .now = true};
    return delete_one(c, &kube_pods, kube_name(pod), &options);
}

static enum cancel_event take_pod_away(struct cancel *c, const struct kube_answer *answer,
                                       const struct drarun_error *err)
{
    (void)answer;
    if (!is_deleted(err))
        log_note("pod %s and what it claims stay until its node answers or is deleted: %s",
                 kube_name(json_array_get(c->pods, c->next)), err->text);
    c->next++;
    return find_lost(c);
}

/* ---- from one phase to the next ---- */

static const struct {
    const char *name;
    int (*ask)(struct cancel *c); /* fails as c->err says */
    enum cancel_event (*take)(struct cancel *c, const struct kube_answer *answer,
                              const struct drarun_error *err);
} phases[] = {
    [CANCEL_DOCUMENT] = {"document", ask_document, take_document},
    [CANCEL_JOB] = {"job", ask_job, take_wish},
    [CANCEL_MAP] = {"map", ask_map, take_map_wish},
    [CANCEL_LAUNCHERS] = {"launchers", ask_launchers, take_launchers},
    [CANCEL_LEASE] = {"lease", ask_lease, take_lease},
    [CANCEL_HOLDER] = {"holder", ask_holder, take_holder},
    [CANCEL_OBJECT] = {"object", ask_object, take_object},
    [CANCEL_OBJECT_GOES] = {"object goes", ask_object_away, take_object_away},
    [CANCEL_OWNER_GOES] = {"owner goes", ask_owner_away, take_owner_away},
    [CANCEL_PODS] = {"pods", ask_pods, take_pods},
    [CANCEL_POD_GOES] = {"pod goes", ask_pod_away, take_pod_away},
    [CANCEL_OVER] = {"over", NULL, NULL},
};

void cancel_free(struct cancel *cancel)
{
    if (!cancel)
        return;
    kube_call_cancel(cancel->call);
    kube_list_cancel(cancel->listing);
    launcher_silence_done(&cancel->silence);
    json_decref(cancel->doc);
    json_decref(cancel->pods);
    free(cancel->owner_uid);
    free(cancel->object_uid);
    free(cancel);
}

static void end(struct cancel *c)
{
    const struct drarun_error err = c->err;
    int rc = err.code ? -err.code : c->doc != NULL;
    cancel_fn fn = c->fn;
    void *arg = c->arg;
    cancel_free(c);
    fn(rc, rc < 0 ? &err : NULL, arg);
}

static enum cancel_phase find_next(struct cancel *c, enum cancel_event event)
{
    if (event == CANCEL_FAILED)
        return CANCEL_OVER;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i].phase == c->phase && steps[i].event == event)
            return steps[i].next;
    error_set(&c->err, EINVAL, "internal error: \"%s\" while a job is cancelled (%s)",
              event_names[event], phases[c->phase].name);
    return CANCEL_OVER;
}

static void on_answer(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct cancel *c = arg;
    c->call = NULL;
    c->listing = NULL;
    enum cancel_event event = phases[c->phase].take(c, answer, err);
    enum cancel_phase next = find_next(c, event);
    log_verbose("cancelling job %s: %s -> %s (%s)", c->name, phases[c->phase].name,
                phases[next].name, event_names[event]);
    c->phase = next;
    if (next == CANCEL_OVER || phases[next].ask(c) < 0)
        end(c);
}

static int start(struct cluster *cluster, const char *name, const char *namespace, bool ended_only,
                 cancel_fn fn, void *arg, struct cancel **ret_cancel, struct drarun_error *err)
{
    struct cancel *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(err, ENOMEM, "out of memory");
    *c = (struct cancel){.cluster = cluster,
                         .name = name,
                         .namespace = namespace,
                         .ended_only = ended_only,
                         .fn = fn,
                         .arg = arg,
                         .phase = CANCEL_DOCUMENT};
    int rc = ask_document(c);
    if (rc < 0) {
        error_kind(err, c->err.kind, c->err.code, "%s", c->err.text);
        cancel_free(c);
        return rc;
    }
    *ret_cancel = c;
    return 0;
}

int cancel_start(struct cluster *cluster, const char *name, const char *namespace, cancel_fn fn,
                 void *arg, struct cancel **ret_cancel, struct drarun_error *err)
{
    return start(cluster, name, namespace, false, fn, arg, ret_cancel, err);
}

/* ---- and the loop ---- */

struct waited {
    bool done;
    int rc;
    struct drarun_error *err;
};

static void on_done(int rc, const struct drarun_error *err, void *arg)
{
    struct waited *w = arg;
    w->done = true;
    w->rc = rc;
    if (err)
        error_kind(w->err, err->kind, err->code, "%s", err->text);
}

static int run(struct cluster *cluster, const char *name, const char *namespace, bool ended_only,
               struct drarun_error *err)
{
    struct waited w = {.err = err};
    struct cancel *c = NULL;
    int rc = start(cluster, name, namespace, ended_only, on_done, &w, &c, err);
    if (rc < 0)
        return rc;
    rc = cluster_await(cluster, &w.done, err);
    if (rc < 0)
        cancel_free(c);
    return rc < 0 ? rc : w.rc;
}

int cancel_job(struct cluster *cluster, const char *name, const char *namespace,
               struct drarun_error *err)
{
    int rc = run(cluster, name, namespace, false, err);
    return rc < 0 ? rc : 0;
}

int cancel_ended(struct cluster *cluster, const char *name, const char *namespace,
                 struct drarun_error *err)
{
    return run(cluster, name, namespace, true, err);
}
