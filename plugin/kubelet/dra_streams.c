/* SPDX-License-Identifier: Apache-2.0 */
/* The health of all devices, to each kubelet that listens: whole each time, since the kubelet takes
 * a device that is left out for unknown. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "plugin/kubelet/dra_private.h"
#include "plugin/kubelet/health.pb-c.h"

struct stream {
    struct stream *next;
    struct dra_driver *driver;
    struct rpc_call *call;
};

struct list {
    Kubelet__NodeWatchResourcesResponse *message;
    size_t room;
    int64_t now;
    bool failed;
};

static char *copy(const char *text, bool *failed)
{
    char *own = strdup(text);
    *failed = *failed || !own;
    return own ? own : unconst(protobuf_c_empty_string);
}

static bool make_room(struct list *list)
{
    if (list->message->n_devices < list->room)
        return true;
    size_t room = list->room ? list->room * 2 : 32;
    Kubelet__DeviceHealth **more = realloc(list->message->devices, room * sizeof(void *));
    if (!more)
        return false;
    list->message->devices = more;
    list->room = room;
    return true;
}

static void put(const struct dra_health *health, void *arg)
{
    struct list *list = arg;
    Kubelet__DeviceHealth *device = make_room(list) ? malloc(sizeof *device) : NULL;
    Kubelet__DeviceIdentifier *id = device ? malloc(sizeof *id) : NULL;
    if (!id) {
        free(device);
        list->failed = true;
        return;
    }
    kubelet__device_health__init(device);
    kubelet__device_identifier__init(id);
    id->pool_name = copy(health->pool, &list->failed);
    id->device_name = copy(health->name, &list->failed);
    device->device = id;
    device->health =
        health->why ? KUBELET__HEALTH_STATUS__UNHEALTHY : KUBELET__HEALTH_STATUS__HEALTHY;
    device->last_updated_time = list->now;
    if (health->why)
        device->message = copy(health->why, &list->failed);
    list->message->devices[list->message->n_devices++] = device;
}

/* Appends the message; false: out of memory. */
static bool pack_health(struct dra_driver *driver, struct buf *out)
{
    struct list list = {.now = (int64_t)time(NULL)};
    list.message = malloc(sizeof *list.message);
    if (!list.message)
        return false;
    kubelet__node_watch_resources_response__init(list.message);
    driver->handler->health(put, &list, driver->arg);
    size_t length = kubelet__node_watch_resources_response__get_packed_size(list.message);
    bool ok = !list.failed && buf_reserve(out, length);
    if (ok) {
        kubelet__node_watch_resources_response__pack(list.message, (uint8_t *)out->data);
        out->len = length;
    }
    kubelet__node_watch_resources_response__free_unpacked(list.message, NULL);
    return ok;
}

static void stream_free(struct stream *stream)
{
    for (struct stream **p = &stream->driver->streams; *p; p = &(*p)->next) {
        if (*p == stream) {
            *p = stream->next;
            break;
        }
    }
    rpc_call_end_take(stream->call);
    free(stream);
}

static void on_gone(struct rpc_call *call, void *arg)
{
    (void)call;
    stream_free(arg);
}

void dra_driver_health_changed(struct dra_driver *driver)
{
    struct buf message = BUF_INIT;
    if (driver->streams && pack_health(driver, &message)) {
        for (struct stream *next, *stream = driver->streams; stream; stream = next) {
            next = stream->next;
            if (!rpc_call_push(stream->call, message.data, message.len))
                stream_free(stream);
        }
    }
    buf_done(&message);
}

void dra_watch(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    struct dra_driver *driver = arg;
    struct stream *stream = calloc(1, sizeof *stream);
    struct buf health = BUF_INIT;
    (void)message; /* reserved, and empty */
    (void)length;
    if (!stream || !pack_health(driver, &health)) {
        free(stream);
        rpc_call_fail_take(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
    } else {
        *stream = (struct stream){driver->streams, driver, call};
        driver->streams = stream;
        rpc_call_on_gone(call, on_gone, stream);
        if (!rpc_call_push(call, health.data, health.len))
            stream_free(stream);
    }
    buf_done(&health);
}

void dra_streams_end(struct dra_driver *driver)
{
    while (driver->streams)
        stream_free(driver->streams);
}
