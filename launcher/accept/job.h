/* SPDX-License-Identifier: Apache-2.0 */
/* The job of a test. */
#ifndef DRARUN_LAUNCHER_ACCEPT_JOB_H
#define DRARUN_LAUNCHER_ACCEPT_JOB_H

#include <jansson.h>
#include "drarun/error.h"

/* The operator's spec, which has been checked, with metadata and a template, and with what a test
 * wants where the spec says nothing: warnings of the preflight fail it, five minutes for the
 * allocation, nothing left behind. The caller owns it. */
int accept_job_read(const char *path, json_t **ret_base, struct drarun_error *err);
/* The same from the document; pure. */
int accept_job_base(const json_t *given, json_t **ret_base, struct drarun_error *err);

#define ACCEPT_TAINT "drarun.dev/unfit"

struct accept_place {
    const char *name;     /* of the job */
    const char *run;      /* a label on all jobs of this run */
    const char *nodes[2]; /* one worker on each */
    unsigned count;
    const char *priority_class; /* NULL: the spec's */
};

/* A new document; NULL without memory. */
json_t *accept_job_make(const json_t *base, const struct accept_place *place);

#endif
