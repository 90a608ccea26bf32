/* SPDX-License-Identifier: Apache-2.0 */
/* Fences, and connect/disconnect, which are fences without data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

/* Longer than any death takes to be reaped, shorter than people wait. */
#define FAILED_COLLECTIVE_MS 500

static int compare_ranges(const void *a, const void *b)
{
    const struct coll_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Ascending ranges, perhaps with overlaps: in place, without. */
static size_t join_ranges(struct coll_range *ranges, size_t count)
{
    size_t used = 1;
    for (size_t i = 1; i < count; i++) {
        struct coll_range *last = &ranges[used - 1];
        uint32_t end = last->first + last->count, next = ranges[i].first + ranges[i].count;
        if (ranges[i].first > end)
            ranges[used++] = ranges[i];
        else if (next > end)
            last->count = next - last->first;
    }
    return used;
}

int pmix_members(const struct pmix_host *host, const pmix_proc_t *procs, size_t count,
                 struct coll_range **ret_ranges, size_t *ret_count)
{
    cleanup_free struct coll_range *ranges = calloc(count + 1, sizeof *ranges);
    if (!ranges)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct rank_group *group = agent_job_group_named(host->job, procs[i].nspace);
        bool all = procs[i].rank == PMIX_RANK_WILDCARD;
        if (!group || (!all && procs[i].rank >= group->map.ranks))
            return -EINVAL;
        ranges[i] = all ? (struct coll_range){group->first, group->map.ranks}
                        : (struct coll_range){group->first + procs[i].rank, 1};
    }
    if (count == 0)
        return -EINVAL;
    qsort(ranges, count, sizeof *ranges, compare_ranges);
    *ret_count = join_ranges(ranges, count);
    *ret_ranges = TAKE_PTR(ranges);
    return 0;
}

char *pmix_collective_key(struct pmix_host *host, const char *kind, const char *name,
                          const struct coll_range *ranges, size_t count)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, "%s/%s", kind, name);
    for (size_t i = 0; i < count; i++)
        buf_printf(&key, "%c%u+%u", i == 0 ? '/' : ',', ranges[i].first, ranges[i].count);
    struct sequence *sequence = host->sequences;
    while (sequence && key.data && strcmp(sequence->key, key.data) != 0)
        sequence = sequence->next;
    if (!sequence && key.data) {
        sequence = calloc(1, sizeof *sequence + key.len + 1);
        if (sequence) {
            memcpy(sequence->key, key.data, key.len + 1);
            sequence->last = count > 0 ? ranges[count - 1].first + ranges[count - 1].count - 1 : 0;
            sequence->next = host->sequences;
            host->sequences = sequence;
        }
    }
    if (!sequence) {
        buf_done(&key);
        return NULL;
    }
    buf_printf(&key, "#%llu", (unsigned long long)++sequence->count);
    return buf_take(&key);
}

void pmix_forget_collectives(struct pmix_host *host, const struct rank_group *group)
{
    struct sequence **at = &host->sequences;
    while (*at) {
        struct sequence *sequence = *at;
        if (!rank_group_has(group, sequence->last)) {
            at = &sequence->next;
            continue;
        }
        *at = sequence->next;
        free(sequence);
    }
}

void pmix_collective_failed(struct pmix_host *host, struct upcall *upcall, const char *kind,
                            const struct drarun_error *why)
{
    struct drarun_error err = {0};
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, why ? why->code : ENOMEM, "PMIx: %s: %s", kind,
               why ? why->text : "out of memory");
    log_error("%s", err.text);
    if (err.code == ENOMEM) /* other agents wait for this one's part */
        host->owner.failed(host->owner.arg, &err);
    upcall_answer(upcall, err.code == ENOMEM ? PMIX_ERR_NOMEM : PMIX_ERROR);
}

/* Of a collective, which has an error of its own beside those of ranks. */
pmix_status_t pmix_collective_status(int status)
{
    return status == -ENOMEM ? PMIX_ERR_NOMEM : status;
}

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

/* When part of the members have died the library says so here, and the others must learn of it. */
int pmix_local_status(const struct upcall *upcall)
{
    const pmix_info_t *info = upcall_info(upcall, PMIX_LOCAL_COLLECTIVE_STATUS);
    return info && info->value.type == PMIX_STATUS ? info->value.data.status : PMIX_SUCCESS;
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
    struct drarun_error err = {0};
    cleanup_free struct coll_range *ranges = NULL;
    size_t count = 0;
    int rc = pmix_members(host, upcall->procs, upcall->proc_count, &ranges, &count);
    if (rc == -EINVAL) {
        upcall_answer(upcall, PMIX_ERR_BAD_PARAM);
        return;
    }
    cleanup_free char *key = rc == 0 ? pmix_collective_key(host, kind, "", ranges, count) : NULL;
    if (!key || coll_enter(host->coll, key, ranges, count, pmix_local_status(upcall), upcall->data,
                           upcall->length, done, upcall, &err) < 0)
        pmix_collective_failed(host, upcall, kind, key ? &err : NULL);
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
