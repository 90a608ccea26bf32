/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a plan add to it, and read of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/nccl/nccl_topology.h"
#include "jobs/derive/plan_private.h"
#include "lib/base/error.h"
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
    if (vars->count == vars->cap) {
        size_t cap = vars->cap ? 2 * vars->cap : 8;
        struct plan_var *list = reallocarray(vars->list, cap, sizeof *list);
        if (!list) {
            vars->failed = true;
            return;
        }
        vars->list = list;
        vars->cap = cap;
    }
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

static int grow(void *list, size_t count, size_t size, struct drarun_error *err)
{
    void **pointer = list;
    void *grown = reallocarray(*pointer, count + 1, size);
    if (!grown)
        return error_set(err, ENOMEM, "plan: out of memory");
    *pointer = grown;
    return 0;
}

int plan_add_device(struct planning *p, uint32_t w, const struct device *device,
                    struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    int rc = 0;
    switch (device->kind) {
    case DEVICE_GPU:
    case DEVICE_MIG:
        rc = grow(&worker->gpus, worker->gpu_count, sizeof *worker->gpus, err);
        if (rc == 0)
            worker->gpus[worker->gpu_count++] = (struct plan_gpu){*device, NULL};
        worker->mig |= device->kind == DEVICE_MIG;
        break;
    case DEVICE_NIC:
        rc = grow(&worker->nics, worker->nic_count, sizeof *worker->nics, err);
        if (rc == 0)
            worker->nics[worker->nic_count++] = (struct plan_nic){.device = *device};
        break;
    case DEVICE_CHANNEL:
        worker->channel = true;
        break;
    case DEVICE_OTHER:
        break;
    }
    if (rc == 0 && (worker->gpu_count > NCCL_GPUS_MAX || worker->nic_count > NCCL_NICS_MAX))
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "worker %u has more than %u GPUs or %u NICs",
                          w, NCCL_GPUS_MAX, NCCL_NICS_MAX);
    return rc;
}
