/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/exec_plugin.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/child/child.h"

struct exec_plugin {
    const struct kube_config *config;
    exec_plugin_fn fn;
    void *arg;
    struct child *child;
};

void exec_plugin_free(struct exec_plugin *plugin)
{
    if (!plugin)
        return;
    child_free(plugin->child);
    free(plugin);
}

/* What it answered; err gets what it said, where it failed. */
static int judge(const struct exec_plugin *p, const struct child_end *end,
                 struct exec_credential *ret_credential, struct drarun_error *err)
{
    int rc = 0;
    if (end->known && end->status < 0)
        rc =
            error_kind(err, DRARUN_ERR_CLUSTER, EACCES, "it was killed by signal %d", -end->status);
    else if (end->known && end->status)
        rc = error_kind(err, DRARUN_ERR_CLUSTER, EACCES, "it ended with %d", end->status);
    else
        rc = exec_answer_read(end->out->data ? end->out->data : "", end->out->len,
                              p->config->exec->api_version, ret_credential, err);
    return rc;
}

static void on_end(const struct child_end *end, const struct drarun_error *failure, void *arg)
{
    struct exec_plugin *p = arg;
    struct drarun_error err = {0};
    struct exec_credential credential = {0};
    int rc = failure ? error_kind(&err, DRARUN_ERR_CLUSTER, failure->code, "%s", failure->text)
                     : judge(p, end, &credential, &err);
    if (rc < 0) {
        size_t at = strlen(err.text);
        snprintf(err.text + at, sizeof err.text - at, "%s%s", *end->said ? ": " : "", end->said);
        error_prefix(&err, "credential plugin %.200s of %.150s", p->config->exec->command,
                     p->config->name);
    }
    exec_plugin_fn fn = p->fn;
    void *fn_arg = p->arg;
    free(p); /* the child ends with this callback */
    fn(rc < 0 ? NULL : &credential, rc < 0 ? &err : NULL, fn_arg);
}

static void set_environment(struct strlist *env, const struct kube_config *config, const char *info)
{
    strlist_add_all(env, environ);
    for (size_t i = 0; i < config->exec->env.count; i++) {
        char *entry = config->exec->env.items[i];
        char *equals = strchr(entry, '=');
        *equals = '\0'; /* for a moment */
        env_set(env, entry, equals + 1);
        *equals = '=';
    }
    env_set(env, "KUBERNETES_EXEC_INFO", info);
}

/* One that does not ask on the terminal may still wait for a person: it says which page to open for
 * a login, and in which time. */
static int run(struct event_base *base, struct exec_plugin *p, bool interactive)
{
    bool shows = isatty(STDERR_FILENO);
    struct strlist argv = STRLIST_INIT, env = STRLIST_INIT;
    cleanup_free char *info = exec_info(p->config, interactive);
    strlist_add(&argv, p->config->exec->command);
    strlist_add_all(&argv, p->config->exec->args.items);
    set_environment(&env, p->config, info ? info : "");
    const struct child_program program = {
        .argv = argv.items,
        .env = env.items,
        .deadline_ms = p->config->exec_ms     ? p->config->exec_ms
                       : interactive || shows ? EXEC_INTERACTIVE_MS
                                              : EXEC_MS,
        .interactive = interactive,
        .shows = shows,
    };
    int rc = !info || argv.failed || env.failed ? -ENOMEM
                                                : child_start(base, &program, on_end, p, &p->child);
    strlist_done(&argv);
    strlist_done(&env);
    return rc;
}

static int refuse(const struct kube_config *config, int code, struct drarun_error *err)
{
    const struct exec_spec *exec = config->exec;
    error_kind(err, DRARUN_ERR_CLUSTER, code, "cannot be run: %s%s%.250s", strerror(code),
               code == ENOENT && exec->install_hint ? ": " : "",
               code == ENOENT && exec->install_hint ? exec->install_hint : "");
    return error_prefix(err, "credential plugin %.200s of %.150s", exec->command, config->name);
}

int exec_plugin_start(struct event_base *base, const struct kube_config *config, exec_plugin_fn fn,
                      void *arg, struct exec_plugin **ret_plugin, struct drarun_error *err)
{
    enum exec_interactive mode = config->exec->interactive;
    bool interactive = mode != EXEC_NEVER && isatty(STDIN_FILENO);
    if (mode == EXEC_ALWAYS && !interactive)
        return error_kind(err, DRARUN_ERR_CLUSTER, ENOTTY,
                          "credential plugin %s of %s: it asks on a terminal, and there is none",
                          config->exec->command, config->name);
    struct exec_plugin *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, ENOMEM, "out of memory");
    p->config = config;
    p->fn = fn;
    p->arg = arg;
    int rc = run(base, p, interactive);
    if (rc < 0) {
        exec_plugin_free(p);
        return refuse(config, -rc, err);
    }
    *ret_plugin = p;
    return 0;
}
