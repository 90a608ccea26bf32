/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/agent/late_aborts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct late_abort {
    TAILQ_ENTRY(late_abort) entry;
    uint32_t rank;
    int status;
    char *text;
    size_t after; /* ends that are told before */
};

void late_aborts_init(struct late_aborts *aborts)
{
    TAILQ_INIT(&aborts->list);
}

static void take_out(struct late_aborts *aborts, struct late_abort *abort)
{
    TAILQ_REMOVE(&aborts->list, abort, entry);
    free(abort->text);
    free(abort);
}

void late_aborts_done(struct late_aborts *aborts)
{
    struct late_abort *abort;
    while ((abort = TAILQ_FIRST(&aborts->list)))
        take_out(aborts, abort);
}

bool late_aborts_empty(const struct late_aborts *aborts)
{
    return TAILQ_EMPTY(&aborts->list);
}

static struct late_abort *find(const struct late_aborts *aborts, uint32_t rank)
{
    struct late_abort *abort;
    TAILQ_FOREACH (abort, &aborts->list, entry)
        if (abort->rank == rank)
            return abort;
    return NULL;
}

int late_aborts_add(struct late_aborts *aborts, uint32_t rank, int status, const char *text,
                    size_t after)
{
    if (find(aborts, rank))
        return 0;
    struct late_abort *abort = calloc(1, sizeof *abort);
    char *copy = strdup(text);
    if (!abort || !copy) {
        free(abort);
        free(copy);
        return -ENOMEM;
    }
    *abort = (struct late_abort){.rank = rank, .status = status, .text = copy, .after = after};
    TAILQ_INSERT_TAIL(&aborts->list, abort, entry);
    return 0;
}

static void tell(struct late_aborts *aborts, struct late_abort *abort, late_abort_fn fn, void *arg)
{
    fn(arg, abort->rank, abort->status, abort->text);
    take_out(aborts, abort);
}

void late_aborts_tell(struct late_aborts *aborts, size_t told, late_abort_fn fn, void *arg)
{
    struct late_abort *abort;
    /* what waits for less came earlier */
    while ((abort = TAILQ_FIRST(&aborts->list)) && abort->after <= told)
        tell(aborts, abort, fn, arg);
}

void late_aborts_tell_of(struct late_aborts *aborts, uint32_t rank, late_abort_fn fn, void *arg)
{
    struct late_abort *abort = find(aborts, rank);
    if (abort)
        tell(aborts, abort, fn, arg);
}
