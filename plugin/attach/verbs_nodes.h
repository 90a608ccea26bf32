/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes in /dev/infiniband of a container that is being created: each of its RDMA devices has
 * the one that the kernel says is the device's now, in the container's network namespace.
 *
 * In exclusive mode a move may give the device another number than the CDI edits of its claim say.
 * What a container may open is settled before its hooks run, so that those edits also make nodes of
 * the numbers that a device can get, in a directory of the claim's own (cdi_spec.h); the right one
 * is renamed to where it belongs, and the others are removed. That the container may then open
 * numbers of other devices gives it nothing: in that mode the kernel opens a verbs device for its
 * own network namespace alone. In shared mode nothing moves, such nodes are not there, and a wrong
 * number refuses the container. */
#ifndef DRARUN_ATTACH_VERBS_NODES_H
#define DRARUN_ATTACH_VERBS_NODES_H

#include <stddef.h>
#include <sys/types.h>
#include "drarun/error.h"

#define VERBS_NODES_DIR "/dev/infiniband"
#define VERBS_SPARES_PREFIX                                                                        \
    ".drarun-"          /* and the claim's UID: VERBS_NODES_DIR's directory of them */
#define VERBS_MAJOR 231 /* the kernel's, of its first 32 nodes (IB_UVERBS_MAJOR) */
#define VERBS_MINOR 192
#define VERBS_SPARES 32

struct verbs_nodes {
    int dir;    /* the container's /dev/infiniband; -1: it has none */
    int spares; /* those of the claim; -1: there are none */
    int ns;     /* the container's network namespace */
    char spares_name[80];
};

/* root: the container's, as its configuration has it (oci_config.h); pid: its process, which may
 * have made that its "/" already. The caller ends *ret with verbs_nodes_done. */
int verbs_nodes_open(pid_t pid, const char *root, const char *claim_uid, int ns,
                     struct verbs_nodes *ret, struct drarun_error *err);
/* Makes sure of one RDMA device. -ESTALE: the container's node is not this device's and there is
 * none to take instead. */
int verbs_nodes_ensure(struct verbs_nodes *nodes, const char *rdma, struct drarun_error *err);
/* Removes what is left: spare nodes, and those of numbers that no device in the namespace has. */
int verbs_nodes_clear(struct verbs_nodes *nodes, struct drarun_error *err);
void verbs_nodes_done(struct verbs_nodes *nodes);

#endif
