/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/verbs_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/inspect/members.h"
#include "lib/inspect/port_json.h"
#include "lib/topo/root.h"

static void set_number(json_t *object, const char *key, uint64_t number)
{
    if (number > 0)
        member_set(object, key, json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number));
}

/* 0, or -errno: what a rank would be told that opens the node. Nothing but a device is opened, and
 * never one that could make us wait. */
static int try_open(int root, const char *path)
{
    struct stat st;
    int rc = root_open(root, path, O_PATH, NULL);
    if (rc < 0)
        return rc;
    cleanup_close int place = rc;
    if (fstat(place, &st) < 0)
        return -errno;
    if (!S_ISCHR(st.st_mode))
        return -ENODEV;
    cleanup_close int fd = root_open(root, path, O_RDWR | O_NONBLOCK | O_NOCTTY, NULL);
    return fd < 0 ? fd : 0;
}

/* ---- ports ---- */

#define OTHER_GIDS_MAX 8u /* of other network namespaces: a few tell that there are some */

static uint64_t count_elsewhere(const struct topo_port *port)
{
    uint64_t count = 0;
    for (size_t i = 0; i < port->gid_count; i++)
        count += port->gids[i].elsewhere;
    return count;
}

static json_t *verbs_port_json(const struct topo_port *port)
{
    json_t *object = json_object();
    member_set(object, "number", json_integer(port->number));
    member_text(object, "state", port->state);
    member_tri(object, "active", port->active);
    member_text(object, "physState", port->phys_state);
    if (port->link != TOPO_LINK_UNKNOWN)
        member_text(object, "linkLayer", topo_link_name(port->link));
    set_number(object, "rateMbps", port->rate_mbps);
    set_number(object, "lanes", port->lanes);
    member_text(object, "laneSpeed", port->lane_speed);
    set_number(object, "mtu", port->mtu);
    set_number(object, "maxMtu", port->max_mtu);
    set_number(object, "lid", port->lid);
    member_set(object, "gids", json_integer((json_int_t)port->gid_count));
    set_number(object, "gidsElsewhere", count_elsewhere(port));
    member_set(object, "gidTable", gids_json(port, OTHER_GIDS_MAX));
    return object;
}

/* ---- devices ---- */

static json_t *limits_json(const struct topo_rdma_limits *limits)
{
    json_t *object = json_object();
    set_number(object, "qps", limits->qps);
    set_number(object, "cqs", limits->cqs);
    set_number(object, "mrs", limits->mrs);
    set_number(object, "mrBytes", limits->mr_bytes);
    return object;
}

static json_t *step_json(const struct nic_step_result *step)
{
    json_t *object = json_object();
    member_set(object, "done",
               step->done == NIC_DONE_UNKNOWN ? json_null()
                                              : json_boolean(step->done == NIC_DONE_YES));
    set_number(object, "code", (uint64_t)step->code);
    member_text(object, "why", step->why);
    return object;
}

static json_t *steps_json(const struct nic_open *open)
{
    json_t *object = json_object();
    for (enum nic_step step = NIC_STEP_OPEN; step < NIC_STEPS; step++)
        if (open->step[step].done != NIC_DONE_UNKNOWN || open->step[step].why[0])
            member_set(object, nic_step_name(step), step_json(&open->step[step]));
    return object;
}

/* Nobody's failure to open it but a rank's would be one, too. */
static void set_opens(json_t *object, const char *path, int root, const struct nic_open *open)
{
    const struct nic_step_result *step = open ? &open->step[NIC_STEP_OPEN] : NULL;
    int rc = step && step->done != NIC_DONE_UNKNOWN ? -step->code : try_open(root, path);
    member_text(object, "path", path);
    member_set(object, "opens", json_boolean(rc == 0));
    if (rc < 0)
        member_text(object, "why", strerror(-rc));
}

/* Whether the device has told of itself; else why sysfs must do. */
static void set_source(json_t *object, const struct nic_open *open)
{
    for (enum nic_step step = NIC_STEP_OPEN; open && step <= NIC_STEP_QUERY; step++)
        if (open->step[step].done != NIC_DONE_YES) {
            member_text(object, "inferred", open->step[step].why);
            return;
        }
    if (!open)
        member_text(object, "inferred", "it was not opened");
}

json_t *verbs_json(const struct topo_rdma *rdma, int root, const struct nic_open *open)
{
    char path[128];
    json_t *object = json_object(), *ports = json_array();
    member_text(object, "device", rdma->name);
    if (rdma->uverbs[0]) {
        snprintf(path, sizeof path, "/dev/infiniband/%s", rdma->uverbs);
        set_opens(object, path, root, open);
    }
    set_source(object, open);
    if (open)
        member_set(object, "steps", steps_json(open));
    member_text(object, "firmware", rdma->firmware);
    member_text(object, "board", rdma->board);
    member_text(object, "nodeGuid", rdma->node_guid);
    if (rdma->iwarp)
        member_set(object, "iwarp", json_true());
    member_set(object, "limits", limits_json(&rdma->limits));
    for (size_t i = 0; i < rdma->port_count; i++)
        json_array_append_new(ports, verbs_port_json(&rdma->ports[i]));
    member_set(object, "ports", ports);
    return object;
}

/* ---- what another process told ---- */

static const char *device_of(const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "device"));
    return name ? name : "";
}

static json_t *find_line(const char *lines, size_t length, const char *device)
{
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(lines + at, '\n', length - at);
        size_t end = newline ? (size_t)(newline - lines) : length;
        json_t *told = newline ? json_loadb(lines + at, end - at, 0, NULL) : NULL;
        if (json_is_object(told) && strcmp(device_of(told), device) == 0)
            return told;
        json_decref(told);
        at = end + 1;
    }
    return NULL;
}

int verbs_take(json_t *verbs, const char *lines, size_t length, const char *missing)
{
    int failed = 0;
    for (size_t i = 0; i < json_array_size(verbs); i++) {
        json_t *entry = json_array_get(verbs, i);
        json_t *told = find_line(lines, length, device_of(entry));
        int rc = told ? json_array_set_new(verbs, i, told)
                      : json_object_set_new(entry, "inferred", json_string(missing));
        failed = rc < 0 ? -ENOMEM : failed;
    }
    return failed;
}
