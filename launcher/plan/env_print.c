/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/plan/env_print.h"

#include <string.h>

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

struct printing {
    enum env_format format;
    bool explain;
    struct buf *out;
};

static void print_var(void *arg, const struct plan_var *var, bool prepend)
{
    const struct printing *p = arg;
    struct buf *out = p->out;
    if (p->format == ENV_NCCL_CONF && strncmp(var->name, "NCCL_", 5) != 0)
        return;
    if (p->format != ENV_SH && !printable_line(var->value)) {
        buf_printf(out, "# %s is left out: its value has several lines\n", var->name);
        return;
    }
    if (p->explain)
        add_comment(var, out);
    if (p->format != ENV_SH) {
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
        if (!plan_var_is_of_job(var) && printable_line(var->value) && var->origin != PLAN_BY_USER)
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

static void each(const struct plan_vars *vars, const struct plan_vars *but, bool prepend, env_fn fn,
                 void *arg)
{
    for (size_t i = 0; i < vars->count; i++)
        if (!plan_var_is_of_job(&vars->list[i]) &&
            !(but && plan_vars_find(but, vars->list[i].name)))
            fn(arg, &vars->list[i], prepend);
}

void env_each(const struct plan *plan, env_fn fn, void *arg)
{
    const struct plan_worker *worker = &plan->workers[0];
    each(&plan->env, &worker->env, false, fn, arg);
    each(&worker->env, NULL, false, fn, arg);
    each(&plan->prepend, NULL, true, fn, arg);
}

void env_print(const struct plan *plan, enum env_format format, bool explain, struct buf *out)
{
    struct printing printing = {format, explain, out};
    env_each(plan, print_var, &printing);
    if (format == ENV_SH)
        print_derived(plan, out);
}
