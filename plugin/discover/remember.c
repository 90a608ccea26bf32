/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/remember.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "plugin/discover/discover.h"
#include "plugin/discover/faults.h"

static bool same_device(const struct node_device *a, const struct node_device *b)
{
    if (a->kind != b->kind || a->pci.known != b->pci.known)
        return false;
    if (!a->pci.known)
        return strcmp(a->netdev.name, b->netdev.name) == 0;
    if (pci_addr_compare(a->pci.addr, b->pci.addr) != 0)
        return false;
    return a->kind == NODE_DEVICE_NIC
               ? a->port == b->port
               : a->gpu.mig_gi == b->gpu.mig_gi && a->gpu.mig_ci == b->gpu.mig_ci;
}

struct node_device *devices_same(const struct node_devices *devices,
                                 const struct node_device *device)
{
    for (size_t i = 0; i < devices->count; i++)
        if (same_device(&devices->list[i], device))
            return &devices->list[i];
    return NULL;
}

static int nomem(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "devices: out of memory");
}

static int keep_rdma(const struct node_rdma *before, struct node_rdma *now)
{
    struct node_rdma kept = *before;
    size_t size = kept.gid_count * sizeof *kept.gids;
    kept.gids = size ? malloc(size) : NULL;
    if (size && !kept.gids)
        return -ENOMEM;
    if (size)
        memcpy(kept.gids, before->gids, size);
    free(now->gids);
    *now = kept;
    return 0;
}

/* The link of what is away is not known here. port_seen: its RDMA device is still on the host, as
 * where namespaces share them; an InfiniBand port then says how it is, and RoCE's follows the
 * interface, which is the pod's to set up. */
static void forget_link(struct node_device *device, bool port_seen)
{
    device->netdev.up = device->netdev.carrier = TOPO_UNKNOWN;
    if (port_seen && device->rdma.link == TOPO_LINK_IB)
        return;
    device->rdma.active = TOPO_UNKNOWN;
    device->rdma.state[0] = '\0';
}

/* Nobody was given it: its driver has let it go, as after an error of the firmware, or somebody has
 * moved it. It says of its link nothing that could be a fault. */
static void lose_part(const struct remember_rules *rules, bool interface, struct node_device *now)
{
    char text[sizeof now->faults[0].text];
    snprintf(text, sizeof text, "its %s %.40s has left the host, and no claim has it",
             interface ? "interface" : "RDMA device",
             interface ? now->netdev.name : now->rdma.name);
    now->lost = true;
    fault_add(now, rules->config->lost, FAULT_LOST, "", text);
}

static int complete(const struct remember_rules *rules, const struct node_device *before,
                    struct node_device *now)
{
    bool no_netdev = before->netdev.name[0] && !now->netdev.name[0];
    bool no_rdma = before->rdma.name[0] && !now->rdma.name[0];
    if (now->kind != NODE_DEVICE_NIC || (!no_netdev && !no_rdma))
        return 0;
    /* of a claim that has just ended it may have been read before it came back */
    now->away = now->held || before->held;
    memcpy(now->name, before->name, sizeof now->name);
    if (no_netdev)
        now->netdev = before->netdev;
    if (no_rdma && keep_rdma(&before->rdma, &now->rdma) < 0)
        return -ENOMEM;
    forget_link(now, now->away && !no_rdma);
    if (!now->away)
        lose_part(rules, no_netdev, now);
    return 0;
}

/* The kernel removes a virtual function's link to its PF before the function itself. Read in
 * between, it would look like a NIC of its own, and be lost when it vanishes. */
static void keep_sriov(const struct node_pci *before, struct node_pci *now)
{
    if (before->sriov != NODE_SRIOV_VF || now->sriov != NODE_SRIOV_NONE ||
        before->vendor != now->vendor || before->device != now->device)
        return;
    now->sriov = NODE_SRIOV_VF;
    memcpy(now->pf, before->pf, sizeof now->pf);
    now->pf_device = before->pf_device;
}

static bool is_held(const struct remember_rules *rules, const struct node_device *device)
{
    return rules->held && rules->held(node_device_driver(device), device->name, rules->arg);
}

static int keep_vanished(const struct remember_rules *rules, const struct node_device *before,
                         struct node_devices *now)
{
    bool held = is_held(rules, before);
    enum function_state state = before->pci.known && rules->state
                                    ? rules->state(before->pci.addr, rules->state_arg)
                                    : FUNCTION_GONE;
    if (!held &&
        (state == FUNCTION_BOUND || !before->pci.known || before->pci.sriov == NODE_SRIOV_VF))
        return 0;
    struct node_device *device = node_devices_add(now);
    if (!device)
        return -ENOMEM;
    *device = *before;
    device->rdma.gids = NULL;
    device->fault_count = 0;
    device->used[0] = '\0';
    if (keep_rdma(&before->rdma, &device->rdma) < 0) {
        device->rdma.gid_count = 0;
        return -ENOMEM;
    }
    forget_link(device, false);
    device->lost = device->pci.known && state == FUNCTION_GONE;
    device->unbound = !held && !device->lost;
    device->away = held && !device->lost;
    device->held = held;
    if (device->lost)
        fault_add(device, rules->config->lost, FAULT_LOST, "", "it is gone from the machine");
    return 0;
}

static const struct node_device *held_part_of(const struct node_devices *devices,
                                              const struct node_device *gpu)
{
    for (size_t i = 0; i < devices->count; i++) {
        const struct node_device *part = &devices->list[i];
        if (part->kind == NODE_DEVICE_MIG && part->held &&
            pci_addr_compare(part->pci.addr, gpu->pci.addr) == 0)
            return part;
    }
    return NULL;
}

/* A pod with a part of a GPU has the node of the GPU, too. Once MIG is off, that is the whole. */
static void withhold_whole(struct node_devices *now)
{
    for (size_t i = now->count; i-- > 0;) {
        const struct node_device *gpu = &now->list[i];
        const struct node_device *part =
            gpu->kind == NODE_DEVICE_GPU && !gpu->held ? held_part_of(now, gpu) : NULL;
        if (!part)
            continue;
        strlist_addf(&now->warnings,
                     "%s is not published as a whole: a claim has its MIG device %s still, whose "
                     "pod could use all of it",
                     gpu->pci.bus_id, part->name);
        node_devices_remove(now, i);
    }
}

int devices_remember(const struct remember_rules *rules, const struct node_devices *before,
                     struct node_devices *now, struct drarun_error *err)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct node_device *old = &before->list[i];
        struct node_device *same = devices_same(now, old);
        if (same)
            keep_sriov(&old->pci, &same->pci);
        if (same && is_held(rules, old)) {
            same->held = true;
            memcpy(same->name, old->name, sizeof same->name);
            same->used[0] = '\0'; /* it is on its way into a pod */
        }
        int rc = same ? complete(rules, old, same) : keep_vanished(rules, old, now);
        if (rc < 0)
            return nomem(err);
    }
    withhold_whole(now);
    if (now->warnings.failed)
        return nomem(err);
    /* with those that are away: the others keep their numbers */
    return devices_number_rails(now) < 0 ? nomem(err) : 0;
}
