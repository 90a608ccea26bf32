/* SPDX-License-Identifier: Apache-2.0 */
/* The status document of a job: ConfigMap NAME-status, key status.json, which the launcher alone
 * writes and every verb reads. Pure. Schema: docs/schema/drajob-status-v1alpha1.json; what it says
 * to people: docs/design/016-waiting.md. */
#ifndef DRARUN_JOBS_STATUS_DOC_H
#define DRARUN_JOBS_STATUS_DOC_H

#include <jansson.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/gang/gang.h"
#include "jobs/gang/pod_state.h"
#include "jobs/gang/waiting.h"
#include "lib/base/buf.h"

#define STATUS_DOC_KEY "status.json"
#define STATUS_DOC_KIND "DraJobStatus"
/* Bytes; a ConfigMap may hold 1 MiB in all. Beyond it workers are folded. */
#define STATUS_DOC_MAX ((size_t)512 << 10)

struct status_launcher { /* NULL and 0 where unknown */
    const char *pod, *uid, *node, *version;
    int64_t lease; /* transitions of its Lease */
    int64_t lines; /* of its log: once the job has ended, with the last of the ranks' output, and
                    * while the workers of an allocation are kept */
};

struct status_input {
    int64_t now_ms;
    const char *name, *namespace, *uid; /* of the owner */
    int64_t created_ms;
    uint32_t attempt;                 /* as in the label, from 1 */
    uint32_t restarts;                /* after the ranks had started */
    uint32_t counted, infrastructure; /* of them, those that count to each number of the spec */
    const struct gang *gang;
    const char *rung; /* claims_rung_name of the gang's step; NULL: nothing is aligned by claim */
    const struct pod_state *workers; /* count of them; NULL: none known */
    uint32_t count;
    uint32_t ranks;
    const char *const *cliques; /* of NVLink, by worker, once ranks are placed; NULL: not known */
    const uint32_t *rank_order; /* workers in the order of their ranks; NULL: by number */
    const char *const *devices; /* by worker, "8 GPUs, 8 NICs"; NULL: from the claims' counts */
    const struct waiting *waiting; /* NULL or without reasons: it does not wait */
    const json_t *report;          /* cause_json once the ranks have ended or it failed, or NULL */
    const json_t *fabric; /* jobs/preflight/fabric.h, of this attempt's NICs; NULL: not checked */
    const json_t *roles;  /* [{name, first, workers, ranks}], once ranks are numbered; or NULL */
    const json_t *asked;  /* drajob_devices of the job; NULL: not known */
    const char *result;   /* "succeeded", "failed", "cancelled"; NULL: not ended */
    struct status_launcher launcher;
};

/* Always valid by the schema, and at most STATUS_DOC_MAX bytes as status_doc_text writes it. */
int status_doc_build(const struct status_input *input, json_t **ret_doc, struct drarun_error *err);

/* What another version may have written, or somebody else: members of a wrong type are left out,
 * unknown ones stay. -EINVAL when it is no JSON object, or of another kind. */
int status_doc_parse(const char *text, size_t len, json_t **ret_doc, struct drarun_error *err);

/* The later document, with what only the earlier one knows: the first cause once told, restarts'
 * timings, members that later does not have. A new reference; NULL without memory. */
json_t *status_doc_merge(const json_t *earlier, const json_t *later);

/* Compact; malloc'ed, NULL without memory. */
char *status_doc_text(const json_t *doc);

/* The gang as it was written (gang_save), for gang_load; borrowed, or NULL. */
const json_t *status_doc_gang(const json_t *doc);
/* The exit status, or -1 while the job has not ended. */
/* Attempts beyond the first that count to the spec's restarts, and to its infrastructureRestarts.
 */
void status_doc_counts(const json_t *doc, uint32_t *ret_restarts, uint32_t *ret_infrastructure);
int status_doc_exit(const json_t *doc);

/* How a job that has ended did, and when: "failed (7), 41 s ago". */
void status_doc_end(const json_t *doc, int64_t now_ms, struct buf *out);
/* `drarun list`: the heading (doc NULL) or a job's row, with a newline; of all namespaces, with the
 * job's; wide, with its ranks and its launcher's pod. */
void status_doc_row(const json_t *doc, bool all_namespaces, bool wide, int64_t now_ms,
                    struct buf *out);
/* `drarun status`: lines for people. Runs of equal workers are one line. verbose: with every NIC,
 * which are told without it only where something is wrong. */
void status_doc_render(const json_t *doc, bool verbose, int64_t now_ms, struct buf *out);

#endif
