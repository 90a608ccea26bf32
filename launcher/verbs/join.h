/* SPDX-License-Identifier: Apache-2.0 */
/* drarun join [options] -- PROGRAM: options only; the rest is entry.h. */
#ifndef DRARUN_LAUNCHER_VERB_JOIN_H
#define DRARUN_LAUNCHER_VERB_JOIN_H

#include <stdbool.h>
#include "launcher/cli/verb.h"

extern const struct verb verb_join;

/* Whether the words behind `drarun exec` are join's: exec [options of join] -- PROGRAM. */
bool verb_join_is_meant(int argc, char *const argv[]);

#endif
