/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/controller/private.h"
#include "lib/base/clock.h"

/* A list of the namespaces of others (ceded.c) counts for so long: what is begun then is created
 * before a controller that took its Lease just after it begins. */
#define KNOWN_MS (CONTROLLER_LEAVE_MS - CONTROLLER_CREATE_MS)

int64_t controller_now(const struct controller *c)
{
    int64_t served = kube_client_now(c->cluster->client);
    return served ? served : lead_now();
}

void controller_key(const char *namespace, const char *name, struct buf *key)
{
    buf_printf(key, "%s/%s", namespace, name);
}

void controller_again_key(struct controller *c, const char *key, int64_t ms)
{
    int64_t at = clock_ms() + ms;
    const json_t *before = json_object_get(c->due, key);
    if (!before || json_integer_value(before) > at)
        json_object_set_new(c->due, key, json_integer(at));
}

void controller_again(struct controller *c, const char *namespace, const char *name, int64_t ms)
{
    struct buf key = BUF_INIT;
    controller_key(namespace, name, &key);
    if (key.data)
        controller_again_key(c, key.data, ms);
    buf_done(&key);
}

void controller_forget(struct controller *c, const char *key)
{
    json_t *const books[] = {c->outdated,    c->pauses,      c->going, c->untold,
                             c->made,        c->refused,     c->rests, c->silent,
                             c->large.turns, c->small.turns, c->late,  c->limits};
    for (size_t i = 0; i < ARRAY_LEN(books); i++)
        json_object_del(books[i], key);
}

const char *controller_first_due(const struct controller *c, int64_t *ret_at)
{
    const char *first = NULL, *key;
    json_t *at;
    json_object_foreach(c->due, key, at)
    {
        if ((first && json_integer_value(at) >= *ret_at) || !controller_may_look(c, key))
            continue;
        first = key;
        *ret_at = json_integer_value(at);
    }
    return first;
}

size_t controller_count_due(const struct controller *c)
{
    size_t due = 0;
    int64_t now = clock_ms();
    const char *key;
    json_t *at;
    json_object_foreach(c->due, key, at) due += json_integer_value(at) <= now;
    return due;
}

const char *controller_first_waiting(const struct controller *c, json_t *waiting,
                                     controller_room_fn has_room)
{
    const char *first = NULL, *key;
    int64_t first_ms = 0;
    json_t *since;
    json_object_foreach(waiting, key, since)
    {
        int64_t ms = json_integer_value(since);
        bool before = !first || ms < first_ms || (ms == first_ms && strcmp(key, first) < 0);
        bool here = controller_is_looked_at(c, key) || controller_may_look(c, key);
        if (!before || !here || !has_room(c, key))
            continue;
        first = key;
        first_ms = ms;
    }
    return first;
}

/* ---- the namespaces of others ---- */

bool controller_knows_namespaces(const struct controller *c)
{
    return c->options->namespace || c->ceded_barred ||
           (c->ceded && clock_ms() - c->known_ms < KNOWN_MS);
}

bool controller_is_ceded(const struct controller *c, const char *namespace)
{
    return json_object_get(c->ceded, namespace);
}
