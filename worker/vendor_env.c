/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/vendor_env.h"

#include <unistd.h>

#include "lib/base/error.h"
#include "lib/inspect/vendor_script.h"

static json_t *ask(const char *path)
{
    struct drarun_error err = {0};
    json_t *env = NULL;
    if (vendor_script_run_apart(path, VENDOR_SCRIPT_MS, &env, &err) < 0)
        return json_pack("{s:s, s:s}", "path", path, "reason", err.text);
    return json_pack("{s:s, s:o}", "path", path, "env", env);
}

json_t *vendor_env(char *const *scripts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (access(scripts[i], F_OK) == 0)
            return ask(scripts[i]);
    return NULL;
}
