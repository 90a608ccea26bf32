/* SPDX-License-Identifier: Apache-2.0 */
/* drarun topo: GPUs, NICs and CPUs of a machine and how near they are. */
#ifndef DRARUN_LAUNCHER_VERB_TOPO_H
#define DRARUN_LAUNCHER_VERB_TOPO_H

#include "launcher/cli/verb.h"

extern const struct verb verb_topo;

#endif
