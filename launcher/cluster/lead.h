/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of a job on a cluster: makes what is missing of it, waits for all workers, runs the
 * ranks, tries again where the spec allows it, and takes everything back
 * (docs/design/015-cluster.md). In a pod of the launcher Job, or wherever `drarun run --here`
 * stands. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEAD_H
#define DRARUN_LAUNCHER_CLUSTER_LEAD_H

#include "jobs/spec.h"
#include "launcher/cluster/cluster.h"
#include "lib/wire/tls.h"

/* Room for the name of a job's Secret, which no other has. */
#define LEAD_SECRET_SIZE 80

#define LEAD_CANCEL "drarun.dev/cancel" /* annotation of the owner: ends the job */

struct lead_options { /* all borrowed */
    const struct job_spec *spec;
    const char *namespace;
    const char *image;          /* of the agent; NULL: the default */
    const char *holder;         /* who we are, for the Lease: the pod's name, or HOST_PID */
    const char *owner_uid;      /* the launcher Job's; NULL: there is no owner yet (here) */
    const struct tls_key *key;  /* the job's; NULL: made here */
    const char *secret;         /* that holds it; NULL: named here */
    const struct strlist *args; /* in place of the command's arguments; empty: the spec's */
    bool here;                  /* no launcher Job */
    bool framed;                /* as a pod's log */
    int32_t metrics_port;       /* where they are served; not positive: nowhere */
    bool label, quiet, json;
    const char *report_path;
};

/* By a clock that never goes back, milliseconds since 1970. */
int64_t lead_now(void);

/* "NAME-key-1a2b3c4d". */
int lead_name_secret(const char *job, char name[LEAD_SECRET_SIZE], struct drarun_error *err);

#define LEAD_LEFT (-1)

/* The job from here to its end; returns its exit status, or LEAD_LEFT where another launcher goes
 * on with it. What is to be said was said. */
int lead_run(struct cluster *cluster, const struct lead_options *options);

#endif
