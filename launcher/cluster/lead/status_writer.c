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

struct status_writer {
    struct cluster *cluster;
    char name[K8S_LABEL_MAX + 8];
    char *namespace;
    struct kube_call *call;     /* NULL: nothing is under way */
    json_t *next;               /* to be written after that, or NULL */
    struct drarun_error failed; /* the last write's; code 0: it was fine */
};

static void write_next(struct status_writer *writer);

static void on_written(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct status_writer *writer = arg;
    (void)answer;
    writer->call = NULL;
    if (err && !writer->failed.code)
        log_error("the status cannot be written: %s", err->text);
    writer->failed = err ? *err : (struct drarun_error){0};
    write_next(writer);
}

static void write_next(struct status_writer *writer)
{
    static const struct kube_write again = {.repeat = true};
    struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = writer->namespace, .name = writer->name};
    if (writer->call || !writer->next)
        return;
    CLEANUP(json_decrefp) json_t *doc = TAKE_PTR(writer->next);
    cleanup_free char *text = status_doc_text(doc);
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
    if (!writer || !(writer->namespace = strdup(namespace)))
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
    json_decref(writer->next);
    free(writer->namespace);
    free(writer);
}

void status_writer_put(struct status_writer *writer, json_t *doc_take)
{
    json_decref(writer->next);
    writer->next = doc_take;
    write_next(writer);
}

int status_writer_flush(struct status_writer *writer, int64_t ms, struct drarun_error *err)
{
    int64_t end = clock_ms() + ms;
    while (writer->call || writer->next) {
        int64_t left = end - clock_ms();
        if (left <= 0)
            return error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                              "the status was not written within %" PRId64 " s", ms / 1000);
        cluster_turn(writer->cluster, left);
    }
    if (!writer->failed.code)
        return 0;
    return error_kind(err, writer->failed.kind, writer->failed.code, "%s", writer->failed.text);
}
