/* SPDX-License-Identifier: Apache-2.0 */
/* jansson's values, read with tolerance: members, and texts where anything else counts as missing.
 * For the cluster's objects and other documents; strict reading is lib/doc/reader.h. Borrowed texts
 * live as long as the value. Pure. */
#ifndef DRARUN_DOC_VALUE_H
#define DRARUN_DOC_VALUE_H

#include <jansson.h>
#include "lib/base/unconst.h"

/* For jansson's iterators, which only read. */
static inline json_t *value_unconst(const json_t *value)
{
    return unconst(value);
}

/* json_object_foreach for an object that is only read. */
#define value_foreach(object, key, value) json_object_foreach(value_unconst(object), key, value)

/* NULL: object is none, or has no text there. */
const char *value_text(const json_t *object, const char *key);
/* `otherwise` also where the text is empty. */
const char *value_text_or(const json_t *object, const char *key, const char *otherwise);
/* The list's first entry whose member has this text; borrowed. NULL: there is none, or text is
 * NULL.
 */
json_t *value_find(const json_t *list, const char *key, const char *text);
/* Deletes the members of the object whose keys are not in the list, which NULL ends. */
void value_keep(json_t *object, const char *const *keys);
/* The same for the object that is a member; with the table, too, that one of many members has. */
void value_keep_at(json_t *parent, const char *member, const char *const *keys);
/* Cuts the list that is a member to so many items; with the table. */
void value_cut_at(json_t *parent, const char *member, size_t items);
/* How many values it is made of, itself and those of all levels, as far as max. */
size_t value_count(const json_t *value, size_t max);
/* A new reference; null for NULL and for an empty text. */
json_t *value_of_text(const char *text);
/* A new reference to a text that others wrote, or that was cut anywhere: JSON wants UTF-8, and
 * plain_text makes it that. NULL: no memory. */
json_t *value_of_words(const char *words);

#endif
