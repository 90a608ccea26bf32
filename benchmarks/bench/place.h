/* SPDX-License-Identifier: Apache-2.0 */
/* Where this rank runs, as its environment and sysfs tell it: the node of its pod, the NICs that it
 * is to use (NCCL_IB_HCA, which drarun sets from the claims) and what they carry. */
#ifndef DRARUN_BENCH_PLACE_H
#define DRARUN_BENCH_PLACE_H

struct place {
    char node[64];   /* "": not known */
    char nics[64];   /* "mlx5_0,mlx5_1"; "": not said, or said in a way that names none */
    double nic_gbit; /* this rank's share of all of them; 0: not known of each */
};

/* root: "" for this machine, a folder for another one's files. */
void place_read(const char *root, struct place *ret_place);

#endif
