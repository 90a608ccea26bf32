/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine or a captured tree shows, as the probe that a plan is derived from
 * (jobs/probe.h). */
#ifndef DRARUN_LAUNCHER_HOST_PROBE_H
#define DRARUN_LAUNCHER_HOST_PROBE_H

#include <jansson.h>
#include "drarun/error.h"
#include "jobs/profiles.h"

/* root: a directory that stands for "/", NULL for "/" itself. Files are looked for that any of the
 * profiles names. */
int host_probe(const char *root, const struct profiles *profiles, json_t **ret_probe,
               struct drarun_error *err);

#endif
