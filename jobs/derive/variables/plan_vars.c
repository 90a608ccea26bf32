/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/variables/plan_vars.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/unconst.h"

const struct plan_var *plan_vars_find(const struct plan_vars *vars, const char *name)
{
    for (size_t i = 0; i < vars->count; i++)
        if (strcmp(vars->list[i].name, name) == 0)
            return &vars->list[i];
    return NULL;
}

bool plan_var_is_of_job(const struct plan_var *var)
{
    return var->origin == PLAN_BY_PLACE || strncmp(var->name, "MASTER_", strlen("MASTER_")) == 0;
}

void plan_vars_set(struct plan_vars *vars, struct plan_var var)
{
    struct plan_var *there = unconst(plan_vars_find(vars, var.name));
    if (there) {
        *there = var;
        return;
    }
    struct plan_var *list = array_room(vars->list, vars->count, &vars->cap, sizeof *list);
    if (!list) {
        vars->failed = true;
        return;
    }
    vars->list = list;
    vars->list[vars->count++] = var;
}

void plan_vars_drop(struct plan_vars *vars, const char *name)
{
    struct plan_var *there = unconst(plan_vars_find(vars, name));
    if (!there)
        return;
    vars->count--;
    memmove(there, there + 1, (size_t)(vars->list + vars->count - there) * sizeof *there);
}
