/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of a job on a cluster: makes what is missing of it, waits for all workers, runs the
 * ranks, tries again where the spec allows it, and takes everything back
 * (docs/design/015-cluster.md). In a pod of the launcher Job, or wherever `drarun run --here`
 * stands. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEAD_H
#define DRARUN_LAUNCHER_CLUSTER_LEAD_H

#include <jansson.h>
#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/streams/sink.h"
#include "lib/wire/tls.h"

struct lead_options { /* all borrowed */
    const struct job_spec *spec;
    const char *namespace;
    const char *image;          /* of the agent; NULL: the default */
    const char *holder;         /* who we are, for the Lease: the pod's name, or HOST_PID */
    const char *owner_uid;      /* the launcher Job's; NULL: there is no owner yet (here) */
    const struct tls_key *key;  /* the job's; NULL: made here */
    const char *secret;         /* that holds it; NULL: named here */
    const struct strlist *args; /* in place of the command's arguments; NULL or empty: the spec's */
    bool here;                  /* no launcher Job */
    uint32_t keep_s;            /* drarun alloc: no ranks, the workers are kept (render_options) */
    bool framed;                /* as a pod's log */
    int32_t metrics_port;       /* where they are served; not positive: nowhere */
    bool label, quiet, json;
    const struct sink_reader *reader; /* of the ranks' standard output; NULL: none. With here */
    const char *report_path;
    /* The job's status document at its end (jobs/status/status_doc.h); a new reference, NULL where
     * there was no job. NULL: not wanted. */
    json_t **ret_document;
    struct cluster_end *ret_end; /* launcher/programs/cluster_api.h; NULL: not wanted */
};

#define LEAD_LEFT (-1)

/* The job from here to its end; returns its exit status, or LEAD_LEFT where another launcher goes
 * on with it. What is to be said was said. */
int lead_run(struct cluster *cluster, const struct lead_options *options);

#endif
