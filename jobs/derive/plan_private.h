/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the plan. */
#ifndef DRARUN_JOBS_PLAN_PRIVATE_H
#define DRARUN_JOBS_PLAN_PRIVATE_H

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

/* variables.c */
void ncclenv_common(struct planning *p);
void ncclenv_worker(struct planning *p, uint32_t w);
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

/* score.c */
double score_worker(const struct plan_worker *worker, bool arm);

/* placement_cpus.c */
void plan_cut_cpus(struct planning *p, uint32_t w);

#endif
