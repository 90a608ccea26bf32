/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/topo/root.h"
#include "plugin/discover/device_json.h"
#include "plugin/discover/faults.h"
#include "plugin/discover/kernel_news.h"
#include "plugin/discover/nvml.h"
#include "plugin/discover/select.h"
#include "plugin/discover/switch_managers.h"
#include "plugin/discover/xids.h"

#define WARNINGS_MAX 1000u

struct inventory {
    struct inventory_options options;
    struct kernel_news *news; /* NULL: a captured tree has none */
    struct event *soon, *period, *xid_timer, *told;
    struct node_devices memory;    /* all that was read, completed, with the names given */
    struct node_devices published; /* what is offered */
    json_t *shape;                 /* of published: what `changed` was told of */
    struct xids xids;
    int64_t read_ms;
    struct strlist warned; /* what was logged: warnings, names of NICs that the host uses */
    struct switch_managers managers;
};

/* ---- one reading ---- */

static bool is_first(struct inventory *inv, const char *key)
{
    if (inv->warned.count >= WARNINGS_MAX || strlist_has(&inv->warned, key))
        return false;
    strlist_add(&inv->warned, key);
    return true;
}

static void warn_once(struct inventory *inv, const struct strlist *warnings)
{
    for (size_t i = 0; i < warnings->count; i++)
        if (is_first(inv, warnings->items[i]))
            log_note("%s", warnings->items[i]);
}

/* Of each NIC once: who is connected over it is another one each time. */
static void warn_spared(struct inventory *inv, const struct node_devices *published)
{
    char text[SPARED_TEXT];
    for (size_t i = 0; i < published->spared.count; i++) {
        if (!is_first(inv, published->spared.items[i]))
            continue;
        node_devices_spared_text(published, i, text);
        log_note("%s", text);
    }
}

/* The names that were given, for the memory: a device that goes away keeps its own. */
static void keep_names(const struct node_devices *published, struct node_devices *memory)
{
    for (size_t i = 0; i < published->count; i++) {
        struct node_device *same = devices_same(memory, &published->list[i]);
        if (same)
            memcpy(same->name, published->list[i].name, sizeof same->name);
    }
}

static enum function_state state_of(struct pci_addr addr, void *arg)
{
    const struct inventory *inv = arg;
    int root = inv->options.source.root;
    cleanup_close int own = root < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    char path[64], text[PCI_ADDR_TEXT], vendor[16];
    pci_addr_format(addr, text);
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/driver", text);
    cleanup_close int driver = root_open(root < 0 ? own : root, path, O_PATH | O_DIRECTORY, NULL);
    if (driver >= 0)
        return FUNCTION_BOUND;
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/vendor", text);
    return root_read(root < 0 ? own : root, path, vendor, sizeof vendor) > 0 ? FUNCTION_UNBOUND
                                                                             : FUNCTION_GONE;
}

static void drop_unbound(struct node_devices *devices)
{
    for (size_t i = devices->count; i > 0; i--)
        if (devices->list[i - 1].unbound)
            node_devices_remove(devices, i - 1);
}

/* A driver may be bound to more functions of a card than it uses, as Chelsio's is: such a one would
 * give a pod nothing. One that a claim has may show neither, too. */
static void drop_bare(struct node_devices *devices)
{
    for (size_t i = devices->count; i > 0; i--) {
        const struct node_device *device = &devices->list[i - 1];
        if (device->held || !node_device_is_bare(device))
            continue;
        strlist_addf(&devices->warnings,
                     "%s is not published: it has neither an interface nor an RDMA device",
                     device->name);
        node_devices_remove(devices, i - 1);
    }
}

/* Nobody can have it until it is back. */
static void mark_stuck(const struct inventory *inv, struct node_devices *published)
{
    for (size_t i = 0; i < published->count && inv->options.stuck; i++) {
        struct node_device *device = &published->list[i];
        if (inv->options.stuck(node_device_driver(device), device->name, inv->options.arg))
            fault_add(device, inv->options.source.config->lost, FAULT_LOST, "",
                      "its last claim has ended, and it could not be taken back");
    }
}

static int read_devices(struct inventory *inv, struct node_devices *ret_memory,
                        struct node_devices *ret_published, struct drarun_error *err)
{
    const struct discover_config *config = inv->options.source.config;
    const struct remember_rules rules = {config, inv->options.held, inv->options.arg, state_of,
                                         inv};
    int rc = discover(&inv->options.source, ret_memory, err);
    if (rc == 0 && inv->options.look)
        inv->options.look(
            inv->options.arg); /* what has left since the reading began is held, too */
    if (rc == 0)
        rc = devices_remember(&rules, &inv->memory, ret_memory, err);
    if (rc == 0)
        rc = node_devices_copy(ret_memory, ret_published, err);
    if (rc < 0)
        return rc;
    drop_unbound(ret_published);
    if (inv->shape) /* what claims have is known from the second reading on (inventory_know) */
        drop_bare(ret_published);
    xids_forget_replaced(&inv->xids, inv->options.source.root, ret_published);
    xids_apply(&inv->xids, config, ret_published);
    rc = select_devices(config, ret_published, err);
    mark_stuck(inv, ret_published);
    keep_names(ret_published, ret_memory);
    warn_once(inv, &ret_memory->warnings);
    warn_once(inv, &ret_published->warnings);
    if (rc == 0)
        warn_spared(inv, ret_published);
    return rc;
}

static json_t *shape_of(const struct node_devices *devices)
{
    json_t *shape = json_array();
    for (size_t i = 0; shape && i < devices->count; i++) {
        json_t *device = device_json(&devices->list[i]);
        json_t *one = json_pack("{s:s, s:o}", "driver", node_device_driver(&devices->list[i]),
                                "device", device);
        if (json_array_append_new(shape, one) < 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return shape;
}

static void tell_later(struct inventory *inv)
{
    event_active(inv->told, EV_TIMEOUT, 0);
}

static int read_now(struct inventory *inv, struct drarun_error *err)
{
    struct node_devices memory = NODE_DEVICES_INIT, published = NODE_DEVICES_INIT;
    inv->read_ms = clock_ms();
    int rc = read_devices(inv, &memory, &published, err);
    json_t *shape = rc == 0 ? shape_of(&published) : NULL;
    if (rc < 0 || !shape) {
        node_devices_done(&memory);
        node_devices_done(&published);
        return rc < 0 ? rc : error_set(err, ENOMEM, "devices: out of memory");
    }
    bool changed = !json_equal(shape, inv->shape);
    node_devices_done(&inv->memory);
    node_devices_done(&inv->published);
    json_decref(inv->shape);
    inv->memory = memory;
    inv->published = published;
    inv->shape = shape;
    if (changed)
        tell_later(inv);
    return 0;
}

int inventory_rescan(struct inventory *inv, struct drarun_error *err)
{
    return read_now(inv, err);
}

/* ---- when ---- */

static void read_and_log(struct inventory *inv)
{
    struct drarun_error err = {0};
    if (read_now(inv, &err) < 0)
        log_error("the devices cannot be read: %s", err.text);
}

static void on_told(evutil_socket_t fd, short what, void *arg)
{
    const struct inventory *inv = arg;
    (void)fd, (void)what;
    inv->options.changed(&inv->published, inv->options.arg);
}

static void on_period(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    read_and_log(arg);
}

static bool take_xids(struct inventory *inv)
{
    const struct discover_source *source = &inv->options.source;
    return xids_take(&inv->xids, source->nvml, source->root, &inv->published);
}

static void on_xid_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct inventory *inv = arg;
    bool repaired = xids_forget_repaired(&inv->xids, inv->options.repaired_dir);
    if (take_xids(inv) || repaired)
        read_and_log(inv);
}

/* Pods come and go with many links each: news are gathered, and a second is left between readings.
 */
static void on_news(void *arg)
{
    struct inventory *inv = arg;
    int64_t since = clock_ms() - inv->read_ms;
    int64_t wait = since < INVENTORY_PAUSE_MS ? INVENTORY_PAUSE_MS - since : INVENTORY_QUIET_MS;
    struct timeval after = timeval_from_ms(wait);
    if (!evtimer_pending(inv->soon, NULL))
        evtimer_add(inv->soon, &after);
}

static int start_timers(struct inventory *inv, struct drarun_error *err)
{
    struct event_base *base = inv->options.base;
    struct timeval period = timeval_from_ms(inv->options.source.config->rescan_ms);
    struct timeval xid = timeval_from_ms(INVENTORY_XID_MS);
    inv->soon = evtimer_new(base, on_period, inv);
    inv->told = event_new(base, -1, 0, on_told, inv);
    inv->period = event_new(base, -1, EV_PERSIST, on_period, inv);
    inv->xid_timer = event_new(base, -1, EV_PERSIST, on_xid_timer, inv);
    if (!inv->soon || !inv->told || !inv->period || !inv->xid_timer)
        return error_set(err, ENOMEM, "inventory: out of memory");
    event_add(inv->period, &period);
    take_xids(inv); /* begins to listen */
    if (inv->options.source.nvml || inv->xids.count > 0)
        event_add(inv->xid_timer, &xid);
    return 0;
}

int inventory_new(const struct inventory_options *options, struct inventory **ret_inventory,
                  struct drarun_error *err)
{
    struct drarun_error deaf = {0};
    struct inventory *inv = calloc(1, sizeof *inv);
    if (!inv)
        return error_set(err, ENOMEM, "inventory: out of memory");
    inv->options = *options;
    inv->options.source.managers = &inv->managers;
    xids_load(&inv->xids, options->xids_dir, options->boot);
    xids_forget_repaired(&inv->xids, options->repaired_dir); /* what was said meanwhile */
    int rc = start_timers(inv, err);
    if (rc == 0 && options->source.root < 0 &&
        kernel_news_new(options->base, on_news, inv, &inv->news, &deaf) < 0)
        log_error("devices are read every %lld s only: %s",
                  (long long)options->source.config->rescan_ms / 1000, deaf.text);
    if (rc == 0)
        rc = read_now(inv, err);
    if (rc < 0)
        inventory_free(inv);
    else
        *ret_inventory = inv;
    return rc;
}

void inventory_free(struct inventory *inv)
{
    if (!inv)
        return;
    struct event *events[] = {inv->soon, inv->period, inv->xid_timer, inv->told};
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i])
            event_free(events[i]);
    kernel_news_free(inv->news);
    node_devices_done(&inv->memory);
    node_devices_done(&inv->published);
    json_decref(inv->shape);
    strlist_done(&inv->warned);
    switch_managers_done(&inv->managers);
    free(inv);
}

const struct node_devices *inventory_devices(const struct inventory *inv)
{
    return &inv->published;
}

int inventory_know(struct inventory *inv, const struct node_device *device,
                   struct drarun_error *err)
{
    struct node_devices one = {.list = unconst(device), .count = 1};
    struct node_devices copy;
    struct node_device *same = devices_same(&inv->memory, device);
    if (same && device->kind != NODE_DEVICE_NIC) { /* it is on the host as before */
        memcpy(same->name, device->name, sizeof same->name);
        return 0;
    }
    int rc = node_devices_copy(&one, &copy, err);
    if (rc < 0)
        return rc;
    if (!same)
        same = node_devices_add(&inv->memory);
    if (!same) {
        node_devices_done(&copy);
        return error_set(err, ENOMEM, "devices: out of memory");
    }
    free(same->rdma.gids);
    *same = copy.list[0]; /* with its GIDs */
    copy.count = 0;
    node_devices_done(&copy);
    return 0;
}
