/* SPDX-License-Identifier: Apache-2.0 */
/* What each code means and what to do about it: docs/messages.md and `drarun help CODE`. */
#include "jobs/preflight/preflight.h"

static const struct {
    const char *meaning, *cure;
} helps[PREFLIGHT_COUNT] = {
    [PREFLIGHT_NOT_INSPECTED] = {"a worker's agent did not report what its pod holds",
                                 "use the same release of drarun in the launcher and in the "
                                 "workers"},
    [PREFLIGHT_NIC_MISSING] = {"a NIC that a worker claims is not in its pod",
                               "list the claim in the container, and look at kubectl describe "
                               "resourceclaim and at the log of the NIC's driver on the node"},
    [PREFLIGHT_VERBS_CLOSED] = {"a worker may not open the device file of its NIC",
                                "let the driver allow the container to read and write it "
                                "(deviceNodes of its CDI specification)"},
    [PREFLIGHT_LINK_DOWN] = {"no port of a claimed NIC is active",
                             "check the node's cable and switch port and, with InfiniBand, the "
                             "subnet manager; taint the device until then"},
    [PREFLIGHT_LINK_NARROW] = {"a GPU or a NIC has fewer PCIe lanes, or slower ones, than it could "
                               "have",
                               "look at LnkSta of lspci -vv on the node; reseat the card or its "
                               "riser"},
    [PREFLIGHT_LINK_SLOW] = {"a NIC's port is slower than its driver has published",
                             "check its cable, its module and the switch port's speed"},
    [PREFLIGHT_NO_GID] = {"a RoCE port has no GID that NCCL and MPI could use",
                          "give the NIC's interface an address, and have the interface in the pod"},
    [PREFLIGHT_NIC_QUEUES] = {"no queue can be made on a NIC",
                              "look at the kernel's log on the node, and for another program that "
                              "holds all of them"},
    [PREFLIGHT_NIC_MEMORY] = {"memory cannot be registered with a NIC",
                              "raise the limit on locked memory and the container's memory limit"},
    [PREFLIGHT_NIC_UNTRIED] = {"it is not known whether a NIC works: it could not be tried",
                               "compare with ibv_devinfo -v in the pod; preflight: {fabric: off} "
                               "leaves the trial out"},
    [PREFLIGHT_HCA_COUNT] = {"the workers hold different numbers of RDMA devices",
                             "give every worker the same claim, on nodes of one kind"},
    [PREFLIGHT_MEMLOCK] = {"a worker may lock too little memory for RDMA",
                           "add the capability IPC_LOCK to the container of a root user, or raise "
                           "the container runtime's LimitMEMLOCK on the nodes to infinity"},
    [PREFLIGHT_SHM] = {"a worker's /dev/shm is too small for its ranks, or not in memory",
                       "mount an emptyDir with medium Memory at /dev/shm, and leave it room in the "
                       "memory limit"},
    [PREFLIGHT_GPU_MISSING] = {"a worker sees fewer GPUs than it claims",
                               "list the claim in the container, and look at NVIDIA's container "
                               "toolkit with CDI on the node"},
    [PREFLIGHT_GPU_CLOSED] = {"a worker may not open the device file of a GPU",
                              "let the driver allow the container's user to read and write it"},
    [PREFLIGHT_NOT_ALIGNED] = {"align: required cannot be kept: a GPU and its NIC are not beside "
                               "each other",
                               "claim the GPUs, too, take whole nodes, or say align: preferred"},
    [PREFLIGHT_VERSIONS] = {"the workers' agents are of different versions",
                            "use one image of drarun for all workers"},
    [PREFLIGHT_SESSION] = {"a worker has no place for its session directory",
                           "mount an emptyDir at /tmp, make room there, or set TMPDIR to a "
                           "directory that the user may write"},
    [PREFLIGHT_UNREACHED] = {"data of a NIC do not arrive at the same NIC of the next worker",
                             "look at addresses, routes, VLAN and MTU of the two, at firewalls for "
                             "UDP port 4791, and at the cables of the rail"},
    [PREFLIGHT_REACH_UNKNOWN] = {"it is not known whether a NIC reaches the next worker's",
                                 "preflight: {fabric: open} leaves this trial out"},
};

const char *preflight_meaning(enum preflight_code code)
{
    return code < PREFLIGHT_COUNT ? helps[code].meaning : NULL;
}

const char *preflight_cure(enum preflight_code code)
{
    return code < PREFLIGHT_COUNT ? helps[code].cure : NULL;
}
