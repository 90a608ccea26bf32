/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun controller`: makes jobs of the DraJobs that are applied to a cluster. */
#ifndef DRARUN_LAUNCHER_VERB_CONTROLLER_H
#define DRARUN_LAUNCHER_VERB_CONTROLLER_H

#include "launcher/cli/verb.h"

extern const struct verb verb_controller;

#endif
