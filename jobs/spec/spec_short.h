/* SPDX-License-Identifier: Apache-2.0 */
/* The short form of a worker's pod: keys of `spec` that stand for parts of a PodTemplateSpec, over
 * which `template` lies (docs/design/009-job-spec.md). All other code sees the merged template
 * alone. Pure. */
#ifndef DRARUN_JOBS_SPEC_SHORT_H
#define DRARUN_JOBS_SPEC_SHORT_H

#include <jansson.h>

#define SPEC_VOLUMES_MAX 100
#define SPEC_SHM_NAME "shm" /* of a volume that is `shm`, where it has no other */
#define SPEC_SHM_PATH "/dev/shm"
#define SPEC_VOLUME_SOURCES 12

/* Sources of a volume; those with a member may be written as that member's text, or amount. Type
 * NULL: shm, which the API has not. */
extern const struct spec_volume_source {
    const char *key, *type, *member;
} spec_volume_sources[SPEC_VOLUME_SOURCES];

/* A new reference to the PodTemplateSpec of the `spec`: the short form with the template over it.
 * What is of a wrong type is left out. It shares the spec's parts. NULL when out of memory. */
json_t *spec_short_template(const json_t *spec);

/* The name of the container that runs the ranks; borrowed from the spec, or static. */
const char *spec_short_container(const json_t *spec);

/* Writes the merged template into the `spec` in place of the short form, for those who change the
 * pod. -1 when out of memory. */
int spec_short_expand(json_t *spec);

#endif
