/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/programs/accept_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/accept/cluster.h"
#include "launcher/accept/drive.h"
#include "launcher/accept/job.h"
#include "launcher/accept/show.h"
#include "launcher/cli/verb.h"
#include "launcher/cluster/client/cluster.h"
#include "launcher/files/spec_file.h"
#include "launcher/programs/accept_order.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct run {
    struct cluster *cluster;
    const struct accept_order *order;
    struct strlist names;
    json_t *uids, *left_out, *job;
    json_t *pod; /* the spec of the job's pods, as the user gives it */
    struct accept *plan;
    struct record *record;
    const char *priority_class;
};

static void run_done(struct run *r)
{
    strlist_done(&r->names);
    json_decref(r->uids);
    json_decref(r->left_out);
    json_decref(r->job);
    json_decref(r->pod);
    accept_free(r->plan);
    record_free(r->record);
}

static int no_nodes(const struct run *r, struct drarun_error *err)
{
    const char *selector = r->order->selector;
    void *first = json_object_iter(r->left_out);
    return error_kind(err, DRARUN_ERR_CLUSTER, ENOENT,
                      "%s%s: %zu nodes are there, and none is ready to be tested%s%s%s%s",
                      selector ? "nodes with " : "nodes", selector ? selector : "",
                      json_object_size(r->left_out), first ? "; " : "",
                      first ? json_object_iter_key(first) : "", first ? ": " : "",
                      first ? json_string_value(json_object_iter_value(first)) : "");
}

static int choose_nodes(struct run *r, struct drarun_error *err)
{
    int rc = accept_list_nodes(r->cluster, r->order->selector, r->pod, &r->names, r->uids,
                               r->left_out, err);
    if (rc < 0)
        return rc;
    if (r->names.count == 0)
        return no_nodes(r, err);
    return accept_new(r->names.count, &r->order->options, &r->plan, err);
}

static int choose_priority(struct run *r, struct drarun_error *err)
{
    const char *given = r->order->priority_class;
    r->priority_class = given ? (given[0] ? given : NULL) : ACCEPT_PRIORITY_CLASS;
    return given ? 0 : accept_ensure_priority(r->cluster, err);
}

/* What must be the same for a run to be gone on with. */
static json_t *order_json(const struct run *r)
{
    const struct accept_options *o = &r->order->options;
    return json_pack("{s:O, s:f, s:f, s:f, s:b}", "job", r->job, "slower", o->slower, "floorAlone",
                     o->floor_alone, "floorPair", o->floor_pair, "aloneOnly", o->alone_only);
}

static int open_record(struct run *r, struct drarun_error *err)
{
    char dir[PATH_MAX];
    CLEANUP(json_decrefp) json_t *what = order_json(r);
    int rc = 0;
    if (r->order->records)
        snprintf(dir, sizeof dir, "%s", r->order->records);
    else
        rc = record_default_dir(dir, sizeof dir, err);
    if (rc == 0)
        rc = record_open(dir, r->uids, what, r->order->again, &r->record, err);
    if (rc == 0 && record_known(r->record))
        log_note("going on with %s, which has %zu answers", record_path(r->record),
                 record_known(r->record));
    else if (rc == 0)
        log_note("%zu nodes; the record is %s", r->names.count, record_path(r->record));
    return rc;
}

/* Returns the exit status of the first node's failure. */
static int taint_all(struct run *r, const json_t *verdict)
{
    size_t i;
    json_t *node;
    int status = 0;
    json_array_foreach(json_object_get(verdict, "nodes"), i, node)
    {
        const char *name = json_string_value(json_object_get(node, "name"));
        const char *state = json_string_value(json_object_get(node, "state"));
        bool bad = strcmp(state, "bad") == 0;
        struct drarun_error err = {0};
        if (!bad && strcmp(state, "passed") != 0)
            continue;
        int rc = accept_taint(r->cluster, name, bad, &err);
        if (rc > 0)
            log_note("node %s: the taint " ACCEPT_TAINT ":NoSchedule is %s", name,
                     bad ? "set" : "taken off");
        if (rc >= 0)
            continue;
        log_error("node %s: the taint " ACCEPT_TAINT ":NoSchedule is not %s: %s", name,
                  bad ? "set" : "taken off", err.text);
        status = status ? status : error_exit_status(err.kind);
    }
    return status;
}

static int tell(struct run *r, struct drarun_error *err)
{
    struct buf out = BUF_INIT;
    CLEANUP(json_decrefp) json_t *history = record_history(r->record);
    CLEANUP(json_decrefp)
    json_t *verdict = accept_verdict(r->plan, &r->names, r->left_out, history);
    if (!verdict)
        return error_set(err, ENOMEM, "out of memory");
    int rc = record_end(r->record, verdict, err);
    if (rc < 0)
        return rc;
    const char *format = r->order->format ? r->order->format : "text";
    if (strcmp(format, "json") == 0)
        verb_add_json_take(json_incref(verdict), &out);
    else if (strcmp(format, "junit") == 0)
        accept_verdict_junit(verdict, &out);
    else if (strcmp(format, "html") == 0)
        accept_verdict_html(verdict, &out);
    else
        accept_verdict_text(verdict, &out);
    int tainted = r->order->taint ? taint_all(r, verdict) : 0;
    int written = verb_write("accept", &out);
    int status = accept_verdict_status(verdict);
    return written ? written : status ? status : tainted;
}

int accept_run(struct cluster *cluster, const struct accept_order *asked, cluster_run_fn run)
{
    struct accept_order whole = *asked, *order = &whole;
    order->run = run;
    CLEANUP(run_done)
    struct run r = {
        .cluster = cluster, .order = order, .uids = json_object(), .left_out = json_object()};
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    const struct spec_role *only;
    int status = spec_file_load(order->file, NULL, &spec);
    if (status == 0 && spec_only_role(&spec->job, "drarun accept", &only, &err) < 0) {
        log_error("%s", err.text);
        status = error_exit_status(err.kind);
    }
    if (status == 0)
        r.pod = spec_role_pod(only) ? json_deep_copy(spec_role_pod(only)) : json_object();
    drarun_spec_free(spec);
    if (status)
        return status;
    int rc = accept_job_read(order->file, &r.job, &err);
    if (rc == 0)
        rc = choose_nodes(&r, &err);
    if (rc == 0)
        rc = choose_priority(&r, &err);
    if (rc == 0)
        rc = open_record(&r, &err);
    if (rc == 0)
        rc = drive(cluster, order, r.job, r.priority_class, &r.names, r.plan, r.record, &err);
    if (rc == -ECANCELED)
        return 130;
    if (rc == 0)
        rc = tell(&r, &err);
    if (rc < 0) {
        log_error("accept: %s", err.text);
        return error_exit_status(err.kind);
    }
    return rc;
}
