/* SPDX-License-Identifier: Apache-2.0 */
/* Fabric profiles as data: how a machine type is recognised, and its variables with value, reason
 * and source (profiles.json, built in; a site's file of the same shape comes before it). Shape and
 * fields: docs/design/011-derivation.md. Pure; read-only after loading, from any thread. */
#ifndef DRARUN_JOBS_PROFILES_H
#define DRARUN_JOBS_PROFILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

enum profile_data { PROFILE_RDMA = 1, PROFILE_NETDEV, PROFILE_NO_DATA };

struct profile { /* borrowed from the document */
    const char *name, *source;
    enum profile_data data;
    bool c2c;             /* GPUs on a chip-to-chip link: the rules for NVLink between nodes */
    bool whole_node;      /* works with all GPUs of a node only */
    bool gke_naming;      /* NICs called gpuNrdmaM tell their GPU */
    bool exact_interface; /* NCCL_SOCKET_IFNAME with "=" */
    bool hca_list;        /* NCCL_IB_HCA is set */
    bool roce_gid;        /* a shifted GID index may be set */
    bool merge_rails;     /* NCCL_NET_MERGE_LEVEL by rule */
    bool script_wins;     /* over the profile's variables, which are then those of "keep" alone */
    bool rail_isolated;   /* NICs of different rails do not reach each other */
    double inter_socket;  /* GB/s where nothing was probed */
    double nic_gbs;       /* GB/s of a NIC whose speed is not known */
    const json_t *detect, *variables, *prepend, *confirm, *directories, *numa_pairs;
    const json_t *machine; /* what claims and pods need (jobs/profiles/machine.h); NULL: no rules */
    const json_t *sizes;   /* instance types whose numbers differ */
    const char *unverified; /* what no machine has confirmed; NULL */
    const char *directory_file;
    const char *script; /* of the vendor, in the image: sets the environment; NULL: none */
};

struct profiles {
    struct profile *list; /* in order of detection */
    size_t count;
    json_t *documents; /* array; the built-in one is the last */
    const json_t *common, *rules;
};

/* The built-in table alone. */
int profiles_builtin(struct profiles *ret_profiles, struct drarun_error *err);
/* With a site's document before it: its profiles are tried first, and one of a known name takes its
 * place. site is referenced; NULL as above. -EINVAL names the profile, the key and what was
 * expected; unknown keys are errors. */
int profiles_load(json_t *site, struct profiles *ret_profiles, struct drarun_error *err);
void profiles_done(struct profiles *profiles);

const struct profile *profiles_find(const struct profiles *profiles, const char *name);
/* The profile of that name, which may be unknown, comes from a site's document. */
bool profiles_is_of_site(const struct profiles *profiles, const char *name);

/* What detection looks at; NULL or empty where it is not known. */
struct profile_facts {
    const json_t *labels; /* of the node, an object */
    bool (*has_attribute)(const char *key, bool (*match)(const char *value, const void *arg),
                          const void *arg, const void *node); /* of any NIC of the node */
    const void *node;
    const char *link_layer; /* of the NICs */
    const char *ibdev;      /* name of a NIC's IB device */
    const char *arch;       /* kubernetes.io/arch */
    const char *product;    /* of a GPU that the pod shows */
    const json_t *files;    /* path -> bool: in the pod */
};

/* The first profile that matches, by instance type, then by attribute of the node's NICs, then by
 * label, then by what the pod shows; ret_fact says in words what matched. NULL: none. */
const struct profile *profiles_detect(const struct profiles *profiles,
                                      const struct profile_facts *facts, char *ret_fact,
                                      size_t size);

/* What differs by the node's instance type, which may be NULL. */
struct profile_size {
    double inter_socket, nic_gbs; /* as in struct profile */
    const char *net_devs_policy;  /* what the vendor's plugin sets NCCL_NETDEVS_POLICY to; NULL */
};
struct profile_size profile_size(const struct profile *profile, const char *instance_type);

/* Any of a JSON array of shell-like patterns with * alone, without regard to case; false for a text
 * of NULL. */
bool profile_match_any(const char *text, const void *patterns);
/* Adds the absolute paths whose presence in a pod the profiles ask for, each once. */
void profiles_files(const struct profiles *profiles, struct strlist *paths);
/* Adds the paths of vendors' scripts, each once. */
void profiles_scripts(const struct profiles *profiles, struct strlist *paths);
/* The text of a rule, for explanations. */
const char *profile_rule(const struct profiles *profiles, const char *id);

#endif
