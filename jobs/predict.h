/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a scheduler would give to the workers of a job, told from ResourceSlices without a
 * cluster, and for each request which term of which selector ruled out how many devices.
 *
 * Every worker has the same claim. Nodes are tried in the order of their names, one after the other
 * until it is full, requests in the order of the claim, devices in the order of their pool: the
 * first fit, as in k8s.io/dynamic-resource-allocation/structured. Which of several fitting nodes
 * the real scheduler scores best is not predicted. Pure. */
#ifndef DRARUN_JOBS_PREDICT_H
#define DRARUN_JOBS_PREDICT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/slices.h"

struct predict_term {
    char *where; /* "class dranet" or "request nic-0" */
    char *text;  /* the term, as it was written */
    size_t ruled_out;
};

/* What one or more requests that ask for the same came to. */
struct predict_need {
    char *requests; /* "gpu-0, gpu-1" */
    size_t devices; /* looked at */
    size_t admitted;
    size_t most_of_node;        /* the most that are admitted of one node */
    struct predict_term *terms; /* in the order of evaluation */
    size_t term_count;
    size_t tainted;    /* admitted but for a taint that the request does not tolerate */
    const char *taint; /* the key of one of them, borrowed from the slices; NULL: none */
};

struct predict_worker {
    const char *node; /* NULL: none has room; borrowed from the slices */
    json_t *results;  /* as status.allocation.devices.results; NULL likewise */
};

struct prediction {
    struct predict_worker *workers;
    uint32_t count, placed; /* the workers up to placed have a node */
    struct predict_need *needs;
    size_t need_count;
    char *shortage; /* why the first worker without a node has none; NULL when all have one */
};

/* claim: the `spec` of a ResourceClaim of resource.k8s.io/v1. classes: an array of DeviceClass
 * objects, or NULL; well-known classes are known without. slices must outlive the prediction. A
 * worker without a node is a result and no error. -EINVAL, kind SPEC: a class that is not known, a
 * selector that is refused, or fails on a device (the scheduler gives up on such a claim), a
 * constraint or mode that is not modelled. */
int predict(const json_t *claim, uint32_t workers, const struct slices *slices,
            const json_t *classes, struct prediction *ret_prediction, struct drarun_error *err);
void prediction_done(struct prediction *prediction);

#endif
