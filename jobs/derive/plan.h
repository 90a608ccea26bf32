/* SPDX-License-Identifier: Apache-2.0 */
/* From what was allocated to what every rank gets: profile, environment with the reason of each
 * variable, GPU and NICs of each rank, score, warnings or a refusal
 * (docs/design/011-derivation.md). Pure; a plan is read-only after building. */
#ifndef DRARUN_JOBS_PLAN_H
#define DRARUN_JOBS_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/derive/devices/devices.h"
#include "jobs/derive/inventory/inventory.h"
#include "jobs/derive/nccl/nccl_topology.h"
#include "jobs/derive/warnings/warnings.h"
#include "jobs/profiles/profiles.h"
#include "lib/base/buf.h"

enum plan_origin {                     /* what set a variable */
                   PLAN_BY_COMMON = 1, /* the table's rows for every job */
                   PLAN_BY_PROFILE,    /* the table's rows for the machine */
                   PLAN_BY_SCRIPT,     /* the vendor's script in the pod */
                   PLAN_BY_RULE,       /* a rule over the devices of this job */
                   PLAN_BY_PLACE,      /* the place of a rank in the job */
                   PLAN_BY_USER,
};

struct plan_var { /* borrowed or in the plan's pool */
    const char *name, *value;
    enum plan_origin origin;
    const char *rule;   /* id in profiles.json, or the profile's name */
    const char *fact;   /* what was seen that made the rule hold */
    const char *reason; /* why the value is right */
    const char *source; /* where that is written */
};

struct plan_vars {
    struct plan_var *list;
    size_t count, cap;
    bool failed;
};

struct plan_gpu {
    struct device device;
    const char *cpus; /* NULL: not known */
};

struct plan_worker {
    struct inventory inventory;
    struct devices devices;
    const char *pod, *node;
    const char *clique; /* NULL: not known */
    struct probe probe; /* the inventory's, as what follows to node_device_count */
    uint32_t unread_gpus, unread_nics;
    uint32_t plugin_gpus;
    const struct plan_left_nic *left;
    size_t left_count;
    bool channel, mig;
    const struct device *node_devices;
    size_t node_device_count;
    struct plan_gpu *gpus; /* in PCI order */
    size_t gpu_count;
    const struct plan_nic *nics; /* that carry data, in PCI order */
    size_t nic_count;
    const char *tcp_interfaces;
    const struct profile *profile;
    struct nccl_model *model; /* NULL: no GPU or no NIC */
    struct nccl_result *result;
    struct plan_vars env;       /* the same for every rank of the worker */
    struct plan_vars *rank_env; /* for each GPU; NULL where the pod is one rank */
    double score;               /* 0 to 1; negative: none */
    uint32_t first_rank;
};

struct plan {
    const struct profile *profile;
    const char *profile_fact;
    struct plan_vars env, prepend;
    struct plan_worker *workers;
    size_t worker_count;
    uint32_t world_size;
    uint32_t version;
    bool per_pod;
    bool tcp_on_nics; /* every worker has tcp_interfaces */
    bool roce_ipv6;   /* the RoCE NICs use their IPv6 addresses */
    double score;     /* the least of the workers'; negative: none */
    struct warnings warnings;
    struct warning refusal; /* code 0: the plan may run */
    struct strlist pool;
};

/* The documents, slices and profiles of the input must outlive the plan. A refusal is a plan, with
 * 0. -EINVAL, -EAGAIN: the input cannot be read (allocation_read, device_read, probe_read). */
int plan_build(const struct plan_input *input, struct plan *ret_plan, struct drarun_error *err);
void plan_done(struct plan *plan);

/* The workers and warnings of several plans, one for each role in order, as one plan: what is of a
 * plan as a whole (env, profile, ..) is the first one's. Borrows all from the plans, which stay; it
 * is given back with plan_join_done. -ENOMEM. */
int plan_join(const struct plan *plans, size_t count, struct plan *ret_joined,
              struct drarun_error *err);
void plan_join_done(struct plan *joined);

/* As the vectors under tests/data have it; explain adds rule, fact, reason and source of each
 * variable. NULL: out of memory. */
json_t *plan_to_json(const struct plan *plan, bool explain);

const struct plan_var *plan_vars_find(const struct plan_vars *vars, const char *name);
/* Only a launcher knows the value: the place of a rank, and where rank 0 listens. */
bool plan_var_is_of_job(const struct plan_var *var);

/* "8 GPUs, 8 NICs: 8 PIX, 400 GB/s of 400": one line for a worker. */
void plan_worker_summary(const struct plan_worker *worker, struct buf *out);

#endif
