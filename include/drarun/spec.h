/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec: a DraJob document that was read and found right. Read-only, so any number of threads
 * may use one. */
#ifndef DRARUN_SPEC_H
#define DRARUN_SPEC_H

#include "drarun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_spec;

/* All that is wrong in a document, in the order of its lines. */
struct drarun_findings;

struct drarun_spec_options {
    size_t size;          /* of this struct */
    const char *profiles; /* file of the site's profiles, tried first. NULL: none */
};
DRARUN_DEFINE_INIT(drarun_spec_options)

/* path: a file with one document, YAML or JSON; "-": standard input. ret_findings may be NULL; with
 * it, a call that fails for what the document says hands out every finding, which the caller frees,
 * and err has the first of them, with path, line and column. A file that cannot be read is a
 * finding too. Kind DRARUN_ERR_SPEC. */
DRARUN_API int drarun_spec_load(const char *path, const struct drarun_spec_options *options,
                                struct drarun_spec **ret_spec,
                                struct drarun_findings **ret_findings, struct drarun_error *err);

/* The same from a text of that length; name stands for the file in messages, and without
 * metadata.name it names the job. */
DRARUN_API int drarun_spec_parse(const char *name, const char *text, size_t length,
                                 const struct drarun_spec_options *options,
                                 struct drarun_spec **ret_spec,
                                 struct drarun_findings **ret_findings, struct drarun_error *err);
DRARUN_API void drarun_spec_free(struct drarun_spec *spec);

/* Borrowed until drarun_spec_free. The namespace is NULL where the document names none. */
DRARUN_API const char *drarun_spec_name(const struct drarun_spec *spec);
DRARUN_API const char *drarun_spec_namespace(const struct drarun_spec *spec);
DRARUN_API unsigned drarun_spec_workers(const struct drarun_spec *spec);

/* "job train, 2 workers, 8 GPUs each, 8 NICs each". NULL: out of memory. */
DRARUN_API char *drarun_spec_summary(const struct drarun_spec *spec);

/* The document as JSON, with apiVersion, kind and name filled in. NULL: out of memory. */
DRARUN_API char *drarun_spec_json(const struct drarun_spec *spec);

/* Findings that were kept, and how many there are in all: a document of nonsense has more. */
DRARUN_API size_t drarun_findings_count(const struct drarun_findings *findings);
DRARUN_API size_t drarun_findings_total(const struct drarun_findings *findings);

struct drarun_finding {    /* borrowed from the findings; further members may come at the end */
    const char *text;      /* "job.yaml:5:12: spec.workers: expected ..." */
    const char *path;      /* "spec.workers", or "" */
    unsigned line, column; /* from 1; 0: not known */
    const char *code;      /* unreadable, unknown-key, wrong-value, missing or refused */
    const char *message;   /* the text's end, without file, place and path: "expected ..." */
};
/* NULL beyond the last. */
DRARUN_API const struct drarun_finding *drarun_findings_at(const struct drarun_findings *findings,
                                                           size_t index);
DRARUN_API void drarun_findings_free(struct drarun_findings *findings);

#ifdef __cplusplus
}
#endif
#endif
