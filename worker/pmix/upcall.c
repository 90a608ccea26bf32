/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/upcall.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct upcall_queue {
    pthread_mutex_t lock; /* over first and last */
    struct upcall *first;
    struct upcall **last;
    int wake; /* eventfd */
    struct event *event;
    void (*handle)(struct upcall *upcall, void *arg);
    void *arg;
};

static struct upcall_queue *the_queue;

static void release(void *pointer)
{
    free(pointer);
}

struct info_array {
    pmix_info_t *info;
    size_t count;
};

static void release_info(void *pointer)
{
    struct info_array *array = pointer;
    if (array->info)
        PMIX_INFO_FREE(array->info, array->count);
    free(array);
}

void upcall_free(struct upcall *upcall)
{
    if (!upcall)
        return;
    bool expects = upcall->op_cb || upcall->modex_cb || upcall->lookup_cb || upcall->info_cb ||
                   upcall->spawn_cb || upcall->tool_cb;
    if (expects && !upcall->answered) {
        log_error("bug: a PMIx request of kind %d was dropped unanswered", upcall->kind);
        upcall_answer(upcall, PMIX_ERROR);
        return;
    }
    if (upcall->info)
        PMIX_INFO_FREE(upcall->info, upcall->info_count);
    if (upcall->apps)
        PMIX_APP_FREE(upcall->apps, upcall->app_count);
    if (upcall->queries)
        PMIX_QUERY_FREE(upcall->queries, upcall->query_count);
    for (size_t i = 0; upcall->keys && upcall->keys[i]; i++)
        free(upcall->keys[i]);
    free(upcall->keys);
    free(upcall->procs);
    free(upcall->data);
    free(upcall->text);
    free(upcall);
}

void upcall_answer(struct upcall *upcall, pmix_status_t status)
{
    upcall->answered = true;
    if (upcall->op_cb)
        upcall->op_cb(status, upcall->cbdata);
    else if (upcall->modex_cb)
        upcall->modex_cb(status, NULL, 0, upcall->cbdata, NULL, NULL);
    else if (upcall->lookup_cb)
        upcall->lookup_cb(status, NULL, 0, upcall->cbdata);
    else if (upcall->info_cb)
        upcall->info_cb(status, NULL, 0, upcall->cbdata, NULL, NULL);
    else if (upcall->spawn_cb)
        upcall->spawn_cb(status, NULL, upcall->cbdata);
    else if (upcall->tool_cb)
        upcall->tool_cb(status, &upcall->proc, upcall->cbdata); /* which the library reads */
    upcall_free(upcall);
}

void upcall_answer_tool(struct upcall *upcall, const pmix_proc_t *name)
{
    upcall->proc = *name;
    upcall_answer(upcall, PMIX_SUCCESS);
}

void upcall_answer_spawn(struct upcall *upcall, const char *nspace)
{
    pmix_nspace_t name; /* the library copies it */
    PMIX_LOAD_NSPACE(name, nspace);
    upcall->answered = true;
    upcall->spawn_cb(PMIX_SUCCESS, name, upcall->cbdata);
    upcall_free(upcall);
}

void upcall_answer_data(struct upcall *upcall, pmix_status_t status, const void *data,
                        size_t length)
{
    char *copy = length > 0 ? malloc(length) : NULL;
    if (length > 0 && !copy) {
        upcall_answer(upcall, PMIX_ERR_NOMEM);
        return;
    }
    if (copy)
        memcpy(copy, data, length);
    upcall->answered = true;
    upcall->modex_cb(status, copy, length, upcall->cbdata, release, copy);
    upcall_free(upcall);
}

void upcall_answer_pdata(struct upcall *upcall, pmix_pdata_t *pdata, size_t count)
{
    upcall->answered = true;
    /* the library copies it inside */
    upcall->lookup_cb(PMIX_SUCCESS, pdata, count, upcall->cbdata);
    upcall_free(upcall);
}

void upcall_answer_info_take(struct upcall *upcall, pmix_status_t status, pmix_info_t *info,
                             size_t count)
{
    struct info_array *array = malloc(sizeof *array);
    if (!array) {
        PMIX_INFO_FREE(info, count);
        upcall_answer(upcall, PMIX_ERR_NOMEM);
        return;
    }
    *array = (struct info_array){info, count};
    upcall->answered = true;
    upcall->info_cb(status, info, count, upcall->cbdata, release_info, array);
    upcall_free(upcall);
}

const pmix_info_t *upcall_info(const struct upcall *upcall, const char *key)
{
    for (size_t i = 0; i < upcall->info_count; i++)
        if (PMIX_CHECK_KEY(&upcall->info[i], key))
            return &upcall->info[i];
    return NULL;
}

int64_t upcall_number(const struct upcall *upcall, const char *key)
{
    const pmix_info_t *info = upcall_info(upcall, key);
    int64_t number = 0;
    pmix_status_t status = PMIX_ERR_NOT_FOUND;
    if (info)
        PMIX_VALUE_GET_NUMBER(status, &info->value, number, int64_t);
    return status == PMIX_SUCCESS ? number : 0;
}

/* ---- the queue ---- */

void upcall_queue_drain(struct upcall_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct upcall *upcall = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    while (upcall) {
        struct upcall *next = upcall->next;
        queue->handle(upcall, queue->arg);
        upcall = next;
    }
}

static void refuse(struct upcall *upcall, void *arg)
{
    (void)arg;
    upcall_answer(upcall, PMIX_ERR_UNREACH);
}

void upcall_queue_close(struct upcall_queue *queue)
{
    queue->handle = refuse;
    queue->arg = NULL;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) == sizeof count)
        upcall_queue_drain(arg);
}

struct upcall_queue *upcall_queue_new(struct event_base *base,
                                      void (*handle)(struct upcall *upcall, void *arg), void *arg)
{
    struct upcall_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    pthread_mutex_init(&queue->lock, NULL);
    queue->last = &queue->first;
    queue->handle = handle;
    queue->arg = arg;
    queue->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queue->event =
        queue->wake < 0 ? NULL : event_new(base, queue->wake, EV_READ | EV_PERSIST, on_wake, queue);
    if (!queue->event || event_add(queue->event, NULL) < 0) {
        upcall_queue_free(queue);
        return NULL;
    }
    the_queue = queue;
    return queue;
}

void upcall_queue_free(struct upcall_queue *queue)
{
    if (!queue)
        return;
    if (the_queue == queue)
        the_queue = NULL;
    while (queue->first) {
        struct upcall *next = queue->first->next;
        upcall_answer(queue->first, PMIX_ERR_UNREACH);
        queue->first = next;
    }
    if (queue->event)
        event_free(queue->event);
    close_fd(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

void upcall_post_take(struct upcall *upcall)
{
    struct upcall_queue *queue = the_queue;
    upcall->next = NULL;
    pthread_mutex_lock(&queue->lock);
    bool was_empty = queue->first == NULL;
    *queue->last = upcall;
    queue->last = &upcall->next;
    pthread_mutex_unlock(&queue->lock);
    uint64_t one = 1;
    /* an eventfd write can only fail when 2^64-1 wakes are pending */
    if (was_empty && write(queue->wake, &one, sizeof one) < 0)
        log_error("bug: cannot wake the loop: %s", strerror(errno));
}

/* ---- called by libpmix on its thread: copy, post, return ---- */

static struct upcall *upcall_new(enum upcall_kind kind, const pmix_proc_t *proc)
{
    struct upcall *upcall = calloc(1, sizeof *upcall);
    if (!upcall) {
        log_error("PMIx: out of memory for a request of a rank");
        return NULL;
    }
    upcall->kind = kind;
    if (proc)
        upcall->proc = *proc;
    return upcall;
}

/* Other agents wait for this one's part of a collective, and of some requests the library does not
 * heed that they have failed: then the job must end. */
static _Noreturn void end_agent(void)
{
    log_error("PMIx: out of memory for a request of a rank: this agent ends");
    _exit(error_exit_status(DRARUN_ERR_INFRASTRUCTURE));
}

static struct upcall *upcall_new_surely(enum upcall_kind kind, const pmix_proc_t *proc)
{
    struct upcall *upcall = upcall_new(kind, proc);
    if (!upcall)
        end_agent();
    return upcall;
}

static bool copy_procs(struct upcall *upcall, const pmix_proc_t procs[], size_t count)
{
    upcall->procs = calloc(count + 1, sizeof *procs);
    if (!upcall->procs)
        return false;
    if (count > 0)
        memcpy(upcall->procs, procs, count * sizeof *procs);
    upcall->proc_count = count;
    return true;
}

/* What has a type that the library cannot copy stays empty. */
static bool copy_one(pmix_info_t *to, const pmix_info_t *from)
{
    bool text = from->value.type == PMIX_STRING && from->value.data.string;
    return PMIx_Info_xfer(to, from) != PMIX_ERR_NOMEM && (!text || to->value.data.string);
}

static bool copy_info(struct upcall *upcall, const pmix_info_t info[], size_t count)
{
    if (count == 0)
        return true;
    PMIX_INFO_CREATE(upcall->info, count);
    if (!upcall->info)
        return false;
    upcall->info_count = count;
    for (size_t i = 0; i < count; i++)
        if (!copy_one(&upcall->info[i], &info[i]))
            return false;
    return true;
}

static bool copy_keys(struct upcall *upcall, char **keys)
{
    size_t count = 0;
    while (keys && keys[count])
        count++;
    upcall->keys = calloc(count + 1, sizeof *upcall->keys);
    for (size_t i = 0; upcall->keys && i < count; i++)
        if (!(upcall->keys[i] = strdup(keys[i])))
            return false;
    return upcall->keys != NULL;
}

/* Posts a complete upcall, or drops a half-built one: the library then answers for us. */
static pmix_status_t post(struct upcall *upcall, bool complete)
{
    if (!complete) {
        if (upcall) {
            log_error("PMIx: out of memory for a request of a rank");
            upcall->answered = true; /* by the return value */
        }
        upcall_free(upcall);
        return PMIX_ERR_NOMEM;
    }
    upcall_post_take(upcall);
    return PMIX_SUCCESS;
}

static pmix_status_t post_collective(struct upcall *upcall, const pmix_proc_t procs[], size_t count,
                                     const pmix_info_t info[], size_t info_count)
{
    if (!copy_procs(upcall, procs, count) || !copy_info(upcall, info, info_count))
        end_agent();
    upcall_post_take(upcall);
    return PMIX_SUCCESS;
}

/* Nothing to wait for: the library may go on at once. */
static pmix_status_t post_done(struct upcall *upcall)
{
    upcall_post_take(upcall);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t count, pmix_op_cbfunc_t cb, void *cbdata)
{
    (void)object, (void)info, (void)count, (void)cb, (void)cbdata;
    return post_done(upcall_new_surely(UPCALL_CONNECTED, proc));
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cb,
                                  void *cbdata)
{
    (void)object, (void)cb, (void)cbdata;
    return post_done(upcall_new_surely(UPCALL_FINALIZED, proc));
}

static void post_lost(const pmix_proc_t *proc)
{
    upcall_post_take(upcall_new_surely(UPCALL_LOST, proc));
}

/* The library closes a collective over the gap at once, and other ranks may end of it before the
 * lost one is reaped. Several losses at a time are one event: the first is the source, and further
 * ones are put before each other (PMIX_REPORT_EVENT). */
static void on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                    size_t count, pmix_info_t results[], size_t result_count,
                    pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)results, (void)result_count;
    post_lost(source);
    for (size_t i = count; i-- > 0;)
        if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) && info[i].value.type == PMIX_PROC)
            post_lost(info[i].value.data.proc);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_watched(pmix_status_t status, size_t id, void *cbdata)
{
    (void)id, (void)cbdata;
    if (status != PMIX_SUCCESS)
        log_verbose("lost connections are not watched: %s", PMIx_Error_string(status));
}

void upcall_watch_losses(void)
{
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_lost, on_watched, NULL);
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status,
                              const char message[], pmix_proc_t procs[], size_t count,
                              pmix_op_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_ABORT, proc);
    (void)object;
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->status = status;
    upcall->text = strdup(message ? message : "");
    upcall->op_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, upcall->text && copy_procs(upcall, procs, count));
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[],
                              size_t info_count, char *data, size_t length, pmix_modex_cbfunc_t cb,
                              void *cbdata)
{
    struct upcall *upcall = upcall_new_surely(UPCALL_FENCE, NULL);
    upcall->data = data; /* the library hands it over (pmix_server.h, fence_nb) */
    upcall->length = length;
    upcall->modex_cb = cb;
    upcall->cbdata = cbdata;
    return post_collective(upcall, procs, count, info, info_count);
}

static pmix_status_t on_dmodex(const pmix_proc_t *proc, const pmix_info_t info[], size_t count,
                               pmix_modex_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_DMODEX, proc);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->modex_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_info(upcall, info, count));
}

static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t count,
                                pmix_op_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_PUBLISH, proc);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->op_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_info(upcall, info, count));
}

static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t count, pmix_lookup_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_LOOKUP, proc);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->lookup_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_keys(upcall, keys) && copy_info(upcall, info, count));
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t count, pmix_op_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_UNPUBLISH, proc);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->op_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_keys(upcall, keys) && copy_info(upcall, info, count));
}

static pmix_status_t post_members(enum upcall_kind kind, const pmix_proc_t procs[], size_t count,
                                  const pmix_info_t info[], size_t info_count, pmix_op_cbfunc_t cb,
                                  void *cbdata)
{
    struct upcall *upcall = upcall_new_surely(kind, NULL);
    upcall->op_cb = cb;
    upcall->cbdata = cbdata;
    return post_collective(upcall, procs, count, info, info_count);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t count, const pmix_info_t info[],
                                size_t info_count, pmix_op_cbfunc_t cb, void *cbdata)
{
    return post_members(UPCALL_CONNECT, procs, count, info, info_count, cb, cbdata);
}

static pmix_status_t on_disconnect(const pmix_proc_t procs[], size_t count,
                                   const pmix_info_t info[], size_t info_count, pmix_op_cbfunc_t cb,
                                   void *cbdata)
{
    return post_members(UPCALL_DISCONNECT, procs, count, info, info_count, cb, cbdata);
}

/* libpmix 5.0.7, pmix_server_grpdestruct: when the host answers a destruct among local ranks later,
 * it asks the host a second time, and the second answer meets a freed object. Nothing is to be done
 * for one anyway. */
static bool is_local_destruct(pmix_group_operation_t operation, const pmix_info_t info[],
                              size_t count)
{
    for (size_t i = 0; operation == PMIX_GROUP_DESTRUCT && i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_LOCAL_ONLY))
            return true;
    return false;
}

static pmix_status_t on_group(pmix_group_operation_t operation, char name[],
                              const pmix_proc_t procs[], size_t count, const pmix_info_t info[],
                              size_t info_count, pmix_info_cbfunc_t cb, void *cbdata)
{
    if (is_local_destruct(operation, info, info_count))
        return PMIX_OPERATION_SUCCEEDED;
    struct upcall *upcall = upcall_new_surely(UPCALL_GROUP, NULL);
    upcall->detail = operation;
    if (!(upcall->text = strdup(name ? name : "")))
        end_agent();
    upcall->info_cb = cb;
    upcall->cbdata = cbdata;
    return post_collective(upcall, procs, count, info, info_count);
}

/* The library itself keeps who registered for what and delivers; a host has nothing to add. */
static pmix_status_t on_register(pmix_status_t *codes, size_t count, const pmix_info_t info[],
                                 size_t info_count, pmix_op_cbfunc_t cb, void *cbdata)
{
    (void)codes, (void)count, (void)info, (void)info_count, (void)cb, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_deregister(pmix_status_t *codes, size_t count, pmix_op_cbfunc_t cb,
                                   void *cbdata)
{
    (void)codes, (void)count, (void)cb, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t count,
                               pmix_op_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_NOTIFY, source);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->status = code;
    upcall->detail = range;
    upcall->op_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_info(upcall, info, count));
}

static bool copy_queries(struct upcall *upcall, const pmix_query_t *queries, size_t count)
{
    PMIX_QUERY_CREATE(upcall->queries, count);
    if (!upcall->queries)
        return false;
    upcall->query_count = count;
    for (size_t i = 0; i < count; i++) {
        pmix_query_t *to = &upcall->queries[i];
        for (size_t k = 0; queries[i].keys && queries[i].keys[k]; k++)
            if (PMIx_Argv_append_nosize(&to->keys, queries[i].keys[k]) != PMIX_SUCCESS)
                return false;
        if (queries[i].nqual > 0)
            PMIX_INFO_CREATE(to->qualifiers, queries[i].nqual);
        if (queries[i].nqual > 0 && !to->qualifiers)
            return false;
        to->nqual = queries[i].nqual;
        for (size_t k = 0; k < to->nqual; k++)
            if (!copy_one(&to->qualifiers[k], &queries[i].qualifiers[k]))
                return false;
    }
    return true;
}

static pmix_status_t on_query(pmix_proc_t *proc, pmix_query_t *queries, size_t count,
                              pmix_info_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_QUERY, proc);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->info_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_queries(upcall, queries, count));
}

static void on_log(const pmix_proc_t *client, const pmix_info_t data[], size_t count,
                   const pmix_info_t directives[], size_t directive_count, pmix_op_cbfunc_t cb,
                   void *cbdata)
{
    struct upcall *upcall = upcall_new_surely(UPCALL_LOG, client);
    (void)directives, (void)directive_count;
    upcall->op_cb = cb;
    upcall->cbdata = cbdata;
    /* never answered inline: the library holds a lock during this call (reference: 4.2.2 hangs) */
    if (!copy_info(upcall, data, count))
        upcall->status = PMIX_ERR_NOMEM;
    upcall_post_take(upcall);
}

static pmix_status_t on_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                                    size_t count, const pmix_info_t directives[],
                                    size_t directive_count, pmix_info_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_JOB_CONTROL, requestor);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->info_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_procs(upcall, targets, count) &&
                            copy_info(upcall, directives, directive_count));
}

static bool copy_apps(struct upcall *upcall, const pmix_app_t apps[], size_t count)
{
    if (count == 0)
        return true;
    PMIX_APP_CREATE(upcall->apps, count);
    if (!upcall->apps)
        return false;
    upcall->app_count = count;
    for (size_t i = 0; i < count; i++) {
        pmix_app_t *to = &upcall->apps[i];
        to->cmd = strdup(apps[i].cmd ? apps[i].cmd : "");
        to->argv = PMIx_Argv_copy(apps[i].argv);
        to->env = PMIx_Argv_copy(apps[i].env);
        to->cwd = apps[i].cwd ? strdup(apps[i].cwd) : NULL;
        if (!to->cmd || (apps[i].argv && !to->argv) || (apps[i].env && !to->env) ||
            (apps[i].cwd && !to->cwd))
            return false;
        to->maxprocs = apps[i].maxprocs;
        if (apps[i].ninfo > 0)
            PMIX_INFO_CREATE(to->info, apps[i].ninfo);
        if (apps[i].ninfo > 0 && !to->info)
            return false;
        to->ninfo = apps[i].ninfo;
        for (size_t k = 0; k < apps[i].ninfo; k++)
            if (!copy_one(&to->info[k], &apps[i].info[k]))
                return false;
    }
    return true;
}

static pmix_status_t on_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t info_count,
                              const pmix_app_t apps[], size_t app_count, pmix_spawn_cbfunc_t cb,
                              void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_SPAWN, proc);
    if (!upcall)
        return PMIX_ERR_NOMEM;
    upcall->spawn_cb = cb;
    upcall->cbdata = cbdata;
    return post(upcall, copy_info(upcall, info, info_count) && copy_apps(upcall, apps, app_count));
}

/* The library passes it on to its thread: it may be answered within. */
static void on_tool(pmix_info_t *info, size_t count, pmix_tool_connection_cbfunc_t cb, void *cbdata)
{
    struct upcall *upcall = upcall_new(UPCALL_TOOL, NULL);
    pmix_proc_t nobody = {.rank = PMIX_RANK_UNDEF};
    if (!upcall) {
        cb(PMIX_ERR_NOMEM, &nobody, cbdata);
        return;
    }
    upcall->tool_cb = cb;
    upcall->cbdata = cbdata;
    if (copy_info(upcall, info, count))
        upcall_post_take(upcall);
    else
        upcall_answer(upcall, PMIX_ERR_NOMEM);
}

pmix_server_module_t *upcall_module(void)
{
    static pmix_server_module_t module = {
        .client_connected2 = on_connected,
        .client_finalized = on_finalized,
        .abort = on_abort,
        .fence_nb = on_fence,
        .direct_modex = on_dmodex,
        .publish = on_publish,
        .lookup = on_lookup,
        .unpublish = on_unpublish,
        .connect = on_connect,
        .disconnect = on_disconnect,
        .register_events = on_register,
        .deregister_events = on_deregister,
        .notify_event = on_notify,
        .query = on_query,
        .log = on_log,
        .job_control = on_job_control,
        .group = on_group,
        .spawn = on_spawn,
        .tool_connected = on_tool,
    };
    return &module;
}
