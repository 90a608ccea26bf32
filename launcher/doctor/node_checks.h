/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a machine. root: a directory that stands for "/". host: the same machine, read.
 * Each appends at least one finding, also where there is nothing to check. */
#ifndef DRARUN_LAUNCHER_DOCTOR_NODE_CHECKS_H
#define DRARUN_LAUNCHER_DOCTOR_NODE_CHECKS_H

#include "launcher/doctor/findings.h"
#include "lib/topo/host.h"

typedef void (*node_check_fn)(int root, const struct topo_host *host, struct findings *findings);

/* node_runtime.c */
void check_kubelet(int root, const struct topo_host *host, struct findings *findings);
void check_cdi(int root, const struct topo_host *host, struct findings *findings);
/* node_rdma.c */
void check_links(int root, const struct topo_host *host, struct findings *findings);
void check_mtu(int root, const struct topo_host *host, struct findings *findings);
void check_netns_mode(int root, const struct topo_host *host, struct findings *findings);
void check_gpudirect(int root, const struct topo_host *host, struct findings *findings);
void check_port_errors(int root, const struct topo_host *host, struct findings *findings);
/* node_pci.c */
void check_pcie(int root, const struct topo_host *host, struct findings *findings);
void check_iommu(int root, const struct topo_host *host, struct findings *findings);
void check_acs(int root, const struct topo_host *host, struct findings *findings);
/* node_limits.c */
void check_memlock(int root, const struct topo_host *host, struct findings *findings);
void check_nofile(int root, const struct topo_host *host, struct findings *findings);
void check_hugepages(int root, const struct topo_host *host, struct findings *findings);
void check_shm(int root, const struct topo_host *host, struct findings *findings);

/* All of them. Errors: the root cannot be read, or memory runs out. */
int node_check(int root, struct findings *findings, struct drarun_error *err);

/* A file of at most `limit` bytes below the root as text, links resolved; false: there is none that
 * can be read. */
bool node_text(int root, const char *path, size_t limit, struct buf *out);

#endif
