/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec from a file or a text, with all that is wrong in it. DeviceClasses may stand beside
 * the DraJob as documents of their own, as drarun import writes them; kubectl apply makes them. */
#ifndef DRARUN_LAUNCHER_SPEC_FILE_H
#define DRARUN_LAUNCHER_SPEC_FILE_H

#include "drarun/spec.h"
#include "jobs/spec/spec.h"

/* What the public API calls a spec, with the profiles that it was read with. */
struct drarun_spec {
    unsigned refs; /* atomic */
    struct job_spec job;
    json_t *classes; /* array of the DeviceClasses that stood beside it, for plan; NULL: none */
    struct profiles profiles;
};

struct drarun_spec *spec_ref(const struct drarun_spec *spec);

/* -EINVAL, kind SPEC: it names a profile of the site's file. Neither launcher nor drarun env has
 * that file in the cluster. */
int spec_need_known_profile(const struct job_spec *spec, const struct profiles *profiles,
                            struct drarun_error *err);

/* Another one of the same document, with these in place of what it says; NULL, 0: as it is.
 * profiles: NULL for the built-in ones. */
int spec_again(const struct job_spec *spec, const struct profiles *profiles, const char *name,
               uint32_t workers, struct job_spec *ret_spec, struct drarun_error *err);
/* The same in its place, which stays as it is after an error: what the command line says instead.
 */
int spec_change(struct job_spec *spec, const char *name, uint32_t workers,
                struct drarun_error *err);

/* The same: with reportBindings. */
int spec_report_bindings(struct job_spec *spec, struct drarun_error *err);
/* The same: these arguments, word for word, in place of the job's own. Not of a job with roles. */
int spec_give_args(struct job_spec *spec, const struct strlist *args, struct drarun_error *err);

/* From the file, with the site's file of profiles (or NULL), and every finding logged; returns the
 * exit status, 0 with the spec. */
int spec_file_load(const char *path, const char *profiles, struct drarun_spec **ret_spec);

/* The same from a text, which messages call `name`; with the built-in profiles. */
int spec_text_load(const char *name, const char *content, size_t length,
                   struct drarun_spec **ret_spec);

/* As spec_file_load for a spec that may do without a command: this program is it then. */
int spec_file_load_program(const char *path, const char *program, struct drarun_spec **ret_spec);

#endif
