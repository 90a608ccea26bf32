/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make the variables. */
#ifndef DRARUN_JOBS_VARIABLES_PRIVATE_H
#define DRARUN_JOBS_VARIABLES_PRIVATE_H

#include "jobs/derive/variables/variables.h"

struct making {
    const struct plan_input *in;
    const struct inventory *inventories;
    const struct devices *devices;
    const struct profile *profile;
    const char *fact; /* that told the profile */
    const struct placement *placement;
    uint32_t version;
    struct plan_notes *notes;
    struct variables *vars;      /* being made */
    const struct inventory *own; /* whose rows are expanded; NULL: those of all workers */
    const char *interface;       /* of the default route of a worker that shows one; NULL */
    bool interfaces_differ;      /* two workers show different ones */
    bool tcp_on_nics;            /* every worker has NICs for TCP */
};

/* variables_set.c: whether a variable of the user's rules ours out (jobs/ranks/env_conflict.h);
 * then says so. */
bool making_ruled_out(struct making *m, const char *name, const char *value);
/* Sets a variable of one worker or rank, unless the user did: then says so where it differs. */
void making_set_own(struct making *m, struct plan_vars *vars, const char *name, const char *value,
                    const char *rule, const char *fact);
/* The same for the place of a rank. */
void making_set_place(struct making *m, struct plan_vars *vars, const char *name, const char *value,
                      const char *fact);

/* inspector.c: NCCL's inspector, where every worker has its library. */
void making_inspector(struct making *m);

/* variables_gid.c: the family of the whole job's RoCE addresses, then what a worker needs. */
void making_gid_family(struct making *m);
void making_gid(struct making *m, uint32_t worker);

/* variables_script.c: what a vendor's script set, over the rows of the common environment. */
void making_script(struct making *m);
/* Says where a value of ours takes the place of the script's. */
void making_script_loses(struct making *m, const char *name, const char *value, const char *rule);

#endif
