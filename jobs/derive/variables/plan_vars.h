/* SPDX-License-Identifier: Apache-2.0 */
/* A list of environment variables, each with what set it and why. Pure. */
#ifndef DRARUN_JOBS_PLAN_VARS_H
#define DRARUN_JOBS_PLAN_VARS_H

#include <stdbool.h>
#include <stddef.h>

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

/* NULL: it is not there. */
const struct plan_var *plan_vars_find(const struct plan_vars *vars, const char *name);
/* Only a launcher knows the value: the place of a rank, and where rank 0 listens. */
bool plan_var_is_of_job(const struct plan_var *var);
/* Adds or replaces. */
void plan_vars_set(struct plan_vars *vars, struct plan_var var);
void plan_vars_drop(struct plan_vars *vars, const char *name);

#endif
