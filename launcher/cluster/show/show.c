/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/show/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/agent_way.h"
#include "jobs/ranks/worker_ranges.h"
#include "jobs/spec/k8s_name.h"
#include "jobs/spec/node_spread.h"
#include "jobs/status/status_doc.h"
#include "jobs/gang/news.h"
#include "jobs/gang/waiting.h"
#include "jobs/status/drajob.h"
#include "launcher/cluster/client/board.h"
#include "launcher/cluster/client/dra_job.h"
#include "launcher/cluster/client/expire.h"
#include "launcher/cluster/client/forecast.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/client/launcher_pod.h"
#include "launcher/cluster/client/pod_group.h"
#include "launcher/cluster/client/launcher_silence.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/cli/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"
#include "lib/kube/object.h"

#define SYNC_MS 30000
#define EVENTS_MS 5000   /* for the Events, without which less is said */
#define RANGES_MAX 16    /* of workers in a line */
#define NAMES_SHOWN 8    /* of jobs in a message */
#define WATCH_MS 2000    /* between two looks */
#define DOC_KEY_SIZE 512 /* NAMESPACE/NAME, each of at most 253 bytes */

static int fail(const char *verb, const struct drarun_error *err)
{
    log_error("%s: %s", verb, err->text);
    return verb_exit_status(err);
}

/* The callbacks of others run meanwhile. */
static void pause_watch(struct cluster *cluster)
{
    int64_t end = clock_ms() + WATCH_MS;
    for (int64_t now; (now = clock_ms()) < end;)
        cluster_turn(cluster, end - now);
}

/* ---- list ---- */

static json_int_t workers_of(const json_t *map)
{
    struct job_spec spec;
    if (job_map_spec(map, &spec, NULL) < 0)
        return 0;
    json_int_t workers = spec.workers;
    job_spec_done(&spec);
    return workers;
}

/* Of a job whose launcher has told nothing yet: what its ConfigMap knows. */
static json_t *first_doc(const json_t *map, const char *job)
{
    const json_t *metadata = json_object_get(map, "metadata");
    const json_t *owner = json_array_get(json_object_get(metadata, "ownerReferences"), 0);
    const char *created = json_string_value(json_object_get(metadata, "creationTimestamp"));
    return json_pack("{s:s, s:s, s:s, s:s, s:s*, s:s*, s:i, s:{s:I}}", "name", job, "phase",
                     "created", "namespace", kube_namespace(map), "uid",
                     value_text_or(owner, "uid", kube_uid(map)), "created", created, "phaseSince",
                     created, "attempt", 1, "workers", "count", workers_of(map));
}

/* Any account that may write the ConfigMap decides what the document says: the names are those that
 * the API server knows. */
static json_t *doc_of(const json_t *map)
{
    char job[JOB_MAP_NAME_SIZE] = "";
    json_t *doc = NULL;
    job_map_job(map, job);
    if (job_map_status(map, &doc, NULL) < 0)
        return first_doc(map, job);
    if (json_object_set_new(doc, "name", json_string(job)) < 0 ||
        json_object_set_new(doc, "namespace", json_string(kube_namespace(map))) < 0)
        json_decref(TAKE_PTR(doc));
    return doc;
}

static const char *doc_key(const json_t *doc, char key[DOC_KEY_SIZE])
{
    snprintf(key, DOC_KEY_SIZE, "%s/%s", value_text_or(doc, "namespace", ""),
             value_text_or(doc, "name", ""));
    return key;
}

/* By NAMESPACE/NAME: of many jobs none is looked for among all. NULL without memory. */
static json_t *index_docs(const json_t *docs)
{
    CLEANUP(json_decrefp) json_t *index = json_object();
    size_t i;
    json_t *doc;
    json_array_foreach(docs, i, doc)
    {
        char key[DOC_KEY_SIZE];
        if (json_object_set(index, doc_key(doc, key), doc) < 0)
            return NULL;
    }
    return TAKE_PTR(index);
}

/* That of the job whose Lease, or DraJob, this is; NULL: none. */
static json_t *find_doc(const json_t *index, const json_t *object)
{
    char key[DOC_KEY_SIZE];
    snprintf(key, sizeof key, "%s/%s", kube_namespace(object), kube_name(object));
    return json_object_get(index, key);
}

/* A job of run --here has no DraJob, and may have the name of one that has ended. */
static bool is_of_object(const json_t *doc, const json_t *object)
{
    const char *uid = json_string_value(json_object_get(doc, "uid"));
    const char *launcher = drajob_launcher(object);
    return !uid || (launcher && strcmp(uid, launcher) == 0);
}

/* Only the controller tells the end of a job whose launcher was lost, or could not write it. */
static void add_end(const json_t *object, json_t *doc)
{
    static const char *const members[] = {"phase", "phaseSince", "result", "exit", "report"};
    CLEANUP(json_decrefp) json_t *told = NULL;
    if (status_doc_exit(doc) >= 0 || !drajob_has_ended(object) || !is_of_object(doc, object) ||
        !(told = drajob_doc(object)))
        return;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        json_object_set(doc, members[i], json_object_get(told, members[i]));
    json_object_del(doc, "waiting");
    json_object_del(doc, "silence");
}

/* Also DraJobs of which nothing is made yet, or nothing is left. */
static void add_dra_jobs(struct cluster *cluster, const char *namespace, const char *selector,
                         const json_t *index, json_t *docs)
{
    CLEANUP(json_decrefp) json_t *objects = dra_job_list(cluster, namespace, selector);
    size_t i;
    const json_t *object;
    json_array_foreach(objects, i, object)
    {
        json_t *doc = find_doc(index, object);
        if (doc)
            add_end(object, doc);
        else
            json_array_append_new(docs, drajob_doc(object));
    }
}

static void add_silence(json_t *doc, const struct launcher_silence *silence)
{
    json_t *json = launcher_silence_json(silence);
    if (json)
        json_object_set_new(doc, "silence", json);
}

/* Of jobs that go on: what the document says was true when its launcher wrote it. */
static void add_silences(struct cluster *cluster, const char *namespace, const json_t *index)
{
    const struct kube_target target = {.resource = &kube_leases, .namespace_ = namespace};
    const struct kube_select select = {.labels = "drarun.dev/job"};
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *leases = NULL;
    size_t i;
    const json_t *lease;
    /* a Role of users that an earlier release printed does not allow it */
    if (cluster_list(cluster, &target, &select, &leases, &err) < 0)
        log_verbose("cannot check whether launchers renew their Leases: %s", err.text);
    json_array_foreach(json_object_get(leases, "items"), i, lease)
    {
        CLEANUP(launcher_silence_done) struct launcher_silence silence = {0};
        json_t *doc = find_doc(index, lease);
        if (doc && status_doc_exit(doc) < 0 && launcher_silence_look_at(cluster, lease, &silence))
            add_silence(doc, &silence);
    }
}

int show_read_docs(struct cluster *cluster, const struct cluster_job *job, json_t *docs,
                   struct drarun_error *err)
{
    struct buf labels = BUF_INIT;
    const struct kube_target target = {.resource = &kube_config_maps,
                                       .namespace_ =
                                           job->all_namespaces ? NULL : cluster->namespace};
    CLEANUP(json_decrefp) json_t *list = NULL, *index = NULL;
    char job_name[JOB_MAP_NAME_SIZE];
    size_t i;
    json_t *map;
    buf_printf(&labels, "drarun.dev/job%s%s", job->selector ? "," : "",
               job->selector ? job->selector : "");
    const struct kube_select select = {.labels = labels.data};
    int rc = labels.failed ? error_set(err, ENOMEM, "out of memory")
                           : cluster_list(cluster, &target, &select, &list, err);
    buf_done(&labels);
    if (rc < 0)
        return rc;
    json_array_foreach(json_object_get(list, "items"), i, map)
    {
        if (job_map_job(map, job_name))
            json_array_append_new(docs, doc_of(map));
    }
    index = index_docs(docs);
    if (!index)
        return error_set(err, ENOMEM, "out of memory");
    if (json_array_size(docs) > 0)
        add_silences(cluster, target.namespace_, index);
    add_dra_jobs(cluster, target.namespace_, job->selector, index, docs);
    return 0;
}

static void say_none(const struct cluster *cluster, const struct cluster_job *job)
{
    log_note("there are no jobs in %s%s", job->all_namespaces ? "any namespace" : "namespace ",
             job->all_namespaces ? "" : cluster->namespace);
}

static void add_names(const json_t *docs, struct buf *out)
{
    size_t i;
    const json_t *doc;
    json_array_foreach(docs, i, doc)
        buf_printf(out, "%s\n", json_string_value(json_object_get(doc, "name")));
}

static void add_rows(const struct cluster_job *job, const json_t *docs, struct buf *out)
{
    size_t i;
    const json_t *doc;
    bool wide = job->format == VERB_WIDE;
    status_doc_row(NULL, job->all_namespaces, wide, lead_now(), out);
    json_array_foreach(docs, i, doc)
        status_doc_row(doc, job->all_namespaces, wide, lead_now(), out);
}

/* Without what time alone changes. */
static json_t *essence(const json_t *doc)
{
    json_t *copy = json_deep_copy(doc);
    json_object_del(json_object_get(copy, "waiting"), "text");
    json_object_del(copy, "silence");
    return copy;
}

static bool is_same(const json_t *doc, const json_t *before)
{
    CLEANUP(json_decrefp) json_t *a = essence(doc), *b = essence(before);
    return json_equal(a, b);
}

/* Those of the rows that are not as they were. */
static void add_changes(const struct cluster_job *job, const json_t *before, const json_t *docs,
                        struct buf *out)
{
    CLEANUP(json_decrefp) json_t *index = index_docs(before);
    size_t i;
    const json_t *doc;
    json_array_foreach(docs, i, doc)
    {
        char key[DOC_KEY_SIZE];
        const json_t *old = json_object_get(index, doc_key(doc, key));
        if (!old || !is_same(doc, old))
            status_doc_row(doc, job->all_namespaces, job->format == VERB_WIDE, lead_now(), out);
    }
}

/* Until a signal ends it. before: taken. */
static int watch_list(struct cluster *cluster, const struct cluster_job *job, json_t *before)
{
    for (;;) {
        struct drarun_error err = {0};
        struct buf out = BUF_INIT;
        json_t *docs = json_array();
        pause_watch(cluster);
        int rc = show_read_docs(cluster, job, docs, &err);
        if (rc == 0)
            add_changes(job, before, docs, &out);
        json_decref(before);
        before = docs;
        int status = rc < 0 ? fail("list", &err) : verb_write("list", &out);
        if (status != 0) {
            json_decref(before);
            return status;
        }
    }
}

int show_list(struct cluster *cluster, const struct cluster_job *job)
{
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    CLEANUP(json_decrefp) json_t *docs = json_array();
    if (!job->all_namespaces)
        expire_reap(cluster, cluster->namespace);
    if (show_read_docs(cluster, job, docs, &err) < 0)
        return fail("list", &err);
    if (job->json)
        verb_add_take(job->format, json_incref(docs), &out);
    else if (json_array_size(docs) == 0)
        say_none(cluster, job);
    else if (job->format == VERB_NAME)
        add_names(docs, &out);
    else
        add_rows(job, docs, &out);
    int status = verb_write("list", &out);
    return status == 0 && job->watch ? watch_list(cluster, job, TAKE_PTR(docs)) : status;
}

/* ---- status ---- */

static bool any_unscheduled(const struct pod_state *workers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (workers[i].phase == POD_UNSCHEDULED && workers[i].unschedulable)
            return true;
    return false;
}

/* What the slices lack, where the user may read them; NULL: that is not known. */
static int look_ahead(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                      unsigned step, struct forecast **ret_forecast, struct drarun_error *err)
{
    if (!claims_wanted(spec) || !cluster->api)
        return 0;
    int rc = forecast_new(cluster, spec, namespace, ret_forecast, err);
    if (rc == 0)
        forecast_look(*ret_forecast, step);
    return rc;
}

static int set_waiting(const struct waiting_input *input, json_t *doc, struct drarun_error *err)
{
    struct waiting waiting;
    int rc = waiting_build(input, &waiting, err);
    if (rc < 0)
        return rc;
    json_t *words = waiting_json(&waiting);
    waiting_done(&waiting);
    return words && json_object_set_new(doc, "waiting", words) < 0
               ? error_set(err, ENOMEM, "out of memory")
               : 0;
}

/* What the PodGroup of workers that have no other reason tells. */
static void look_at_group(struct cluster *cluster, const struct job_spec *spec,
                          const char *namespace, const struct pod_state *workers,
                          struct pod_group *group)
{
    pod_group_want(group, waiting_group(workers, spec->workers));
    if (lead_now() >= pod_group_due(group))
        pod_group_look(group, cluster, namespace);
}

/* Why it waits at this moment, from the API alone: the launcher may not be up yet. What the
 * launcher has said stays where it may read more than we. */
static int add_waiting(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                       json_t *doc, struct drarun_error *err)
{
    static const struct board_owner nobody;
    CLEANUP(board_freep) struct board *board = NULL;
    CLEANUP(forecast_freep) struct forecast *forecast = NULL;
    CLEANUP(pod_group_done) struct pod_group group = {0};
    json_int_t number = json_integer_value(json_object_get(doc, "attempt"));
    uint32_t attempt = number > 0 ? (uint32_t)number : 1;
    unsigned step = (unsigned)json_integer_value(json_object_get(doc, "step"));
    bool told = json_is_object(json_object_get(doc, "waiting"));
    int rc = cluster_discover(cluster, err);
    if (rc == 0)
        rc = board_new(cluster, spec, namespace, true, &nobody, &board, err);
    if (rc == 0)
        rc = board_sync(board, SYNC_MS, err);
    if (rc < 0)
        return rc;
    board_sync_events(board, EVENTS_MS);
    bool unscheduled = any_unscheduled(board_workers(board, attempt), spec->workers);
    if (unscheduled)
        rc = look_ahead(cluster, spec, namespace, step, &forecast, err);
    const struct prediction *prediction = forecast ? forecast_prediction(forecast, step) : NULL;
    cleanup_free char *launcher = board_launcher_waits(board);
    if (rc < 0 || (told && unscheduled && !prediction && !launcher))
        return rc;
    look_at_group(cluster, spec, namespace, board_workers(board, attempt), &group);
    if (told && group.refused)
        return 0;
    const struct waiting_input input = {
        .now_ms = lead_now(),
        .workers = board_workers(board, attempt),
        .count = spec->workers,
        .prediction = prediction,
        .spread = node_spread_is_ours_for_any(spec),
        .launcher_job = board_launcher_job(board),
        .worker_job = board_worker_job(board),
        .job_news = board_job_news(board),
        .launcher = launcher,
        .group = pod_group_told(&group),
    };
    return set_waiting(&input, doc, err);
}

/* Between two tries only the launcher knows what comes. */
static bool is_releasing(const json_t *doc)
{
    const char *phase = json_string_value(json_object_get(doc, "phase"));
    return phase && strcmp(phase, "releasing") == 0;
}

static bool still_waits(const json_t *doc)
{
    const char *phase = json_string_value(json_object_get(doc, "phase"));
    return status_doc_exit(doc) < 0 && (!phase || strcmp(phase, "running") != 0);
}

static int read_dra_job(struct cluster *cluster, const char *job, json_t **ret_doc,
                        struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *object = NULL;
    int rc = dra_job_get(cluster, job, cluster->namespace, &object, err);
    if (rc < 0)
        return rc;
    *ret_doc = drajob_doc(object);
    if (*ret_doc)
        drajob_date_doc(object, -1, *ret_doc);
    return *ret_doc ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* An ended job's document says nothing of its deletion, which the controller decides. */
static void add_expiration(const json_t *object, const json_t *map, json_t *doc)
{
    struct drarun_error err = {0};
    struct job_spec spec;
    int64_t ttl = -1;
    if (job_map_spec(map, &spec, &err) == 0) {
        ttl = spec.ttl_after_finished;
        job_spec_done(&spec);
    }
    drajob_date_doc(object, ttl, doc);
}

static int read_status(struct cluster *cluster, const char *job, json_t **ret_doc,
                       struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *doc = NULL, *object = NULL;
    struct job_spec spec;
    struct drarun_error none = {0};
    int rc = job_map_get(cluster, job, cluster->namespace, &map, &none);
    if (rc == -ENOENT)
        return read_dra_job(cluster, job, ret_doc, err);
    if (rc < 0)
        return error_kind(err, none.kind, none.code, "%s", none.text);
    doc = doc_of(map);
    if (!doc)
        return error_set(err, ENOMEM, "out of memory");
    if (dra_job_get(cluster, job, cluster->namespace, &object, &none) < 0)
        log_verbose("%s", none.text);
    add_end(object, doc);
    if (still_waits(doc) && !is_releasing(doc) && job_map_spec(map, &spec, err) == 0) {
        rc = add_waiting(cluster, &spec, cluster->namespace, doc, err);
        job_spec_done(&spec);
    }
    CLEANUP(launcher_silence_done) struct launcher_silence silence = {0};
    if (rc == 0 && status_doc_exit(doc) < 0 &&
        launcher_silence_look(cluster, job, cluster->namespace, &silence))
        add_silence(doc, &silence);
    if (rc == 0 && status_doc_exit(doc) >= 0)
        add_expiration(object, map, doc);
    if (rc == 0)
        *ret_doc = TAKE_PTR(doc);
    return rc;
}

/* The namespace's only job, for a verb that got no name; malloc'ed. */
static int only_job(struct cluster *cluster, char **ret_name, struct drarun_error *err)
{
    static const struct cluster_job all = {.rank = -1};
    struct buf names = BUF_INIT;
    CLEANUP(json_decrefp) json_t *docs = json_array();
    int rc = show_read_docs(cluster, &all, docs, err);
    size_t count = json_array_size(docs);
    if (rc < 0)
        return rc;
    if (count == 0)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "there are no jobs in namespace %s",
                          cluster->namespace);
    for (size_t i = 0; i < count && i < NAMES_SHOWN; i++)
        buf_printf(&names, "%s%s", i ? ", " : "",
                   json_string_value(json_object_get(json_array_get(docs, i), "name")));
    if (count > 1)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "there are %zu jobs in namespace %s, name one: %s%s", count,
                        cluster->namespace, names.data ? names.data : "?",
                        count > NAMES_SHOWN ? ", ..." : "");
    else if (names.failed || !(*ret_name = strdup(names.data)))
        rc = error_set(err, ENOMEM, "out of memory");
    buf_done(&names);
    return rc;
}

static int write_status(const struct cluster_job *job, const json_t *doc)
{
    struct buf out = BUF_INIT;
    if (job->json)
        verb_add_take(job->format, json_incref(unconst(doc)), &out);
    else if (job->format == VERB_NAME)
        buf_printf(&out, "%s\n", json_string_value(json_object_get(doc, "name")));
    else
        status_doc_render(doc, job->verbose || job->format == VERB_WIDE, lead_now(), &out);
    return job->json ? verb_write("status", &out) : verb_write_prose("status", &out);
}

/* To the job's end. */
static int watch_status(struct cluster *cluster, const struct cluster_job *job, const char *name,
                        json_t *before)
{
    int status = 0;
    while (status == 0 && status_doc_exit(before) < 0) {
        struct drarun_error err = {0};
        json_t *doc = NULL;
        pause_watch(cluster);
        if (read_status(cluster, name, &doc, &err) < 0)
            status = fail("status", &err);
        else if (!is_same(doc, before))
            status = write_status(job, doc);
        if (doc) {
            json_decref(before);
            before = doc;
        }
    }
    json_decref(before);
    return status;
}

int show_status(struct cluster *cluster, const struct cluster_job *job)
{
    struct drarun_error err = {0};
    cleanup_free char *only = NULL;
    CLEANUP(json_decrefp) json_t *doc = NULL;
    if (!job->job && only_job(cluster, &only, &err) < 0)
        return fail("status", &err);
    const char *name = job->job ? job->job : only;
    if (read_status(cluster, name, &doc, &err) < 0)
        return fail("status", &err);
    int status = write_status(job, doc);
    return status == 0 && job->watch ? watch_status(cluster, job, name, TAKE_PTR(doc)) : status;
}

/* ---- describe ---- */

static void add_event(const json_t *event, struct buf *out)
{
    int64_t at;
    const json_t *about = json_object_get(event, "involvedObject");
    const char *reason = json_string_value(json_object_get(event, "reason"));
    const char *message = json_string_value(json_object_get(event, "message"));
    const char *time = news_time(event, &at);
    const char *kind = json_string_value(json_object_get(about, "kind"));
    const char *name = json_string_value(json_object_get(about, "name"));
    buf_printf(out, "  %s  %s %s: %s: %s\n", time ? time : "-", kind ? kind : "?",
               name ? name : "?", reason ? reason : "?", message ? message : "");
}

/* About the job or a part of it, by its name (docs/design/010-claims.md): not about a job that is
 * called as this one with a "-" and more. */
static bool is_about(const json_t *event, const char *job)
{
    static const char *const parts[] = {"", "-w", "-status", "-domain", "-channel"};
    static const char of_worker[] = "-w-";
    const json_t *about = json_object_get(event, "involvedObject");
    const char *name = value_text_or(about, "name", "");
    size_t length = strlen(job);
    if (strncmp(name, job, length) != 0)
        return false;
    if (strcmp(value_text_or(about, "kind", ""), "Pod") == 0 && launcher_pod_is_called(job, name))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strcmp(name + length, parts[i]) == 0)
            return true;
    return strncmp(name + length, of_worker, sizeof of_worker - 1) == 0;
}

/* {how the agent came: [workers]}, as the pods that are there were made. */
static json_t *agent_ways(const json_t *pods)
{
    json_t *ways = json_object();
    const json_t *pod;
    size_t i;
    json_array_foreach(json_object_get(pods, "items"), i, pod)
    {
        struct buf way = BUF_INIT;
        int64_t worker = board_worker_label(pod);
        if (worker >= 0)
            agent_way_text(pod, &way);
        if (way.data && !json_object_get(ways, way.data))
            json_object_set_new(ways, way.data, json_array());
        if (way.data)
            json_array_append_new(json_object_get(ways, way.data), json_integer(worker));
        buf_done(&way);
    }
    return ways;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* "Agent: by its claim (workers 0-3)" */
static void add_agent_way(const char *way, const json_t *list, struct buf *out)
{
    size_t count = json_array_size(list);
    cleanup_free uint32_t *workers = calloc(count + 1, sizeof *workers);
    for (size_t i = 0; workers && i < count; i++)
        workers[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    if (!workers)
        return;
    qsort(workers, count, sizeof *workers, by_number);
    buf_printf(out, "Agent: %s (worker%s ", way, count > 1 ? "s" : "");
    worker_ranges(workers, (uint32_t)count, RANGES_MAX, out);
    buf_add_str(out, ")\n");
}

/* NULL: not known, which was said. */
static json_t *read_ways(struct cluster *cluster, const char *job)
{
    struct drarun_error err = {0};
    char labels[128 + K8S_LABEL_MAX];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = cluster->namespace};
    const struct kube_select select = {.labels = labels};
    CLEANUP(json_decrefp) json_t *pods = NULL;
    snprintf(labels, sizeof labels, "drarun.dev/job=%s", job);
    if (cluster_list(cluster, &target, &select, &pods, &err) == 0)
        return agent_ways(pods);
    log_note("describe: %s", err.text);
    return NULL;
}

struct dated {
    int64_t ms;
    size_t order; /* of the API server, by names */
    json_t *event;
};

static int by_time(const void *a, const void *b)
{
    const struct dated *x = a, *y = b;
    int order = (x->ms > y->ms) - (x->ms < y->ms);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* The last one last; without memory as they are. */
static json_t *sort_events(json_t *events_take)
{
    size_t i, count = json_array_size(events_take);
    json_t *event, *sorted = json_array();
    cleanup_free struct dated *all = calloc(count + 1, sizeof *all);
    if (!all || !sorted) {
        json_decref(sorted);
        return events_take;
    }
    json_array_foreach(events_take, i, event)
    {
        all[i] = (struct dated){.order = i, .event = event};
        news_time(event, &all[i].ms);
    }
    qsort(all, count, sizeof *all, by_time);
    for (i = 0; i < count; i++)
        json_array_append(sorted, all[i].event);
    json_decref(events_take);
    return sorted;
}

/* The namespace's events about the job and what it made. */
static json_t *read_events(struct cluster *cluster, const char *job)
{
    struct drarun_error err = {0};
    size_t i;
    json_t *event;
    CLEANUP(json_decrefp) json_t *all = NULL;
    json_t *events = json_array();
    const struct kube_target target = {.resource = &kube_events, .namespace_ = cluster->namespace};
    if (cluster_list(cluster, &target, NULL, &all, &err) < 0)
        log_note("describe: %s", err.text);
    json_array_foreach(json_object_get(all, "items"), i, event)
    {
        if (is_about(event, job))
            json_array_append(events, event);
    }
    return sort_events(events);
}

static void add_description(const json_t *doc, const json_t *ways, const json_t *events,
                            struct buf *out)
{
    size_t i;
    const char *way;
    const json_t *workers, *event;
    status_doc_render(doc, true, lead_now(), out);
    value_foreach(ways, way, workers) add_agent_way(way, workers, out);
    buf_add_str(out, "Events:\n");
    json_array_foreach(events, i, event) add_event(event, out);
}

int show_describe(struct cluster *cluster, const struct cluster_job *job)
{
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    CLEANUP(json_decrefp) json_t *doc = NULL, *ways = NULL, *events = NULL;
    if (read_status(cluster, job->job, &doc, &err) < 0)
        return fail("describe", &err);
    if (job->format == VERB_NAME) {
        buf_printf(&out, "%s\n", json_string_value(json_object_get(doc, "name")));
        return verb_write("describe", &out);
    }
    ways = read_ways(cluster, job->job);
    events = read_events(cluster, job->job);
    if (job->json)
        verb_add_take(
            job->format,
            json_pack("{s:O, s:O*, s:O}", "status", doc, "agents", ways, "events", events), &out);
    else
        add_description(doc, ways, events, &out);
    return job->json ? verb_write("describe", &out) : verb_write_prose("describe", &out);
}
