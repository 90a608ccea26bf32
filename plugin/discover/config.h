/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator wants offered, and under which names: the document PluginConfig. Strict:
 * findings name file, line, column and path.
 *
 *     apiVersion: drarun.dev/v1alpha1
 *     kind: PluginConfig
 *     rescan: 30s                          # how often all is read again, beside news of the kernel
 *     uplinks: [eth0]                      # instead of the default route's interfaces
 *     nics:
 *       include: CEL                       # over the device as published; default: all that the
 *                                          # host does nothing over (live_use.h)
 *       exclude: CEL
 *       excludePrefixes: [docker, cilium_] # of interfaces
 *       virtualPrefixes: [rail]            # interfaces without hardware that are offered
 *       managementNodes: false             # /dev/infiniband/umadN and issmN, too
 *       edits: {mounts: [{hostPath: /opt/gib, containerPath: /usr/local/gib}]} # config_edits.h
 *     gpus: {include: CEL, exclude: CEL, edits: ...}
 *     names:                               # the first that matches; else by address
 *     - {match: CEL, name: "rail-{rail}"}
 *     taints: {linkDown: NoSchedule, xid: NoSchedule, lost: NoSchedule}
 *     claims: {allow: [interface.name, routes], addresses: [10.9.0.0/16]}   # claim_limits.h
 */
#ifndef DRARUN_PLUGIN_DISCOVER_CONFIG_H
#define DRARUN_PLUGIN_DISCOVER_CONFIG_H

#include <stdint.h>
#include "lib/base/strlist.h"
#include "lib/cel/cel.h"
#include "lib/doc/doc.h"
#include "plugin/discover/claim_limits.h"

#define CONFIG_NAME_RULES_MAX 32u

enum fault_effect { FAULT_NO_SCHEDULE = 1, FAULT_NO_EXECUTE, FAULT_NONE };

struct config_filter {
    struct cel_program *include, *exclude; /* NULL: all, none */
};

struct config_name_rule {
    struct cel_program *match; /* NULL: every device */
    char *name;                /* with {rail}, {ifName}, {rdmaDevice}, {address} */
};

struct discover_config { /* read-only once made: threads may share it */
    int64_t rescan_ms;
    struct strlist uplinks;
    struct strlist exclude_prefixes, virtual_prefixes;
    /* A pod that has them can ask and change an InfiniBand fabric; MPI, NCCL and UCX need none. */
    bool management_nodes;
    struct config_filter nics, gpus;
    json_t *nic_edits, *gpu_edits; /* config_edits.h; NULL: none */
    struct config_name_rule names[CONFIG_NAME_RULES_MAX];
    size_t name_count;
    enum fault_effect link_down, xid, lost;
    struct claim_limits claims;
};

/* Without a document: the defaults. */
void discover_config_default(struct discover_config *ret_config);
int discover_config_read(const struct doc *doc, struct discover_config *ret_config,
                         struct drarun_error *err);
/* From a file. */
int discover_config_load(const char *path, struct discover_config *ret_config,
                         struct drarun_error *err);
void discover_config_done(struct discover_config *config);

/* Whether text begins with one of the prefixes. */
bool config_has_prefix(const struct strlist *prefixes, const char *text);

#endif
