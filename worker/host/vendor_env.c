/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/vendor_env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/inspect/vendor_script.h"

#define ANSWER_MS (VENDOR_SCRIPT_MS + 2000) /* it ends what the script has started, and tells */

static void put(struct vendor_env *env, const char *path, json_t *set,
                const struct drarun_error *why)
{
    json_t *script = set ? json_pack("{s:s, s:o}", "path", path, "env", set)
                         : json_pack("{s:s, s:s}", "path", path, "reason", why->text);
    json_object_set_new(env->probe, "script", script);
}

static void on_over(const struct child_end *end, const struct drarun_error *err, void *arg)
{
    struct vendor_env *env = arg;
    struct drarun_error why = {0};
    json_t *set = NULL;
    if (err)
        error_set(&why, err->code, "%s: cannot be run: %s", env->path, err->text);
    else
        vendor_script_answer(env->path, end->out->data, end->out->len, &set, &why);
    put(env, env->path, set, &why);
    env->child = NULL; /* it frees itself */
    env->fn(env->arg);
}

static const char *find(char *const *scripts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (access(scripts[i], F_OK) == 0)
            return scripts[i];
    return NULL;
}

void vendor_env_start(struct event_base *base, const char *program, char *const *scripts,
                      size_t count, struct vendor_env *env)
{
    const char *path = find(scripts, count);
    if (!path)
        return;
    env->path = strdup(path);
    char *const argv[] = {unconst(program), unconst("--vendor-script"), env->path, NULL};
    char *const none[] = {NULL};
    const struct child_program how = {.argv = argv, .env = none, .deadline_ms = ANSWER_MS};
    int rc = env->path ? child_start(base, &how, on_over, env, &env->child) : -ENOMEM;
    if (rc == 0)
        return;
    struct drarun_error why = {0};
    error_set(&why, -rc, "%s: cannot be run: %s", path, strerror(-rc));
    put(env, path, NULL, &why);
}

void vendor_env_drop(struct vendor_env *env)
{
    child_free(TAKE_PTR(env->child));
    free(TAKE_PTR(env->path));
}

int vendor_env_serve(const char *path)
{
    int rc = vendor_script_tell(path, VENDOR_SCRIPT_MS, STDOUT_FILENO);
    if (rc == 0)
        return 0;
    log_error("--vendor-script %s: the answer cannot be written: %s", path, strerror(-rc));
    return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}
