/* SPDX-License-Identifier: Apache-2.0 */
/* What Events tell about one object that its own status does not: image pulls in progress, nodes
 * that an autoscaler adds, claims and volumes that cannot be made or prepared. Of each kind the
 * latest is kept. Takes core/v1 and events.k8s.io/v1 Events as the API gives them; both APIs serve
 * the same objects. Pure. Reasons: pkg/kubelet/events/event.go, pkg/controller/resourceclaim,
 * pkg/controller/job, pkg/scheduler of kubernetes 1.36; cluster-autoscaler's and Karpenter's. */
#ifndef DRARUN_JOBS_NEWS_H
#define DRARUN_JOBS_NEWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum news_kind {
    NEWS_NONE = 0,
    NEWS_SCHEDULING_FAILED, /* FailedScheduling of the scheduler */
    NEWS_SCALE_UP,          /* TriggeredScaleUp; Nominated by Karpenter */
    NEWS_NO_SCALE_UP,       /* NotTriggerScaleUp; FailedScaleUp of GKE's; FailedScheduling of
                               Karpenter */
    NEWS_CLAIM_FAILED,      /* FailedResourceClaimCreation */
    NEWS_CREATE_FAILED,     /* FailedCreate of a Job: quota, admission */
    NEWS_PREPARE_FAILED,    /* FailedPrepareDynamicResources */
    NEWS_MOUNT_FAILED,      /* FailedMount, FailedAttachVolume */
    NEWS_MOUNT_LATE,        /* FailedMount that names what is not mounted, and not why */
    NEWS_SANDBOX_FAILED,    /* FailedCreatePodSandBox, NetworkNotReady */
    NEWS_PULLING,           /* Pulling */
    NEWS_PULLED,            /* Pulled */
    NEWS_PULL_FAILED,       /* Failed, of a pull */
    NEWS_START_FAILED,      /* Failed, of a container */
    NEWS_QUEUED,            /* Kueue: Pending, QuotaReserved, ... of a Workload or Job */
    NEWS_NODE_NOT_READY,    /* NodeNotReady */
    NEWS_KIND_COUNT,
};

struct news_item {
    char *text;      /* the Event's message; NULL: none of the kind */
    int64_t at_ms;   /* its last time */
    int64_t from_ms; /* its first */
    uint64_t order;  /* of arrival */
    uint32_t count;  /* how often, at least 1 */
    uint32_t same;   /* how often with this text, as the Event itself counts */
};

struct news {
    char uid[64]; /* of the object; Events of an earlier one of that name are dropped */
    uint64_t order;
    struct news_item items[NEWS_KIND_COUNT];
};

/* Which object the Event is about; texts are borrowed from it, NULL where it names none. */
struct news_subject {
    const char *kind, *name, *namespace, *uid;
};
struct news_subject news_subject(const json_t *event);
enum news_kind news_kind(const json_t *event);
/* When it last happened: in milliseconds since 1970, 0 where it does not say so, and as it says it;
 * NULL: not at all. Borrowed from it. */
const char *news_time(const json_t *event, int64_t *ret_ms);

/* Adds what the Event says. The news are one object's: an Event of another uid empties them when it
 * is newer, and is ignored when older. True when something was added. */
bool news_add(struct news *news, const json_t *event);
void news_done(struct news *news);

/* The news where they are about the object of that uid, or do not say whose they are; else NULL: an
 * earlier object of that name had them, and the API keeps Events for an hour. uid NULL: there is no
 * such object. */
const struct news *news_about(const struct news *news, const char *uid);

/* The item, or NULL when there is none of the kind. NULL news have none. */
const struct news_item *news_get(const struct news *news, enum news_kind kind);
/* An image pull has begun and not yet ended. */
const struct news_item *news_pulling(const struct news *news);
/* A node was ordered for the pod, and nothing since says otherwise. */
const struct news_item *news_scale_up(const struct news *news);
/* When the first node was ordered for it, whatever was said since; 0: none was; INT64_MAX: the
 * Event has no time. */
int64_t news_ordered_ms(const struct news *news);

#endif
