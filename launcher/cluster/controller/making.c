/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose objects are created, beside looks at other DraJobs. */
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/controller/private.h"

/* Calls under way for each. A quarter of what the client takes is left to looks, the Lease, and
 * what else is asked for. */
#define LARGE_UNDER_WAY (KUBE_CALLS_MAX / 2 / CONTROLLER_LARGE_MAX)
#define SMALL_UNDER_WAY (KUBE_CALLS_MAX / 4 / CONTROLLER_SMALL_MAX)
#define SMALL_OF_NAMESPACE (CONTROLLER_SMALL_MAX / 2)

/* ---- the places ---- */

static bool is_in_namespace_of(const struct making *making, const char *key)
{
    return making->submission && strncmp(making->key, key, strcspn(key, "/") + 1) == 0;
}

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

static bool has_namespace_free(const struct controller *c, const char *key, bool large)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        count += is_large(c, &c->making[i]) == large && is_in_namespace_of(&c->making[i], key);
    return count < (large ? 1 : SMALL_OF_NAMESPACE);
}

/* Whose turn it is; NULL: nobody's. */
static const char *first_waiting(const struct controller *c, bool large)
{
    json_t *waiting = large ? c->large.waiting : c->small.waiting, *since;
    const char *first = NULL, *key;
    int64_t first_ms = 0;
    if (!find_place(c, large))
        return NULL;
    json_object_foreach(waiting, key, since)
    {
        int64_t ms = json_integer_value(since);
        bool before = !first || ms < first_ms || (ms == first_ms && strcmp(key, first) < 0);
        if (!before || !has_namespace_free(c, key, large))
            continue;
        first = key;
        first_ms = ms;
    }
    return first;
}

bool controller_may_make(const struct controller *c, const char *namespace, const char *name,
                         bool large)
{
    char key[CONTROLLER_KEY_SIZE];
    const char *first = first_waiting(c, large);
    snprintf(key, sizeof key, "%s/%s", namespace, name);
    return first && strcmp(first, key) == 0;
}

void controller_make(struct controller *c, const char *namespace, const char *name, const char *uid,
                     bool large, struct submission *submission_take)
{
    struct making *place = &c->making[find_place(c, large) - c->making];
    *place = (struct making){.submission = submission_take};
    snprintf(place->key, sizeof place->key, "%s/%s", namespace, name);
    snprintf(place->uid, sizeof place->uid, "%s", uid);
}

struct making *controller_find_making(struct controller *c, const char *namespace, const char *name)
{
    char key[CONTROLLER_KEY_SIZE];
    snprintf(key, sizeof key, "%s/%s", namespace, name);
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
    if (making->over || must_wait(c, making) || !submission_go_on(making->submission, most))
        return;
    making->over = true;
    controller_again_key(c, making->key, 0);
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
        if (c->making[i].submission && !c->making[i].changed)
            controller_go_on(c, &c->making[i]);
    call_first_waiting(c, true);
    call_first_waiting(c, false);
}

void controller_note_change(struct controller *c, const char *namespace, const char *name)
{
    struct making *making = controller_find_making(c, namespace, name);
    if (making)
        making->changed = true;
    controller_again(c, namespace, name, 0);
}

const char *controller_next_making(struct controller *c)
{
    const struct making *next = NULL;
    for (size_t i = 1; i <= ARRAY_LEN(c->making); i++) {
        const struct making *each = &c->making[(c->made_last + i) % ARRAY_LEN(c->making)];
        bool over = each->submission && each->over;
        if (over || (!next && each->submission && each->changed))
            next = each;
        if (over)
            break;
    }
    if (!next)
        return NULL;
    c->made_last = (size_t)(next - c->making);
    return next->key;
}
