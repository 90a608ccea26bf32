/* SPDX-License-Identifier: Apache-2.0 */
/* Members of the documents that lib/inspect makes: what is not known has none. Every failure is one
 * of memory; an object that failed is NULL, and setting a member of NULL fails too. Private to
 * lib/inspect. */
#ifndef DRARUN_INSPECT_MEMBERS_H
#define DRARUN_INSPECT_MEMBERS_H

#include <jansson.h>
#include "lib/topo/host.h"

static inline void member_set(json_t *object, const char *key, json_t *value_take)
{
    json_object_set_new(object, key, value_take);
}

static inline void member_text(json_t *object, const char *key, const char *text)
{
    if (text && text[0])
        member_set(object, key, json_string(text));
}

static inline void member_tri(json_t *object, const char *key, enum topo_tri tri)
{
    if (tri != TOPO_UNKNOWN)
        member_set(object, key, json_boolean(tri == TOPO_YES));
}

#endif
