/* SPDX-License-Identifier: Apache-2.0 */
/* drarun init: writes a commented job spec to begin with. */
#ifndef DRARUN_LAUNCHER_VERB_INIT_H
#define DRARUN_LAUNCHER_VERB_INIT_H

#include "launcher/cli/verb.h"

extern const struct verb verb_init;

#endif
