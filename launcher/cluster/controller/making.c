/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with many objects, which are created between looks at other DraJobs. */
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/controller/private.h"

/* Calls under way for each: half of them are left to others. */
#define UNDER_WAY_MAX (KUBE_CALLS_MAX / 2 / CONTROLLER_MAKING_MAX)

/* name: NULL: of any. */
static bool is_of(const struct making *making, const char *namespace, const char *name)
{
    size_t length = strlen(namespace);
    return making->submission && strncmp(making->key, namespace, length) == 0 &&
           making->key[length] == '/' && (!name || strcmp(making->key + length + 1, name) == 0);
}

bool controller_may_make(const struct controller *c, const char *namespace)
{
    bool place = false;
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++) {
        if (is_of(&c->making[i], namespace, NULL))
            return false;
        place |= !c->making[i].submission;
    }
    return place;
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
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++)
        if (is_of(&c->making[i], namespace, name))
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
}

void controller_note_change(struct controller *c, const char *namespace, const char *name)
{
    struct making *making = controller_find_making(c, namespace, name);
    if (making)
        making->changed = true;
    controller_again(c, namespace, name, 0);
}

const char *controller_first_making(const struct controller *c)
{
    const char *changed = NULL;
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++) {
        if (c->making[i].submission && c->making[i].over)
            return c->making[i].key;
        if (c->making[i].submission && c->making[i].changed)
            changed = c->making[i].key;
    }
    return changed;
}
