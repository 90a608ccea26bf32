/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun plan`: what a job would claim and get. */
#ifndef DRARUN_LAUNCHER_VERB_PLAN_H
#define DRARUN_LAUNCHER_VERB_PLAN_H

#include "launcher/cli/verb.h"

extern const struct verb verb_plan;

#endif
