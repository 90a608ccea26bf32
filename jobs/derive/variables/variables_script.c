/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor's script set in the pod, joined with the profile's table: the table is what was
 * published of one release, the script is what is installed. Where the profile says that the script
 * wins, of the table stay the rows of "keep" that the script does not set; decisions of ours
 * (interfaces, NVLink between nodes) and the user's values stand above both. */
#include <string.h>

#include "jobs/derive/variables/variables_private.h"
#include "lib/doc/value.h"

#define RULE "vendor script"
#define LIST "LD_LIBRARY_PATH" /* a search path: both are searched */

/* A value may hold anything; a message is one short line. */
static const char *shown(struct making *m, const char *value)
{
    char text[100];
    size_t n = 0;
    for (; value[n] && n < sizeof text - 1; n++)
        text[n] = (unsigned char)value[n] < ' ' ? ' ' : value[n];
    text[n] = '\0';
    return plan_notes_text(m->notes, "%s%s", text, value[n] ? "..." : "");
}

/* One line for a variable, however many workers and ranks have it. */
static void differ(struct making *m, const char *name, const char *script, const char *other,
                   const char *whose, bool script_wins)
{
    const struct warnings *there = &m->notes->warnings;
    size_t length = strlen(name);
    for (size_t i = 0; i < there->count; i++)
        if (there->list[i].code == WARN_VENDOR_SCRIPT_DIFFERS &&
            strncmp(there->list[i].detail, name, length) == 0 &&
            there->list[i].detail[length] == ':')
            return;
    warnings_add(&m->notes->warnings, WARN_VENDOR_SCRIPT_DIFFERS, WORKER_NONE,
                 "%s: the script says %s, %s %s; the %s's is used", name, shown(m, script), whose,
                 shown(m, other), script_wins ? "script" : whose);
}

static const char *owner(const struct plan_var *var)
{
    return var->origin == PLAN_BY_PROFILE ? "table" : var->rule;
}

static void add_name(struct making *m, struct buf *list, const char *name, const char *value)
{
    buf_printf(list, "%s%s=%s", list->len ? ", " : "", name, shown(m, value));
}

static void say_list(struct making *m, struct buf *list, const char *format)
{
    m->notes->warnings.failed |= list->failed;
    if (list->data)
        warnings_add(&m->notes->warnings, WARN_VENDOR_SCRIPT_DIFFERS, WORKER_NONE, "%s: %s", format,
                     list->data);
    buf_done(list);
}

/* ---- one variable ---- */

static struct plan_var var_of(struct making *m, const struct probe *probe, const char *name,
                              const char *value)
{
    return (struct plan_var){.name = name,
                             .value = value,
                             .origin = PLAN_BY_SCRIPT,
                             .rule = RULE,
                             .fact =
                                 plan_notes_text(m->notes, "set by %s in the pod", probe->script),
                             .reason = profile_rule(m->in->profiles, RULE),
                             .source = probe->script};
}

static void take(struct making *m, const struct probe *probe, const char *name, const char *value,
                 struct buf *added)
{
    struct plan_vars *env = &m->vars->env;
    const struct plan_var *there = plan_vars_find(env, name);
    bool same = there && strcmp(there->value, value) == 0;
    bool wins = !there || (there->origin == PLAN_BY_PROFILE && m->profile->script_wins);
    if (!there)
        add_name(m, added, name, value);
    else if (!same)
        differ(m, name, value, there->value, owner(there), wins);
    if (wins)
        plan_vars_set(env, var_of(m, probe, name, value));
}

/* Appends the elements that are not in the list yet; an empty one would be the current directory.
 */
static bool join(struct buf *list, const char *elements)
{
    bool any = false;
    while (*elements) {
        size_t length = strcspn(elements, ":");
        bool there = length == 0;
        for (const char *at = list->data; at && *at && !there;) {
            size_t have = strcspn(at, ":");
            there = have == length && strncmp(at, elements, length) == 0;
            at += have + (at[have] != '\0');
        }
        if (!there) {
            buf_printf(list, "%s%.*s", list->len ? ":" : "", (int)length, elements);
            any = true;
        }
        elements += length + (elements[length] != '\0');
    }
    return any;
}

static void take_list(struct making *m, const struct probe *probe, const char *value)
{
    const struct plan_var *table = plan_vars_find(&m->vars->prepend, LIST);
    struct buf ours = BUF_INIT, joined = BUF_INIT;
    if (table)
        buf_add_str(&ours, table->value);
    bool more = join(&ours, value);
    if (more && table)
        differ(m, LIST, value, table->value, owner(table), true);
    join(&joined, value);
    if (table)
        join(&joined, table->value);
    if (more && joined.data)
        plan_vars_set(&m->vars->prepend,
                      var_of(m, probe, LIST, plan_notes_text(m->notes, "%s", joined.data)));
    m->notes->pool.failed |= ours.failed || joined.failed;
    buf_done(&ours);
    buf_done(&joined);
}

/* ---- the whole ---- */

static bool kept(const struct profile *profile, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(profile->variables, i, row)
    {
        const char *other = value_text(row, "name");
        if (other && strcmp(other, name) == 0 && json_is_true(json_object_get(row, "keep")))
            return true;
    }
    return false;
}

/* A newer release may want a variable unset that an older one set. */
static void drop_rest(struct making *m, const json_t *script)
{
    struct plan_vars *env = &m->vars->env;
    struct buf dropped = BUF_INIT;
    for (size_t i = env->count; i-- > 0;) {
        const struct plan_var *var = &env->list[i];
        if (var->origin != PLAN_BY_PROFILE || json_object_get(script, var->name) ||
            kept(m->profile, var->name))
            continue;
        add_name(m, &dropped, var->name, var->value);
        plan_vars_drop(env, var->name);
    }
    say_list(m, &dropped, "of the table the script does not set, and so it is left out");
}

static void take_all(struct making *m, const struct probe *probe)
{
    struct buf added = BUF_INIT;
    const char *name;
    json_t *entry;
    value_foreach(probe->script_env, name, entry)
    {
        const char *value = json_string_value(entry);
        if (!value || strlen(value) != json_string_length(entry))
            warnings_add(&m->notes->warnings, WARN_VENDOR_SCRIPT_DIFFERS, WORKER_NONE,
                         "%s: what the script says is no text; left out", name);
        else if (strcmp(name, LIST) == 0)
            take_list(m, probe, value);
        else
            take(m, probe, name, value, &added);
    }
    say_list(m, &added, "the script sets beside the table");
}

/* Agents run what is there, before the profile is known. */
static bool is_profiles(const struct making *m, const struct probe *probe)
{
    const char *script = m->profile->script;
    return script && probe->script && strcmp(script, probe->script) == 0;
}

/* What it says must be the same everywhere: all ranks talk to each other. */
void making_script(struct making *m)
{
    const struct probe *first = NULL;
    for (size_t w = 0; w < m->in->worker_count; w++) {
        const struct probe *probe = &m->inventories[w].probe;
        if (!is_profiles(m, probe))
            continue;
        if (!probe->script_env)
            warnings_add(&m->notes->warnings, WARN_VENDOR_SCRIPT_NOT_USED, (int32_t)w, "%s",
                         probe->script_reason);
        if (!probe->script_env)
            continue;
        if (!first)
            first = probe;
        else if (!json_equal(first->script_env, probe->script_env))
            warnings_add(&m->notes->warnings, WARN_VENDOR_SCRIPT_DIFFERS, (int32_t)w,
                         "%s sets other values than on the worker whose values are used",
                         probe->script);
    }
    if (!first)
        return;
    if (m->profile->script_wins)
        drop_rest(m, first->script_env);
    take_all(m, first);
}

void making_script_loses(struct making *m, const char *name, const char *value, const char *rule)
{
    const struct plan_var *there = plan_vars_find(&m->vars->env, name);
    if (there && there->origin == PLAN_BY_SCRIPT && strcmp(there->value, value) != 0)
        differ(m, name, there->value, value, rule, false);
}
