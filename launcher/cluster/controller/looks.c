/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at DraJobs, side by side, one at each. Callbacks of the loop only note what has come; what
 * is done with it begins here, between two turns of the loop. */
#include <stdlib.h>
#include <string.h>

#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define OF_NAMESPACE (CONTROLLER_LOOKS_MAX / 3) /* so that others' DraJobs are looked at too */
/* Each reader holds a DraJob as anybody may write it, and has a process with as much again. */
#define READERS_MAX 2

static size_t count_of_namespace(const struct controller *c, const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        count += c->looks[i] && controller_same_namespace(c->looks[i]->key, key);
    return count;
}

static struct sight **find_free(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        if (!c->looks[i])
            return &c->looks[i];
    return NULL;
}

bool controller_is_looked_at(const struct controller *c, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        if (c->looks[i] && strcmp(c->looks[i]->key, key) == 0)
            return true;
    return false;
}

size_t controller_count_looks(const struct controller *c)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        count += c->looks[i] != NULL;
    return count;
}

bool controller_may_look(const struct controller *c, const char *key)
{
    return controller_count_looks(c) < CONTROLLER_LOOKS_MAX && !controller_is_looked_at(c, key) &&
           count_of_namespace(c, key) < OF_NAMESPACE;
}

int64_t controller_oldest_look(const struct controller *c)
{
    int64_t oldest = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        if (c->looks[i] && (oldest == 0 || c->looks[i]->begin_ms < oldest))
            oldest = c->looks[i]->begin_ms;
    return oldest;
}

/* ---- places for who reads a spec ---- */

static bool has_reader_free(const struct controller *c, const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++) {
        const struct sight *s = c->looks[i];
        if (!s || !s->has_reader)
            continue;
        if (controller_same_namespace(s->key, key))
            return false;
        count++;
    }
    return count < READERS_MAX;
}

bool controller_take_reader(struct sight *s)
{
    struct controller *c = s->c;
    if (s->has_reader)
        return true;
    if (!s->unread_ms)
        s->unread_ms = clock_ms();
    sight_note(s, c->unread, json_integer(s->unread_ms));
    const char *first = controller_first_waiting(c, c->unread, has_reader_free);
    s->has_reader = first && strcmp(first, s->key) == 0;
    if (s->has_reader)
        sight_unnote(s, c->unread);
    return s->has_reader;
}

/* ---- one look ---- */

static void end(struct sight **place)
{
    struct sight *s = TAKE_PTR(*place);
    s->c->tally.looks++;
    s->c->tally.look_ms += (uint64_t)(clock_ms() - s->begin_ms);
    sight_free(s);
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
        job_decide(s);
    }
    if (!sight_is_under_way(s))
        end(place);
}

void controller_look(struct controller *c, const char *key)
{
    struct sight **place = find_free(c);
    struct making *making = controller_find_making(c, key);
    struct sight *s = sight_new(c, key);
    json_object_del(c->due, key);
    if (!s)
        return;
    *place = s;
    s->unread_ms = json_integer_value(sight_noted(s, c->unread));
    sight_unnote(s, c->unread); /* until this look has found that it waits */
    sight_unnote(s, c->large.waiting);
    sight_unnote(s, c->small.waiting);
    if (making)
        making->changed = false;
    job_decide(s);
    if (!sight_is_under_way(s))
        end(place);
}

/* ---- all of them ---- */

void controller_go_on_looking(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        if (c->looks[i])
            go_on(&c->looks[i]);
    const char *next = controller_first_waiting(c, c->unread, has_reader_free);
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
