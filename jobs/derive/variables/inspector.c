/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/variables/inspector.h"

#include <string.h>

#include "jobs/derive/variables/variables_private.h"
#include "lib/base/cleanup.h"

#define LIBRARY "libnccl-profiler-inspector.so"
#define PLUGIN "NCCL_PROFILER_PLUGIN"
/* By itself it writes only where a communicator is torn down, which programs that are killed never
 * do, and keeps the last 1024 collectives until then. */
#define INTERVAL "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"
#define INTERVAL_US "1000000"
#define RULE "inspector"

/* No package installs it: where the dynamic linker looks, and where images keep NCCL. */
static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu",
                                      "/usr/lib/aarch64-linux-gnu",
                                      "/usr/lib64",
                                      "/usr/lib",
                                      "/usr/local/lib",
                                      "/usr/local/nccl/lib",
                                      "/opt/nccl/lib"};

void inspector_paths(char *const *user_env, struct strlist *paths)
{
    for (; user_env && *user_env; user_env++)
        if (strncmp(*user_env, PLUGIN "=/", strlen(PLUGIN "=/")) == 0) {
            strlist_add(paths, *user_env + strlen(PLUGIN "="));
            return;
        }
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        strlist_addf(paths, "%s/" LIBRARY, folders[i]);
}

void inspector_env(const char *library, struct strlist *env)
{
    if (!env_get(env, PLUGIN))
        strlist_addf(env, PLUGIN "=%s", library);
    if (!env_get(env, INSPECTOR_ENABLE))
        strlist_add(env, INSPECTOR_ENABLE "=1");
    if (!env_get(env, INTERVAL))
        strlist_add(env, INTERVAL "=" INTERVAL_US);
}

/* The first worker that says it has not; -1: all of them have, or do not say. */
static int32_t lacking(const struct making *m, const char *path)
{
    for (size_t w = 0; w < m->in->worker_count; w++)
        if (probe_file(&m->inventories[w].probe, path) == PROBE_NO)
            return (int32_t)w;
    return -1;
}

static bool is_probed(const struct making *m)
{
    for (size_t w = 0; w < m->in->worker_count; w++)
        if (!m->inventories[w].probe.present || !m->inventories[w].probe.files)
            return false;
    return true;
}

void making_inspector(struct making *m)
{
    struct strlist paths = STRLIST_INIT;
    const char *found = NULL, *user = NULL;
    int32_t worker = -1;
    if (!m->in->inspector || !is_probed(m))
        return;
    inspector_paths(m->in->user_env, &paths);
    for (size_t i = 0; i < paths.count && !found; i++) {
        int32_t without = lacking(m, paths.items[i]);
        worker = without > worker ? without : worker;
        if (without < 0)
            found = plan_notes_text(m->notes, "%s", paths.items[i]);
    }
    if (!found)
        warnings_add(&m->notes->warnings, WARN_INSPECTOR_MISSING, worker,
                     "NCCL's inspector is off: the image has no " LIBRARY "%s%s; build it from "
                     "NCCL's plugins/profiler/inspector into %s, or name its place: nccl: {env: "
                     "{" PLUGIN ": /PATH}}",
                     paths.count == 1 ? " at " : "", paths.count == 1 ? paths.items[0] : "",
                     folders[ARRAY_LEN(folders) - 3]);
    m->notes->pool.failed |= paths.failed;
    strlist_done(&paths);
    if (!found)
        return;
    if (!variables_user(m->in, PLUGIN, &user))
        making_set_own(m, &m->vars->env, PLUGIN, found, RULE, "every worker has it");
    making_set_own(m, &m->vars->env, INSPECTOR_ENABLE, "1", RULE, found);
    making_set_own(m, &m->vars->env, INTERVAL, INTERVAL_US, RULE, found);
}
