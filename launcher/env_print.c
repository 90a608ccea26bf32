/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/env_print.h"

#include <string.h>

/* Those that only a launcher can know. */
static bool of_the_job(const struct plan_var *var)
{
    return strcmp(var->rule, "rank") == 0 || strncmp(var->name, "MASTER_", 7) == 0;
}

static void add_quoted(const char *value, struct buf *out)
{
    buf_add_str(out, "'");
    for (; *value; value++) {
        if (*value == '\'')
            buf_add_str(out, "'\\''");
        else
            buf_add(out, value, 1);
    }
    buf_add_str(out, "'");
}

/* One line: a newline in what a label says would end the comment. */
static void add_comment(const struct plan_var *var, struct buf *out)
{
    size_t start = out->len;
    buf_printf(out, "# %s: %s; %s%s%s%s", var->rule, var->fact, var->reason,
               var->source && var->source[0] ? " (" : "", var->source ? var->source : "",
               var->source && var->source[0] ? ")" : "");
    for (size_t i = start; out->data && i < out->len; i++)
        if ((unsigned char)out->data[i] < ' ')
            out->data[i] = ' ';
    buf_add_str(out, "\n");
}

/* Evaluated again it finds its own value there and leaves the list alone. */
static void print_prepend(const struct plan_var *var, struct buf *out)
{
    buf_printf(out, "case \":${%s-}:\" in *", var->name);
    buf_add_str(out, "':'");
    add_quoted(var->value, out);
    buf_printf(out, "':'*) export %s ;; *) export %s=", var->name, var->name);
    add_quoted(var->value, out);
    buf_printf(out, "\"${%s:+:$%s}\" ;; esac\n", var->name, var->name);
}

static bool printable_line(const char *value)
{
    return strpbrk(value, "\n\r") == NULL;
}

static void print_var(const struct plan_var *var, enum env_format format, bool prepend,
                      bool explain, struct buf *out)
{
    if (of_the_job(var) || (format == ENV_NCCL_CONF && strncmp(var->name, "NCCL_", 5) != 0))
        return;
    if (format != ENV_SH && !printable_line(var->value)) {
        buf_printf(out, "# %s is left out: its value has several lines\n", var->name);
        return;
    }
    if (explain)
        add_comment(var, out);
    if (format != ENV_SH) {
        buf_printf(out, "%s=%s\n", var->name, var->value);
        return;
    }
    if (prepend) {
        print_prepend(var, out);
        return;
    }
    buf_printf(out, "export %s=", var->name);
    add_quoted(var->value, out);
    buf_add_str(out, "\n");
}

static void add_derived(const struct plan_vars *vars, struct buf *list)
{
    for (size_t i = 0; i < vars->count; i++) {
        const struct plan_var *var = &vars->list[i];
        if (!of_the_job(var) && printable_line(var->value) && strcmp(var->rule, "user") != 0)
            buf_printf(list, "%s=%s\n", var->name, var->value);
    }
}

static void print_derived(const struct plan *plan, struct buf *out)
{
    struct buf list = BUF_INIT;
    add_derived(&plan->env, &list);
    add_derived(&plan->workers[0].env, &list);
    buf_add_str(out, "export " ENV_DERIVED "=");
    add_quoted(list.data ? list.data : "", out);
    buf_add_str(out, "\n");
    out->failed |= list.failed;
    buf_done(&list);
}

void env_print(const struct plan *plan, enum env_format format, bool explain, struct buf *out)
{
    const struct plan_worker *worker = &plan->workers[0];
    for (size_t i = 0; i < plan->env.count; i++)
        if (!plan_vars_find(&worker->env, plan->env.list[i].name))
            print_var(&plan->env.list[i], format, false, explain, out);
    for (size_t i = 0; i < worker->env.count; i++)
        print_var(&worker->env.list[i], format, false, explain, out);
    for (size_t i = 0; i < plan->prepend.count; i++)
        print_var(&plan->prepend.list[i], format, true, explain, out);
    if (format == ENV_SH)
        print_derived(plan, out);
}
