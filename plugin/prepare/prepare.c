/* SPDX-License-Identifier: Apache-2.0 */
/* NodePrepareResources for one claim. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/doc/reader.h"
#include "lib/kube/object.h"
#include "plugin/attach/rdma.h"
#include "plugin/discover/config_edits.h"
#include "plugin/discover/live_use.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/claim_files.h"
#include "plugin/prepare/claim_metadata.h"
#include "plugin/prepare/device_order.h"
#include "plugin/prepare/device_record.h"
#include "plugin/prepare/gpu_files.h"
#include "plugin/prepare/nvidia_cdi.h"
#include "plugin/prepare/preparer_private.h"

#define PATIENCE_MS                                                                                \
    15000 /* for a device that another claim gives back; the kubelet gives a call 45 s */
#define UNANSWERED_MS 3000 /* by the API server, about a claim that is prepared */
#define LOOK_AGAIN_MS 250  /* meanwhile: another instance of the plugin may have taken it back */

static void fail(struct task *task, struct drarun_error *err)
{
    error_prefix(err, "prepare claim %s/%s", task->namespace_, task->name);
    task_failed(task, err);
}

static void answer(struct task *task)
{
    struct drarun_error err = {0};
    if (claim_files_write(task, &err) < 0)
        fail(task, &err);
    else
        task_prepared(task);
}

/* ---- one device ---- */

static int find_device(const struct task *task, const struct claimed_device *wanted,
                       const struct node_device **ret_device, struct drarun_error *err)
{
    const struct preparer_config *config = task->preparer->config;
    const struct node_device *device =
        node_devices_find(config->devices(config->arg),
                          config->devices_of ? config->devices_of : config->driver, wanted->device);
    const char *used = node_devices_spared(config->devices(config->arg), wanted->device);
    if (!device && used)
        return error_set(err, EBUSY, "the host uses it: %s" SPARED, used);
    if (!device)
        return error_set(err, ENODEV, "device %s is not on this node", wanted->device);
    if (device->lost)
        return error_set(err, ENODEV, "device %s is lost: %s", wanted->device,
                         device->fault_count > 0 ? device->faults[0].text : "it is gone");
    *ret_device = device;
    return 0;
}

/* The documents that a Prepare fills. */
struct drafts {
    json_t *document, *cdi, *metadata;
    struct nvidia_cdi *nvidia; /* read for the first GPU */
    struct gpu_host host;
    struct gpu_driver *driver; /* looked for where one is needed */
};

static void drafts_drop(struct drafts *d)
{
    json_decref(d->document);
    json_decref(d->cdi);
    json_decref(d->metadata);
    nvidia_cdi_free(d->nvidia);
    gpu_driver_free(d->driver);
}

/* NVIDIA's own specification where there is one that gives it; else files and nodes as the host has
 * them. The device's own id has edits in either case: it is what says later that it was given. */
static int add_gpu(const struct task *task, const struct node_device *device, struct drafts *d,
                   char *ret_id, size_t size, struct drarun_error *err)
{
    struct buf why = BUF_INIT;
    json_t *edits = NULL;
    int rc = 0;
    if (!d->nvidia && !(d->nvidia = nvidia_cdi_read(d->host.root)))
        return error_set(err, ENOMEM, "out of memory");
    if (nvidia_cdi_find(d->nvidia, device, ret_id, size, &why)) {
        edits = json_object();
    } else {
        *ret_id = '\0';
        rc = d->driver ? 0 : gpu_driver_find(&d->host, &d->driver, err);
        if (rc == 0)
            rc = gpu_files_edits(d->driver, device, &edits, err);
        if (rc < 0 && why.len > 0)
            error_prefix(err, "NVIDIA's CDI specification %s, and without it", why.data);
    }
    buf_done(&why);
    bool ok = rc < 0 || config_edits_add(task->preparer->config->edits, edits);
    if (rc == 0 && (!cdi_spec_add_take(d->cdi, task->uid, device->name, edits) || !ok))
        rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}

static int add_device(const struct task *task, const struct claimed_device *wanted,
                      struct drafts *d, struct drarun_error *err)
{
    const char *driver = task->preparer->config->driver;
    const struct node_device *device = NULL;
    char path[512], id[CDI_ID_MAX] = "";
    json_t *order = NULL;
    int rc = find_device(task, wanted, &device, err);
    if (rc == 0)
        rc = device_order(task, wanted, device, &order, err);
    bool gpu = rc == 0 && device->kind != NODE_DEVICE_NIC;
    if (gpu)
        rc = add_gpu(task, device, d, id, sizeof id, err);
    if (rc < 0)
        return error_prefix(err, "device %s", wanted->device);
    preparer_order_path(task->preparer, task->uid, wanted->device, path, sizeof path);
    bool ok = gpu || cdi_spec_add(d->cdi, task->uid, device, task->preparer->config->edits);
    if (order)
        ok = cdi_spec_add_order(d->cdi, task->preparer->config->hook, path) && ok;
    ok = claim_metadata_add(d->metadata, &task->claimed, wanted, driver, device, order) && ok;
    ok = checkpoint_add_take(d->document, wanted->request, wanted->pool, wanted->device,
                             wanted->admin, order, wanted->admin ? NULL : device_record(device)) &&
         ok;
    if (id[0])
        ok = checkpoint_set_device_cdi(d->document, id) && ok;
    return ok ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* Two interfaces of one name cannot be in one pod. */
static int check_names(const json_t *document, struct drarun_error *err)
{
    const json_t *a, *b;
    size_t i, k;
    json_array_foreach(json_object_get(document, "devices"), i, a)
    {
        json_array_foreach(json_object_get(document, "devices"), k, b)
        {
            const char *x = NULL, *y = NULL;
            json_unpack(unconst(a), "{s?:{s?:{s?:{s?:s}}}}", "order", "config", "interface", "name",
                        &x);
            json_unpack(unconst(b), "{s?:{s?:{s?:{s?:s}}}}", "order", "config", "interface", "name",
                        &y);
            if (i < k && x && y && strcmp(x, y) == 0)
                return error_set(err, EINVAL,
                                 "devices %s and %s would both be called %s in the pod: give their "
                                 "requests interface.name",
                                 json_string_value(json_object_get(a, "device")),
                                 json_string_value(json_object_get(b, "device")), x);
        }
    }
    return 0;
}

/* ---- the claim ---- */

/* What is durable from here on is taken back by Unprepare. */
static int commit(struct task *task, json_t *document, struct drarun_error *err)
{
    struct preparer *preparer = task->preparer;
    preparer_release(preparer, task->uid); /* what a damaged checkpoint may have meant */
    for (size_t i = 0; i < task->claimed.count; i++)
        if (!task->claimed.devices[i].admin &&
            !preparer_hold(preparer, task->claimed.devices[i].device, task))
            return error_set(err, ENOMEM, "out of memory");
    int rc = checkpoint_save(document, preparer->dir, task->uid, err);
    return rc < 0 ? rc : checkpoint_of(document, &task->checkpoint, err);
}

/* The metadata's files as devices of the CDI specification. */
static bool add_metadata(const struct task *task, struct drafts *d)
{
    const json_t *entry;
    size_t i;
    bool ok = true;
    json_array_foreach(d->metadata, i, entry)
    {
        char path[512];
        const char *request = json_string_value(json_object_get(entry, "request"));
        preparer_metadata_path(task->preparer, task->uid, request, path, sizeof path);
        ok = cdi_spec_add_metadata(d->cdi, task->uid, request, path,
                                   json_string_value(json_object_get(entry, "container"))) &&
             ok;
    }
    return ok;
}

static bool has_rdma(const json_t *document)
{
    const json_t *device;
    size_t i;
    json_array_foreach(json_object_get(document, "devices"), i, device)
    {
        if (json_object_get(json_object_get(device, "order"), "rdma"))
            return true;
    }
    return false;
}

/* Not in a user namespace: a runtime mounts the host's nodes there, by their own paths. */
static bool add_spares(const struct task *task, struct drafts *d)
{
    if (task->claimed.user_namespace || !has_rdma(d->document) || rdma_shared(NULL) != 0)
        return true;
    return cdi_spec_add_spares(d->cdi, task->uid);
}

/* Once for the claim, whichever of its devices a container has. */
static int add_agent(const struct task *task, struct drafts *d, struct drarun_error *err)
{
    char path[512];
    if (!task->agent.agent[0])
        return 0;
    snprintf(path, sizeof path, "%s/%s/drarun-worker", task->preparer->config->agent_dir,
             task->agent.agent);
    int rc = claim_files_check_agent(path, err);
    if (rc == 0 &&
        !cdi_spec_add_agent(d->cdi, task->uid, path, task->agent.shm, task->agent.shm_bytes))
        rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}

static int read_agent(struct task *task, const json_t *pod, struct drarun_error *err)
{
    struct reader reader;
    if (!task->claimed.agent)
        return 0;
    reader_init(&reader, NULL, false);
    struct reader_node node = reader_value(&reader, unconst(task->claimed.agent), NULL);
    agent_config_read(&node, &task->agent);
    int rc = reader_result(&reader, err);
    reader_done(&reader);
    if (rc < 0)
        return error_prefix(err, "configuration " AGENT_OFFER_KIND);
    if (task->agent.shm && task->agent.shm_bytes == 0)
        task->agent.shm_bytes = agent_config_pod_memory(pod);
    return 0;
}

/* Once for all NICs of the claim: it takes milliseconds. */
static int read_use(struct task *task, struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist interfaces = STRLIST_INIT;
    for (size_t i = 0; i < task->claimed.count; i++) {
        const struct node_device *device = NULL;
        if (find_device(task, &task->claimed.devices[i], &device, NULL) == 0 &&
            device->netdev.name[0] && !device->included && !task->claimed.devices[i].admin)
            strlist_add(&interfaces, device->netdev.name);
    }
    host_use_done(&task->used);
    return interfaces.failed ? error_set(err, ENOMEM, "out of memory")
                             : live_use_now(&interfaces, &task->used, err);
}

static int prepare_claim(struct task *task, struct drarun_error *err)
{
    const char *driver = task->preparer->config->driver;
    CLEANUP(drafts_drop)
    struct drafts d = {
        checkpoint_document(driver, task->namespace_, task->name, task->uid, task->claimed.pod_uid),
        cdi_spec_new(driver),
        json_array(),
        NULL,
        {task->preparer->config->host_root, task->preparer->config->driver_root},
        NULL};
    int rc =
        d.cdi && d.document && d.metadata && checkpoint_set_boot(d.document, task->preparer->boot)
            ? 0
            : error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        rc = read_use(task, err);
    for (size_t i = 0; rc == 0 && i < task->claimed.count; i++)
        rc = add_device(task, &task->claimed.devices[i], &d, err);
    if (rc == 0)
        rc = check_names(d.document, err);
    if (rc == 0)
        rc = add_agent(task, &d, err);
    if (rc == 0 && (!add_metadata(task, &d) || !add_spares(task, &d) ||
                    !checkpoint_set_cdi(d.document, d.cdi) ||
                    !checkpoint_set_metadata(d.document, d.metadata)))
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        rc = commit(task, d.document, err);
    if (rc < 0) /* a damaged checkpoint is still there, and so may its container be */
        preparer_reread(task->preparer, task->uid, NULL);
    return rc;
}

static const struct holding *find_holder(const struct task *task)
{
    for (size_t i = 0; i < task->claimed.count; i++) {
        const struct claimed_device *device = &task->claimed.devices[i];
        const struct holding *h =
            device->admin ? NULL : preparer_holder(task->preparer, device->device, task->uid);
        if (h)
            return h;
    }
    return NULL;
}

static void go_on(struct task *task);

/* Woken by a claim that has given back here, or by the clock. */
static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    go_on(arg);
}

static int wait_and_look_again(struct task *task)
{
    const struct timeval after = timeval_from_ms(LOOK_AGAIN_MS);
    if (task->patience.clock)
        return 0;
    task->patience.late_ms = clock_ms() + PATIENCE_MS;
    task->patience.clock = event_new(task->preparer->base, -1, EV_PERSIST, on_patience, task);
    return task->patience.clock && event_add(task->patience.clock, &after) == 0 ? 0 : -ENOMEM;
}

/* 0: its devices are free and no other instance can take them until *ret_lock is closed. -EBUSY:
 * they are not. A pod that was deleted by force gives its devices back after the next one has been
 * given them. */
static int find_free(struct task *task, int *ret_lock, struct drarun_error *err)
{
    cleanup_close int lock = -1;
    int rc = preparer_lock(task->preparer, &lock, err);
    if (rc == -EWOULDBLOCK)
        return error_set(err, EBUSY, "another instance of this plugin has been at it for %d s",
                         PATIENCE_MS / 1000);
    rc = rc < 0 ? rc : preparer_look(task->preparer, err);
    if (rc < 0)
        return rc;
    const struct holding *holder = find_holder(task);
    if (holder) {
        char claim[HOLDING_TEXT_MAX];
        reclaim_ask(task, holder);
        holding_describe(holder, claim, sizeof claim);
        return error_set(
            err, EBUSY, "device %s is still with claim %s, which has not given it back in %d s%s",
            holder->device, claim, PATIENCE_MS / 1000,
            task->reclaim.kept ? ": its pod was deleted by force, and its containers may still run"
                               : "");
    }
    *ret_lock = take_fd(&lock);
    return 0;
}

static void go_on(struct task *task)
{
    struct drarun_error err = {0};
    cleanup_close int lock = -1;
    int rc = 0;
    /* who has given the call up may have given the claim back since, and would not do so again */
    if (dra_reply_unwanted(task->reply))
        rc = error_set(&err, ECANCELED, "the kubelet does not wait for it any more");
    if (rc == 0)
        rc = find_free(task, &lock, &err);
    if (rc == -EBUSY && (!task->patience.clock || clock_ms() < task->patience.late_ms)) {
        if (wait_and_look_again(task) == 0)
            return;
        rc = error_set(&err, ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = prepare_claim(task, &err);
    if (rc < 0) {
        fail(task, &err);
        return;
    }
    close_fd(&lock);
    log_note("%s: claim %s/%s: prepared for pod %s", task->preparer->config->driver,
             task->namespace_, task->name, task->claimed.pod);
    status_later_put(task->preparer->statuses, task->uid);
    answer(task);
}

/* 0: the pod may have what it claims. */
static int read_pod(struct task *task, const json_t *pod, struct drarun_error *err)
{
    int rc = claimed_check_pod(&task->claimed, pod, task->preparer->config->node, err);
    return rc < 0 ? rc : read_agent(task, pod, err);
}

static void on_pod(const struct kube_answer *reply, const struct drarun_error *failure, void *arg)
{
    struct task *task = arg;
    struct drarun_error err = {0};
    task->call = NULL;
    if (failure)
        err = *failure;
    else
        read_pod(task, reply->body, &err);
    if (err.code)
        fail(task, &err);
    else
        go_on(task);
}

/* Of the pods that share a claim one may have ended, or be gone, while the claim is still reserved
 * for it: one that lives here is taken, else the first. NULL: none is known here. */
static const json_t *find_known(struct task *task)
{
    for (size_t i = 0; claimed_take_pod(&task->claimed, task->claim, i); i++) {
        const json_t *pod = node_pods_find(task->preparer->config->pods, task->namespace_,
                                           task->claimed.pod, task->claimed.pod_uid);
        if (pod)
            return pod;
    }
    claimed_take_pod(&task->claimed, task->claim, 0);
    return NULL;
}

/* What says no is asked for again: it may be told of late. */
static void find_pod(struct task *task)
{
    struct drarun_error err = {0};
    const json_t *known = find_known(task);
    const struct kube_target target = {
        .resource = &kube_pods, .namespace_ = task->namespace_, .name = task->claimed.pod};
    if (known && read_pod(task, known, NULL) == 0)
        go_on(task);
    else if (kube_get(task->preparer->client, &target, on_pod, task, &task->call, &err) < 0)
        fail(task, &err);
}

/* 0: the claim may have what it says. */
static int read_claim(struct task *task, json_t *claim, struct drarun_error *err)
{
    const struct preparer_config *config = task->preparer->config;
    claimed_done(&task->claimed);
    json_decref(task->claim);
    task->claim = json_incref(claim);
    return claimed_read(claim, task->uid, config->driver, config->node, &task->claimed, err);
}

/* Whether the checkpoint has just the devices that the claim has now. */
static bool is_as_prepared(const struct task *task)
{
    const struct checkpoint *c = task->checkpoint;
    if (c->count != task->claimed.count)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        const struct claimed_device *now = &task->claimed.devices[i];
        size_t k = 0;
        while (k < c->count && (strcmp(c->devices[k].request, now->request) != 0 ||
                                strcmp(c->devices[k].device, now->device) != 0 ||
                                c->devices[k].admin != now->admin))
            k++;
        if (k == c->count)
            return false;
    }
    return true;
}

/* The claim was allocated again since it was prepared. The kubelet has not asked for an Unprepare,
 * so the plugin does one by itself; then this task begins again. */
static void start_over(struct task *task)
{
    const char *driver = task->preparer->config->driver;
    struct drarun_error err = {0};
    if (task->started_over) {
        error_set(&err, EBUSY,
                  "it has other devices now, and those that it had could not be reclaimed");
        fail(task, &err);
        return;
    }
    log_note("%s: claim %s/%s: it has other devices now: those that it had are reclaimed first",
             driver, task->namespace_, task->name);
    task->started_over = true;
    task_unprepare_first(task);
}

static void on_read(struct task *task)
{
    if (!task->checkpoint)
        find_pod(task);
    else if (is_as_prepared(task))
        answer(task); /* again, as after a restart of the kubelet */
    else
        start_over(task);
}

static void answer_unread(struct task *task, const char *why)
{
    log_note("%s: claim %s/%s: answered as it was prepared: %s", task->preparer->config->driver,
             task->namespace_, task->name, why);
    answer(task);
}

static void on_unanswered(evutil_socket_t fd, short what, void *arg)
{
    struct task *task = arg;
    char why[80];
    (void)fd;
    (void)what;
    kube_call_cancel(TAKE_PTR(task->call));
    snprintf(why, sizeof why, "the API server has not answered for %d s", UNANSWERED_MS / 1000);
    answer_unread(task, why);
}

static int wait_for_claim(struct task *task)
{
    const struct timeval after = timeval_from_ms(UNANSWERED_MS);
    if (!task->unanswered)
        task->unanswered = evtimer_new(task->preparer->base, on_unanswered, task);
    return task->unanswered && event_add(task->unanswered, &after) == 0 ? 0 : -ENOMEM;
}

static void on_claim(const struct kube_answer *reply, const struct drarun_error *failure, void *arg)
{
    struct task *task = arg;
    const struct preparer_config *config = task->preparer->config;
    struct drarun_error err = {0};
    task->call = NULL;
    if (task->unanswered)
        event_del(task->unanswered);
    if (failure && task->checkpoint && reply->status == 0) {
        answer_unread(task, failure->text);
        return;
    }
    if (failure)
        err = *failure;
    else
        read_claim(task, unconst(reply->body), &err);
    if (err.code) {
        fail(task, &err);
        return;
    }
    if (config->read)
        read_claim_put(config->read, task->claim, config->driver, clock_ms());
    on_read(task);
}

static void ask(struct task *task)
{
    const struct preparer_config *config = task->preparer->config;
    task->preparer->claims.version = config->claims_version(config->arg);
    const struct kube_target target = {
        .resource = &task->preparer->claims, .namespace_ = task->namespace_, .name = task->name};
    struct drarun_error err = {0};
    CLEANUP(json_decrefp)
    json_t *known = config->read ? read_claim_take(config->read, task->namespace_, task->name,
                                                   task->uid, config->driver, clock_ms())
                                 : NULL;
    if (known && read_claim(task, known, NULL) == 0) {
        on_read(task);
        return;
    }
    int rc = task->checkpoint ? wait_for_claim(task) : 0;
    rc = rc < 0 ? error_set(&err, ENOMEM, "out of memory")
                : kube_get(task->preparer->client, &target, on_claim, task, &task->call, &err);
    if (rc < 0)
        fail(task, &err);
}

void prepare_run(struct task *task)
{
    struct drarun_error err = {0};
    checkpoint_free(TAKE_PTR(task->checkpoint)); /* of before it started over */
    int rc = checkpoint_load(task->preparer->dir, task->uid, &task->checkpoint, &err);
    if (rc == -EPROTO) {
        fail(task, &err);
        return;
    }
    if (rc < 0 && rc != -ENOENT)
        log_error("%s: it is written again: %s", task->preparer->config->driver, err.text);
    /* of another boot: how the devices are on the host is another thing now */
    if (rc == 0 && !checkpoint_of_boot(task->checkpoint, task->preparer->boot))
        checkpoint_free(TAKE_PTR(task->checkpoint));
    ask(task);
}
