/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/status_later.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/prepare/checkpoint.h"
#include "plugin/prepare/claim_status.h"

#define LATER_MS 250

struct later { /* of one claim */
    struct later *next;
    struct status_later *all;
    char uid[64];
    int64_t due_ms;
    struct kube_call *call; /* NULL: not begun */
};

struct status_later {
    struct status_later_place place;
    struct event *timer;
    struct later *first; /* in order of their time */
};

static void drop(struct later *later)
{
    struct later **p = &later->all->first;
    while (*p != later)
        p = &(*p)->next;
    *p = later->next;
    kube_call_cancel(later->call);
    free(later);
}

static void on_written(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct later *later = arg;
    (void)answer;
    later->call = NULL;
    if (err)
        log_note("status of a claim: %s", err->text);
    drop(later);
}

static void begin(struct later *later)
{
    const struct status_later_place *place = &later->all->place;
    CLEANUP(checkpoint_freep) struct checkpoint *checkpoint = NULL;
    struct drarun_error err = {0};
    if (checkpoint_load(place->dir, later->uid, &checkpoint, NULL) < 0) {
        drop(later);
    } else if (claim_status_write(place->client, place->claims, checkpoint, on_written, later,
                                  &later->call, &err) < 0) {
        log_note("status of claim %s/%s: %s", checkpoint->namespace_, checkpoint->name, err.text);
        drop(later);
    }
}

static void wait_for_next(const struct status_later *s)
{
    const struct later *later = s->first;
    while (later && later->call)
        later = later->next;
    if (!later)
        return;
    int64_t left = later->due_ms - clock_ms();
    const struct timeval after = timeval_from_ms(left > 0 ? left : 0);
    evtimer_add(s->timer, &after);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct status_later *s = arg;
    struct later *next;
    (void)fd, (void)what;
    for (struct later *later = s->first; later; later = next) {
        next = later->next;
        if (!later->call && later->due_ms <= clock_ms())
            begin(later);
    }
    wait_for_next(s);
}

int status_later_new(const struct status_later_place *place, struct status_later **ret_later,
                     struct drarun_error *err)
{
    struct status_later *s = calloc(1, sizeof *s);
    if (!s || !(s->timer = evtimer_new(place->base, on_timer, s))) {
        free(s);
        return error_set(err, ENOMEM, "out of memory");
    }
    s->place = *place;
    *ret_later = s;
    return 0;
}

void status_later_free(struct status_later *later)
{
    if (!later)
        return;
    while (later->first)
        drop(later->first);
    event_free(later->timer);
    free(later);
}

void status_later_put(struct status_later *s, const char *uid)
{
    struct later *later = calloc(1, sizeof *later), **end = &s->first;
    if (!later)
        return; /* nobody waits for it */
    later->all = s;
    later->due_ms = clock_ms() + LATER_MS;
    snprintf(later->uid, sizeof later->uid, "%s", uid);
    while (*end)
        end = &(*end)->next;
    *end = later;
    if (!evtimer_pending(s->timer, NULL))
        wait_for_next(s);
}

bool status_later_is_busy(const struct status_later *later)
{
    return later->first;
}
