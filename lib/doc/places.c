/* SPDX-License-Identifier: Apache-2.0 */
/* Where each value of a document stands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/build.h"
#include "lib/doc/value.h"

static size_t slot_of(const struct places *table, size_t cap, const json_t *container)
{
    size_t i = (size_t)(((uintptr_t)container >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    for (i &= cap - 1; table[i].container && table[i].container != container;)
        i = (i + 1) & (cap - 1);
    return i;
}

static bool grow_places(struct doc *doc)
{
    if (doc->place_cap > 0 && doc->place_count < doc->place_cap / 2)
        return true;
    size_t cap = doc->place_cap ? doc->place_cap * 2 : 64;
    struct places *table = calloc(cap, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < doc->place_cap; i++)
        if (doc->places[i].container)
            table[slot_of(table, cap, doc->places[i].container)] = doc->places[i];
    free(doc->places);
    doc->places = table;
    doc->place_cap = cap;
    return true;
}

int places_keep(struct doc *doc, const json_t *container, struct entry **entries, size_t count,
                struct drarun_error *err)
{
    if (!grow_places(doc))
        return error_set(err, ENOMEM, "out of memory");
    struct places *p = &doc->places[slot_of(doc->places, doc->place_cap, container)];
    if (p->container)
        free(p->entries);
    else
        doc->place_count++;
    *p = (struct places){container, TAKE_PTR(*entries), count};
    return 0;
}

const struct places *places_find(const struct doc *doc, const json_t *container)
{
    if (!doc->place_cap)
        return NULL;
    const struct places *p = &doc->places[slot_of(doc->places, doc->place_cap, container)];
    return p->container ? p : NULL;
}

static const struct entry *find_entry(const struct doc *doc, const json_t *container, size_t index)
{
    const struct places *p = places_find(doc, container);
    return p && index < p->count ? &p->entries[index] : NULL;
}

struct doc_place doc_member_place(const struct doc *doc, const json_t *object, const char *key,
                                  struct doc_place *ret_key_place)
{
    size_t index = 0;
    json_t *members = value_unconst(object);
    void *it = json_object_iter(members);
    for (; it && strcmp(json_object_iter_key(it), key) != 0; index++)
        it = json_object_iter_next(members, it);
    const struct entry *e = it ? find_entry(doc, object, index) : NULL;
    if (ret_key_place)
        *ret_key_place = e ? e->key : (struct doc_place){0, 0};
    return e ? e->value : (struct doc_place){0, 0};
}

struct doc_place doc_item_place(const struct doc *doc, const json_t *array, size_t index)
{
    const struct entry *e = find_entry(doc, array, index);
    return e ? e->value : (struct doc_place){0, 0};
}
