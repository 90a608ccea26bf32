/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/env_conflict.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"

typedef bool (*rules_out_fn)(const char *ours, const char *theirs);

static bool any_value(const char *ours, const char *theirs)
{
    (void)ours;
    return theirs[0] != '\0';
}

static bool is_on(const char *value)
{
    return value[0] && strcmp(value, "0") != 0;
}

/* ---- NCCL ---- */

/* A network that NCCL brings itself: with its name in NCCL_NET no plugin is tried. */
static bool is_built_in(const char *net)
{
    return strcasecmp(net, "IB") == 0 || strcasecmp(net, "Socket") == 0;
}

static bool plugin_named(const char *ours, const char *theirs)
{
    return is_built_in(ours) && theirs[0] && strcasecmp(theirs, "none") != 0;
}

static bool collnet_without_plugin(const char *ours, const char *theirs)
{
    return (is_built_in(ours) || strcasecmp(ours, "none") == 0) && is_on(theirs);
}

/* -1 leaves the choice to NCCL. */
static bool index_fixed(const char *ours, const char *theirs)
{
    return ours[0] != '-' && theirs[0];
}

/* ---- UCX ---- */

/* "mlx5_0:1"; the devices of TCP are interfaces, without a port. */
static bool are_rdma_devices(const char *devices)
{
    return strchr(devices, ':') != NULL;
}

/* A list of what is excluded leaves RDMA in it, as a rule. */
static bool has_rdma_transport(const char *list)
{
    static const char *const words[] = {"all", "rc", "ud", "dc", "ib", "srd", "gga"};
    if (list[0] == '^')
        return true;
    for (const char *at = list; *at;) {
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            if (strncmp(at, words[i], strlen(words[i])) == 0)
                return true;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return false;
}

static bool transports_of_others(const char *ours, const char *theirs)
{
    return theirs[0] && has_rdma_transport(theirs) != are_rdma_devices(ours);
}

/* ---- the table ---- */

static const struct {
    const char *ours, *theirs;
    rules_out_fn rules_out;
    const char *why;
} table[] = {
    {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude", any_value,
     "Open MPI disables TCP if both are set"},
    {"UCX_NET_DEVICES", "UCX_TLS", transports_of_others,
     "the devices have none of these transports"},
    {"NCCL_NET", "NCCL_NET_PLUGIN", plugin_named, "NCCL would ignore the plugin"},
    {"NCCL_NET", "NCCL_COLLNET_ENABLE", collnet_without_plugin,
     "NCCL would ignore the plugin that has CollNet"},
    {"NCCL_NET_PLUGIN", "NCCL_COLLNET_ENABLE", collnet_without_plugin,
     "NCCL would not load the plugin that has CollNet"},
    {"NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_RANGE", index_fixed, "NCCL would not look for the range"},
    {"NCCL_IB_GID_INDEX", "NCCL_IB_ROCE_VERSION_NUM", index_fixed,
     "NCCL would not look for the version"},
};

/* NULL: not among them. The last one counts, as in a list that an environment is made of. */
static const char *find(char *const *entries, size_t count, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = count; i-- > 0;)
        if (strncmp(entries[i], name, length) == 0 && entries[i][length] == '=')
            return entries[i];
    return NULL;
}

const char *env_conflict(char *const *theirs, size_t count, const char *name, const char *value,
                         const char **ret_why)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i].ours, name) != 0)
            continue;
        const char *entry = find(theirs, count, table[i].theirs);
        if (!entry || !table[i].rules_out(value, strchr(entry, '=') + 1))
            continue;
        *ret_why = table[i].why;
        return entry;
    }
    return NULL;
}
