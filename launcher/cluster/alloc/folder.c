/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/alloc/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jobs/manifests/pod_merge.h"
#include "launcher/cluster/client/facts.h"
#include "launcher/cluster/alloc/tunnel.h"
#include "launcher/alloc/folder.h"
#include "launcher/alloc/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"
#include "lib/wire/dial.h"

#define REACH_MS 2000 /* until it is known whether pods can be dialled from here */
#define ADDRESS_SIZE 64

struct allocate_folder {
    struct allocate_facts in;
    char path[PATH_MAX - 32];
    int owner;               /* folder_make's */
    struct facts *facts;     /* NULL: the job has no devices */
    struct tunnel **tunnels; /* by worker; NULL: they are dialled as they are */
    char (*pods)[256];
    json_t *doc; /* of KEPT_FILE */
};

const char *allocate_folder_path(const struct allocate_folder *folder)
{
    return folder->path;
}

bool allocate_folder_is_far(const struct allocate_folder *folder)
{
    return folder->tunnels != NULL;
}

void allocate_folder_free(struct allocate_folder *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; f->tunnels && i < f->in.spec->workers; i++)
        tunnel_free(f->tunnels[i]);
    if (f->path[0])
        tree_remove(AT_FDCWD, f->path);
    close_fd(&f->owner);
    facts_free(f->facts);
    json_decref(f->doc);
    free(f->tunnels);
    free(f->pods);
    free(f);
}
DEFINE_CLEANUP(struct allocate_folder, allocate_folder_free)

/* ---- how they are reached ---- */

static void address_of(const struct allocate_folder *f, uint32_t worker, char text[ADDRESS_SIZE])
{
    const struct pod_state *workers = board_workers(f->in.board, f->in.attempt);
    const char *ip = workers[worker].ip ? workers[worker].ip : "";
    snprintf(text, ADDRESS_SIZE, strchr(ip, ':') ? "[%.45s]:%u" : "%.45s:%u", ip,
             pod_merge_agent_port(f->in.spec, worker));
}

/* True: it has answered, within the time that all of them have together. */
static bool answers(const char *address, int64_t end)
{
    cleanup_close int fd = -1;
    int code = 0;
    socklen_t size = sizeof code;
    if (dial_start(address, &fd, NULL) < 0)
        return false;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int64_t left = end - clock_ms();
    return poll(&wait, 1, left > 0 ? (int)left : 0) == 1 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0;
}

static bool all_answer(const struct allocate_folder *f)
{
    char address[ADDRESS_SIZE];
    int64_t end = clock_ms() + REACH_MS;
    for (uint32_t i = 0; i < f->in.spec->workers; i++) {
        address_of(f, i, address);
        if (!answers(address, end))
            return false;
    }
    return true;
}

static bool is_far(const struct allocate_folder *f)
{
    const char *through = f->in.through ? f->in.through : "auto";
    return strcmp(through, "api") == 0 || (strcmp(through, "direct") != 0 && !all_answer(f));
}

static int dig(struct allocate_folder *f, struct drarun_error *err)
{
    const struct pod_state *workers = board_workers(f->in.board, f->in.attempt);
    json_t *list = json_object_get(f->doc, "workers");
    f->tunnels = calloc(f->in.spec->workers, sizeof *f->tunnels);
    f->pods = calloc(f->in.spec->workers, sizeof *f->pods);
    if (!f->tunnels || !f->pods)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < f->in.spec->workers; i++) {
        uint16_t port = 0;
        snprintf(f->pods[i], sizeof f->pods[i], "%s", workers[i].name);
        int rc = tunnel_new(f->in.cluster, f->in.namespace, f->pods[i],
                            pod_merge_agent_port(f->in.spec, i), &f->tunnels[i], &port, err);
        if (rc < 0)
            return error_prefix(err, "worker %u", i);
        json_object_set_new(json_array_get(list, i), "dial",
                            json_sprintf("127.0.0.1:%u", (unsigned)port));
    }
    return 0;
}

/* ---- what was allocated ---- */

static bool is_of_workers(const struct allocate_folder *f, const char *node)
{
    const struct pod_state *workers = board_workers(f->in.board, f->in.attempt);
    for (uint32_t i = 0; i < f->in.spec->workers; i++)
        if (workers[i].node && strcmp(workers[i].node, node) == 0)
            return true;
    return false;
}

/* Those of the workers' nodes, and those of none. */
static json_t *slices_of(const struct allocate_folder *f, const struct slices *slices)
{
    json_t *list = json_array();
    for (size_t i = 0; i < slices->part_count; i++) {
        const struct slice_part *part = &slices->parts[i];
        if (part->node && !is_of_workers(f, part->node))
            continue;
        json_array_append_new(
            list, json_pack("{s:s+, s:s, s:{s:s}, s:O}", "apiVersion", "resource.k8s.io/",
                            cluster_claims_version(f->in.cluster), "kind", "ResourceSlice",
                            "metadata", "name", part->name, "spec", part->spec));
    }
    return list;
}

static json_t *labels_of(const struct allocate_folder *f, const json_t *all)
{
    json_t *own = json_object(), *labels;
    const char *node;
    value_foreach(all, node, labels)
    {
        if (is_of_workers(f, node))
            json_object_set(own, node, labels);
    }
    return own;
}

static int add_facts(struct allocate_folder *f, struct drarun_error *err)
{
    bool wanted = claims_wanted(f->in.spec) || claims_named(f->in.spec);
    if (!wanted || !f->in.cluster->api)
        return 0;
    int rc = facts_new(f->in.cluster, &f->facts, err);
    if (rc < 0)
        return rc;
    facts_wait(f->facts);
    const struct slices *slices = facts_slices(f->facts);
    if (slices)
        json_object_set_new(f->doc, "slices", slices_of(f, slices));
    else
        log_note("the cluster's ResourceSlices are not known (%s): each worker's devices are read "
                 "from its pod instead",
                 facts_missing(f->facts));
    json_object_set_new(f->doc, "slicesUnknown", json_boolean(!slices));
    if (facts_node_labels(f->facts))
        json_object_set_new(f->doc, "nodeLabels", labels_of(f, facts_node_labels(f->facts)));
    return 0;
}

/* Claims that the pod names and that have no label of ours: channels that NVIDIA's controller has
 * made for it, the user's. */
static void add_named_claims(const json_t *all, const char *uid, json_t *claims)
{
    size_t i, k;
    json_t *claim, *consumer;
    json_array_foreach(all, i, claim)
    {
        const json_t *status = json_object_get(claim, "status");
        const json_t *labels = json_object_get(json_object_get(claim, "metadata"), "labels");
        if (json_object_get(labels, "drarun.dev/job"))
            continue;
        json_array_foreach(json_object_get(status, "reservedFor"), k, consumer)
        {
            const char *who = json_string_value(json_object_get(consumer, "uid"));
            if (who && uid && strcmp(who, uid) == 0)
                json_array_append(claims, claim);
        }
    }
}

static int read_named_claims(const struct allocate_folder *f, json_t **ret_claims,
                             struct drarun_error *err)
{
    struct kube_resource resource = kube_resource_claims;
    const struct kube_target target = {.resource = &resource, .namespace_ = f->in.namespace};
    CLEANUP(json_decrefp) json_t *body = NULL;
    if (!claims_named(f->in.spec) || !f->in.cluster->api)
        return 0;
    resource.version = cluster_claims_version(f->in.cluster);
    int rc = cluster_list(f->in.cluster, &target, NULL, &body, err);
    if (rc == 0)
        *ret_claims = json_incref(json_object_get(body, "items"));
    return rc;
}

static int add_workers(struct allocate_folder *f, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *claims = board_claims(f->in.board, f->in.attempt);
    CLEANUP(json_decrefp) json_t *named = NULL;
    json_t *list = json_array();
    char address[ADDRESS_SIZE];
    json_object_set_new(f->doc, "workers", list);
    int rc = read_named_claims(f, &named, err);
    const struct pod_state *workers = board_workers(f->in.board, f->in.attempt);
    for (uint32_t i = 0; rc == 0 && i < f->in.spec->workers; i++) {
        json_t *own = json_array_get(claims, i);
        if (!workers[i].ip)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOENT,
                              "worker %u: pod %s is lost already", i, workers[i].name);
        if (own)
            add_named_claims(named, workers[i].uid, own);
        address_of(f, i, address);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:O?}", "pod", workers[i].name,
                                              "node", workers[i].node ? workers[i].node : "?",
                                              "address", address, "dial", address, "claims", own));
    }
    return rc;
}

static int make_doc(struct allocate_folder *f, struct drarun_error *err)
{
    f->doc = json_pack("{s:s, s:s, s:s, s:i, s:O, s:O*}", "job", f->in.spec->name, "namespace",
                       f->in.namespace, "uid", f->in.uid, "attempt", (int)f->in.attempt, "document",
                       f->in.spec->document, "rankOrder", json_object_get(f->in.doc, "rankOrder"));
    if (!f->doc)
        return error_set(err, ENOMEM, "out of memory");
    int rc = add_workers(f, err);
    return rc < 0 ? rc : add_facts(f, err);
}

/* ---- the files ---- */

static int write_doc(const struct allocate_folder *f, struct drarun_error *err)
{
    char path[PATH_MAX];
    cleanup_free char *text = json_dumps(f->doc, JSON_COMPACT);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    snprintf(path, sizeof path, "%s/" KEPT_FILE, f->path);
    return file_replace(path, text, strlen(text), 0600, FILE_AFTER_ANYTHING, err);
}

static int write_all(struct allocate_folder *f, struct drarun_error *err)
{
    char path[PATH_MAX];
    int rc = folder_make(f->path, sizeof f->path, &f->owner, err);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof path, "%s/" KEPT_KEY_FILE, f->path);
    rc = file_replace(path, f->in.key, strlen(f->in.key), 0600, FILE_AFTER_ANYTHING, err);
    return rc < 0 ? rc : write_doc(f, err);
}

int allocate_folder_new(const struct allocate_facts *facts, struct allocate_folder **ret_folder,
                        struct drarun_error *err)
{
    CLEANUP(allocate_folder_freep) struct allocate_folder *f = calloc(1, sizeof *f);
    if (!f)
        return error_set(err, ENOMEM, "out of memory");
    f->in = *facts;
    f->owner = -1;
    int rc = make_doc(f, err);
    if (rc == 0 && is_far(f))
        rc = dig(f, err);
    if (rc == 0)
        rc = write_all(f, err);
    if (rc == 0)
        *ret_folder = TAKE_PTR(f);
    return rc;
}

/* ---- who is lost ---- */

struct look {
    json_t *workers; /* of the document */
    bool changed;    /* the document */
};

static bool look_at_worker(uint32_t number, const struct pod_state *state, void *arg)
{
    struct look *look = arg;
    json_t *worker = json_array_get(look->workers, number);
    const char *why = pod_state_lost(state);
    const char *told = json_string_value(json_object_get(worker, "lost"));
    if (!why == !told) /* a node that answers again has its pod still */
        return true;
    look->changed = true;
    if (!why) {
        json_object_del(worker, "lost");
        return true;
    }
    json_object_set_new(worker, "lost", json_string(why));
    log_error("alloc: worker %u (pod %s) is lost: %s", number,
              json_string_value(json_object_get(worker, "pod")), why);
    return true;
}

int allocate_folder_look(struct allocate_folder *f, struct drarun_error *err)
{
    struct look look = {.workers = json_object_get(f->doc, "workers")};
    board_each_changed(f->in.board, f->in.attempt, look_at_worker, &look);
    return look.changed ? write_doc(f, err) : 0;
}
