/* SPDX-License-Identifier: Apache-2.0 */
/* The places of looks that read a spec, which takes memory and time. */
#include <string.h>

#include "launcher/cluster/controller/sight.h"

/* Each reader holds a DraJob as anybody may write it, and has a process with as much again. */
#define READERS_MAX 2

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

const char *controller_first_reader(const struct controller *c)
{
    return controller_first_waiting(c, c->unread, has_reader_free);
}

bool controller_take_reader(struct sight *s)
{
    struct controller *c = s->c;
    if (s->has_reader)
        return true;
    sight_note(s, c->unread, json_integer(s->unread_ms));
    const char *first = controller_first_reader(c);
    s->has_reader = first && strcmp(first, s->key) == 0;
    if (s->has_reader)
        sight_unnote(s, c->unread);
    return s->has_reader;
}
