/* SPDX-License-Identifier: Apache-2.0 */
/* drarun import: other launchers' manifests as a job spec. */
#ifndef DRARUN_LAUNCHER_VERB_IMPORT_H
#define DRARUN_LAUNCHER_VERB_IMPORT_H

#include "launcher/cli/verb.h"

extern const struct verb verb_import;

#endif
