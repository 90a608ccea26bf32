/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun env`: the environment for what a pod holds. */
#ifndef DRARUN_LAUNCHER_VERB_ENV_H
#define DRARUN_LAUNCHER_VERB_ENV_H

#include "launcher/cli/verb.h"

extern const struct verb verb_env;

#endif
