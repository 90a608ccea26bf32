/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRARUN_LAUNCHER_VERB_ACCEPT_H
#define DRARUN_LAUNCHER_VERB_ACCEPT_H

#include "launcher/cli/verb.h"

extern const struct verb verb_accept;

#endif
