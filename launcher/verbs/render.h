/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun render`: the manifests that a job creates. */
#ifndef DRARUN_LAUNCHER_VERB_RENDER_H
#define DRARUN_LAUNCHER_VERB_RENDER_H

#include "launcher/cli/verb.h"

extern const struct verb verb_render;

#endif
