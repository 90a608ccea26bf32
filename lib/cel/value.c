// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/cel/quantity.h"
#include "lib/cel/semver.h"
#include "lib/cel/utf8.h"

struct cel_value cel_bool(bool value)
{
    return (struct cel_value){.kind = CEL_BOOL, .boolean = value};
}

struct cel_value cel_int(int64_t value)
{
    return (struct cel_value){.kind = CEL_INT, .integer = value};
}

struct cel_value cel_string(const char *data, size_t len)
{
    if (!data) // an arena gave nothing; it remembers
        return cel_error("out of memory");
    return (struct cel_value){.kind = CEL_STRING, .text = {data, len}};
}

struct cel_value cel_error(const char *text)
{
    return (struct cel_value){.kind = CEL_ERROR, .text = {text, strlen(text)}};
}

struct cel_value cel_errorf(struct cel_arena *arena, const char *format, ...)
{
    char text[256];
    char *copy;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    copy = cel_arena_copy(arena, text, strlen(text));
    return cel_error(copy ? copy : "out of memory");
}

struct cel_value cel_no_overload(const char *function)
{
    return (struct cel_value){.kind = CEL_ERROR, .text = {function, strlen(function)}};
}

struct cel_value cel_list_new(struct cel_arena *arena, size_t count, struct cel_list **ret_list)
{
    struct cel_list *list = cel_arena_alloc(arena, sizeof(*list));

    if (list)
        list->items = cel_arena_alloc(arena, count * sizeof(*list->items));
    if (!list || !list->items)
        return cel_error("out of memory");
    list->count = count;
    *ret_list = list;
    return (struct cel_value){.kind = CEL_LIST, .list = list};
}

struct cel_value cel_list_concat(struct cel_arena *arena, const struct cel_list *a,
                                 const struct cel_list *b)
{
    size_t count = a->count + b->count;
    struct cel_list *list = cel_arena_alloc(arena, sizeof(*list));

    if (!list)
        return cel_error("out of memory");
    *list = *a;
    if (!a->used || *a->used != a->count || count > a->cap) {
        list->cap = 2 * count;
        list->items = cel_arena_alloc(arena, list->cap * sizeof(*list->items));
        list->used = cel_arena_alloc(arena, sizeof(*list->used));
        if (!list->items || !list->used)
            return cel_error("out of memory");
        if (a->count)
            memcpy(list->items, a->items, a->count * sizeof(*a->items));
    }
    if (b->count)
        memcpy(list->items + a->count, b->items, b->count * sizeof(*b->items));
    list->count = *list->used = count;
    return (struct cel_value){.kind = CEL_LIST, .list = list};
}

struct cel_value cel_optional(struct cel_arena *arena, struct cel_value inside)
{
    struct cel_value *copy = cel_arena_alloc(arena, sizeof(*copy));

    if (!copy)
        return cel_error("out of memory");
    *copy = inside;
    return (struct cel_value){.kind = CEL_OPTIONAL, .inside = copy};
}

static int order_of(bool less, bool greater)
{
    return greater - less;
}

static int text_order(const struct cel_text *a, const struct cel_text *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = len ? memcmp(a->data, b->data, len) : 0;

    return order ? order_of(order<0, order> 0) : order_of(a->len<b->len, a->len> b->len);
}

static bool is_number(const struct cel_value *value)
{
    return value->kind == CEL_INT || value->kind == CEL_UINT || value->kind == CEL_DOUBLE;
}

static int real_order(double a, double b)
{
    return order_of(a<b, a> b);
}

static int real_int_order(double real, int64_t integer)
{
    if (real < -0x1p63)
        return -1;
    return real > 0x1p63 ? 1 : real_order(real, (double)integer);
}

static int real_uint_order(double real, uint64_t integer)
{
    if (real < 0)
        return -1;
    return real > 0x1p64 ? 1 : real_order(real, (double)integer);
}

static int int_uint_order(int64_t a, uint64_t b)
{
    return a < 0 ? -1 : order_of((uint64_t)a<b, (uint64_t)a> b);
}

/* Neither is NaN. */
static int number_order(const struct cel_value *a, const struct cel_value *b)
{
    if (a->kind > b->kind)
        return -number_order(b, a);
    if (a->kind == CEL_INT) {
        if (b->kind == CEL_INT)
            return order_of(a->integer<b->integer, a->integer> b->integer);
        return b->kind == CEL_UINT ? int_uint_order(a->integer, b->uinteger)
                                   : -real_int_order(b->real, a->integer);
    }
    if (a->kind == CEL_UINT && b->kind == CEL_UINT)
        return order_of(a->uinteger<b->uinteger, a->uinteger> b->uinteger);
    return a->kind == CEL_UINT ? -real_uint_order(b->real, a->uinteger)
                               : real_order(a->real, b->real);
}

static bool is_nan(const struct cel_value *value)
{
    return value->kind == CEL_DOUBLE && isnan(value->real);
}

bool cel_compare(const struct cel_value *a, const struct cel_value *b, int *ret_order)
{
    if (is_number(a) && is_number(b)) {
        if (is_nan(a) || is_nan(b))
            return false;
        *ret_order = number_order(a, b);
        return true;
    }
    if (a->kind != b->kind)
        return false;
    if (a->kind == CEL_BOOL)
        *ret_order = a->boolean - b->boolean;
    else if (a->kind == CEL_STRING || a->kind == CEL_BYTES)
        *ret_order = text_order(&a->text, &b->text);
    else
        return false;
    return true;
}

static enum cel_equality equality_if(bool equal)
{
    return equal ? CEL_EQUAL : CEL_UNEQUAL;
}

/* What cannot be compared does not make lists and maps differ (cel-go's common/types). */
static enum cel_equality list_equality(const struct cel_list *a, const struct cel_list *b)
{
    if (a->count != b->count)
        return CEL_UNEQUAL;
    for (size_t i = 0; i < a->count; i++)
        if (cel_equality(&a->items[i], &b->items[i]) == CEL_UNEQUAL)
            return CEL_UNEQUAL;
    return CEL_EQUAL;
}

static enum cel_equality map_equality(const struct cel_map *a, const struct cel_map *b)
{
    if (a->count != b->count)
        return CEL_UNEQUAL;
    for (size_t i = 0; i < a->count; i++) {
        const struct cel_value *other = cel_map_find(b, &a->entries[i].key);
        if (!other || cel_equality(&a->entries[i].value, other) == CEL_UNEQUAL)
            return CEL_UNEQUAL;
    }
    return CEL_EQUAL;
}

static enum cel_equality optional_equality(const struct cel_value *a, const struct cel_value *b)
{
    if (!a->inside || !b->inside)
        return equality_if(a->inside == b->inside);
    return cel_equality(a->inside, b->inside);
}

/* Of one kind, and neither null nor a number. */
static enum cel_equality same_kind_equality(const struct cel_value *a, const struct cel_value *b)
{
    int order;

    switch (a->kind) {
    case CEL_BOOL:
    case CEL_STRING:
    case CEL_BYTES:
        return equality_if(cel_compare(a, b, &order) && order == 0);
    case CEL_TYPE:
        return equality_if(text_order(&a->text, &b->text) == 0);
    case CEL_LIST:
        return list_equality(a->list, b->list);
    case CEL_MAP:
        return map_equality(a->map, b->map);
    case CEL_OPTIONAL:
        return optional_equality(a, b);
    case CEL_QUANTITY:
        if (b->quantity->computed)
            return CEL_INCOMPARABLE;
        return equality_if(cel_quantity_compare(a->quantity, b->quantity) == 0);
    case CEL_SEMVER:
        return equality_if(cel_semver_compare(a->semver, b->semver) == 0);
    default:
        return CEL_UNEQUAL;
    }
}

enum cel_equality cel_equality(const struct cel_value *a, const struct cel_value *b)
{
    if (a->kind == CEL_NULL || b->kind == CEL_NULL)
        return equality_if(a->kind == b->kind);
    if (is_number(a) && is_number(b))
        return equality_if(!is_nan(a) && !is_nan(b) && number_order(a, b) == 0);
    if (a->kind == b->kind)
        return same_kind_equality(a, b);
    return a->kind == CEL_QUANTITY || a->kind == CEL_SEMVER ? CEL_INCOMPARABLE : CEL_UNEQUAL;
}

bool cel_equal(const struct cel_value *a, const struct cel_value *b)
{
    return cel_equality(a, b) == CEL_EQUAL;
}

/* The entries of a device's map are sorted, so that a look-up does not grow with their number. */
static const struct cel_value *find_text(const struct cel_map *map, const struct cel_text *key)
{
    size_t low = 0, high = map->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = text_order(&map->entries[middle].key.text, key);
        if (order == 0)
            return &map->entries[middle].value;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct cel_value *cel_map_find(const struct cel_map *map, const struct cel_value *key)
{
    if (map->text_keys)
        return key->kind == CEL_STRING ? find_text(map, &key->text) : NULL;
    for (size_t i = 0; i < map->count; i++)
        if (cel_equal(&map->entries[i].key, key))
            return &map->entries[i].value;
    return NULL;
}

size_t cel_size(const struct cel_value *value)
{
    switch (value->kind) {
    case CEL_STRING:
        return cel_utf8_count(value->text.data, value->text.len);
    case CEL_BYTES:
        return value->text.len;
    case CEL_LIST:
        return value->list->count;
    case CEL_MAP:
        return value->map->count;
    case CEL_OPTIONAL:
        return value->inside ? cel_size(value->inside) : 1;
    default:
        return 1;
    }
}

const char *cel_kind_name(const struct cel_value *value)
{
    static const char *const names[] = {
        [CEL_UNSET] = "nothing",
        [CEL_NULL] = "null_type",
        [CEL_BOOL] = "bool",
        [CEL_INT] = "int",
        [CEL_UINT] = "uint",
        [CEL_DOUBLE] = "double",
        [CEL_STRING] = "string",
        [CEL_BYTES] = "bytes",
        [CEL_LIST] = "list",
        [CEL_MAP] = "map",
        [CEL_TYPE] = "type",
        [CEL_OPTIONAL] = "optional_type",
        [CEL_ERROR] = "error",
        [CEL_QUANTITY] = "kubernetes.Quantity",
        [CEL_SEMVER] = "kubernetes.Semver",
    };

    return names[value->kind];
}

static void print_map(struct buf *out, const struct cel_map *map)
{
    buf_add_str(out, "{");
    for (size_t i = 0; i < map->count; i++) {
        buf_add_str(out, i ? ", " : "");
        cel_print(out, &map->entries[i].key);
        buf_add_str(out, ": ");
        cel_print(out, &map->entries[i].value);
    }
    buf_add_str(out, "}");
}

static void print_list(struct buf *out, const struct cel_list *list)
{
    buf_add_str(out, "[");
    for (size_t i = 0; i < list->count; i++) {
        buf_add_str(out, i ? ", " : "");
        cel_print(out, &list->items[i]);
    }
    buf_add_str(out, "]");
}

void cel_print(struct buf *out, const struct cel_value *value)
{
    switch (value->kind) {
    case CEL_BOOL:
        buf_add_str(out, value->boolean ? "true" : "false");
        break;
    case CEL_INT:
        buf_printf(out, "%" PRId64, value->integer);
        break;
    case CEL_UINT:
        buf_printf(out, "%" PRIu64, value->uinteger);
        break;
    case CEL_DOUBLE:
        buf_printf(out, "%.17g", value->real);
        break;
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_TYPE:
    case CEL_ERROR:
        buf_add(out, value->text.data, value->text.len);
        break;
    case CEL_LIST:
        print_list(out, value->list);
        break;
    case CEL_MAP:
        print_map(out, value->map);
        break;
    default:
        buf_add_str(out, cel_kind_name(value));
    }
}
