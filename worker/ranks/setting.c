/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/setting.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/env_conflict.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* ---- one variable ---- */

typedef void (*apply_fn)(struct strlist *env, const char *name, const char *value);

static void prepend(struct strlist *env, const char *name, const char *value)
{
    const char *there = env_get(env, name);
    if (!there || !there[0]) {
        env_set(env, name, value);
        return;
    }
    cleanup_free char *copy = strdup(there); /* the value lives until it is set again */
    if (copy)
        env_setf(env, name, "%s:%s", value, copy);
    else
        env->failed = true;
}

static void apply(struct strlist *env, char *const entries[], size_t count, apply_fn fn)
{
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(entries[i], '=');
        cleanup_free char *name =
            equals ? strndup(entries[i], (size_t)(equals - entries[i])) : NULL;
        if (name && name[0])
            fn(env, name, equals + 1);
        else if (equals && !name)
            env->failed = true;
    }
}

/* The first `others` entries of env are the user's, the image's and the pod's. */
static void add_defaults(const Drarun__Wire__Environment *level, const struct strlist *files,
                         size_t others, struct strlist *env)
{
    for (size_t i = 0; i < level->n_defaults; i++) {
        const char *equals = strchr(level->defaults[i], '='), *why = NULL;
        cleanup_free char *name =
            equals ? strndup(level->defaults[i], (size_t)(equals - level->defaults[i])) : NULL;
        if (equals && !name)
            env->failed = true;
        if (name && name[0] && !env_conflict(env->items, others, name, equals + 1, &why) &&
            !env_conflict(files->items, files->count, name, equals + 1, &why))
            env_default(env, name, equals + 1);
    }
}

/* ---- levels ---- */

static const Drarun__Wire__RankSetting *find(const struct rank_settings *settings,
                                             uint32_t local_rank)
{
    const Drarun__Wire__WorkerSetting *worker = settings->worker;
    for (size_t i = 0; worker && i < worker->n_ranks; i++)
        if (worker->ranks[i]->local_rank == local_rank)
            return worker->ranks[i];
    return NULL;
}

void rank_setting_base(const struct rank_settings *settings, struct strlist *env)
{
    const Drarun__Wire__Environment *own = settings->worker ? settings->worker->env : NULL;
    if (settings->job)
        apply(env, settings->job->set, settings->job->n_set, env_set);
    if (own)
        apply(env, own->set, own->n_set, env_set);
}

void rank_setting_add(const struct rank_settings *settings, uint32_t local_rank,
                      const struct strlist *files, struct strlist *env)
{
    const Drarun__Wire__RankSetting *rank = find(settings, local_rank);
    const Drarun__Wire__Environment *levels[] = {
        rank ? rank->env : NULL, settings->worker ? settings->worker->env : NULL, settings->job};
    if (levels[0])
        apply(env, levels[0]->set, levels[0]->n_set, env_set);
    size_t others = env->count;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (levels[i])
            add_defaults(levels[i], files, others, env);
    for (size_t i = ARRAY_LEN(levels); i-- > 0;)
        if (levels[i])
            apply(env, levels[i]->prepend, levels[i]->n_prepend, prepend);
}

/* ---- CPUs ---- */

bool rank_setting_binds(const struct rank_settings *settings)
{
    const Drarun__Wire__WorkerSetting *worker = settings->worker;
    for (size_t i = 0; worker && i < worker->n_ranks; i++)
        if (worker->ranks[i]->cpus[0])
            return true;
    return false;
}

static bool is_usable(const struct cpus *usable, uint32_t id)
{
    for (size_t i = 0; i < usable->count; i++)
        if (usable->list[i].id == id)
            return true;
    return false;
}

int rank_setting_cpus(const struct rank_settings *settings, uint32_t local_rank,
                      const struct cpus *usable, uint32_t **ret_ids, size_t *ret_count,
                      struct drarun_error *err)
{
    const Drarun__Wire__RankSetting *rank = find(settings, local_rank);
    uint32_t *ids = NULL;
    size_t count = 0, kept = 0;
    int rc = cpulist_parse(rank ? rank->cpus : "", &ids, &count, err);
    if (rc < 0)
        return error_prefix(err, "CPUs of local rank %u", local_rank);
    for (size_t i = 0; i < count; i++)
        if (is_usable(usable, ids[i]))
            ids[kept++] = ids[i];
    *ret_ids = ids;
    *ret_count = kept;
    return 0;
}
