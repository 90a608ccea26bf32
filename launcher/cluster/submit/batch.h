/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a job, created side by side. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_BATCH_H
#define DRARUN_LAUNCHER_CLUSTER_BATCH_H

#include "jobs/manifests/render.h"
#include "launcher/cluster/client/cluster.h"
#include "lib/base/strlist.h"

/* On the owner and on its DraJob, by which a run knows its own again when the answer to their
 * creation was lost. */
#define BATCH_MADE_BY "drarun.dev/made-by"
/* A copy of the object with that mark; NULL without memory. Pure. */
json_t *batch_mark(const json_t *object, const char *mark);
/* Pure. */
bool batch_has_mark(const json_t *object, const char *mark);

/* Objects of a list, and behind them one for each worker, made when its turn comes: the manifests
 * of 1,000 workers would be most of what a launcher holds. */
struct batch_source {
    json_t *list;
    const struct job_spec *spec;          /* NULL: the list alone */
    const struct render_options *options; /* of the workers' */
    bool pods;                            /* else claims */
};

/* How many objects it has. Pure. */
size_t batch_count(const struct batch_source *source);

struct batch_item;

/* The owner of a job's other objects, which is created by a batch of its own. uid is set once: when
 * that object exists and is this run's, whether its creation was answered or it was found by its
 * mark. suspended is valid once uid is set. */
struct batch_owner {
    const char *mark;    /* BATCH_MADE_BY of what this run makes */
    const char *dra_job; /* uid of its DraJob, or NULL */
    char *uid;           /* the caller frees it */
    bool suspended;      /* by the spec, or by the cluster's admission */
};

/* One source after the other; the first error ends it. What is there and belongs to the owner stays
 * as it is. Exactly one of owner and owner_uid is set. */
struct batch {
    struct cluster *cluster;
    const char *job;
    struct batch_owner *owner; /* that the batch creates; borrowed */
    const char *owner_uid;     /* of the owner that exists */
    const char *namespace;
    uint32_t attempt; /* pods and templates of earlier ones are replaced, and claims of another
                       * step; 0: none */
    const struct batch_source *source;
    struct batch_item *items; /* count of them, of which those before next were begun */
    size_t count, next;
    size_t most; /* under way at once; 0: as many as the client takes, and as many in line */
    bool yields; /* to another process that creates the same objects, once one of its is found */
    bool yielded;
    int64_t going_ms; /* how long an earlier job's object may take to go */
    int64_t end_ms;
    size_t left;                      /* begun and not answered */
    struct strlist *warned;           /* what the server has warned of; NULL: that is not told */
    const struct batch_item *refused; /* whose pod err is about, where Pod Security refused it */
    struct drarun_error *err;         /* the first */
    int rc;
    bool told; /* that an earlier object takes long to go */
};

/* source is borrowed until batch_end. */
void batch_begin(struct batch *batch, const struct batch_source *source);
/* Begins those that may be under way, in order. True: all that were begun are answered, and no
 * others will be. */
bool batch_go_on(struct batch *batch);
/* Frees what batch_begin has made; after batch_go_on has returned true. Not begun is fine. */
int batch_end(struct batch *batch);
/* All of it; runs the loop until all are answered. */
int batch_create(struct batch *batch, const struct batch_source *source);

/* Further objects may be created. */
bool batch_is_open(const struct batch *batch);
/* Creates no further object and gives up the calls under way, which the API server may have
 * processed already. batch_end then returns 0, even if a call had failed before. */
void batch_leave(struct batch *batch);
/* As batch_leave, but batch_end returns -ECANCELED. why: "its DraJob was deleted". */
void batch_cancel(struct batch *batch, const char *why);

#endif
