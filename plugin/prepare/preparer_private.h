/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a preparer share: preparer.c (whose turn it is), prepare.c, unprepare.c. */
#ifndef DRARUN_PLUGIN_PREPARE_PREPARER_PRIVATE_H
#define DRARUN_PLUGIN_PREPARE_PREPARER_PRIVATE_H

#include "lib/child/child.h"
#include "lib/kube/call.h"
#include "lib/kube/resource.h"
#include "plugin/prepare/agent_config.h"
#include "plugin/prepare/checkpoint.h"
#include "plugin/prepare/claimed.h"
#include "plugin/prepare/preparer.h"

struct preparer {
    struct event_base *base;
    struct kube_client *client;
    const struct preparer_config *config;
    char dir[256]; /* of this driver's checkpoints */
    struct kube_resource claims;
    struct task *tasks;     /* in order of their calls */
    struct holding *held;   /* which claim has which device */
    bool ending;
};

struct holding {
    struct holding *next;
    char device[NODE_DEVICE_NAME_MAX];
    char uid[64];
    char claim[256]; /* "namespace/name", for messages */
};

/* One call of the kubelet for one claim. */
struct task {
    struct preparer *preparer;
    struct task *next;
    struct dra_reply *reply;
    char *namespace_, *name, *uid;
    void (*run)(struct task *task);
    bool running;
    struct kube_call *call; /* under way; NULL: none */
    json_t *claim;          /* the API's */
    struct claimed claimed;
    struct agent_config agent; /* agent "": the claim asks for none */
    struct event *patience; /* waits for a device that another claim gives back; NULL: it does not */
    int64_t late_ms;        /* when patience is over */
    struct checkpoint *checkpoint;
    struct restore *restores; /* unprepare: one for each device that is attached */
    size_t restores_left;
    struct drarun_error first; /* the first error of several */
};

void prepare_run(struct task *task);
void unprepare_run(struct task *task);

/* Answers and ends the task; the next one of the claim begins, and those that wait look again. */
void task_prepared(struct task *task);
void task_unprepared(struct task *task);
void task_failed(struct task *task, const struct drarun_error *err);

/* Who has the device, or may have it; but: a claim's UID that does not count, or NULL. */
const struct holding *preparer_holder(const struct preparer *preparer, const char *device,
                                      const char *but);
bool preparer_hold(struct preparer *preparer, const char *device, const struct task *task);
void preparer_release(struct preparer *preparer, const char *uid);
/* Holds what the claim's checkpoint says, and nothing else. */
int preparer_reread(struct preparer *preparer, const char *uid, struct drarun_error *err);

/* "ORDERS/UID.DEVICE.json" */
void preparer_order_path(const struct preparer *preparer, const char *uid, const char *device,
                         char *ret_path, size_t size);
/* "ORDERS/UID.REQUEST.metadata", of the request without a subrequest */
void preparer_metadata_path(const struct preparer *preparer, const char *uid, const char *request,
                            char *ret_path, size_t size);
/* unprepare.c's, freed with a task */
void restores_free(struct task *task);

#endif
