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
#include "jobs/derive/variables/plan_vars.h"
#include "jobs/derive/warnings/warnings.h"
#include "jobs/profiles/profiles.h"
#include "lib/base/buf.h"

struct plan_gpu {
    struct device device;
    const char *cpus; /* NULL: not known */
};

/* Borrowed from what the steps returned (plan.steps). Of a refused plan only what was read before
 * the refusal: no ranks, CPUs, variables, pairs or scores, nothing of the workers after the refused
 * one, and gpus and nics of that one only where MIXED_PROFILES refused it. */
struct plan_worker {
    const char *pod, *node;
    const char *clique; /* NULL: not known */
    const struct profile *profile;
    const struct plan_gpu *gpus; /* in PCI order */
    size_t gpu_count;
    uint32_t unread_gpus, unread_nics; /* claimed, and described by nothing (slices_unknown) */
    uint32_t plugin_gpus; /* of a device plugin, which no probe has shown: they are in no list */
    const struct plan_nic *nics; /* that carry data, in PCI order */
    size_t nic_count;
    const struct plan_left_nic *left; /* NICs that carry none */
    size_t left_count;
    bool channel;                   /* it has one for NVLink between nodes */
    const struct nccl_model *model; /* NULL: no GPU or no NIC */
    const struct nccl_result *result;
    struct plan_vars env;             /* the same for every rank of the worker */
    const struct plan_vars *rank_env; /* for each GPU; NULL where the ranks are not one a GPU */
    double score;                     /* 0 to 1; negative: none */
    uint32_t first_rank;
};

struct plan_steps;

struct plan {
    const struct profile *profile;
    const char *profile_fact;
    struct plan_vars env, prepend;
    struct plan_worker *workers;
    size_t worker_count;
    uint32_t world_size;
    uint32_t version;
    bool per_pod, shared; /* as in struct placement */
    bool roce_ipv6;       /* the RoCE NICs use their IPv6 addresses */
    double score;         /* the least of the workers'; negative: none */
    struct warnings warnings;
    struct warning refusal; /* code 0: the plan may run */
    struct strlist pool;
    struct plan_steps *steps; /* what the steps returned; NULL: of no plan_build */
};

/* NCCL's version as an option says it; NULL: it does not. DRARUN_ERR_USAGE. */
int plan_check_version(const char *option, struct drarun_error *err);

/* The documents, slices and profiles of the input must outlive the plan. A refusal is a plan, with
 * 0: it has all workers with what was read of them (struct plan_worker), the warnings so far, the
 * profile if worker 0 was not refused, and no ranks. -EINVAL, -EAGAIN: the input cannot be read
 * (allocation_read, device_read, probe_read). */
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

/* "8 GPUs, 8 NICs: 8 PIX, 400 GB/s of 400": one line for a worker. */
void plan_worker_summary(const struct plan_worker *worker, struct buf *out);

#endif
