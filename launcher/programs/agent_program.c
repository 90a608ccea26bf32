/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/programs/agent_program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/program_find.h"

int program_find_agent(char path[PATH_MAX], struct drarun_error *err)
{
    const char *given = getenv("DRARUN_WORKER_PROGRAM"), *former = getenv("DRARUN_WORKER");
    bool use_former = !(given && given[0]) && former && strchr(former, '/');
    return program_find("drarun-worker", use_former ? "DRARUN_WORKER" : "DRARUN_WORKER_PROGRAM",
                        path, err);
}
