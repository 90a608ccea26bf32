/* SPDX-License-Identifier: Apache-2.0 */
/* drarun exec [options] JOB RANK [--] COMMAND: options only; launcher/cluster/show/exec.h has the
 * rest. */
#ifndef DRARUN_LAUNCHER_VERB_EXEC_H
#define DRARUN_LAUNCHER_VERB_EXEC_H

#include "launcher/cli/verb.h"

extern const struct verb verb_exec;

#endif
