/* SPDX-License-Identifier: Apache-2.0 */
/* The other way round than spec_short: a PodTemplateSpec as the short form says it
 * (docs/design/009-job-spec.md). Pure. */
#ifndef DRARUN_JOBS_SPEC_SHORTEN_H
#define DRARUN_JOBS_SPEC_SHORTEN_H

#include <jansson.h>

/* Moves what the template of the `spec` says into the keys of the short form, of which the spec has
 * none yet. What has none, or says something else there, stays in the template, which is gone where
 * nothing stays. spec_short_template makes the same pod of it as before, but for the name of the
 * ranks' container, SPEC_CONTAINER now, and the order of volumes and of their mounts. Changes the
 * template in place. -1 when out of memory. */
int spec_shorten(json_t *spec);

#endif
