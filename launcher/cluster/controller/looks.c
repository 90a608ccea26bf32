/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at DraJobs, side by side, one at each. Callbacks of the loop only note what has come; what
 * is done with it begins here, between two turns of the loop. */
#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static struct sight **find_free(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        if (!c->looks[i])
            return &c->looks[i];
    return NULL;
}

/* ---- one look ---- */

/* Of a job that has its objects all that a look wants is tried again by the next one: nothing fails
 * any more. The pauses of one that has none yet end when they are made. */
static void end_pauses(const struct sight *s)
{
    if (s->paused || !s->object || !drajob_launcher(s->object))
        return;
    sight_unnote(s, s->c->pauses);
    sight_unnote(s, s->c->going);
}

static void end(struct sight **place)
{
    struct sight *s = TAKE_PTR(*place);
    end_pauses(s);
    s->c->tally.looks++;
    s->c->tally.look_ms += (uint64_t)(clock_ms() - s->begin_ms);
    sight_free(s);
}

/* What an earlier look found holds until this one has decided. */
static void decide(struct sight *s)
{
    s->queued = s->held = false;
    job_decide(s);
    if (s->held && sight_has_place(s))
        sight_note(s, s->c->held, json_null());
    if (s->waits || s->queued || s->held)
        return;
    sight_unnote(s, s->c->large.waiting);
    sight_unnote(s, s->c->small.waiting);
}

/* What its author has changed since it began is another look's. */
static void go_on(struct sight **place)
{
    struct sight *s = *place;
    bool answered = s->waits && !sight_is_under_way(s);
    if (answered && sight_is_outdated(s)) {
        sight_again(s, 0);
    } else if (answered) {
        s->waits = false;
        decide(s);
    }
    if (!sight_is_under_way(s))
        end(place);
}

/* Since when it is, or now. */
static int64_t due_ms(const struct controller *c, const char *key)
{
    const json_t *at = json_object_get(c->due, key);
    int64_t now = clock_ms();
    return at && json_integer_value(at) < now ? json_integer_value(at) : now;
}

void controller_look(struct controller *c, const char *key)
{
    struct sight **place = find_free(c);
    struct making *making = controller_find_making(c, key);
    struct sight *s = sight_new(c, key);
    int64_t since = due_ms(c, key);
    json_object_del(c->due, key);
    if (!s)
        return;
    *place = s;
    s->unread_ms =
        sight_noted(s, c->unread) ? json_integer_value(sight_noted(s, c->unread)) : since;
    sight_unnote(s, c->unread); /* until this look has found that it waits */
    sight_unnote(s, c->held);   /* or keeps its place */
    if (making)
        making->changed = false;
    decide(s);
    if (!sight_is_under_way(s))
        end(place);
}

/* ---- all of them ---- */

void controller_go_on_looking(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        if (c->looks[i])
            go_on(&c->looks[i]);
    const char *next = controller_first_reader(c);
    if (next)
        controller_again_key(c, next, 0);
}

void controller_stop_looking(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++) {
        struct sight *s = c->looks[i];
        if (!s || s->deletion || s->writing)
            continue;
        sight_again(s, 0);
        end(&c->looks[i]);
    }
}
