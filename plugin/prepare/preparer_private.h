/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a preparer share: task.c (whose turn it is), prepare.c and unprepare.c (the
 * steps), holdings.c (who has which device), claim_files.c. */
#ifndef DRARUN_PLUGIN_PREPARE_PREPARER_PRIVATE_H
#define DRARUN_PLUGIN_PREPARE_PREPARER_PRIVATE_H

#include "lib/child/child.h"
#include "lib/kube/call.h"
#include "lib/kube/resource.h"
#include "plugin/discover/host_use.h"
#include "plugin/prepare/agent_config.h"
#include "plugin/prepare/boot.h"
#include "plugin/prepare/checkpoint.h"
#include "plugin/prepare/claimed.h"
#include "plugin/prepare/preparer.h"
#include "plugin/prepare/seen.h"
#include "plugin/prepare/status_later.h"

/* What to do about a NIC that the host uses. */
#define SPARED "; end that, or name the device in nics.include of the PluginConfig"

/* The kubelet's calls, and what the plugin takes back by itself, in the order in which they came.
 * task.c alone adds, starts and ends tasks. Once ending is true (preparer_free) none is started. */
struct preparer_queue {
    struct task *tasks;
    bool ending;
    bool starting; /* tasks, in a loop: what ends at once goes back to it */
    /* What a task does in its turn: prepare_run, unprepare_run. */
    void (*prepare)(struct task *task), (*unprepare)(struct task *task);
};

/* Which claim has which device, as of the last look at the checkpoints and of what was prepared
 * since. holdings.c alone changes it. */
struct preparer_holdings {
    struct holding *list;
    struct seen seen; /* the checkpoints that the list is from */
};

struct preparer {
    struct event_base *base;
    struct kube_client *client;
    const struct preparer_config *config;
    char dir[256]; /* of this driver's checkpoints */
    char boot[BOOT_ID_MAX];
    struct kube_resource claims;
    struct preparer_queue queue;
    struct preparer_holdings holdings;
    struct status_later *statuses;
    struct preparer_counts counts;
};

struct holding {
    struct holding *next;
    char device[NODE_DEVICE_NAME_MAX];
    char uid[64];
    bool known; /* the claim's name; else it was salvaged, and only its UID is */
    char namespace_[64], name[256];
    bool stuck; /* the claim has ended, and its devices could not be taken back */
    /* since when the claim is known to be gone, while its pod may run; 0: it is not */
    int64_t gone_ms;
};

/* The wait for a device that another claim gives back. prepare.c begins it, once. */
struct task_patience {
    struct event *clock; /* when to look again; NULL: it does not wait */
    int64_t late_ms;     /* with clock: when it waits no longer */
};

/* What was asked of the claim that has the device meanwhile. reclaim.c alone changes it. */
struct task_reclaim {
    char holder_uid[64];
    int64_t ask_ms; /* not again before */
    bool kept;      /* its claim is gone, and its pod may still use the device */
};

/* One call of the kubelet for one claim. */
struct task {
    struct preparer *preparer;
    struct task *next;
    struct dra_reply *reply; /* NULL: nobody has asked */
    char *namespace_, *name, *uid;
    bool prepares; /* else it unprepares */
    bool running;
    int64_t begun_ms;
    struct kube_call *call;   /* under way; NULL: none */
    struct event *unanswered; /* prepare: ends the wait for a claim with a checkpoint; or NULL */
    bool started_over;        /* prepare: the claim had other devices than its checkpoint */
    json_t *claim;            /* the API's */
    struct claimed claimed;
    struct agent_config agent; /* agent "": the claim asks for none */
    struct host_use used;      /* of the interfaces of its NICs, when it was last tried */
    struct task_patience patience;
    struct task_reclaim reclaim;
    struct checkpoint *checkpoint;
    struct restore *restores; /* unprepare: one for each device that may be attached */
    struct child *restoring;  /* the program that takes them back */
};

void prepare_run(struct task *task);
void unprepare_run(struct task *task);

/* A call of the kubelet, in its turn; takes the reply. */
void task_start(struct preparer *preparer, const struct dra_claim *claim, struct dra_reply *reply,
                bool prepares);
/* Unprepares the task's claim, and then begins the task again, whether that has succeeded or not.
 */
void task_unprepare_first(struct task *task);
/* Answers and ends the task; the next one of the claim begins, and those that wait look again. */
void task_prepared(struct task *task);
void task_unprepared(struct task *task);
void task_failed(struct task *task, const struct drarun_error *err);

/* Who has the device, or may have it; but: a claim's UID that does not count, or NULL. */
const struct holding *preparer_holder(const struct preparer *preparer, const char *device,
                                      const char *but);
bool preparer_hold(struct preparer *preparer, const char *device, const struct task *task);
void preparer_release(struct preparer *preparer, const char *uid);
void preparer_lose(struct preparer *preparer, const char *uid);
/* Since when its claim is known to be gone: from the first call on. */
int64_t preparer_gone_since(struct preparer *preparer, const char *uid);
/* Holds what the claim's checkpoint says, and nothing else. */
int preparer_reread(struct preparer *preparer, const char *uid, struct drarun_error *err);
/* Holds what all checkpoints say now, those of another instance too. */
int preparer_look(struct preparer *preparer, struct drarun_error *err);
/* Between the look and the checkpoint that it leads to no other instance may decide. -EWOULDBLOCK:
 * one does. Ends with the descriptor. */
int preparer_lock(const struct preparer *preparer, int *ret_fd, struct drarun_error *err);

/* One of a claim's, or NULL. */
const struct holding *preparer_holding(const struct preparer *preparer, const char *uid);
/* "default/pair", or "of UID .." where that is all; for messages. */
void holding_describe(const struct holding *holding, char *ret_text, size_t size);
#define HOLDING_TEXT_MAX 384
/* As Unprepare, unasked. */
void preparer_take_back(struct preparer *preparer, const struct holding *holding);
/* Whether an Unprepare of the claim is under way, or waits for its turn. */
bool preparer_is_given_back(const struct preparer *preparer, const char *uid);

/* reclaim.c: the device that a task waits for may be in a pod that was deleted by force, which the
 * kubelet ends when it gets to it: seconds, in which the scheduler has given the device to the next
 * one. Asks the API server whether the holder's claim still has the device. If not, the device is
 * taken back at once, provided that the pod, which runs on for its grace period, can no longer use
 * it. Otherwise it waits for the kubelet's Unprepare. A claim whose name is not known keeps it. */
void reclaim_ask(struct task *task, const struct holding *holder);
/* Whether a pod that still runs loses all use of the claim's devices when they are taken back. It
 * keeps device nodes: a GPU's, and an RDMA device's unless rdma_moves, where the kernel moves such
 * devices between network namespaces. Pure. */
bool reclaim_leaves_nothing(const struct checkpoint *checkpoint, bool rdma_moves);

/* "ORDERS/UID.DEVICE.json" */
void preparer_order_path(const struct preparer *preparer, const char *uid, const char *device,
                         char *ret_path, size_t size);
/* "ORDERS/UID.REQUEST.metadata", of the request without a subrequest */
void preparer_metadata_path(const struct preparer *preparer, const char *uid, const char *request,
                            char *ret_path, size_t size);

#endif
