/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/status_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/status/status_doc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define AGAIN_MS 1000 /* after a call that was tried for a minute */

struct status_writer {
    struct cluster *cluster;
    char name[K8S_LABEL_MAX + 8];
    char *namespace;
    struct kube_call *call;     /* NULL: nothing is under way; else */
    json_t *now;                /* this is written */
    json_t *next;               /* to be written after that, or NULL */
    struct event *again;        /* the pause before it is, after a call that may do later */
    struct drarun_error failed; /* the last write's; code 0: it was fine */
    bool left;                  /* status_writer_leave */
};

static void write_next(struct status_writer *writer);

static void on_written(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    static const struct timeval pause = {.tv_sec = AGAIN_MS / 1000};
    struct status_writer *writer = arg;
    bool later = err && kube_may_answer_later(err);
    CLEANUP(json_decrefp) json_t *doc = TAKE_PTR(writer->now);
    (void)answer;
    writer->call = NULL;
    if (err && !writer->failed.code)
        log_error("the status cannot be written%s: %s", later ? ", retrying" : "", err->text);
    writer->failed = err ? *err : (struct drarun_error){0};
    if (later && !writer->next)
        writer->next = TAKE_PTR(doc);
    if (!later || event_add(writer->again, &pause) < 0)
        write_next(writer);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    write_next(arg);
}

static void write_next(struct status_writer *writer)
{
    static const struct kube_write again = {.repeat = true};
    struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = writer->namespace, .name = writer->name};
    if (writer->call || !writer->next || evtimer_pending(writer->again, NULL))
        return;
    json_decref(writer->now);
    writer->now = TAKE_PTR(writer->next);
    cleanup_free char *text = status_doc_text(writer->now);
    CLEANUP(json_decrefp)
    json_t *patch = text ? json_pack("{s:{s:s}}", "data", STATUS_DOC_KEY, text) : NULL;
    if (!patch) {
        error_set(&writer->failed, ENOMEM, "out of memory");
        return;
    }
    kube_merge_patch(writer->cluster->client, &target, patch, &again, on_written, writer,
                     &writer->call, &writer->failed);
}

int status_writer_new(struct cluster *cluster, const char *job, const char *namespace,
                      struct status_writer **ret_writer, struct drarun_error *err)
{
    CLEANUP(status_writer_freep) struct status_writer *writer = calloc(1, sizeof *writer);
    if (!writer || !(writer->namespace = strdup(namespace)) ||
        !(writer->again = evtimer_new(cluster->base, on_again, writer)))
        return error_set(err, ENOMEM, "out of memory");
    writer->cluster = cluster;
    snprintf(writer->name, sizeof writer->name, "%s-status", job);
    *ret_writer = TAKE_PTR(writer);
    return 0;
}

void status_writer_free(struct status_writer *writer)
{
    if (!writer)
        return;
    kube_call_cancel(writer->call);
    if (writer->again)
        event_free(writer->again);
    json_decref(writer->now);
    json_decref(writer->next);
    free(writer->namespace);
    free(writer);
}

void status_writer_put(struct status_writer *writer, json_t *doc_take)
{
    json_decref(writer->next);
    writer->next = writer->left ? NULL : doc_take;
    if (writer->left)
        json_decref(doc_take);
    write_next(writer);
}

void status_writer_leave(struct status_writer *writer)
{
    writer->left = true;
    kube_call_cancel(TAKE_PTR(writer->call));
    evtimer_del(writer->again);
    json_decref(TAKE_PTR(writer->next));
}

bool status_writer_is_behind(const struct status_writer *writer)
{
    return writer->call || writer->next;
}

static int64_t left_until(void *arg)
{
    const int64_t *end = arg;
    return *end - clock_ms();
}

int status_writer_flush(struct status_writer *writer, int64_t ms, struct drarun_error *err)
{
    int64_t end = clock_ms() + ms;
    return status_writer_flush_for(writer, left_until, &end, err);
}

int status_writer_flush_for(struct status_writer *writer, status_writer_left_fn left, void *arg,
                            struct drarun_error *err)
{
    int64_t begin = clock_ms(), ms;
    while (status_writer_is_behind(writer) && (ms = left(arg)) > 0)
        cluster_turn(writer->cluster, ms);
    if (writer->failed.code)
        return error_kind(err, writer->failed.kind, writer->failed.code, "%s", writer->failed.text);
    return status_writer_is_behind(writer)
               ? error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                            "the status was not written within %" PRId64 " s",
                            (clock_ms() - begin) / 1000)
               : 0;
}
