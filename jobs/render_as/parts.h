/* SPDX-License-Identifier: Apache-2.0 */
/* What the objects of all other systems have in common. Private to jobs/render_as. */
#ifndef DRARUN_JOBS_RENDER_AS_PARTS_H
#define DRARUN_JOBS_RENDER_AS_PARTS_H

#include "jobs/render_as/left_out.h"
#include "jobs/render_as/render_as.h"

/* Checks, tells what is left out, and makes the list with what the pods need: ComputeDomain,
 * claim template. */
int foreign_begin(const struct job_spec *spec, const struct render_foreign *how,
                  enum left_out_by system, struct strlist *told, json_t **ret_list,
                  struct drarun_error *err);

/* The pods' template, whose first container starts the command under `drarun env`, which derives
 * the environment from what the pod holds, and starts nothing when it cannot. command: an array. */
int foreign_pod(const struct job_spec *spec, const struct render_foreign *how,
                const json_t *command, json_t **ret_template, struct drarun_error *err);

/* Adds {apiVersion, kind, metadata, spec}, named as the job. queued: with Kueue's label. */
int foreign_add(json_t *list, const struct job_spec *spec, const struct render_foreign *how,
                const char *api_version, const char *kind, bool queued, json_t *object_spec_take,
                struct drarun_error *err);

/* The value of the object's `suspend`; NULL: it has none. With a queue Kueue's webhook sets it when
 * the object is made, and who applies the same manifest again must not suspend what is admitted. */
json_t *foreign_suspended(const struct job_spec *spec);

/* A DNS label of RFC 1035, of at most that many characters. */
int foreign_check_name(const struct job_spec *spec, size_t room, const char *why,
                       struct drarun_error *err);

#endif
