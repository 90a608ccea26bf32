/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun install`: what a namespace needs once (jobs/manifests/install.h). */
#ifndef DRARUN_LAUNCHER_VERB_INSTALL_H
#define DRARUN_LAUNCHER_VERB_INSTALL_H

#include "launcher/cli/verb.h"

extern const struct verb verb_install;

#endif
