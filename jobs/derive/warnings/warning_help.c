/* SPDX-License-Identifier: Apache-2.0 */
/* What each code means and what to do about it: docs/messages.md and `drarun help CODE`. */
#include "jobs/derive/warnings/warnings.h"

static const struct {
    const char *meaning, *cure;
} helps[WARNING_COUNT] = {
    [WARN_NO_GPU] = {"the claims hold no GPU, or the pod shows none of the GPUs that they hold",
                     "claim GPUs (devices.gpus), name the request gpu, list the claim in the "
                     "container, and look at NVIDIA's container toolkit on the node"},
    [WARN_NO_RDMA_NIC] = {"the job has no RDMA NIC that can carry data; with network: rdma it is "
                          "refused, else its data moves over TCP",
                          "claim NICs (devices.nics) of a driver that serves RDMA, and look at the "
                          "reasons that NIC_LEFT_OUT names; network: any allows TCP"},
    [WARN_DEVICE_NOT_IN_SLICES] = {"a claim holds a device that no ResourceSlice has",
                                   "see whether the driver's pod on the node runs, and take the "
                                   "slices and the claims at the same time"},
    [WARN_MIXED_PROFILES] = {"the workers are on machines of different profiles, for which NCCL "
                             "needs different variables",
                             "keep the job on nodes of one machine type (template: nodeSelector), "
                             "or name one profile: nccl.profile"},
    [WARN_MIG_SAME_PARENT] = {"a worker holds two MIG devices of one GPU, which NCCL refuses in "
                              "one communicator",
                              "claim one MIG device for each worker, or whole GPUs"},
    [WARN_MISALIGNED_SYS] = {"a GPU and its NIC are on different NUMA nodes: data crosses the link "
                             "between the sockets",
                             "align: required in the spec claims a NIC beside each GPU; drarun "
                             "topo shows which are"},
    [WARN_MISALIGNED_NODE] = {"a GPU and its NIC are on one NUMA node below different host "
                              "bridges: data passes through the CPU",
                              "align: required in the spec claims a NIC of the GPU's PCIe root, "
                              "where the machine has one"},
    [WARN_MISALIGNED_PHB] = {"a GPU and its NIC meet in the host bridge and not in a PCIe switch",
                             "align: required in the spec claims a NIC below the GPU's switch, "
                             "where the machine has one"},
    [WARN_NIC_VIA_PXN] = {"a GPU uses a NIC through another GPU's NVLink (PXN)",
                          "nothing is needed; claim one NIC beside each GPU to avoid it"},
    [WARN_NIC_UNUSED_P2P] = {"no GPU chooses these NICs for its sends and receives",
                             "claim fewer NICs, or those beside the GPUs (align)"},
    [WARN_FEWER_NICS_THAN_GPUS] = {"several GPUs of a worker share a NIC",
                                   "claim as many NICs as GPUs where the machine has them"},
    [WARN_MIXED_NIC_SPEED] = {"the NICs of a worker have different speeds; the slowest sets the "
                              "pace",
                              "claim NICs of one speed: a selector of devices.nics"},
    [WARN_RAIL_MISMATCH] = {"ranks with the same place in their workers use NICs of different "
                            "rails: their data passes through more switches",
                            "claim whole nodes, or the same NICs on each node"},
    [WARN_UNEVEN_GPUS] = {"the workers hold different numbers of GPUs",
                          "claim the same number for each worker: devices.gpus.count"},
    [WARN_UNEVEN_NICS] = {"the workers hold different numbers of NICs",
                          "claim the same number for each worker: devices.nics.count"},
    [WARN_SAME_NODE_PODS] = {"two workers share a node; NCCL takes the pods for different hosts, "
                             "without NVLink between them",
                             "use one larger worker for each node"},
    [WARN_GDR_UNAVAILABLE] = {"the pod shows neither nvidia-peermem nor dma-buf: NCCL copies "
                              "through host memory",
                              "load nvidia-peermem on the nodes, or use a driver with dma-buf"},
    [WARN_C2C_GDR_OFF] = {"GPUDirect RDMA stays off on the chip-to-chip path of a Grace machine",
                          "remove the setting that the message names, or use a newer NCCL"},
    [WARN_NIC_NOT_RDMA] = {"claimed NICs say that they have no RDMA",
                           "select RDMA NICs in the claim; with network: any they carry TCP"},
    [WARN_NIC_LEFT_OUT] = {"claimed NICs that cannot carry the job's data are not used; the "
                           "message has each one's reason",
                           "mend the port, its cable or its rate, or claim other NICs"},
    [WARN_NIC_NO_ADDRESS] = {"RoCE NICs have link-local addresses alone: connections to other "
                             "networks time out",
                             "give their interfaces addresses that the other nodes can reach"},
    [WARN_NUMA_UNKNOWN] = {"the NUMA node of GPUs is not known: no CPUs are chosen for their ranks",
                           "use a driver that publishes numaNode; in the pod, sysfs tells it"},
    [WARN_IBDEV_UNKNOWN] = {"the name of a NIC's RDMA device is not known before the pod runs",
                            "nothing is needed for a job: its pods tell; for a plan, use a driver "
                            "that publishes rdmaDevice"},
    [WARN_EXTRA_IB_DEVICES_VISIBLE] = {"the pod shows RDMA devices that are in none of its claims",
                                       "set the nodes' RDMA subsystem to exclusive network "
                                       "namespaces; NCCL_IB_HCA keeps NCCL from these devices"},
    [WARN_GID_INDEX_DIFFERS] = {"the RoCE v2 GIDs are not at the usual entry, or not at the same "
                                "one on all NICs",
                                "nothing is needed where drarun sets the index; else give each NIC "
                                "one address, or use NCCL 2.21 or newer"},
    [WARN_PROFILE_FILE_MISSING] = {"the image lacks a file that the machine's profile needs",
                                   "use an image that has it, or mount it where the profile "
                                   "expects it"},
    [WARN_PROFILE_NOT_NAMED] = {"the job may land on a machine whose vendor keeps files on the "
                                "node, and the pods mount none of them",
                                "name the machine's profile in the spec (nccl: {profile: NAME}), "
                                "or have the files in the image"},
    [WARN_VENDOR_SCRIPT_DIFFERS] = {"the vendor's script in the image sets other values than "
                                    "drarun derives; the message says which one is used",
                                    "nothing, or set the variable in nccl.env: your value wins"},
    [WARN_VENDOR_SCRIPT_NOT_USED] = {"the vendor's script in the image failed, took too long or "
                                     "set nothing; drarun's own table is used",
                                     "run the script in the pod: sh -c '. SCRIPT && env'"},
    [WARN_GPUS_BY_DEVICE_PLUGIN] = {"a device plugin gives the GPUs, and which ones is known in "
                                    "the pod alone",
                                    "run drarun env in the pod, or claim the GPUs (devices.gpus)"},
    [WARN_GPUS_UNKNOWN] = {"the pod shows more GPUs than its claims hold, and no ResourceSlice "
                           "tells which are its own",
                           "let the job's account read ResourceSlices: drarun install "
                           "--cluster-role"},
    [WARN_GPU_VENDOR] = {"the GPUs are not NVIDIA's: what NCCL would choose may not hold, or "
                         "neither NCCL nor RCCL drives them",
                         "use the library of the GPUs' vendor, and measure with drarun bench"},
    [WARN_METADATA_NOT_USED] = {"a driver's device metadata file cannot be read, or contradicts "
                                "the slice or the pod",
                                "update the driver; the plan uses its other sources"},
    [WARN_PROFILE_NEEDS_WHOLE_NODE] = {"the machine's network works with all GPUs of a node, and "
                                       "the worker has fewer",
                                       "claim all GPUs of a node for each worker"},
    [WARN_IMEX_CHANNEL_MISSING] = {"no IMEX channel is in a claim or in the pod: NVLink between "
                                   "nodes is off",
                                   "install the compute-domain driver, and claim a channel "
                                   "(a ComputeDomain)"},
    [WARN_IMEX_CLIQUE_MISMATCH] = {"the nodes are of different NVLink domains, or not every node's "
                                   "domain is known",
                                   "keep the job in one domain: a nodeSelector for "
                                   "nvidia.com/gpu.clique"},
    [WARN_INSPECTOR_MISSING] = {"nccl.inspector is set, and the image has no library of NCCL's "
                                "inspector",
                                "build it from NCCL's plugins/profiler/inspector into the image, "
                                "or name it in NCCL_PROFILER_PLUGIN"},
    [WARN_MIG_NO_P2P] = {"MIG devices have neither NVLink nor P2P between each other",
                         "claim whole GPUs where ranks exchange much data"},
    [WARN_USER_OVERRIDES_PROFILE] = {"a variable that you, the image or the pod set replaces the "
                                     "derived value, or contradicts another one, which is then "
                                     "not set",
                                     "nothing, when the value is meant; else remove it from "
                                     "nccl.env, the pod or the image"},
};

const char *warning_meaning(enum warning_code code)
{
    return code < WARNING_COUNT ? helps[code].meaning : NULL;
}

const char *warning_cure(enum warning_code code)
{
    return code < WARNING_COUNT ? helps[code].cure : NULL;
}
