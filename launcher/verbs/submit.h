/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun submit FILE`: as `drarun run FILE`, without following the job. */
#ifndef DRARUN_LAUNCHER_VERB_SUBMIT_H
#define DRARUN_LAUNCHER_VERB_SUBMIT_H

#include "launcher/cli/verb.h"

extern const struct verb verb_submit;

#endif
