/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/unanswered.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/kube/client_private.h"

#define LEAST_MS 1000 /* for a read after the first that found no server */
#define SLOW_MS 5000  /* without a failure */
#define AGAIN_MS 250

/* A busy server is slow, and so are programs that get credentials: less is said of no failure. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct timeval again = timeval_from_ms(AGAIN_MS);
    struct unanswered *u = arg;
    (void)fd, (void)what;
    if (!u->why[0] && clock_ms() - u->since_ms < SLOW_MS) {
        evtimer_add(u->timer, &again);
        return;
    }
    u->told = true;
    u->fn(u->arg, u->why[0] ? u->why : "nothing has come yet, of it or of the credentials");
}

void kube_client_tell_unanswered(struct kube_client *client, kube_unanswered_fn fn, void *arg)
{
    struct unanswered *u = &client->unanswered;
    if (!u->timer)
        u->timer = evtimer_new(client->base, on_timer, u);
    u->fn = u->timer ? fn : NULL;
    u->arg = arg;
    if (!fn && u->timer)
        evtimer_del(u->timer);
}

void kube_client_limit_reads(struct kube_client *client, int64_t ms)
{
    client->unanswered.reads_end_ms = clock_ms() + ms;
}

void unanswered_done(struct unanswered *u)
{
    if (u->timer)
        event_free(u->timer);
}

int64_t unanswered_begin(struct unanswered *u, bool read, int64_t end_ms)
{
    struct timeval after = timeval_from_ms(KUBE_UNANSWERED_MS);
    int64_t now = clock_ms();
    if (!u->since_ms) {
        u->since_ms = now;
        if (u->fn && !u->told)
            evtimer_add(u->timer, &after);
    }
    if (!read || !u->reads_end_ms)
        return end_ms;
    int64_t limit = u->reads_end_ms > now + LEAST_MS ? u->reads_end_ms : now + LEAST_MS;
    return limit < end_ms ? limit : end_ms;
}

bool unanswered_is_limited(const struct unanswered *u)
{
    return u->reads_end_ms != 0;
}

void unanswered_note_failure(struct unanswered *u, const char *why)
{
    snprintf(u->why, sizeof u->why, "%s", why);
}

/* Others may be under way, which it will answer, too. */
void unanswered_note_answer(struct unanswered *u)
{
    struct timeval after = timeval_from_ms(KUBE_UNANSWERED_MS);
    u->reads_end_ms = 0;
    u->why[0] = '\0';
    u->since_ms = clock_ms();
    if (!u->fn)
        return;
    evtimer_add(u->timer, &after);
    if (u->told)
        u->fn(u->arg, NULL);
    u->told = false;
}

void unanswered_note_idle(struct unanswered *u)
{
    u->since_ms = 0;
    if (u->timer)
        evtimer_del(u->timer);
}
