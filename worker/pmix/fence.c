/* SPDX-License-Identifier: Apache-2.0 */
/* Fences, and connect/disconnect, which are fences without data. */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

/* Longer than any death takes to be reaped, shorter than people wait. */
#define FAILED_COLLECTIVE_MS 500

static void fence_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    (void)context;
    upcall_answer_data(arg, pmix_collective_status(status), data, length);
}

static void plain_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    (void)data, (void)length, (void)context;
    upcall_answer(arg, pmix_collective_status(status));
}

static void enter(struct pmix_host *host, struct upcall *upcall)
{
    bool fence = upcall->kind == UPCALL_FENCE;
    const char *kind = fence ? "fence" : upcall->kind == UPCALL_CONNECT ? "connect" : "disconnect";
    coll_done_fn done = fence ? fence_done : plain_done;
    if (pmix_is_far(host, upcall)) {
        pmix_on_meet(host, upcall);
        return;
    }
    cleanup_free struct coll_range *ranges = NULL;
    size_t count = 0;
    int rc = pmix_members(host, upcall->procs, upcall->proc_count, &ranges, &count);
    if (rc == -EINVAL) {
        upcall_answer(upcall, PMIX_ERR_BAD_PARAM);
        return;
    }
    cleanup_free char *key = rc == 0 ? pmix_collective_key(host, kind, "", ranges, count) : NULL;
    pmix_enter(host, upcall, kind, key, ranges, count, pmix_local_status(upcall), upcall->data,
               upcall->length, done);
}

static void failed_free(struct failed_collective *failed)
{
    struct failed_collective **link = &failed->host->failed;
    while (*link && *link != failed)
        link = &(*link)->next;
    if (*link)
        *link = failed->next;
    if (failed->timer)
        event_free(failed->timer);
    free(failed);
}

static void on_held_long_enough(evutil_socket_t fd, short what, void *arg)
{
    struct failed_collective *failed = arg;
    (void)fd, (void)what;
    enter(failed->host, failed->upcall);
    failed_free(failed);
}

/* The library saw a member's connection close. If that member died, the job's end is on its way,
 * and its fellows must not fail of this before the death itself is known as the cause. */
static bool hold_back(struct pmix_host *host, struct upcall *upcall)
{
    struct timeval wait = timeval_from_ms(FAILED_COLLECTIVE_MS);
    struct failed_collective *failed = calloc(1, sizeof *failed);
    if (!failed)
        return false;
    *failed = (struct failed_collective){host->failed, host, upcall, NULL};
    host->failed = failed;
    failed->timer = evtimer_new(host->base, on_held_long_enough, failed);
    if (failed->timer && evtimer_add(failed->timer, &wait) == 0)
        return true;
    failed_free(failed);
    return false;
}

void pmix_drop_failed(struct pmix_host *host)
{
    while (host->failed) {
        upcall_answer(host->failed->upcall, PMIX_ERR_UNREACH);
        failed_free(host->failed);
    }
}

void pmix_on_collective(struct pmix_host *host, struct upcall *upcall)
{
    if (pmix_local_status(upcall) == PMIX_SUCCESS || !hold_back(host, upcall))
        enter(host, upcall);
}
