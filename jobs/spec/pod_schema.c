/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/pod_schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/base/unconst.h"
#include "lib/cel/quantity.h"
#include "lib/doc/value.h"

#define WORD_MAX 64    /* bytes of a type's or a field's name */
#define BOUNDS_MAX 128 /* bytes of what is behind a type */

extern const unsigned char pod_schema_txt[];
extern const size_t pod_schema_txt_size;

struct shape {
    char list;           /* '[', '{' or 0 */
    char type[WORD_MAX]; /* of the value, or of the list's and the map's values */
    /* "A|B": the words, "1..65535": the numbers that it takes; "": all */
    char bounds[BOUNDS_MAX];
    bool whole;         /* items of a merged list are replaced, not merged */
    char key[WORD_MAX]; /* by which the list is merged; "": it is replaced */
};

/* ---- the table ---- */

/* The fields of the type, up to the line's end; false: no object of the API. */
static bool find_type(const char *type, const char **ret_fields, const char **ret_end)
{
    const char *at = (const char *)pod_schema_txt, *end = at + pod_schema_txt_size;
    size_t length = strlen(type);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if ((size_t)(stop - at) > length && memcmp(at, type, length) == 0 && at[length] == ' ') {
            *ret_fields = at + length + 1;
            *ret_end = stop;
            return true;
        }
        at = stop + 1;
    }
    return false;
}

struct field_text {
    const char *key, *shape;
    size_t key_length, shape_length;
    bool required;
};

/* The next field of a line; *at moves on. */
static bool next_field(const char **at, const char *end, struct field_text *ret)
{
    if (*at >= end)
        return false;
    const char *stop = memchr(*at, ' ', (size_t)(end - *at));
    stop = stop ? stop : end;
    const char *colon = memchr(*at, ':', (size_t)(stop - *at));
    if (!colon)
        return false;
    ret->required = colon[-1] == '!';
    ret->key = *at;
    ret->key_length = (size_t)(colon - *at) - ret->required;
    ret->shape = colon + 1;
    ret->shape_length = (size_t)(stop - colon) - 1;
    *at = stop + 1;
    return true;
}

static void copy_word(char *to, size_t size, const char *from, size_t length)
{
    length = length < size ? length : size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* "int32=1..65535" */
static void parse_type(const char *text, size_t length, struct shape *ret_shape)
{
    const char *bounds = memchr(text, '=', length);
    size_t type = bounds ? (size_t)(bounds - text) : length;
    copy_word(ret_shape->type, sizeof ret_shape->type, text, type);
    if (bounds)
        copy_word(ret_shape->bounds, sizeof ret_shape->bounds, bounds + 1, length - type - 1);
}

/* "[Container]/name" */
static struct shape parse_shape(const char *text, size_t length)
{
    struct shape shape = {0};
    if (length > 0 && (*text == '[' || *text == '{')) {
        const char *close = memchr(text, *text == '[' ? ']' : '}', length);
        size_t inner = close ? (size_t)(close - text) - 1 : length - 1;
        shape.list = *text;
        parse_type(text + 1, inner, &shape);
        if (close && close + 1 < text + length) {
            shape.whole = close[1] == '=';
            copy_word(shape.key, sizeof shape.key, close + 2, length - inner - 3);
        }
    } else {
        parse_type(text, length, &shape);
    }
    return shape;
}

static bool find_field(const char *type, const char *key, struct shape *ret_shape)
{
    const char *at, *end;
    struct field_text field;
    size_t length = strlen(key);
    if (!find_type(type, &at, &end))
        return false;
    while (next_field(&at, end, &field))
        if (field.key_length == length && memcmp(field.key, key, length) == 0) {
            *ret_shape = parse_shape(field.shape, field.shape_length);
            return true;
        }
    return false;
}

bool pod_schema_has(const char *type, const char *key)
{
    struct shape shape;
    return find_field(type, key, &shape);
}

/* ---- checks ---- */

static void check(const struct reader_node *node, const struct shape *shape);

/* The one of them that a key which is not of the type may have been meant for. */
static const char *other_place(const char *type, const char *key)
{
    static const struct {
        const char *type, *place;
    } places[] = {{"PodSpec", "the pod: template.spec"},
                  {"Container", "a container: template.spec.containers[]"},
                  {"ObjectMeta", "the pod's metadata: template.metadata"}};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strcmp(places[i].type, type) != 0 && pod_schema_has(places[i].type, key))
            return places[i].place;
    return NULL;
}

static void refuse_key(const struct reader_node *object, const char *type, const char *key,
                       const char *known)
{
    char nearest[NEAREST_WORD_MAX];
    bool outer = strcmp(type, "PodTemplateSpec") == 0 || strcmp(type, "PodSpec") == 0 ||
                 strcmp(type, "Container") == 0;
    const char *place = outer ? other_place(type, key) : NULL;
    if (place)
        reader_unknown_key(object, key, "not a key of %s: it belongs to %s", type, place);
    else if (nearest_word(key, known, nearest, sizeof nearest))
        reader_unknown_key(object, key, "unknown key; did you mean %s?", nearest);
    else
        reader_unknown_key(object, key, "unknown key: %s has none of that name in Kubernetes",
                           type);
}

static void check_object(const struct reader_node *node, const char *type)
{
    const char *fields, *at, *end;
    struct field_text field;
    struct reader_node member;
    struct buf known = BUF_INIT;
    if (!find_type(type, &fields, &end) || reader_object(node) < 0)
        return;
    for (at = fields; next_field(&at, end, &field);) {
        char key[WORD_MAX];
        copy_word(key, sizeof key, field.key, field.key_length);
        buf_printf(&known, "%s%s", known.len ? " " : "", key);
        struct shape shape = parse_shape(field.shape, field.shape_length);
        if (reader_get(node, key, &member))
            check(&member, &shape);
        else if (field.required)
            reader_missing(node, "%s is missing", key);
    }
    if (known.failed)
        node->reader->texts.failed = true;
    for (void *it = json_object_iter(node->value); it && !known.failed;
         it = json_object_iter_next(node->value, it)) {
        const char *key = json_object_iter_key(it);
        if (!words_has(known.data, key))
            refuse_key(node, type, key, known.data);
    }
    buf_done(&known);
}

static void check_text(const struct reader_node *node)
{
    const char *text;
    if (!json_is_string(node->value)) /* an empty one is one */
        reader_text(node, &text);
}

static void check_quantity(const struct reader_node *node)
{
    struct cel_quantity quantity;
    const char *text = json_string_value(node->value);
    if (json_is_number(node->value) ||
        (text && cel_quantity_parse(text, strlen(text), &quantity) != -EINVAL))
        return;
    reader_expected(node, "a quantity: 500m, 2, 1Gi");
}

/* An empty word is none: the API server sets its own in its place. */
static void check_word(const struct reader_node *node, const char *bounds)
{
    char words[BOUNDS_MAX];
    int index;
    if (!*bounds || json_string_length(node->value) == 0)
        return;
    copy_word(words, sizeof words, bounds, strlen(bounds));
    for (char *at = words; (at = strchr(at, '|'));)
        *at = ' ';
    reader_choice(node, words, &index);
}

static void check_number(const struct reader_node *node, int64_t min, int64_t max,
                         const char *bounds)
{
    int64_t number;
    const char *dots = strstr(bounds, "..");
    if (dots)
        reader_integer(node, strtoll(bounds, NULL, 10), strtoll(dots + 2, NULL, 10), &number);
    else
        reader_integer(node, min, max, &number);
}

static void check_plain(const struct reader_node *node, const struct shape *shape)
{
    const char *type = shape->type;
    bool truth;
    if (strcmp(type, "string") == 0 || strcmp(type, "time") == 0) {
        check_text(node);
        check_word(node, shape->bounds);
    } else if (strcmp(type, "bool") == 0) {
        reader_bool(node, &truth);
    } else if (strcmp(type, "int32") == 0) {
        check_number(node, INT32_MIN, INT32_MAX, shape->bounds);
    } else if (strcmp(type, "int64") == 0) {
        check_number(node, INT64_MIN, INT64_MAX, shape->bounds);
    } else if (strcmp(type, "quantity") == 0) {
        check_quantity(node);
    } else if (strcmp(type, "int-or-string") != 0) {
        check_object(node, type);
    } else if (!json_is_string(node->value)) {
        check_number(node, INT32_MIN, INT32_MAX, shape->bounds);
    }
}

static void check_list(const struct reader_node *node, const struct shape *shape)
{
    if (reader_list(node, 0) < 0)
        return;
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        check_plain(&item, shape);
    }
}

static void check_map(const struct reader_node *node, const struct shape *shape)
{
    if (reader_object(node) < 0)
        return;
    for (void *it = json_object_iter(node->value); it;
         it = json_object_iter_next(node->value, it)) {
        struct reader_node item;
        if (reader_get(node, json_object_iter_key(it), &item))
            check_plain(&item, shape);
    }
}

static void check(const struct reader_node *node, const struct shape *shape)
{
    if (shape->list == '[')
        check_list(node, shape);
    else if (shape->list == '{')
        check_map(node, shape);
    else
        check_plain(node, shape);
}

bool pod_schema_check(const struct reader_node *node, const char *shape)
{
    size_t before = node->reader->findings;
    struct shape parsed = parse_shape(shape, strlen(shape));
    check(node, &parsed);
    return node->reader->findings == before;
}

/* ---- merging ---- */

static bool is_same(const json_t *item, const json_t *other, const char *key)
{
    const json_t *a = json_object_get(item, key), *b = json_object_get(other, key);
    return a && b && json_equal(a, b);
}

static json_t *merge_list(const struct shape *shape, const json_t *base, const json_t *patch)
{
    CLEANUP(json_decrefp) json_t *list = json_copy(unconst(base));
    size_t i, at;
    json_t *item, *other;
    json_array_foreach(patch, i, item)
    {
        bool found = false;
        json_array_foreach(list, at, other)
        {
            if (!(found = is_same(item, other, shape->key)))
                continue;
            json_t *merged =
                shape->whole ? json_incref(item) : pod_schema_merge(shape->type, other, item);
            if (!merged || json_array_set_new(list, at, merged) < 0)
                return NULL;
            break;
        }
        if (!found && json_array_append(list, item) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static json_t *merge_value(const struct shape *shape, json_t *base, json_t *patch)
{
    if (shape->list == '[' && shape->key[0] && json_is_array(base) && json_is_array(patch))
        return merge_list(shape, base, patch);
    if (shape->list != '[' && json_is_object(base) && json_is_object(patch))
        return pod_schema_merge(shape->type, base, patch);
    return json_incref(patch);
}

json_t *pod_schema_merge(const char *type, const json_t *base, const json_t *patch)
{
    CLEANUP(json_decrefp) json_t *object = json_copy(unconst(base));
    const char *key;
    json_t *value;
    value_foreach(patch, key, value)
    {
        struct shape shape = {0};
        json_t *old = json_object_get(object, key);
        find_field(type, key, &shape); /* what is none is replaced, as the values of a map */
        if (json_object_set_new(object, key,
                                old ? merge_value(&shape, old, value) : json_incref(value)) < 0)
            return NULL;
    }
    return object ? TAKE_PTR(object) : NULL;
}
