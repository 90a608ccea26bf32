/* SPDX-License-Identifier: Apache-2.0 */
/* drarun doctor: what is wrong with a cluster or a machine, and what to change. */
#ifndef DRARUN_LAUNCHER_VERB_DOCTOR_H
#define DRARUN_LAUNCHER_VERB_DOCTOR_H

#include "launcher/cli/verb.h"

extern const struct verb verb_doctor;

#endif
