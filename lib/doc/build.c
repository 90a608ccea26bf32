/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

/* Members that are walked over for keys that are given twice, and for merges: a second at most. */
#define WALKED_MAX ((size_t)100000000)
#define LOOKED_UP 8u /* members that are walked over while one is looked up */

int build_error(const struct builder *b, struct doc_place at, struct drarun_error *err,
                const char *format, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (err) {
        err->line = at.line;
        err->column = at.column;
    }
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s:%u:%u: %s", b->doc->name, at.line,
                      at.column, text);
}

static int out_of_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

/* Room for one more element of an array that grows by doubling. */
static bool grow(void **items, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return true;
    size_t wanted = *cap ? *cap * 2 : 4;
    void *bigger = reallocarray(*items, wanted, size);
    if (!bigger)
        return false;
    *items = bigger;
    *cap = wanted;
    return true;
}

static struct frame *top(const struct builder *b)
{
    return b->depth ? unconst(&b->frames[b->depth - 1]) : NULL;
}

bool build_wants_key(const struct builder *b)
{
    const struct frame *f = top(b);
    return f && json_is_object(f->container) && !f->key && !f->merge;
}

void build_merge_key(struct builder *b, struct doc_place at)
{
    top(b)->merge = true;
    top(b)->key_place = at;
}

bool build_in_merge(const struct builder *b)
{
    return b->depth && top(b)->merge;
}

static int add_entry(struct frame *f, struct doc_place key, struct doc_place value,
                     struct drarun_error *err)
{
    if (!grow((void **)&f->entries, f->count, &f->cap, sizeof *f->entries))
        return out_of_memory(err);
    f->entries[f->count++] = (struct entry){key, value};
    return 0;
}

/* The place of the key in a frame's entries, which has stood there already. */
static size_t entry_of(const struct frame *f, const char *key)
{
    size_t i = 0;
    for (void *it = json_object_iter(f->container); it && i < f->count;
         it = json_object_iter_next(f->container, it), i++)
        if (strcmp(json_object_iter_key(it), key) == 0)
            break;
    return i;
}

/* The earlier member leaves, and is told of. */
static int drop_member(struct builder *b, struct frame *f, const char *key, struct doc_place at,
                       struct drarun_error *err)
{
    struct doc *doc = b->doc;
    b->walked += f->count;
    if (b->walked > WALKED_MAX)
        return build_error(b, at, err, "too many keys of large mappings are given twice");
    size_t i = entry_of(f, key);
    if (!grow((void **)&doc->duplicates, doc->duplicate_count, &doc->duplicate_cap,
              sizeof *doc->duplicates))
        return out_of_memory(err);
    struct doc_duplicate *d = &doc->duplicates[doc->duplicate_count];
    *d = (struct doc_duplicate){strdup(key), f->entries[i].key, at};
    if (!d->key)
        return out_of_memory(err);
    doc->duplicate_count++;
    json_object_del(f->container, key);
    f->count--;
    memmove(&f->entries[i], &f->entries[i + 1], (f->count - i) * sizeof *f->entries);
    return 0;
}

int build_key(struct builder *b, const char *key, struct doc_place at, struct drarun_error *err)
{
    struct frame *f = top(b);
    bool again = json_object_get(f->container, key);
    if (again && !b->limits->last_wins)
        return build_error(b, at, err, "the key \"%s\" is given twice, first in line %u", key,
                           f->entries[entry_of(f, key)].key.line);
    int rc = again ? drop_member(b, f, key, at, err) : 0;
    if (rc < 0)
        return rc;
    f->key = strdup(key);
    f->key_place = at;
    return f->key ? 0 : out_of_memory(err);
}

static int add_root_take(struct builder *b, json_t *value, struct doc_place at,
                         struct drarun_error *err)
{
    struct doc *doc = b->doc;
    if (json_is_null(value)) { /* as kubectl does with "---" alone */
        json_decref(value);
        return 0;
    }
    if (!grow((void **)&doc->roots, doc->root_count, &doc->root_cap, sizeof *doc->roots)) {
        json_decref(value);
        return out_of_memory(err);
    }
    doc->roots[doc->root_count++] = (struct root){value, at};
    return 0;
}

/* A merge key's value: a mapping, or a list of them, earlier ones first. */
static int add_merge_take(struct builder *b, struct frame *f, json_t *value, struct doc_place at,
                          struct drarun_error *err)
{
    json_t *one = NULL;
    size_t i = 0;
    int rc = 0;
    f->merge = false;
    if (!f->merges)
        f->merges = json_array();
    if (!f->merges)
        rc = out_of_memory(err);
    else if (json_is_object(value))
        rc = json_array_append(f->merges, value) < 0 ? out_of_memory(err) : 0;
    else if (!json_is_array(value) || json_array_size(value) == 0)
        rc = build_error(b, at, err, "expected a mapping, or a list of mappings, behind \"<<\"");
    json_array_foreach(json_is_array(value) ? value : NULL, i, one)
    {
        if (rc == 0 && !json_is_object(one))
            rc = build_error(b, at, err, "expected nothing but mappings in the list behind \"<<\"");
        if (rc == 0 && json_array_append(f->merges, one) < 0)
            rc = out_of_memory(err);
    }
    json_decref(value);
    return rc;
}

static int add_member_take(struct frame *f, json_t *value, struct doc_place at,
                           struct drarun_error *err)
{
    cleanup_free char *key = TAKE_PTR(f->key);
    int rc = json_object_set_new(f->container, key, value);
    return rc < 0 ? out_of_memory(err) : add_entry(f, f->key_place, at, err);
}

int build_value_take(struct builder *b, json_t *value, struct doc_place at,
                     struct drarun_error *err)
{
    struct frame *f = top(b);
    if (!value)
        return out_of_memory(err);
    if (!f)
        return add_root_take(b, value, at, err);
    if (f->merge)
        return add_merge_take(b, f, value, at, err);
    if (json_is_object(f->container))
        return add_member_take(f, value, at, err);
    if (json_array_append_new(f->container, value) < 0)
        return out_of_memory(err);
    return add_entry(f, at, at, err);
}

int build_open(struct builder *b, bool object, struct doc_place at, struct drarun_error *err)
{
    if (b->depth >= b->limits->depth || b->depth >= DOC_DEPTH_MAX)
        return build_error(b, at, err, "more than %u lists and mappings inside one another",
                           b->limits->depth);
    json_t *container = object ? json_object() : json_array();
    if (!container)
        return out_of_memory(err);
    b->frames[b->depth] = (struct frame){.container = container, .at = at};
    b->depth++;
    return 0;
}

static int count_aliased(struct builder *b, struct doc_place at, struct drarun_error *err)
{
    if (++b->aliased <= b->limits->aliased)
        return 0;
    return build_error(b, at, err, "aliases add more than %u values to this text",
                       b->limits->aliased);
}

/* What "<<" named and the mapping itself does not have. */
static int apply_merges(struct builder *b, struct frame *f, struct drarun_error *err)
{
    size_t i = 0;
    json_t *source = NULL, *value = NULL, *copy = NULL;
    const char *key = NULL;
    json_array_foreach(f->merges, i, source)
    {
        /* of these alone the address stays while copies get places */
        const struct places *places = places_find(b->doc, source);
        const struct entry *entries = places ? places->entries : NULL;
        size_t count = places ? places->count : 0, member = 0;
        json_object_foreach(source, key, value)
        {
            struct entry at = member < count ? entries[member] : (struct entry){0};
            member++;
            b->walked += LOOKED_UP;
            if (b->walked > WALKED_MAX)
                return build_error(b, f->at, err, "\"<<\" merges large mappings too often");
            if (json_object_get(f->container, key))
                continue;
            int rc = build_copy(b, value, at.value, &copy, err);
            if (rc == 0 && json_object_set_new(f->container, key, copy) < 0)
                rc = out_of_memory(err);
            if (rc == 0)
                rc = add_entry(f, at.key, at.value, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

int build_close(struct builder *b, struct drarun_error *err)
{
    struct frame *f = top(b);
    struct doc_place at = f->at;
    int rc = f->merges ? apply_merges(b, f, err) : 0;
    if (rc == 0)
        rc = places_keep(b->doc, f->container, &f->entries, f->count, err);
    if (rc < 0)
        return rc;
    json_t *value = TAKE_PTR(f->container);
    json_decref(f->merges);
    free(f->key);
    b->depth--;
    return build_value_take(b, value, at, err);
}

/* Copies a container's places to its copy. */
static int copy_places(struct builder *b, const json_t *from, const json_t *to,
                       struct drarun_error *err)
{
    const struct places *p = places_find(b->doc, from);
    if (!p)
        return 0;
    struct entry *entries = malloc((p->count + 1) * sizeof *entries);
    if (!entries)
        return out_of_memory(err);
    if (p->count)
        memcpy(entries, p->entries, p->count * sizeof *entries);
    int rc = places_keep(b->doc, to, &entries, p->count, err);
    free(entries);
    return rc;
}

static int copy_members(struct builder *b, const json_t *from, json_t *to, struct doc_place at,
                        struct drarun_error *err)
{
    json_t *value = NULL, *copy = NULL;
    const char *key = NULL;
    size_t i = 0;
    int rc = 0;
    value_foreach(from, key, value)
    {
        rc = build_copy(b, value, at, &copy, err);
        if (rc == 0 && json_object_set_new(to, key, copy) < 0)
            rc = out_of_memory(err);
        if (rc < 0)
            return rc;
    }
    json_array_foreach(from, i, value)
    {
        rc = build_copy(b, value, at, &copy, err);
        if (rc == 0 && json_array_append_new(to, copy) < 0)
            rc = out_of_memory(err);
        if (rc < 0)
            return rc;
    }
    return copy_places(b, from, to, err);
}

int build_copy(struct builder *b, const json_t *value, struct doc_place at, json_t **ret_copy,
               struct drarun_error *err)
{
    int rc = count_aliased(b, at, err);
    if (rc < 0)
        return rc;
    bool container = json_is_object(value) || json_is_array(value);
    json_t *copy = NULL;
    if (container)
        copy = json_is_object(value) ? json_object() : json_array();
    else
        copy = json_copy(unconst(value));
    if (!copy)
        return out_of_memory(err);
    rc = container ? copy_members(b, value, copy, at, err) : 0;
    if (rc < 0)
        json_decref(copy);
    else
        *ret_copy = copy;
    return rc;
}

void build_done(struct builder *b)
{
    for (uint32_t i = 0; i < b->depth; i++) {
        json_decref(b->frames[i].container);
        json_decref(b->frames[i].merges);
        free(b->frames[i].entries);
        free(b->frames[i].key);
    }
    b->depth = 0;
}
