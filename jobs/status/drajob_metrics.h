/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller does, and the DraJobs that it sees, as Prometheus metrics (text format 0.0.4).
 * docs/design/035-drajob-objects.md lists them. Pure. */
#ifndef DRARUN_JOBS_DRAJOB_METRICS_H
#define DRARUN_JOBS_DRAJOB_METRICS_H

#include <jansson.h>
#include <stdint.h>
#include "lib/base/buf.h"

/* The DraJobs of one moment. */
struct drajob_census {
    json_t *states;    /* {namespace: {state: how many}}; owned */
    int64_t oldest_ms; /* since 1970: since when one waits for its objects; 0: none does */
    bool failed;       /* out of memory: not all are counted */
};

/* One that another controller manages is not counted. */
void drajob_census_add(struct drajob_census *census, const json_t *object);
void drajob_census_done(struct drajob_census *census);

/* Counted by one controller since its begin. */
struct drajob_tally {
    uint64_t looks, look_ms;
    uint64_t created, refused; /* specs */
    uint64_t not_created;      /* attempts to make a job's objects that failed */
    uint64_t not_written;      /* statuses */
    uint64_t expired;          /* objects whose time to live was over */
    json_t *ended;             /* {namespace: {state: how many}}, by what it wrote; owned */
};

/* A job's next status, of a job that had not ended before, says that it has. */
void drajob_tally_end(struct drajob_tally *tally, const char *namespace, const json_t *status);

struct drajob_metrics {
    const char *version, *instance;
    bool leads;
    size_t due;   /* DraJobs that it is to look at now */
    size_t ceded; /* namespaces that it leaves to a controller of their own */
    int64_t now_ms;
    const struct drajob_census *census; /* NULL: it does not lead, and sees none */
    const struct drajob_tally *tally;
};

/* Fails the buffer where the census has failed. */
void drajob_metrics_text(const struct drajob_metrics *metrics, struct buf *out);

#endif
