/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the plan. */
#ifndef DRARUN_JOBS_PLAN_PRIVATE_H
#define DRARUN_JOBS_PLAN_PRIVATE_H

#include "jobs/derive/inventory/allocation.h"
#include "jobs/derive/plan.h"
#include "jobs/derive/warnings/plan_notes.h"

struct planning {
    const struct plan_input *in;
    struct plan *plan;
    struct plan_notes *notes;      /* of the plan, until it is built */
    const struct plan_worker *own; /* whose rows are expanded; NULL: those of all workers */
    const char *interface;         /* of the default route of a worker that shows one; NULL */
    bool interfaces_differ;        /* two workers show different ones */
};

/* plan_parts.c. */
/* Adds or replaces. */
void plan_vars_set(struct plan_vars *vars, struct plan_var var);
void plan_vars_drop(struct plan_vars *vars, const char *name);
/* To the worker's GPUs or NICs. */
int plan_add_device(struct planning *p, uint32_t w, const struct device *device,
                    struct drarun_error *err);

/* inventory.c: claims and slices to GPUs and NICs. 1: refused. */
int plan_read_worker(struct planning *p, uint32_t w, struct drarun_error *err);
int plan_find_profile(struct planning *p, uint32_t w, char *ret_fact, size_t size,
                      const struct profile **ret_profile, struct drarun_error *err);

/* inventory_nics.c: keeps the NICs that carry data, and leaves out and names the others. */
int plan_choose_nics(struct planning *p, uint32_t w, struct drarun_error *err);
/* The reasons of those that were left out, in a line. */
void plan_left_nics(const struct plan_worker *worker, struct buf *out);
/* What the pod shows of a device; NULL. */
const struct probe_ibdev *plan_probed_nic(const struct plan_worker *worker,
                                          const struct device *device);
/* Names, ports, speed; nominal_gbs where the speed is not known (0: nothing better). */
void plan_describe_nic(const struct plan_worker *worker, double nominal_gbs, struct plan_nic *nic);

/* inventory_visible.c: what an allocated device is by its driver and request, DEVICE_OTHER where
 * neither says; an allocated device of which nothing but its name is known; then, for a worker
 * whose claims have been read, what its pod shows in place of those and of what no claim gives. */
enum device_kind plan_role(const struct allocation_result *r);
int plan_add_unread(struct planning *p, uint32_t w, const struct allocation_result *r,
                    struct drarun_error *err);
int plan_add_seen(struct planning *p, uint32_t w, struct drarun_error *err);

/* inventory_metadata.c */
int plan_read_metadata(struct planning *p, uint32_t w, struct drarun_error *err);
/* What a file says of an allocated device; false: nothing that can be used. */
bool plan_metadata_device(struct planning *p, uint32_t w, const struct allocation_result *r,
                          struct device *ret_device);
/* Adds what its slice does not say. */
void plan_metadata_fill(struct planning *p, uint32_t w, struct device *device,
                        const struct device *told);
/* Without claims: adds it to the devices that the pod shows. */
int plan_join_metadata(struct planning *p, uint32_t w, struct drarun_error *err);

/* After the profile is known: which NICs carry data, names, rails, NUMA nodes. 1: refused. */
int plan_settle_devices(struct planning *p, uint32_t w, struct drarun_error *err);

/* variables.c */
void ncclenv_common(struct planning *p);
void ncclenv_worker(struct planning *p, uint32_t w);
/* All of the worker's AMD GPUs have a number in ROCm's order. */
bool ncclenv_has_hip_numbers(const struct plan_worker *worker);
void ncclenv_ranks(struct planning *p, uint32_t w);

/* variables_set.c: the user's value or ours; NULL. */
const char *ncclenv_effective(const struct planning *p, const char *name);
bool ncclenv_user(const struct planning *p, const char *name, const char **ret_value);
/* Whether a variable of the user's rules ours out (jobs/ranks/env_conflict.h); then says so. */
bool ncclenv_ruled_out(struct planning *p, const char *name, const char *value);

/* Sets a variable of one worker or rank, unless the user did: then says so where it differs. */
void ncclenv_set_own(struct planning *p, struct plan_vars *vars, const char *name,
                     const char *value, const char *rule, const char *fact);
/* The same for the place of a rank. */
void ncclenv_set_place(struct planning *p, struct plan_vars *vars, const char *name,
                       const char *value, const char *fact);

/* inspector.c: NCCL's inspector, where every worker has its library. */
void ncclenv_inspector(struct planning *p);
/* variables_gid.c: the family of the whole job's RoCE addresses, then what a worker needs. */
void ncclenv_gid_family(struct planning *p);
void ncclenv_gid(struct planning *p, uint32_t w);

/* variables_script.c: what a vendor's script set, over the rows of the common environment. */
void ncclenv_script(struct planning *p);
/* Says where a value of ours takes the place of the script's. */
void ncclenv_script_loses(struct planning *p, const char *name, const char *value,
                          const char *rule);

/* pairs.c: classes of the pairs and NCCL's choice. */
int pairs_run(struct planning *p, uint32_t w, struct drarun_error *err);
void pairs_warn(struct planning *p, uint32_t w);
/* GPUs on a chip-to-chip link, by the profile or the product. */
bool pairs_c2c(const struct plan_worker *worker);

/* score.c */
double score_worker(const struct plan_worker *worker, bool arm);

/* placement_cpus.c */
void plan_cut_cpus(struct planning *p, uint32_t w);

#endif
