/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of one verb to one cluster: loop, client, and what the API server offers. Loop
 * thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CLUSTER_H
#define DRARUN_LAUNCHER_CLUSTER_CLUSTER_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/manifests/agent_claim.h"
#include "jobs/manifests/claims.h"
#include "lib/base/strlist.h"
#include "lib/kube/client.h"
#include "lib/kube/object.h"

struct loop_fd;        /* loop_fd.h */
struct kube_discovery; /* lib/kube/discover.h */

#define CLUSTER_BY_CLAIM "claim:" /* DRARUN_AGENT: and DRIVER=AGENT */

struct cluster {
    struct event_base *base;
    /* somebody's loop that runs while we wait, and runs ours when door says so; NULL: none */
    struct event_base *outer;
    struct loop_fd *door;
    struct event *turn;
    struct kube_config *config;
    struct kube_client *client;
    const char *namespace;   /* the choice's; a spec may name another */
    unsigned minor;          /* of its Kubernetes 1.MINOR; 0: not known (cluster_discover) */
    enum claims_api api;     /* newest that is served; 0: none (cluster_discover) */
    const char *taint_rules; /* the version of resource.k8s.io that has DeviceTaintRules, or NULL */
    const char *pod_groups;  /* the version of scheduling.k8s.io that serves them, or NULL */
    const char *pod_groups_unknown; /* a newer version that does, which we do not know, or NULL */
    bool dra_jobs;                  /* DraJobs are objects there (jobs/manifests/crd.h) */
    bool image_volume;              /* the agent comes by an image volume, which pods may have */
    int32_t metrics_port;           /* of launchers, as DRARUN_METRICS says (render_options) */
    int64_t create_ms;              /* of a creation with all its tries; 0: KUBE_CALL_MS */
    int64_t delete_ms;              /* of a deletion, likewise */
    bool (*may_create)(void *arg);  /* asked before each object of a job; NULL: it may */
    void *may_create_arg;
    const char *delivery;     /* as DRARUN_AGENT or its nodes say; NULL: by the cluster's version */
    struct agent_claim agent; /* it comes by the claims (offer.h); its agent "": it does not */
    char agent_text[sizeof CLUSTER_BY_CLAIM + AGENT_CLAIM_TEXT_MAX]; /* what delivery may be */
};

/* Opens no connection yet. choice may be NULL. */
int cluster_open(struct cluster *cluster, const struct kube_config_choice *choice,
                 struct drarun_error *err);
void cluster_close(struct cluster *cluster);
/* For somebody who waits: logs that the API server does not answer, and that it answers again. */
void cluster_tell_unanswered(struct cluster *cluster);

/* Runs the loop until something has happened. Not 0: it cannot. */
int cluster_loop(struct cluster *cluster);
/* The same, at most ms. */
void cluster_turn(struct cluster *cluster, int64_t ms);
/* Runs the loop until a callback has set *done. */
int cluster_await(struct cluster *cluster, const bool *done, struct drarun_error *err);

/* Of resource.k8s.io, "v1", where it is served: what kube_resource_claims and its like are asked
 * for by. */
const char *cluster_claims_version(const struct cluster *cluster);
/* An error where it is not served at all. */
int cluster_need_claims(const struct cluster *cluster, struct drarun_error *err);

/* One call, with the loop run until its answer is there (lib/kube/call.h has the deadline). The
 * callbacks of others run meanwhile. ret_body may be NULL; the caller owns it. Errors as
 * kube_call_fn's. */
int cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                struct drarun_error *err);
/* A get under way beside other calls, at an address that stays. */
struct cluster_read {
    struct kube_call *call; /* NULL: none, or answered */
    json_t *body;
    struct drarun_error err; /* code 0: none */
};
int cluster_read_start(struct cluster *cluster, const struct kube_target *target,
                       struct cluster_read *read, struct drarun_error *err);
/* Runs the loop until its answer is there, once; as cluster_get. */
int cluster_read_end(struct cluster *cluster, struct cluster_read *read, json_t **ret_body,
                     struct drarun_error *err);
/* Its answer is of no interest any more. For CLEANUP; a zeroed one is fine. */
void cluster_read_drop(struct cluster_read *read);

/* Asks what is served; runs the loop until the answer is there. */
int cluster_discover(struct cluster *cluster, struct drarun_error *err);
/* The same beside other calls, at an address that stays. */
struct cluster_question {
    struct cluster *cluster;
    struct kube_discovery *discovery; /* NULL: none, or answered */
    struct cluster_read version;
    struct drarun_error err; /* code 0: none */
};
int cluster_discover_start(struct cluster *cluster, struct cluster_question *question,
                           struct drarun_error *err);
bool cluster_discover_is_answered(const struct cluster_question *question);
/* As cluster_discover; runs the loop where that is not answered. */
int cluster_discover_end(struct cluster_question *question, struct drarun_error *err);
/* As cluster_read_drop. */
void cluster_discover_drop(struct cluster_question *question);

int cluster_list(struct cluster *cluster, const struct kube_target *target,
                 const struct kube_select *select, json_t **ret_body, struct drarun_error *err);
/* Sent again when its answer is lost, until create_ms: -EEXIST may be of our own making. */
int cluster_create(struct cluster *cluster, const struct kube_target *target, const json_t *object,
                   json_t **ret_body, struct drarun_error *err);
/* What the server says of an object beside yes or no. */
struct cluster_said {
    json_t *status;          /* the Status object of a refusal, or NULL */
    struct strlist warnings; /* for people */
};
void cluster_said_done(struct cluster_said *said);
/* Whether the server would create it; nothing is made. */
int cluster_try_create(struct cluster *cluster, const struct kube_target *target,
                       const json_t *object, struct cluster_said *ret_said,
                       struct drarun_error *err);
int cluster_replace(struct cluster *cluster, const struct kube_target *target, const json_t *object,
                    json_t **ret_body, struct drarun_error *err);
int cluster_merge_patch(struct cluster *cluster, const struct kube_target *target,
                        const json_t *patch, struct drarun_error *err);
/* What is not there is deleted. */
int cluster_delete(struct cluster *cluster, const struct kube_target *target,
                   const struct kube_delete *options, struct drarun_error *err);
int cluster_delete_all(struct cluster *cluster, const struct kube_target *target,
                       const struct kube_select *select, const struct kube_delete *options,
                       struct drarun_error *err);

#endif
