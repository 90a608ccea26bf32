/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun alloc`: keeps agents for the jobs of a shell. */
#ifndef DRARUN_LAUNCHER_VERB_ALLOC_H
#define DRARUN_LAUNCHER_VERB_ALLOC_H

#include "launcher/cli/verb.h"

extern const struct verb verb_alloc;

#endif
