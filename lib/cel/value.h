/* SPDX-License-Identifier: Apache-2.0 */
/* CEL values. A value is small and copied freely; what it points to lives in an arena (of the
 * program, the device or the evaluation) and never changes once it is visible. */
#ifndef DRARUN_CEL_VALUE_H
#define DRARUN_CEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"
#include "lib/cel/arena.h"

enum cel_kind {
    CEL_UNSET,
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING, /* UTF-8, may hold NUL */
    CEL_BYTES,
    CEL_LIST,
    CEL_MAP,
    CEL_TYPE, /* a type as a value: its name */
    CEL_OPTIONAL,
    CEL_QUANTITY,
    CEL_SEMVER,
    CEL_ERROR, /* the text; && and || may absorb it */
};

struct cel_text {
    const char *data;
    size_t len; /* bytes */
};

struct cel_value {
    enum cel_kind kind;
    union {
        bool boolean;
        int64_t integer;
        uint64_t uinteger;
        double real;
        struct cel_text text; /* CEL_STRING, CEL_BYTES, CEL_TYPE, CEL_ERROR */
        const struct cel_list *list;
        const struct cel_map *map;
        const struct cel_value *inside; /* CEL_OPTIONAL: NULL is none */
        const struct cel_quantity *quantity;
        const struct cel_semver *semver;
    };
};

struct cel_list {
    struct cel_value *items;
    size_t count;
    size_t cap;   /* room behind items */
    size_t *used; /* of the room, shared by all lists on the same items; NULL: no room */
};

struct cel_entry {
    struct cel_value key;
    struct cel_value value;
};

struct cel_map {
    struct cel_entry *entries; /* in the order in which they were written; sorted in a device */
    size_t count;
    bool text_keys;    /* of a device: a key of another type is an error, not absent */
    bool empty_inside; /* device.attributes, device.capacity: what is absent is an empty map */
};

struct cel_value cel_bool(bool value);
struct cel_value cel_int(int64_t value);
struct cel_value cel_string(const char *data, size_t len);
/* The text is static or printed into the arena. */
struct cel_value cel_error(const char *text);
struct cel_value cel_errorf(struct cel_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct cel_value cel_no_overload(const char *function);
struct cel_value cel_list_new(struct cel_arena *arena, size_t count, struct cel_list **ret_list);
/* The list with one more item at its end; amortised constant time when built one by one. */
struct cel_value cel_list_concat(struct cel_arena *arena, const struct cel_list *a,
                                 const struct cel_list *b);
struct cel_value cel_optional(struct cel_arena *arena, struct cel_value inside);

/* As the API server's: a quantity or a version has no "==" with other types, nor has a quantity
 * with one that add() or sub() made. */
enum cel_equality { CEL_UNEQUAL, CEL_EQUAL, CEL_INCOMPARABLE };
enum cel_equality cel_equality(const struct cel_value *a, const struct cel_value *b);
bool cel_equal(const struct cel_value *a, const struct cel_value *b);
/* Orders bool, numbers (also of different types), strings, bytes: false when they have no order. */
bool cel_compare(const struct cel_value *a, const struct cel_value *b, int *ret_order);
/* NULL when absent. Numbers of different types are the same key when they are equal. */
const struct cel_value *cel_map_find(const struct cel_map *map, const struct cel_value *key);
/* What size() says of strings, bytes, lists, maps; 1 for all else (the API server's rule for cost).
 */
size_t cel_size(const struct cel_value *value);
/* The name that type() gives. */
const char *cel_kind_name(const struct cel_value *value);
/* For messages. */
void cel_print(struct buf *out, const struct cel_value *value);

#endif
