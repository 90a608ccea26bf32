/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a variable, before which the user's own value goes. */
#include <string.h>

#include "jobs/derive/plan_private.h"
#include "jobs/ranks/env_conflict.h"

bool ncclenv_user(const struct planning *p, const char *name, const char **ret_value)
{
    size_t length = strlen(name);
    for (char *const *item = p->in->user_env; item && *item; item++)
        if (strncmp(*item, name, length) == 0 && (*item)[length] == '=') {
            *ret_value = *item + length + 1;
            return true;
        }
    return false;
}

const char *ncclenv_effective(const struct planning *p, const char *name)
{
    const char *value = NULL;
    if (ncclenv_user(p, name, &value))
        return value;
    const struct plan_var *var = plan_vars_find(&p->plan->env, name);
    return var ? var->value : NULL;
}

/* One line for a variable, however many workers and ranks have it. */
static void warn_override(struct planning *p, const char *name, const char *user, const char *value)
{
    const struct warnings *there = &p->notes->warnings;
    size_t length = strlen(name);
    for (size_t i = 0; i < there->count; i++)
        if (there->list[i].code == WARN_USER_OVERRIDES_PROFILE &&
            strncmp(there->list[i].detail, name, length) == 0 &&
            there->list[i].detail[length] == '=')
            return;
    warnings_add(&p->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE,
                 "%s=%s (derived: %s)", name, user, value);
}

static size_t user_count(const struct planning *p)
{
    size_t count = 0;
    while (p->in->user_env && p->in->user_env[count])
        count++;
    return count;
}

bool ncclenv_ruled_out(struct planning *p, const char *name, const char *value)
{
    const struct warnings *there = &p->notes->warnings;
    const char *why = NULL;
    const char *theirs = env_conflict(p->in->user_env, user_count(p), name, value, &why);
    if (!theirs)
        return false;
    const char *text = plan_notes_text(p->notes, "%s: %s is not set: %s", theirs, name, why);
    for (size_t i = 0; i < there->count; i++)
        if (there->list[i].code == WARN_USER_OVERRIDES_PROFILE &&
            strcmp(there->list[i].detail, text) == 0)
            return true;
    warnings_add(&p->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE, "%s", text);
    return true;
}

static void set(struct planning *p, struct plan_vars *vars, const struct plan_var *var)
{
    const char *name = var->name, *value = var->value;
    const char *user = NULL;
    if (ncclenv_user(p, name, &user)) {
        if (strcmp(user, value) != 0)
            warn_override(p, name, user, value);
        return;
    }
    if (ncclenv_ruled_out(p, name, value))
        return;
    ncclenv_script_loses(p, name, value, var->rule);
    plan_vars_set(vars, *var);
}

static struct plan_var var_of(const struct planning *p, enum plan_origin origin, const char *rule)
{
    return (struct plan_var){.origin = origin,
                             .rule = rule,
                             .reason = profile_rule(p->in->profiles, rule),
                             .source = "docs/design/011-derivation.md"};
}

void ncclenv_set_own(struct planning *p, struct plan_vars *vars, const char *name,
                     const char *value, const char *rule, const char *fact)
{
    struct plan_var var = var_of(p, PLAN_BY_RULE, rule);
    var.name = name;
    var.value = value;
    var.fact = fact;
    set(p, vars, &var);
}

void ncclenv_set_place(struct planning *p, struct plan_vars *vars, const char *name,
                       const char *value, const char *fact)
{
    struct plan_var var = var_of(p, PLAN_BY_PLACE, "rank");
    var.name = name;
    var.value = value;
    var.fact = fact;
    set(p, vars, &var);
}
