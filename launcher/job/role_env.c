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

/* "DRARUN_HOSTS_NAME=ADDRESS,ADDRESS"; false: it is too long for a variable. */
static bool add_hosts(const struct spec_role *role, const char *const *hosts, struct buf *out)
{
    add_name(role->name, out);
    for (uint32_t i = 0; i < role->workers; i++)
        buf_printf(out, "%s%s", i ? "," : "", hosts[role->first + i]);
    return out->len <= HOSTS_MAX;
}

int role_env_add(const struct job_spec *spec, const struct spec_role *role,
                 const char *const *hosts, struct strlist *env, struct drarun_error *err)
{
    bool failed = false;
    if (!spec_has_roles(spec))
        return 0;
    strlist_addf(env, "DRARUN_ROLE=%s", role->name);
    for (uint32_t r = 0; r < spec->role_count; r++) {
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        if (add_hosts(&spec->roles[r], hosts, &text))
            strlist_add(env, text.data);
        failed |= text.failed;
    }
    return failed || env->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

int role_env_tell(const struct job_spec *spec, const char *const *hosts, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf names = BUF_INIT;
    uint32_t count = 0;
    for (uint32_t r = 0; spec_has_roles(spec) && r < spec->role_count; r++) {
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        if (!add_hosts(&spec->roles[r], hosts, &text))
            buf_printf(&names, "%s%s", count++ ? ", " : "", spec->roles[r].name);
        names.failed |= text.failed;
    }
    if (names.failed)
        return error_set(err, ENOMEM, "out of memory");
    if (count > 0)
        log_note("role%s %s: too many workers for a variable with their addresses: the ranks do "
                 "not get %s",
                 count > 1 ? "s" : "", names.data, count > 1 ? "these" : "it");
    return 0;
}
