/* SPDX-License-Identifier: Apache-2.0 */
/* How far one worker is, read from its Pod, its ResourceClaim and the Events about the pod, as the
 * API server of Kubernetes 1.31 to 1.36 gives them. What is not there or not understood is unknown
 * and never an error. Pure. docs/design/016-waiting.md has the table of reasons. */
#ifndef DRARUN_JOBS_POD_STATE_H
#define DRARUN_JOBS_POD_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "jobs/gang/news.h"

/* In the order of a pod's life. */
enum pod_phase {
    POD_ABSENT = 1,  /* no object */
    POD_GATED,       /* scheduling gates: the scheduler does not look at it */
    POD_UNSCHEDULED, /* no node yet */
    POD_BOUND,       /* has a node; claims are prepared, volumes mounted, the sandbox made */
    POD_PULLING,     /* an image is on its way, or cannot be had (reason) */
    POD_CREATING,    /* a container is being created, or cannot be (reason) */
    POD_INIT,        /* an init container runs */
    POD_RUNNING,     /* the worker's container runs */
    POD_ENDED,       /* no container runs any more */
};

/* Why it ended, or is about to (disrupted). */
enum pod_end {
    POD_END_NONE = 0,
    POD_END_EXIT,          /* the worker's container exited: exit_code */
    POD_END_OOM,           /* OOMKilled */
    POD_END_START,         /* the container could not be started: StartError */
    POD_END_EVICTED,       /* by the kubelet, or through the eviction API (drain) */
    POD_END_PREEMPTED,     /* for a pod of higher priority */
    POD_END_TAINT,         /* a NoExecute taint of the node */
    POD_END_DEVICE_TAINT,  /* a NoExecute taint of a device */
    POD_END_NODE_LOST,     /* the node is gone or does not answer */
    POD_END_NODE_SHUTDOWN, /* the node shuts down in order */
    POD_END_DEADLINE,      /* the pod's activeDeadlineSeconds */
    POD_END_REFUSED,       /* the kubelet did not admit it: OutOfcpu, UnexpectedAdmissionError */
    POD_END_DELETED,       /* someone deleted it */
    POD_END_UNKNOWN,       /* ContainerStatusUnknown, or no reason given */
};

/* runc's exit status where the kernel does not start the program; the agent ends with none such.
 * The reason is in the container's log alone. */
#define POD_RUNTIME_STATUS 255
#define POD_RUNTIME_WORDS                                                                          \
    ", which is the container runtime's: an image for another architecture than the node's has "   \
    "no agent for it (its log: exec format error)"

/* The kubelet starts a container again that is meant to go on, after a pause that doubles from 10
 * s. One that it has started so often does not go on by itself. */
#define POD_RESTARTS "CrashLoopBackOff"
#define POD_RESTARTS_MAX 4

/* Whose image it is that a pod waits for. */
enum pod_image {
    POD_IMAGE_NONE = 0,
    POD_IMAGE_RANKS,    /* of a worker's container */
    POD_IMAGE_AGENT,    /* of the init container or the image volume that brings the agent */
    POD_IMAGE_LAUNCHER, /* of the launcher's container */
    POD_IMAGE_OTHER,    /* of another container or image volume of the user's */
};

enum claim_phase {
    CLAIM_NONE = 1,    /* the worker claims nothing */
    CLAIM_ABSENT,      /* no object yet */
    CLAIM_NO_TEMPLATE, /* it cannot be made: its template does not exist */
    CLAIM_REFUSED,     /* it cannot be made: quota, admission (claim_message) */
    CLAIM_PENDING,
    CLAIM_ALLOCATED,
    CLAIM_DELETING, /* its devices are still held where `devices` counts some */
};

/* Texts are borrowed from the objects and the news, NULL where unknown. Times in milliseconds since
 * 1970, 0 where unknown. */
struct pod_state {
    enum pod_phase phase;
    int64_t since_ms; /* the phase's begin, by the cluster's clock */
    const char *name, *uid, *node, *ip;
    const char *group;     /* the PodGroup that it names, or NULL */
    const json_t *gates;   /* the list of POD_GATED: [{"name"}] */
    bool suspended;        /* one of them is our own drarun.dev/suspended */
    const char *container; /* the one that the reason is about */
    const char *image;     /* that is awaited, as the pod's spec has it; else the container's */
    enum pod_image image_of;
    bool image_volume;   /* that container mounts the agent's image volume */
    const char *reason;  /* the API's word: Unschedulable, ErrImagePull, OOMKilled, ... */
    const char *message; /* what the API says about it */
    bool unschedulable;  /* the scheduler looked and found no node: since_ms */
    bool node_comes;     /* an autoscaler has ordered a node for it */
    bool image_comes;    /* a pull is in progress, or is tried again */
    bool failing;        /* as it is, this does not go on by itself (reason) */
    bool not_ready;      /* it runs, and its node has stopped to answer */
    bool deleting;       /* it has a deletionTimestamp */
    bool vanished;       /* it or its claim was there and is not; for who watches to say */
    bool disrupted;      /* its end is announced (DisruptionTarget): end says why */
    int64_t deleting_since_ms;
    int64_t ordered_ms; /* POD_UNSCHEDULED: news_ordered_ms */
    enum pod_end end;
    int exit_code; /* of POD_END_EXIT, POD_END_OOM, POD_END_START; -1: none */
    int64_t started_ms, ended_ms;

    enum claim_phase claim;
    int64_t claim_since_ms;
    const char *claim_message;
    uint32_t devices; /* allocated */

    const struct news *news; /* as given; NULL: none of this pod's, or there is no pod */
};

/* pod and claim may be NULL: there is no such object. wants_claim: the worker should have one. news
 * may be NULL. All must outlive the state. */
void pod_state_read(const json_t *pod, const json_t *claim, bool wants_claim,
                    const struct news *news, struct pod_state *ret_state);

/* Leaves of the pod's spec what its state is read from: of 1,000 pods most of what a launcher would
 * hold is their templates, all the same. */
void pod_state_trim(json_t *pod);

/* The container that runs our program, of the worker's pod or of the launcher's; else the first
 * one. Admission may have put others before it, as service meshes do. NULL: there is none. */
const json_t *pod_state_container(const json_t *pod);

/* Does the worker hold devices or a node that others could use? */
bool pod_state_holds(const struct pod_state *state);
/* Its claim is allocated (or it has none) and its pod has a node. */
bool pod_state_placed(const struct pod_state *state);
/* Why a worker that ran is lost; borrowed from the state. NULL: it is not. */
const char *pod_state_lost(const struct pod_state *state);

/* "image localhost/a:1 of the ranks" (the agent, the launcher, container NAME), cut to size. */
void pod_state_image(const struct pod_state *state, char *out, size_t size);

/* One word each, as the status document has them: "absent", "gated", ... */
const char *pod_phase_name(enum pod_phase phase);
const char *pod_end_name(enum pod_end end);
const char *claim_phase_name(enum claim_phase phase);

#endif
