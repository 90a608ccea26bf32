/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/env_exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/plan/env_print.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static bool is_within(const char *list, const char *part)
{
    size_t len = strlen(part);
    for (const char *at = list; (at = strstr(at, part)); at++)
        if ((at == list || at[-1] == ':') && (at[len] == '\0' || at[len] == ':'))
            return true;
    return false;
}

static int set_one(const struct drarun_variable *variable)
{
    const char *own = variable->prepend ? getenv(variable->name) : NULL;
    cleanup_free char *joined = NULL;
    if (own && is_within(own, variable->value))
        return 0;
    if (own && own[0] && asprintf(&joined, "%s:%s", variable->value, own) < 0) {
        joined = NULL;
        return -ENOMEM;
    }
    return setenv(variable->name, joined ? joined : variable->value, 1) < 0 ? -errno : 0;
}

/* So that a drarun env below us does not take them for the user's. */
static int set_derived(const struct drarun_env *env)
{
    struct buf list = BUF_INIT;
    for (size_t i = 0; i < drarun_env_count(env); i++) {
        const struct drarun_variable *variable = drarun_env_at(env, i);
        if (!variable->prepend && strcmp(variable->rule, "user") != 0 &&
            !strpbrk(variable->value, "\n\r"))
            buf_printf(&list, "%s=%s\n", variable->name, variable->value);
    }
    int rc = list.failed ? -ENOMEM : setenv(ENV_DERIVED, list.data ? list.data : "", 1);
    buf_done(&list);
    return rc;
}

int env_exec(const struct drarun_env *env, char *const argv[], struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < drarun_env_count(env); i++)
        rc = set_one(drarun_env_at(env, i));
    if (rc == 0)
        rc = set_derived(env);
    if (rc < 0)
        return error_set(err, ENOMEM, "the environment: out of memory");
    execvp(argv[0], argv);
    int code = errno;
    return error_kind(err, code == ENOENT ? DRARUN_ERR_NOT_FOUND : DRARUN_ERR_NOT_EXECUTABLE, code,
                      "%s: %s", argv[0], strerror(code));
}
