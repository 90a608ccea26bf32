/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/heartbeat_file.h"
#include "lib/base/log.h"
#include "lib/kube/client.h"
#include "plugin/agent_install.h"
#include "plugin/discover/inventory.h"
#include "plugin/discover/nvml.h"
#include "plugin/discover/xids.h"
#include "plugin/prepare/boot.h"
#include "plugin/prepare/node_pods.h"
#include "plugin/prepare/preparer.h"
#include "plugin/plugin_metrics.h"
#include "plugin/slices/publishing.h"
#include "plugin/takeover.h"

#define DRIVERS 2u
#define DRAIN_MS 10000 /* for calls under way when it is to end */
#define DRAIN_LOOK_MS 20
#define BEAT_S 2

struct serve;

struct driver {
    struct serve *serve;
    struct preparer_config config;
    struct preparer *preparer;
    struct dra_driver *dra;
    bool registered; /* the kubelet has said so */
};

struct serve {
    const struct serve_options *options;
    struct event_base *base;
    struct event *signals[2];
    struct event *draining;       /* from the signal on */
    int64_t end_ms;               /* when it ends in any case; 0: not asked to yet */
    struct event *beat;           /* from the registration on; NULL: not yet */
    int heartbeat;                /* its descriptor, or -1 */
    char agent[AGENT_OFFER_SIZE]; /* that jobs may have from here; "": none */
    struct kube_config *kube_config;
    struct kube_client *client;
    struct discover_config config;
    struct nvml *nvml;
    int root, host_root;
    char xids_dir[256], repaired_dir[256], boot[BOOT_ID_MAX];
    struct inventory_options inventory_options;
    struct inventory *inventory;
    struct publishing *publishing;
    struct plugin_metrics *metrics; /* NULL: they are not served */
    struct node_pods *pods;
    struct read_claim read;
    struct driver drivers[DRIVERS];
    size_t driver_count;
};

static bool is_busy(const struct serve *s)
{
    for (size_t i = 0; i < s->driver_count; i++)
        if (preparer_is_busy(s->drivers[i].preparer))
            return true;
    return false;
}

static void on_draining(evutil_socket_t fd, short what, void *arg)
{
    const struct serve *s = arg;
    (void)fd, (void)what;
    if (!is_busy(s) || clock_ms() >= s->end_ms)
        event_base_loopbreak(s->base);
}

/* What the kubelet has asked for is done first: it would ask the next instance for it much later.
 * The second signal ends it at once. */
static void on_signal(evutil_socket_t signo, short what, void *arg)
{
    struct serve *s = arg;
    const struct timeval look = timeval_from_ms(DRAIN_LOOK_MS);
    (void)what;
    log_note("ending on signal %d; devices stay with their pods", (int)signo);
    s->end_ms = clock_ms() + (s->draining ? 0 : DRAIN_MS);
    if (!s->draining && is_busy(s))
        s->draining = event_new(s->base, -1, EV_PERSIST, on_draining, s);
    if (!s->draining || event_add(s->draining, &look) < 0 || clock_ms() >= s->end_ms)
        event_base_loopbreak(s->base);
}

/* ---- the heartbeat ---- */

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    const struct serve *s = arg;
    (void)fd, (void)what;
    heartbeat_file_beat(s->heartbeat); /* of an error the probe tells */
}

/* Once the kubelet knows every driver: from then on its calls are answered here, and the instance
 * that this one replaces may end. */
static int begin_heartbeat(struct serve *s, struct drarun_error *err)
{
    static const struct timeval pause = {.tv_sec = BEAT_S};
    if (!s->options->heartbeat || s->beat)
        return 0;
    for (size_t i = 0; i < s->driver_count; i++)
        if (!s->drivers[i].registered)
            return 0;
    s->heartbeat = heartbeat_file_open(s->options->heartbeat, err);
    if (s->heartbeat < 0)
        return s->heartbeat;
    s->beat = event_new(s->base, -1, EV_PERSIST, on_beat, s);
    if (s->beat && event_add(s->beat, &pause) == 0)
        return 0;
    close_fd(&s->heartbeat);
    return error_set(err, ENOMEM, "out of memory");
}

/* ---- the kubelet's calls ---- */

static void on_prepare(const struct dra_claim *claim, struct dra_reply *reply, void *arg)
{
    struct driver *driver = arg;
    preparer_prepare(driver->preparer, claim, reply);
}

static void on_unprepare(const struct dra_claim *claim, struct dra_reply *reply, void *arg)
{
    struct driver *driver = arg;
    preparer_unprepare(driver->preparer, claim, reply);
}

static void on_registered(bool ok, const char *error, void *arg)
{
    struct driver *driver = arg;
    struct drarun_error err = {0};
    (void)error; /* logged where it came in */
    driver->registered = ok;
    if (begin_heartbeat(driver->serve, &err) < 0)
        log_error("%s", err.text);
}

static void on_health(dra_health_fn put, void *put_arg, void *arg)
{
    struct driver *driver = arg;
    const struct node_devices *devices = inventory_devices(driver->serve->inventory);
    for (size_t i = 0; i < devices->count; i++) {
        const struct node_device *device = &devices->list[i];
        if (strcmp(node_device_driver(device), driver->config.devices_of) == 0)
            put(&(struct dra_health){driver->config.node, device->name,
                                     device->fault_count > 0 ? device->faults[0].text : NULL},
                put_arg);
    }
}

static const struct dra_handler handler = {on_prepare, on_unprepare, on_registered, on_health};

/* ---- devices ---- */

static void look(void *arg)
{
    const struct serve *s = arg;
    for (size_t i = 0; i < s->driver_count; i++)
        if (s->drivers[i].preparer)
            preparer_refresh(s->drivers[i].preparer);
    publishing_held_changed(s->publishing);
}

static void on_held_changed(void *arg)
{
    const struct serve *s = arg;
    publishing_held_changed(s->publishing);
}

static bool is_held(const char *devices_of, const char *name, void *arg)
{
    const struct serve *s = arg;
    for (size_t i = 0; i < s->driver_count; i++)
        if (strcmp(s->drivers[i].config.devices_of, devices_of) == 0 && s->drivers[i].preparer)
            return preparer_holds(s->drivers[i].preparer, name);
    return false;
}

static bool is_stuck(const char *devices_of, const char *name, void *arg)
{
    const struct serve *s = arg;
    for (size_t i = 0; i < s->driver_count; i++)
        if (strcmp(s->drivers[i].config.devices_of, devices_of) == 0 && s->drivers[i].preparer)
            return preparer_is_stuck(s->drivers[i].preparer, name);
    return false;
}

static void on_changed(const struct node_devices *devices, void *arg)
{
    struct serve *s = arg;
    struct drarun_error err = {0};
    if (publishing_want(s->publishing, devices, &err) < 0)
        log_error("publish devices: %s", err.text);
    for (size_t i = 0; i < s->driver_count; i++)
        if (s->drivers[i].dra)
            dra_driver_health_changed(s->drivers[i].dra);
}

static const struct node_devices *devices_now(void *arg)
{
    const struct serve *s = arg;
    return inventory_devices(s->inventory);
}

/* Until the server has said what it serves, what most do: a claim that is not found is asked for
 * again by the kubelet. */
static const char *version_now(void *arg)
{
    const struct serve *s = arg;
    const char *version = publishing_version(s->publishing);
    return version[0] ? version : "v1";
}

/* ---- putting together ---- */

static int open_loop(struct serve *s, struct drarun_error *err)
{
    static const int signals[] = {SIGTERM, SIGINT};
    signal(SIGPIPE, SIG_IGN);
    s->base = event_base_new();
    if (!s->base)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        s->signals[i] = evsignal_new(s->base, signals[i], on_signal, s);
        if (!s->signals[i] || event_add(s->signals[i], NULL) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

static int open_cluster(struct serve *s, struct drarun_error *err)
{
    const struct kube_config_choice choice = {.path = s->options->kubeconfig};
    int rc = s->options->kubeconfig ? kube_config_load(&choice, &s->kube_config, err)
                                    : kube_config_in_cluster(&choice, &s->kube_config, err);
    kube_end_without_memory();
    return rc < 0 ? rc : kube_client_new(s->base, s->kube_config, &s->client, err);
}

/* Before anything is served or published under another driver's name. */
static int check_takeover(struct serve *s, struct drarun_error *err)
{
    const struct takeover takeover = {s->options->nic_driver, s->options->node,
                                      s->options->registry_dir};
    if (!s->options->nics || strcmp(takeover.driver, NODE_DRIVER_NIC) == 0)
        return 0;
    return takeover_check(s->base, s->client, &takeover, err);
}

static int open_root(struct serve *s, struct drarun_error *err)
{
    if (!s->options->root)
        return 0;
    s->root = open(s->options->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return s->root >= 0 ? 0
                        : error_kind(err, DRARUN_ERR_USAGE, errno, "--root %s: %s",
                                     s->options->root, strerror(errno));
}

static int open_host_root(struct serve *s, struct drarun_error *err)
{
    const char *path = s->options->host_root ? s->options->host_root : "/";
    s->host_root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return s->host_root >= 0 ? 0
                             : error_kind(err, DRARUN_ERR_USAGE, errno, "--host-root %s: %s", path,
                                          strerror(errno));
}

/* A library that is asked for must be there; the usual one may come later. */
static int open_nvml(struct serve *s, struct drarun_error *err)
{
    const struct serve_options *o = s->options;
    struct drarun_error why = {0};
    int rc = 0;
    if (o->nvml)
        rc = nvml_open(o->nvml, NULL, &s->nvml, &why);
    else if (!o->root)
        rc = nvml_open_later(NULL, NULL, &s->nvml, &why);
    if (rc < 0 && (o->nvml || rc == -ENOMEM))
        return error_kind(err, DRARUN_ERR_USAGE, -rc, "--nvml: %s", why.text);
    if (rc < 0)
        log_error("without NVML: %s", why.text);
    return 0;
}

static int open_inventory(struct serve *s, struct drarun_error *err)
{
    const struct serve_options *o = s->options;
    int rc = 0;
    if (o->config)
        rc = discover_config_load(o->config, &s->config, err);
    else
        discover_config_default(&s->config);
    if (rc == 0)
        rc = open_root(s, err);
    if (rc == 0)
        rc = open_nvml(s, err);
    if (rc == 0)
        rc = boot_id_read(s->boot, err);
    if (rc < 0)
        return rc;
    snprintf(s->xids_dir, sizeof s->xids_dir, "%s/" XIDS_DIR, o->state_dir);
    snprintf(s->repaired_dir, sizeof s->repaired_dir, "%s/" XIDS_REPAIRED, o->state_dir);
    s->inventory_options = (struct inventory_options){
        .base = s->base,
        .source = {.root = s->root,
                   .config = &s->config,
                   .addresses = o->addresses[0] ? o->addresses : NULL,
                   .nvml = s->nvml},
        .xids_dir = s->xids_dir,
        .boot = s->boot,
        .repaired_dir = s->repaired_dir,
        .look = look,
        .held = is_held,
        .stuck = is_stuck,
        .changed = on_changed,
        .arg = s,
    };
    return inventory_new(&s->inventory_options, &s->inventory, err);
}

static void know(const struct node_device *device, void *arg)
{
    struct serve *s = arg;
    struct drarun_error err = {0};
    if (inventory_know(s->inventory, device, &err) < 0)
        log_error("device %s: %s", device->name, err.text);
}

/* What pods have is published as it was before. */
static int remember(struct serve *s, struct drarun_error *err)
{
    for (size_t i = 0; i < s->driver_count; i++)
        preparer_each(s->drivers[i].preparer, know, s);
    return inventory_rescan(s->inventory, err);
}

static int open_publishing(struct serve *s, struct drarun_error *err)
{
    const struct publishing_options options = {
        .base = s->base,
        .client = s->client,
        .node = s->options->node,
        .agent = s->agent,
        .gpu_driver = s->options->gpus ? NODE_DRIVER_GPU : NULL,
        .nic_driver = s->options->nics ? s->options->nic_driver : NULL,
        .held = is_held,
        .arg = s,
    };
    return publishing_new(&options, &s->publishing, err);
}

static int install_programs(struct serve *s, struct drarun_error *err)
{
    const struct serve_options *o = s->options;
    int rc = o->hook_from ? program_install(o->hook_from, o->hook, err) : 0;
    if (rc < 0)
        return error_prefix(err, "install the hook");
    /* else each pod with a NIC would fail, with words of the container runtime's */
    if (o->nics && (o->hook_from || access(o->hook, F_OK) == 0))
        rc = program_check_place(o->hook, "--hook", err);
    if (rc < 0)
        return error_prefix(err, "no NIC could be handed out: the hook");
    rc = o->agent_from ? agent_install(s->base, o->agent_from, o->agent_dir, s->agent, err) : 0;
    if (rc < 0 && rc != -ENOEXEC)
        return error_prefix(err, "install the agent");
    if (rc < 0) { /* jobs bring their own */
        log_error("no agent is offered to jobs: %s", err->text);
        *err = (struct drarun_error){0};
    }
    return 0;
}

/* Before the inventory, which asks it what pods hold. */
static int open_preparer(struct serve *s, const char *name, const char *devices_of,
                         struct drarun_error *err)
{
    const struct serve_options *o = s->options;
    struct driver *driver = &s->drivers[s->driver_count++];
    driver->serve = s;
    driver->config = (struct preparer_config){
        .driver = name,
        .devices_of = devices_of,
        .node = o->node,
        .state_dir = o->state_dir,
        .orders_dir = o->orders_dir,
        .cdi_dir = o->cdi_dir,
        .host_root = s->host_root,
        .driver_root = o->driver_root,
        .agent_dir = o->agent_dir,
        .hook = o->hook,
        .claims = &s->config.claims,
        .pods = s->pods,
        .read = &s->read,
        .devices = devices_now,
        .claims_version = version_now,
        .held_changed = on_held_changed,
        .arg = s,
    };
    return preparer_new(s->base, s->client, &driver->config, &driver->preparer, err);
}

/* Last: the kubelet calls from here on. */
static int open_driver(struct serve *s, struct driver *driver, struct drarun_error *err)
{
    bool gpus = strcmp(driver->config.driver, NODE_DRIVER_GPU) == 0;
    driver->config.edits = gpus ? s->config.gpu_edits : s->config.nic_edits;
    const struct dra_driver_config config = {
        .name = driver->config.driver,
        .plugins_dir = s->options->plugins_dir,
        .registry_dir = s->options->registry_dir,
        .instance = s->options->instance,
    };
    return dra_driver_new(s->base, &config, &handler, driver, &driver->dra, err);
}

/* Of a captured tree, whose devices nobody prepares, the devices alone. */
static void add_facts(const struct serve *s, const char *name, const char *devices_of,
                      struct metrics_facts *facts)
{
    struct metrics_driver *driver = &facts->drivers[facts->driver_count++];
    *driver = (struct metrics_driver){.name = name, .devices_of = devices_of};
    for (size_t i = 0; i < s->driver_count; i++)
        if (strcmp(s->drivers[i].config.driver, name) == 0)
            preparer_count(s->drivers[i].preparer, &driver->counts);
}

static void facts_now(void *arg, struct metrics_facts *ret_facts)
{
    const struct serve *s = arg;
    *ret_facts = (struct metrics_facts){.node = s->options->node,
                                        .devices = inventory_devices(s->inventory)};
    if (s->options->gpus)
        add_facts(s, NODE_DRIVER_GPU, NODE_DRIVER_GPU, ret_facts);
    if (s->options->nics)
        add_facts(s, s->options->nic_driver, NODE_DRIVER_NIC, ret_facts);
    publishing_count(s->publishing, &ret_facts->slices);
}

static int open_metrics(struct serve *s, struct drarun_error *err)
{
    uint32_t port = s->options->metrics_port;
    return port ? plugin_metrics_new(s->base, (uint16_t)port, facts_now, s, &s->metrics, err) : 0;
}

static int open_all(struct serve *s, struct drarun_error *err)
{
    int rc = open_loop(s, err);
    if (rc == 0)
        rc = open_cluster(s, err);
    if (rc == 0)
        rc = check_takeover(s, err);
    if (rc == 0)
        rc = install_programs(s, err);
    if (rc == 0)
        rc = open_host_root(s, err);
    bool served = !s->options->root; /* a captured machine's devices cannot be handed out */
    if (rc == 0 && served)
        rc = node_pods_new(s->client, s->options->node, &s->pods, err);
    if (rc == 0 && served && s->options->gpus)
        rc = open_preparer(s, NODE_DRIVER_GPU, NODE_DRIVER_GPU, err);
    if (rc == 0 && served && s->options->nics)
        rc = open_preparer(s, s->options->nic_driver, NODE_DRIVER_NIC, err);
    if (rc == 0)
        rc = open_publishing(s, err);
    if (rc == 0)
        rc = open_inventory(s, err);
    if (rc == 0)
        rc = remember(s, err);
    if (rc == 0)
        rc = open_metrics(s, err);
    for (size_t i = 0; rc == 0 && i < s->driver_count; i++)
        rc = open_driver(s, &s->drivers[i], err);
    if (rc == 0)
        rc = begin_heartbeat(s, err); /* a captured machine has no kubelet to wait for */
    return rc;
}

static void close_all(struct serve *s)
{
    plugin_metrics_free(s->metrics);
    for (size_t i = 0; i < s->driver_count; i++) {
        dra_driver_free(s->drivers[i].dra);
        preparer_free(s->drivers[i].preparer);
    }
    node_pods_free(s->pods);
    read_claim_done(&s->read);
    if (s->draining)
        event_free(s->draining);
    if (s->beat)
        event_free(s->beat);
    close_fd(&s->heartbeat);
    publishing_free(s->publishing);
    inventory_free(s->inventory);
    nvml_close(s->nvml);
    close_fd(&s->root);
    close_fd(&s->host_root);
    discover_config_done(&s->config);
    kube_client_free(s->client);
    kube_config_free(s->kube_config);
    for (size_t i = 0; i < ARRAY_LEN(s->signals); i++)
        if (s->signals[i])
            event_free(s->signals[i]);
    if (s->base)
        event_base_free(s->base);
}

int serve_run(const struct serve_options *options, struct drarun_error *err)
{
    struct serve s = {.options = options, .root = -1, .host_root = -1, .heartbeat = -1};
    int rc = open_all(&s, err);
    if (rc == 0 && s.end_ms == 0) { /* opening runs the loop, too */
        log_note("node %s: %zu devices", options->node, inventory_devices(s.inventory)->count);
        event_base_dispatch(s.base);
    }
    close_all(&s);
    return rc;
}
