/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs on a job of a cluster: cancel, describe, list, logs, status, wait. */
#ifndef DRARUN_LAUNCHER_VERB_JOB_H
#define DRARUN_LAUNCHER_VERB_JOB_H

#include "launcher/cli/verb.h"

extern const struct verb verb_cancel, verb_describe, verb_list, verb_logs, verb_status, verb_wait;

#endif
