/* SPDX-License-Identifier: Apache-2.0 */
/* The places of looks: which DraJobs are looked at, and which may be. */
#include <string.h>

#include "launcher/cluster/controller/sight.h"

#define OF_NAMESPACE (CONTROLLER_LOOKS_MAX / 3) /* so that others' DraJobs are looked at too */

bool controller_same_namespace(const char *key, const char *other)
{
    return strncmp(key, other, strcspn(other, "/") + 1) == 0;
}

static size_t count_of_namespace(const struct controller *c, const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(c->looks); i++)
        count += c->looks[i] && controller_same_namespace(c->looks[i]->key, key);
    return count;
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
