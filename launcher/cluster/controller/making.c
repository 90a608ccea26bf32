/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with many objects, which are created between looks at other DraJobs. */
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/controller/private.h"

/* Calls under way for each: half of them are left to others. */
#define UNDER_WAY_MAX (KUBE_CALLS_MAX / 2 / CONTROLLER_MAKING_MAX)

static bool is_in_namespace_of(const struct making *making, const char *key)
{
    return making->submission && strncmp(making->key, key, strcspn(key, "/") + 1) == 0;
}

static bool has_place(const struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (!c->making[i].submission)
            return true;
    return false;
}

static bool has_namespace_free(const struct controller *c, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (is_in_namespace_of(&c->making[i], key))
            return false;
    return true;
}

/* Whose turn it is; NULL: nobody's. */
static const char *first_waiting(const struct controller *c)
{
    const char *first = NULL, *key;
    int64_t first_ms = 0;
    json_t *since;
    if (!has_place(c))
        return NULL;
    json_object_foreach(c->waiting, key, since)
    {
        int64_t ms = json_integer_value(since);
        bool before = !first || ms < first_ms || (ms == first_ms && strcmp(key, first) < 0);
        if (!before || !has_namespace_free(c, key))
            continue;
        first = key;
        first_ms = ms;
    }
    return first;
}

bool controller_may_make(const struct controller *c, const char *namespace, const char *name)
{
    char key[CONTROLLER_KEY_SIZE];
    const char *first = first_waiting(c);
    snprintf(key, sizeof key, "%s/%s", namespace, name);
    return first && strcmp(first, key) == 0;
}

void controller_make(struct controller *c, const char *namespace, const char *name, const char *uid,
                     struct submission *submission_take)
{
    struct making *place = c->making;
    while (place->submission)
        place++;
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

void controller_go_on(struct controller *c, struct making *making)
{
    if (making->over || !submission_go_on(making->submission, UNDER_WAY_MAX))
        return;
    making->over = true;
    controller_again_key(c, making->key, 0);
}

void controller_go_on_making(struct controller *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (c->making[i].submission && !c->making[i].changed)
            controller_go_on(c, &c->making[i]);
    const char *next = first_waiting(c);
    if (next)
        controller_again_key(c, next, 0);
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
