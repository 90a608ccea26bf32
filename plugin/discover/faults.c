/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/faults.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

void fault_add(struct node_device *device, enum fault_effect effect, const char *key,
               const char *value, const char *text)
{
    if (effect == FAULT_NONE || device->fault_count >= NODE_FAULTS_MAX)
        return;
    for (size_t i = 0; i < device->fault_count; i++)
        if (strcmp(device->faults[i].key, key) == 0)
            return;
    struct node_fault *fault = &device->faults[device->fault_count++];
    *fault = (struct node_fault){.execute = effect == FAULT_NO_EXECUTE};
    snprintf(fault->key, sizeof fault->key, "%s", key);
    snprintf(fault->value, sizeof fault->value, "%s", value);
    snprintf(fault->text, sizeof fault->text, "%s", text);
}

void faults_of_link(const struct discover_config *config, struct node_device *device)
{
    char text[96];
    const struct node_rdma *rdma = &device->rdma;
    if (device->kind != NODE_DEVICE_NIC || device->lost) /* of what is away nothing is known */
        return;
    if (device->netdev.carrier == TOPO_NO) {
        snprintf(text, sizeof text, "%.15s has no carrier", device->netdev.name);
        fault_add(device, config->link_down, FAULT_LINK_DOWN, "", text);
    } else if (rdma->active == TOPO_NO && rdma->link != TOPO_LINK_ETHERNET) {
        snprintf(text, sizeof text, "port %u of %.32s is %.15s", rdma->port, rdma->name,
                 rdma->state);
        fault_add(device, config->link_down, FAULT_LINK_DOWN, "", text);
    }
}

bool xid_is_of_program(uint64_t xid)
{
    static const unsigned char of_program[] = {13, 31, 43, 45, 68, 109};
    for (size_t i = 0; i < ARRAY_LEN(of_program); i++)
        if (of_program[i] == xid)
            return true;
    return false;
}
