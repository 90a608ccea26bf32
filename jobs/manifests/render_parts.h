/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of render.c that jobs/render_as uses too. */
#ifndef DRARUN_JOBS_RENDER_PARTS_H
#define DRARUN_JOBS_RENDER_PARTS_H

#include "jobs/manifests/render.h"

/* The API's limits, and whether the ladder has options->step. */
int render_check(const struct job_spec *spec, const struct render_options *options,
                 struct drarun_error *err);
/* Adds the ComputeDomain. */
int render_domain(json_t *list, const struct job_spec *spec, const struct render_options *options,
                  struct drarun_error *err);
/* Adds the ResourceClaimTemplate NAME-w, where the job wants devices. */
int render_template(json_t *list, const struct job_spec *spec, const struct render_options *options,
                    struct drarun_error *err);

#endif
