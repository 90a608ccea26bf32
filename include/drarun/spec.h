/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec: a DraJob document that was read and found valid. It is read-only, so any number of
 * threads may share it. */
#ifndef DRARUN_SPEC_H
#define DRARUN_SPEC_H

#include "drarun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_spec;

/* Every error in a document, in line order. */
struct drarun_findings;

struct drarun_spec_options {
    size_t size;          /* of this struct */
    const char *profiles; /* file of the site's own profiles, tried first: for plans and manifests.
                             A job on a cluster knows only the built-in ones. NULL: none */
};
DRARUN_DEFINE_INIT(drarun_spec_options)

/* path: a file with one DraJob, as YAML or JSON, and possibly DeviceClasses beside it; "-":
 * standard input. ret_findings may be NULL. If the document is invalid, the call returns every
 * finding in ret_findings, which the caller frees, and puts the first one into err with path, line
 * and column. An unreadable file is a finding too. Kind DRARUN_ERR_SPEC. */
DRARUN_API int drarun_spec_load(const char *path, const struct drarun_spec_options *options,
                                struct drarun_spec **ret_spec,
                                struct drarun_findings **ret_findings, struct drarun_error *err);

/* The same from a text of that length. name stands for the file in messages, and names the job if
 * there is no metadata.name. */
DRARUN_API int drarun_spec_parse(const char *name, const char *text, size_t length,
                                 const struct drarun_spec_options *options,
                                 struct drarun_spec **ret_spec,
                                 struct drarun_findings **ret_findings, struct drarun_error *err);
DRARUN_API void drarun_spec_free(struct drarun_spec *spec);

/* The strings are valid until drarun_spec_free. The namespace is NULL if the document names
 * none. */
DRARUN_API const char *drarun_spec_name(const struct drarun_spec *spec);
DRARUN_API const char *drarun_spec_namespace(const struct drarun_spec *spec);
DRARUN_API unsigned drarun_spec_workers(const struct drarun_spec *spec);

/* Returns a summary such as "job train, 2 workers, 8 GPUs each, 8 NICs each", or NULL if out of
 * memory. */
DRARUN_API char *drarun_spec_summary(const struct drarun_spec *spec);

/* Returns the document as JSON, with apiVersion, kind and name filled in, or NULL if out of
 * memory. */
DRARUN_API char *drarun_spec_json(const struct drarun_spec *spec);

/* The number of findings kept, and the number found. Only the first ones of a long list are kept.
 */
DRARUN_API size_t drarun_findings_count(const struct drarun_findings *findings);
DRARUN_API size_t drarun_findings_total(const struct drarun_findings *findings);

struct drarun_finding {    /* borrowed from the findings; members may be added at the end */
    const char *text;      /* "job.yaml:5:12: spec.workers: expected ..." */
    const char *path;      /* "spec.workers", or "" */
    unsigned line, column; /* from 1; 0: unknown */
    const char *code;      /* unreadable, unknown-key, wrong-value, missing or refused */
    const char *message;   /* the end of text, without file, position and path: "expected ..." */
};
/* Returns NULL past the last one. */
DRARUN_API const struct drarun_finding *drarun_findings_at(const struct drarun_findings *findings,
                                                           size_t index);
DRARUN_API void drarun_findings_free(struct drarun_findings *findings);

#ifdef __cplusplus
}
#endif
#endif
