/* SPDX-License-Identifier: Apache-2.0 */
/* drarun validate: says whether specs would be taken. */
#ifndef DRARUN_LAUNCHER_VERB_VALIDATE_H
#define DRARUN_LAUNCHER_VERB_VALIDATE_H

#include "launcher/cli/verb.h"

extern const struct verb verb_validate;

#endif
