/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/role_env.h"

#include <ctype.h>
#include <errno.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* Bytes: a variable of 128 KiB keeps the kernel from starting a program. */
#define HOSTS_MAX 100000

/* "rollout-server" is DRARUN_HOSTS_ROLLOUT_SERVER. */
static void add_name(const char *role, struct buf *out)
{
    buf_add_str(out, "DRARUN_HOSTS_");
    for (const char *p = role; *p; p++) {
        char c = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        buf_add(out, &c, 1);
    }
    buf_add_str(out, "=");
}

static int add_hosts(const struct spec_role *role, const char *const *hosts, struct strlist *env)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    add_name(role->name, &text);
    for (uint32_t i = 0; i < role->workers; i++)
        buf_printf(&text, "%s%s", i ? "," : "", hosts[role->first + i]);
    if (text.failed)
        return -ENOMEM;
    if (text.len > HOSTS_MAX)
        log_note("role %s has too many workers for a variable with their addresses: the ranks do "
                 "not get it",
                 role->name);
    else
        strlist_add(env, text.data);
    return 0;
}

int role_env_add(const struct job_spec *spec, const struct spec_role *role,
                 const char *const *hosts, struct strlist *env, struct drarun_error *err)
{
    int rc = 0;
    if (!spec_has_roles(spec))
        return 0;
    strlist_addf(env, "DRARUN_ROLE=%s", role->name);
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++)
        rc = add_hosts(&spec->roles[r], hosts, env);
    return rc < 0 || env->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}
