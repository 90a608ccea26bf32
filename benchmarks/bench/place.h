/* SPDX-License-Identifier: Apache-2.0 */
/* Where this rank runs, as its environment and sysfs tell it: the node of its pod, its kernel and
 * driver, the NICs that it is to use (NCCL_IB_HCA, else NCCL_SOCKET_IFNAME, which drarun sets from
 * the claims), what they carry, and how far its GPU is from them. */
#ifndef DRARUN_BENCH_PLACE_H
#define DRARUN_BENCH_PLACE_H

#include "lib/bench/result.h"

struct place {
    char node[64]; /* "": not known */
    /* "mlx5_0,mlx5_1"; "": not said, said in a way that names none, or more than find room */
    char nics[RESULT_NICS];
    double nic_gbit;  /* this rank's share of all of them; 0: not known of each */
    char path[8];     /* from the GPU to the nearest of them, "PIX"; "": not known */
    char nearest[24]; /* the one NIC that is so near; "": not known, or several are */
    int numa;         /* the GPU's; below 0: not known */
    char kernel[64];  /* its release; "": not known */
    char driver[32];  /* NVIDIA's, its version; "": none, or not known */
};

/* root: "" for this machine, a folder for another one's files. gpu: its PCI address; "": none. */
void place_read(const char *root, const char *gpu, struct place *ret_place);

#endif
