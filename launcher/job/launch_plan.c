/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/launch_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strlist.h"

struct environment {
    Drarun__Wire__Environment wire;
    struct strlist set, defaults, prepend;
};

struct rank {
    Drarun__Wire__RankSetting wire;
    struct environment env;
    char *cpus;
};

struct worker {
    Drarun__Wire__WorkerSetting wire;
    struct environment env;
    struct rank *ranks;
    Drarun__Wire__RankSetting **pointers;
    size_t count;
};

struct launch_plan {
    struct environment all;
    struct worker *workers;
    size_t count;
};

/* ---- environments ---- */

static void add_var(const struct plan_var *var, struct environment *env)
{
    if (var->origin == PLAN_BY_USER)
        strlist_addf(&env->set, "%s=%s", var->name, var->value);
    else if (!plan_var_is_of_job(var))
        strlist_addf(&env->defaults, "%s=%s", var->name, var->value);
}

static void add_vars(const struct plan_vars *vars, struct environment *env)
{
    for (size_t i = 0; i < vars->count; i++)
        add_var(&vars->list[i], env);
}

static void add_prepend(const struct plan_var *var, struct environment *env)
{
    strlist_addf(&env->prepend, "%s=%s", var->name, var->value);
}

/* ---- what is of a whole plan ---- */

struct plans {
    const struct plan *list;
    size_t count;
};

static const struct plan_vars *env_of(const struct plan *plan)
{
    return &plan->env;
}

static const struct plan_vars *prepend_of(const struct plan *plan)
{
    return &plan->prepend;
}

/* Every plan has it with this value, and by the user or not. */
static bool is_common(const struct plans *plans, const struct plan_vars *(*of)(const struct plan *),
                      const struct plan_var *var)
{
    for (size_t i = 0; i < plans->count; i++) {
        const struct plan_var *other = plan_vars_find(of(&plans->list[i]), var->name);
        if (!other || strcmp(other->value, var->value) != 0 ||
            (other->origin == PLAN_BY_USER) != (var->origin == PLAN_BY_USER))
            return false;
    }
    return true;
}

/* Those of a plan as a whole that all plans have, or that they do not. */
static void add_whole(const struct plans *plans, const struct plan *plan, bool common,
                      struct environment *env)
{
    for (size_t i = 0; i < plan->env.count; i++)
        if (is_common(plans, env_of, &plan->env.list[i]) == common)
            add_var(&plan->env.list[i], env);
    for (size_t i = 0; i < plan->prepend.count; i++)
        if (is_common(plans, prepend_of, &plan->prepend.list[i]) == common)
            add_prepend(&plan->prepend.list[i], env);
}

/* A rank that sees its one MIG device alone finds it as the first, whatever its place. */
static void add_local_rank(const struct plan_vars *vars, uint32_t place, struct environment *env)
{
    char text[16];
    const struct plan_var *var = plan_vars_find(vars, "LOCAL_RANK");
    snprintf(text, sizeof text, "%u", place);
    if (var && strcmp(var->value, text) != 0)
        strlist_addf(&env->set, "LOCAL_RANK=%s", var->value);
}

/* False: out of memory. */
static bool seal(struct environment *env)
{
    drarun__wire__environment__init(&env->wire);
    env->wire.set = env->set.items;
    env->wire.n_set = env->set.count;
    env->wire.defaults = env->defaults.items;
    env->wire.n_defaults = env->defaults.count;
    env->wire.prepend = env->prepend.items;
    env->wire.n_prepend = env->prepend.count;
    return !env->set.failed && !env->defaults.failed && !env->prepend.failed;
}

static void environment_done(struct environment *env)
{
    strlist_done(&env->set);
    strlist_done(&env->defaults);
    strlist_done(&env->prepend);
}

/* ---- levels ---- */

static bool fill_rank(const struct plan_worker *from, uint32_t place, struct rank *rank)
{
    drarun__wire__rank_setting__init(&rank->wire);
    rank->wire.local_rank = place;
    if (from->rank_env) {
        add_vars(&from->rank_env[place], &rank->env);
        add_local_rank(&from->rank_env[place], place, &rank->env);
    }
    if (!seal(&rank->env))
        return false;
    rank->wire.env = &rank->env.wire;
    if (!from->gpus[place].cpus)
        return true;
    rank->cpus = strdup(from->gpus[place].cpus);
    if (rank->cpus)
        rank->wire.cpus = rank->cpus;
    return rank->cpus != NULL;
}

static bool fill_worker(const struct plans *plans, const struct plan *plan,
                        const struct plan_worker *from, uint32_t ranks, struct worker *worker)
{
    drarun__wire__worker_setting__init(&worker->wire);
    add_whole(plans, plan, false, &worker->env);
    add_vars(&from->env, &worker->env);
    if (!seal(&worker->env))
        return false;
    worker->wire.env = &worker->env.wire;
    if (ranks != from->gpu_count || ranks == 0)
        return true;
    worker->ranks = calloc(ranks, sizeof *worker->ranks);
    worker->pointers = calloc(ranks, sizeof *worker->pointers);
    if (!worker->ranks || !worker->pointers)
        return false;
    for (uint32_t i = 0; i < ranks; i++) {
        worker->count++;
        if (!fill_rank(from, i, &worker->ranks[i]))
            return false;
        worker->pointers[i] = &worker->ranks[i].wire;
    }
    worker->wire.ranks = worker->pointers;
    worker->wire.n_ranks = ranks;
    return true;
}

static bool fill(struct launch_plan *p, const struct plans *plans, const struct rankmap *map)
{
    size_t w = 0;
    p->workers = calloc(map->workers, sizeof *p->workers);
    if (!p->workers)
        return false;
    p->count = map->workers;
    add_whole(plans, &plans->list[0], true, &p->all);
    bool good = seal(&p->all);
    for (size_t i = 0; i < plans->count; i++) {
        const struct plan *plan = &plans->list[i];
        for (size_t k = 0; good && k < plan->worker_count && w < p->count; k++, w++)
            good = fill_worker(plans, plan, &plan->workers[k], map->local_sizes[w], &p->workers[w]);
    }
    return good;
}

struct launch_plan *launch_plan_new(const struct plan *plans, size_t count,
                                    const struct rankmap *map)
{
    const struct plans all = {plans, count};
    struct launch_plan *p = calloc(1, sizeof *p);
    if (p && !fill(p, &all, map)) {
        launch_plan_free(p);
        return NULL;
    }
    return p;
}

void launch_plan_free(struct launch_plan *plan)
{
    if (!plan)
        return;
    for (size_t w = 0; w < plan->count; w++) {
        struct worker *worker = &plan->workers[w];
        for (size_t i = 0; i < worker->count; i++) {
            environment_done(&worker->ranks[i].env);
            free(worker->ranks[i].cpus);
        }
        environment_done(&worker->env);
        free(worker->ranks);
        free(worker->pointers);
    }
    environment_done(&plan->all);
    free(plan->workers);
    free(plan);
}

Drarun__Wire__Environment *launch_plan_all(struct launch_plan *plan)
{
    return &plan->all.wire;
}

Drarun__Wire__WorkerSetting *launch_plan_worker(struct launch_plan *plan, uint32_t worker)
{
    return worker < plan->count && plan->workers[worker].wire.env ? &plan->workers[worker].wire
                                                                  : NULL;
}
