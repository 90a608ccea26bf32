/* SPDX-License-Identifier: Apache-2.0 */
/* What fences, groups and meetings with other jobs share: members, keys and failures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

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

/* key: of all collectives of this kind, name and members. NULL: out of memory. */
static struct sequence *sequence_of(struct pmix_host *host, const char *key, size_t length,
                                    const struct coll_range *ranges, size_t count)
{
    struct sequence *sequence = host->sequences;
    while (sequence && (strncmp(sequence->key, key, length) != 0 || sequence->key[length]))
        sequence = sequence->next;
    if (sequence)
        return sequence;
    sequence = calloc(1, sizeof *sequence + length + 1);
    if (!sequence)
        return NULL;
    memcpy(sequence->key, key, length);
    sequence->last = count > 0 ? ranges[count - 1].first + ranges[count - 1].count - 1 : 0;
    sequence->next = host->sequences;
    host->sequences = sequence;
    return sequence;
}

char *pmix_collective_key(struct pmix_host *host, const char *kind, const char *name,
                          const struct coll_range *ranges, size_t count)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, "%s/%s", kind, name);
    for (size_t i = 0; i < count; i++)
        buf_printf(&key, "%c%u+%u", i == 0 ? '/' : ',', ranges[i].first, ranges[i].count);
    struct sequence *sequence =
        key.failed ? NULL : sequence_of(host, key.data, key.len, ranges, count);
    if (!sequence) {
        buf_done(&key);
        return NULL;
    }
    buf_printf(&key, "#%llu", (unsigned long long)++sequence->count);
    return buf_take(&key);
}

/* The others have used this number, and their next one must be ours, too. */
void pmix_on_missed(void *arg, const char *key, const struct coll_range *ranges, size_t count)
{
    struct pmix_host *host = arg;
    const char *number = strrchr(key, '#');
    if (!number)
        return;
    struct sequence *sequence = sequence_of(host, key, (size_t)(number - key), ranges, count);
    uint64_t used = strtoull(number + 1, NULL, 10);
    if (!sequence) {
        struct drarun_error err = {0};
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM, "PMIx: %s: out of memory", key);
        log_error("%s", err.text);
        host->owner.failed(host->owner.arg, &err);
    } else if (sequence->count < used) {
        sequence->count = used;
    }
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

/* ---- entering ---- */

static void entered_free(struct entered *entered)
{
    struct entered **link = &entered->host->entered;
    while (*link && *link != entered)
        link = &(*link)->next;
    if (*link)
        *link = entered->next;
    if (entered->timer)
        event_free(entered->timer);
    free(entered->key);
    free(entered);
}

/* The answer comes as for any result, once the agents agree on it. */
static void on_time_over(evutil_socket_t fd, short what, void *arg)
{
    struct entered *entered = arg;
    (void)fd, (void)what;
    coll_give_up(entered->host->coll, entered->key, PMIX_ERR_TIMEOUT);
}

/* Of a connect, the library keeps the time to its end. */
static struct entered *entered_new(struct pmix_host *host, struct upcall *upcall, const char *key,
                                   coll_done_fn done)
{
    int64_t timeout_s = upcall->kind == UPCALL_CONNECT ? 0 : upcall_number(upcall, PMIX_TIMEOUT);
    struct timeval limit = timeval_from_ms((timeout_s < INT32_MAX ? timeout_s : INT32_MAX) * 1000);
    struct entered *entered = calloc(1, sizeof *entered);
    if (!entered)
        return NULL;
    *entered = (struct entered){host->entered, host, upcall, strdup(key), done, NULL};
    host->entered = entered;
    if (entered->key && timeout_s > 0)
        entered->timer = evtimer_new(host->base, on_time_over, entered);
    if (entered->key &&
        (timeout_s <= 0 || (entered->timer && evtimer_add(entered->timer, &limit) == 0)))
        return entered;
    entered_free(entered);
    return NULL;
}

static void on_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct entered *entered = arg;
    struct upcall *upcall = entered->upcall;
    coll_done_fn done = entered->done;
    entered_free(entered);
    done(upcall, status, data, length, context);
}

void pmix_enter(struct pmix_host *host, struct upcall *upcall, const char *kind, const char *key,
                const struct coll_range *ranges, size_t count, int status, const void *data,
                size_t length, coll_done_fn done)
{
    struct drarun_error err = {0};
    struct entered *entered = key ? entered_new(host, upcall, key, done) : NULL;
    if (entered && coll_enter(host->coll, key, ranges, count, status, data, length, on_done,
                              entered, &err) == 0)
        return;
    pmix_collective_failed(host, upcall, kind, entered ? &err : NULL);
    if (entered)
        entered_free(entered);
}

void pmix_drop_entered(struct pmix_host *host)
{
    while (host->entered) {
        upcall_answer(host->entered->upcall, PMIX_ERR_UNREACH);
        entered_free(host->entered);
    }
}

/* Of a collective, which has an error of its own beside those of ranks. */
pmix_status_t pmix_collective_status(int status)
{
    return status == -ENOMEM ? PMIX_ERR_NOMEM : status;
}

/* When part of the members have died the library says so here, and the others must learn of it. */
int pmix_local_status(const struct upcall *upcall)
{
    const pmix_info_t *info = upcall_info(upcall, PMIX_LOCAL_COLLECTIVE_STATUS);
    return info && info->value.type == PMIX_STATUS ? info->value.data.status : PMIX_SUCCESS;
}
