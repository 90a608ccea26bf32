/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose objects are created, beside looks at other DraJobs. */
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/controller/sight.h"

/* Calls under way for each. A quarter of what the client takes is left to looks, the Lease, and
 * what else is asked for. */
#define LARGE_UNDER_WAY (KUBE_CALLS_MAX / 2 / CONTROLLER_LARGE_MAX)
#define SMALL_UNDER_WAY (KUBE_CALLS_MAX / 4 / CONTROLLER_SMALL_MAX)
#define SMALL_OF_NAMESPACE (CONTROLLER_SMALL_MAX / 2)

/* ---- the places ---- */

static bool is_large(const struct controller *c, const struct making *making)
{
    return making < c->making + CONTROLLER_LARGE_MAX;
}

/* A free place for it; NULL: there is none. */
static const struct making *find_place(const struct controller *c, bool large)
{
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (!c->making[i].submission && is_large(c, &c->making[i]) == large)
            return &c->making[i];
    return NULL;
}

static size_t count_of_namespace(const struct controller *c, const char *key, bool large)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        count += c->making[i].submission && is_large(c, &c->making[i]) == large &&
                 controller_same_namespace(c->making[i].key, key);
    return count;
}

/* One of its namespace that waits longer. */
static bool is_before(json_t *waiting, const char *other, const char *key)
{
    const json_t *since = json_object_get(waiting, other);
    return since && controller_same_namespace(other, key) &&
           json_integer_value(since) < json_integer_value(json_object_get(waiting, key));
}

/* False: it is held, or a look is about to find whether it waits; or one of its namespace that
 * waits longer is to come first, of which a look finds that, or which is held, or has no place for
 * a look where this one has. All that ends soon, and jobs of other namespaces do not wait for it.
 */
static bool may_be_first(const struct controller *c, json_t *waiting, const char *key)
{
    const char *other;
    json_t *value;
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++) {
        const struct sight *s = c->looks[i];
        if (s && !s->queued && sight_noted(s, waiting) &&
            (strcmp(s->key, key) == 0 || is_before(waiting, s->key, key)))
            return false;
    }
    json_object_foreach(c->held, other, value)
    {
        if (strcmp(other, key) == 0 || is_before(waiting, other, key))
            return false;
    }
    if (!controller_is_looked_at(c, key))
        return true;
    json_object_foreach(waiting, other, value)
    {
        if (!controller_is_looked_at(c, other) && is_before(waiting, other, key))
            return false;
    }
    return true;
}

static bool has_room_for_large(const struct controller *c, const char *key)
{
    return find_place(c, true) && count_of_namespace(c, key, true) == 0 &&
           may_be_first(c, c->large.waiting, key);
}

static bool has_room_for_small(const struct controller *c, const char *key)
{
    return find_place(c, false) && count_of_namespace(c, key, false) < SMALL_OF_NAMESPACE &&
           may_be_first(c, c->small.waiting, key);
}

/* Whose turn it is; NULL: nobody's. */
static const char *first_waiting(const struct controller *c, bool large)
{
    return large ? controller_first_waiting(c, c->large.waiting, has_room_for_large)
                 : controller_first_waiting(c, c->small.waiting, has_room_for_small);
}

bool controller_may_make(const struct controller *c, const char *key, bool large)
{
    const char *first = first_waiting(c, large);
    return first && strcmp(first, key) == 0;
}

void controller_make(struct controller *c, const char *key, const char *uid, bool large,
                     struct submission *submission_take)
{
    struct making *place = &c->making[find_place(c, large) - c->making];
    *place = (struct making){.submission = submission_take};
    snprintf(place->key, sizeof place->key, "%s", key);
    snprintf(place->uid, sizeof place->uid, "%s", uid);
}

struct making *controller_find_making(struct controller *c, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (c->making[i].submission && strcmp(c->making[i].key, key) == 0)
            return &c->making[i];
    return NULL;
}

/* ---- their objects ---- */

/* One alone asks the cluster what decides about it. */
static bool must_wait(struct controller *c, const struct making *making)
{
    const struct making *asking = c->asking;
    if (asking &&
        (!asking->submission || asking->over || submission_has_answers(asking->submission)))
        c->asking = NULL;
    if (submission_has_answers(making->submission))
        return false;
    if (!c->asking)
        c->asking = making;
    return c->asking != making;
}

void controller_go_on(struct controller *c, struct making *making)
{
    size_t most = is_large(c, making) ? LARGE_UNDER_WAY : SMALL_UNDER_WAY;
    if (making->over || !controller_knows_namespaces(c) || must_wait(c, making) ||
        !submission_go_on(making->submission, most))
        return;
    making->over = true;
    controller_again_key(c, making->key, 0);
}

bool controller_undo(struct making *making)
{
    if (!submission_undo(making->submission))
        return false;
    making->undoing = true;
    making->over = false;
    return true;
}

static void call_first_waiting(struct controller *c, bool large)
{
    const char *next = first_waiting(c, large);
    if (next)
        controller_again_key(c, next, 0);
}

void controller_go_on_making(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (c->making[i].submission && !c->making[i].changed &&
            !controller_is_looked_at(c, c->making[i].key))
            controller_go_on(c, &c->making[i]);
    if (!controller_knows_namespaces(c)) /* nothing is created before they are known */
        return;
    call_first_waiting(c, true);
    call_first_waiting(c, false);
}

void controller_note_change(struct controller *c, const char *namespace, const char *name)
{
    char key[CONTROLLER_KEY_SIZE];
    snprintf(key, sizeof key, "%s/%s", namespace, name);
    struct making *making = controller_find_making(c, key);
    if (making)
        making->changed = true;
    controller_again_key(c, key, 0);
}

const char *controller_next_making(struct controller *c)
{
    const struct making *next = NULL;
    for (size_t i = 1; i <= ARRAY_LEN(c->making); i++) {
        const struct making *each = &c->making[(c->made_last + i) % ARRAY_LEN(c->making)];
        if (!each->submission || !controller_may_look(c, each->key))
            continue;
        if (each->over || (!next && each->changed))
            next = each;
        if (each->over)
            break;
    }
    if (!next)
        return NULL;
    c->made_last = (size_t)(next - c->making);
    return next->key;
}
