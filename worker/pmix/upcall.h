/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of PMIx clients on their way from PMIx' thread to the loop. An upcall is copied out of
 * the library's memory, queued, and answered exactly once from the loop; one that is freed
 * unanswered answers an error and logs a bug (docs/design/007-pmix-server.md). */
#ifndef DRARUN_WORKER_PMIX_UPCALL_H
#define DRARUN_WORKER_PMIX_UPCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include <pmix.h>
#include <pmix_server.h>

enum upcall_kind {
    UPCALL_CONNECTED = 1,
    UPCALL_FINALIZED,
    UPCALL_LOST, /* an event of the library's: the connection broke before that */
    UPCALL_ABORT,
    UPCALL_FENCE,
    UPCALL_DMODEX,
    UPCALL_PUBLISH,
    UPCALL_LOOKUP,
    UPCALL_UNPUBLISH,
    UPCALL_CONNECT,
    UPCALL_DISCONNECT,
    UPCALL_GROUP,
    UPCALL_NOTIFY,
    UPCALL_QUERY,
    UPCALL_LOG,
    UPCALL_JOB_CONTROL,
    UPCALL_SPAWN,
    UPCALL_TOOL,         /* a tool wants to connect */
    UPCALL_LOCAL_MODEX,  /* not a client's: PMIx_server_dmodex_request has its answer */
    UPCALL_MEMBER_MODEX, /* the same, for a collective with other jobs */
};

struct upcall {
    struct upcall *next;
    enum upcall_kind kind;
    pmix_proc_t proc; /* who asks */
    pmix_proc_t *procs;
    size_t proc_count;
    pmix_info_t *info;
    size_t info_count;
    pmix_query_t *queries;
    size_t query_count;
    pmix_app_t *apps;
    size_t app_count;
    char **keys;
    char *data;
    size_t length;
    char *text;      /* ABORT: the message; GROUP: its name */
    int status;      /* ABORT: as given; NOTIFY: the event; LOCAL_MODEX, LOG: of the request */
    int detail;      /* GROUP: pmix_group_operation_t; NOTIFY: pmix_data_range_t */
    uint64_t id;     /* LOCAL_MODEX: of the remote request */
    uint32_t source; /* LOCAL_MODEX: the worker that asked */
    uint32_t open;   /* LOG: texts that were not passed on yet */
    bool answered;
    pmix_op_cbfunc_t op_cb; /* the answer's form: one of these six is set, or none is needed */
    pmix_modex_cbfunc_t modex_cb;
    pmix_lookup_cbfunc_t lookup_cb;
    pmix_info_cbfunc_t info_cb;
    pmix_spawn_cbfunc_t spawn_cb;
    pmix_tool_connection_cbfunc_t tool_cb;
    void *cbdata;
};

/* From the loop only. Each frees the upcall. data, pdata and info are copied where the library
 * keeps them. */
void upcall_answer(struct upcall *upcall, pmix_status_t status); /* any form, without data */
void upcall_answer_data(struct upcall *upcall, pmix_status_t status, const void *data,
                        size_t length);
void upcall_answer_pdata(struct upcall *upcall, pmix_pdata_t *pdata, size_t count);
void upcall_answer_spawn(struct upcall *upcall, const char *nspace);
void upcall_answer_tool(struct upcall *upcall, const pmix_proc_t *name);
/* Takes the array, made by PMIx_Info_list_convert or PMIX_INFO_CREATE. */
void upcall_answer_info_take(struct upcall *upcall, pmix_status_t status, pmix_info_t *info,
                             size_t count);
void upcall_free(struct upcall *upcall);

/* The queue between the threads. PMIx passes no user pointer to a server's functions, so there is
 * one queue in a process; this is the one pointer that PMIx forces on us. */
struct upcall_queue;
struct upcall_queue *upcall_queue_new(struct event_base *base,
                                      void (*handle)(struct upcall *upcall, void *arg), void *arg);
/* Answers what is left with an error. PMIx' thread must call no more. */
void upcall_queue_free(struct upcall_queue *queue);
/* From now on what comes is answered with an error: who handled it is going, and the library's
 * thread may post as long as the process lives. */
void upcall_queue_close(struct upcall_queue *queue);
/* Handles what has been queued so far, on the loop's thread: before judging a rank that ended. */
void upcall_queue_drain(struct upcall_queue *queue);
/* From any thread; takes the upcall. */
void upcall_post_take(struct upcall *upcall);

/* Asks the library to post UPCALL_LOST. After PMIx_server_init. */
void upcall_watch_losses(void);

/* The functions that libpmix calls, on its own thread. Entries that are NULL answer NOT_SUPPORTED;
 * docs/design/007-pmix-server.md gives the reason for each. */
pmix_server_module_t *upcall_module(void);

/* The first info entry with this key, or NULL. */
const pmix_info_t *upcall_info(const struct upcall *upcall, const char *key);
/* Its number, whatever the type; 0: there is none. */
int64_t upcall_number(const struct upcall *upcall, const char *key);

#endif
