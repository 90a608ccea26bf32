/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/value.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/plain.h"

const char *value_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *value_text_or(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = value_text(object, key);
    return text && text[0] ? text : otherwise;
}

json_t *value_find(const json_t *list, const char *key, const char *text)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *own = value_text(entry, key);
        if (own && text && strcmp(own, text) == 0)
            return entry;
    }
    return NULL;
}

json_t *value_of_text(const char *text)
{
    return text && text[0] ? json_string(text) : json_null();
}

json_t *value_of_words(const char *words)
{
    cleanup_free char *plain = strdup(words);
    if (!plain)
        return NULL;
    plain_text(plain, strlen(plain));
    return json_string(plain);
}

static bool is_among(const char *key, const char *const *keys)
{
    for (; *keys; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

void value_keep(json_t *object, const char *const *keys)
{
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(object, next, key, value)
    {
        if (!is_among(key, keys))
            json_object_del(object, key);
    }
}

void value_keep_at(json_t *parent, const char *member, const char *const *keys)
{
    json_t *object = json_object_get(parent, member);
    json_t *kept = json_is_object(object) ? json_object() : NULL;
    for (; kept && *keys; keys++)
        if (json_object_get(object, *keys))
            json_object_set(kept, *keys, json_object_get(object, *keys));
    if (kept)
        json_object_set_new(parent, member, kept);
}

void value_cut_at(json_t *parent, const char *member, size_t items)
{
    const json_t *list = json_object_get(parent, member);
    json_t *kept = json_array_size(list) > items ? json_array() : NULL;
    for (size_t i = 0; kept && i < items; i++)
        json_array_append(kept, json_array_get(list, i));
    if (kept)
        json_object_set_new(parent, member, kept);
}

size_t value_count(const json_t *value, size_t max)
{
    size_t count = 1, i;
    const char *key;
    json_t *member;
    value_foreach(value, key, member)
    {
        if (count >= max)
            return max;
        count += value_count(member, max - count);
    }
    json_array_foreach(value, i, member)
    {
        if (count >= max)
            return max;
        count += value_count(member, max - count);
    }
    return count;
}
