/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a variable, before which the user's own value goes. */
#include <string.h>

#include "jobs/derive/variables/variables_private.h"
#include "jobs/ranks/env_conflict.h"

bool variables_user(const struct plan_input *input, const char *name, const char **ret_value)
{
    size_t length = strlen(name);
    for (char *const *item = input->user_env; item && *item; item++)
        if (strncmp(*item, name, length) == 0 && (*item)[length] == '=') {
            *ret_value = *item + length + 1;
            return true;
        }
    return false;
}

const char *variables_effective(const struct plan_input *input, const struct variables *variables,
                                const char *name)
{
    const char *value = NULL;
    if (variables_user(input, name, &value))
        return value;
    const struct plan_var *var = plan_vars_find(&variables->env, name);
    return var ? var->value : NULL;
}

/* One line for a variable, however many workers and ranks have it. */
static void warn_override(struct making *m, const char *name, const char *user, const char *value)
{
    const struct warnings *there = &m->notes->warnings;
    size_t length = strlen(name);
    for (size_t i = 0; i < there->count; i++)
        if (there->list[i].code == WARN_USER_OVERRIDES_PROFILE &&
            strncmp(there->list[i].detail, name, length) == 0 &&
            there->list[i].detail[length] == '=')
            return;
    warnings_add(&m->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE,
                 "%s=%s (derived: %s)", name, user, value);
}

static size_t user_count(const struct making *m)
{
    size_t count = 0;
    while (m->in->user_env && m->in->user_env[count])
        count++;
    return count;
}

bool making_ruled_out(struct making *m, const char *name, const char *value)
{
    const struct warnings *there = &m->notes->warnings;
    const char *why = NULL;
    const char *theirs = env_conflict(m->in->user_env, user_count(m), name, value, &why);
    if (!theirs)
        return false;
    const char *text = plan_notes_text(m->notes, "%s: %s is not set: %s", theirs, name, why);
    for (size_t i = 0; i < there->count; i++)
        if (there->list[i].code == WARN_USER_OVERRIDES_PROFILE &&
            strcmp(there->list[i].detail, text) == 0)
            return true;
    warnings_add(&m->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE, "%s", text);
    return true;
}

static void set(struct making *m, struct plan_vars *vars, const struct plan_var *var)
{
    const char *name = var->name, *value = var->value;
    const char *user = NULL;
    if (variables_user(m->in, name, &user)) {
        if (strcmp(user, value) != 0)
            warn_override(m, name, user, value);
        return;
    }
    if (making_ruled_out(m, name, value))
        return;
    making_script_loses(m, name, value, var->rule);
    plan_vars_set(vars, *var);
}

static struct plan_var var_of(const struct making *m, enum plan_origin origin, const char *rule)
{
    return (struct plan_var){.origin = origin,
                             .rule = rule,
                             .reason = profile_rule(m->in->profiles, rule),
                             .source = "docs/design/011-derivation.md"};
}

void making_set_own(struct making *m, struct plan_vars *vars, const char *name, const char *value,
                    const char *rule, const char *fact)
{
    struct plan_var var = var_of(m, PLAN_BY_RULE, rule);
    var.name = name;
    var.value = value;
    var.fact = fact;
    set(m, vars, &var);
}

void making_set_place(struct making *m, struct plan_vars *vars, const char *name, const char *value,
                      const char *fact)
{
    struct plan_var var = var_of(m, PLAN_BY_PLACE, "rank");
    var.name = name;
    var.value = value;
    var.fact = fact;
    set(m, vars, &var);
}
