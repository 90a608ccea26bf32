/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a scheduler would give to the workers of a job, told from ResourceSlices without a
 * cluster, and for each request which term of which selector ruled out how many devices.
 *
 * Every worker has the same claim. Nodes are tried in the order of their names, one after the other
 * until it is full; on a node the scheduler's own search is followed step by step, as in
 * k8s.io/dynamic-resource-allocation/structured (docs/design/014-prediction.md). Which of several
 * fitting nodes the real scheduler scores best is not predicted. Pure. */
#ifndef DRARUN_DRA_PREDICT_H
#define DRARUN_DRA_PREDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/dra/slices.h"
#include "lib/base/strlist.h"

#define PREDICT_WHY 160
#define PREDICT_MINOR_NEWEST 37 /* the newest Kubernetes 1.MINOR whose allocator is known */
#define PREDICT_MINOR_OLDEST 36 /* the oldest; older ones are told to be followed in part */

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
    const char *node; /* NULL: none has room; borrowed from the cluster */
    json_t *results;  /* as status.allocation.devices.results; NULL likewise */
};

struct prediction {
    struct predict_worker *workers;
    uint32_t count, placed; /* the workers up to placed have a node */
    struct predict_need *needs;
    size_t need_count;
    char *shortage;       /* why the first worker without a node has none; NULL when all have one */
    char *holders;        /* predict_holders, where the caller asked; else NULL */
    bool spread_short;    /* that is: too few nodes for one worker each */
    struct strlist notes; /* what was left open: nothing in here was guessed */
};

/* What keeps pods of the job from a node beside its devices; a node at its room is not looked at
 * for more, as the scheduler does. */
struct predict_gate {
    /* The most workers that the node takes; ret_why: what keeps the next one away, "" for nothing.
     */
    uint32_t (*room)(const char *node, const void *arg, char ret_why[PREDICT_WHY]);
    const void *arg;
};

struct predict_cluster {
    const struct slices *slices;
    const json_t *classes;     /* array of DeviceClass objects; NULL: well-known ones alone */
    bool classes_known;        /* there are no others, well-known ones neither */
    const json_t *node_labels; /* node name -> labels, or NULL */
    const json_t *claims;      /* array of ResourceClaims, of which allocated ones hold devices */
    const json_t *taint_rules; /* array of DeviceTaintRules */
    const struct predict_gate *gate; /* NULL: devices alone decide */
    const json_t *request_words; /* request -> what people are told in place of its name, or NULL */
    const char *spread_by;  /* what gives each worker a node of its own; NULL: nodes take several */
    const char *spread_off; /* what would let them share nodes, for people; NULL: nothing is told */
    unsigned
        minor; /* of Kubernetes 1.MINOR, whose allocator is followed; 0: PREDICT_MINOR_NEWEST */
};

/* The minor version of "1.36", "v1.36.3" or "v1.36.3-gke.1". -EINVAL: not a version of that kind.
 */
int predict_minor_parse(const char *version, unsigned *ret_minor);
/* That whose rules count for a prediction with this one: of those that are known, the nearest. */
unsigned predict_minor_followed(unsigned minor);

/* claim: the `spec` of a ResourceClaim of resource.k8s.io/v1; NULL: the pods claim nothing, and of
 * the cluster gate, spread and the nodes that node_labels names decide. The cluster must outlive
 * the prediction. A worker without a node is a result and no error. -EINVAL, kind SPEC: a class
 * that is not known or not there, a selector that is refused, or fails on a device that the
 * scheduler would look at (it gives up on such a claim), a mode, constraint or quantity that is not
 * modelled. */
int predict(const json_t *claim, uint32_t workers, const struct predict_cluster *cluster,
            struct prediction *ret_prediction, struct drarun_error *err);
/* Calls fn with each device that class and selectors of the requests admit whose names begin with
 * `requests`, also with those that are taken or tainted, of the slices that count. */
int predict_devices(const json_t *claim, const struct predict_cluster *cluster,
                    const char *requests, void (*fn)(const struct slice_device *device, void *arg),
                    void *arg, struct drarun_error *err);
/* Which of the cluster's claims hold devices that class and selectors of the claim admit, those
 * with the most first: "team-b/train-w-0 (8 devices on node-1, pod train-w-0) and 2 other claims".
 * At most so many are named. NULL: none does, or it is not known, or without memory. */
char *predict_holders(const json_t *claim, const struct predict_cluster *cluster, size_t most);
/* Not one device of its class is published, whatever the request itself selects. */
bool predict_need_is_absent(const struct predict_need *need);
void prediction_done(struct prediction *prediction);

#endif
