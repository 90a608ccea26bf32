// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/cel/quantity.h"
#include "lib/cel/semver.h"

enum { MAX_DEVICE_BYTES = 4 << 20 };

struct loader {
    struct cel_arena *arena;
    const char *driver;
    const char *broken; /* why every evaluation fails */
    struct drarun_error *err;
};

static int no_memory(struct loader *l)
{
    return error_set(l->err, ENOMEM, "out of memory");
}

static struct cel_value text_value(struct loader *l, const json_t *text)
{
    size_t len = json_string_length(text);

    return cel_string(cel_arena_copy(l->arena, json_string_value(text), len), len);
}

static int wrong(struct loader *l, const char *name, const char *wanted)
{
    return error_set(l->err, EINVAL, "attribute %s: expected %s", name, wanted);
}

static struct cel_value version_value(struct loader *l, const char *name, const json_t *text)
{
    struct cel_semver *version = cel_arena_alloc(l->arena, sizeof(*version));
    int rc = version ? cel_semver_parse(l->arena, json_string_value(text), json_string_length(text),
                                        false, version)
                     : -ENOMEM;
    struct cel_value error;

    if (rc == 0)
        return (struct cel_value){.kind = CEL_SEMVER, .semver = version};
    error = cel_errorf(l->arena, "attribute %s: \"%s\" is not a semantic version", name,
                       json_string_value(text));
    l->broken = error.text.data;
    return error;
}

/* The kinds of attributes by their key; the plural holds a list (Kubernetes 1.36). */
static const struct {
    const char *key, *plural, *wanted;
    json_type type;
} KINDS[] = {
    {"int", "ints", "an integer", JSON_INTEGER},
    {"bool", "bools", "a bool", JSON_TRUE},
    {"string", "strings", "a string", JSON_STRING},
    {"version", "versions", "a version", JSON_STRING},
};

static int read_scalar(struct loader *l, size_t kind, const char *name, const json_t *json,
                       struct cel_value *ret_value)
{
    json_type type = json_typeof(json) == JSON_FALSE ? JSON_TRUE : json_typeof(json);

    if (type != KINDS[kind].type)
        return wrong(l, name, KINDS[kind].wanted);
    if (type == JSON_INTEGER)
        *ret_value = cel_int(json_integer_value(json));
    else if (type == JSON_TRUE)
        *ret_value = cel_bool(json_is_true(json));
    else if (KINDS[kind].key[0] == 'v')
        *ret_value = version_value(l, name, json);
    else
        *ret_value = text_value(l, json);
    return 0;
}

static int read_list(struct loader *l, size_t kind, const char *name, const json_t *json,
                     struct cel_value *ret_value)
{
    struct cel_list *list;
    struct cel_value value;

    if (!json_is_array(json))
        return wrong(l, name, "a list");
    value = cel_list_new(l->arena, json_array_size(json), &list);
    if (value.kind != CEL_LIST)
        return no_memory(l);
    for (size_t i = 0; i < list->count; i++) {
        int rc = read_scalar(l, kind, name, json_array_get(json, i), &list->items[i]);
        if (rc < 0)
            return rc;
    }
    *ret_value = value;
    return 0;
}

/* The kind that a key names, SIZE_MAX for none of them. */
static size_t kind_of(const char *key, bool *ret_list)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        size_t len = strlen(KINDS[i].key);
        if (strncmp(key, KINDS[i].key, len) != 0)
            continue;
        *ret_list = key[len] == 's' && key[len + 1] == '\0';
        if (*ret_list || key[len] == '\0')
            return i;
    }
    return SIZE_MAX;
}

/* Of several values, which the API server refuses: lists first, then in the order of KINDS. */
static int read_attribute(struct loader *l, const char *name, const json_t *json,
                          struct cel_value *ret_value)
{
    const json_t *found = NULL, *value;
    const char *key;
    size_t best = SIZE_MAX;
    bool best_list = false, list = false;

    json_object_foreach(unconst(json), key, value)
    {
        size_t kind = json_is_null(value) ? SIZE_MAX : kind_of(key, &list);
        if (kind == SIZE_MAX || (found && (best_list > list || (best_list == list && best < kind))))
            continue;
        found = value;
        best = kind;
        best_list = list;
    }
    if (found)
        return best_list ? read_list(l, best, name, found, ret_value)
                         : read_scalar(l, best, name, found, ret_value);
    *ret_value = cel_errorf(l->arena, "attribute %s: no value of a known type", name);
    l->broken = ret_value->text.data;
    return 0;
}

/* {"value": "8Gi"}; the text alone in Kubernetes 1.31; YAML readers leave numbers unquoted. */
static int read_capacity(struct loader *l, const char *name, const json_t *json,
                         struct cel_value *ret_value)
{
    const json_t *text = json_is_object(json) ? json_object_get(json, "value") : json;
    struct cel_quantity *quantity = cel_arena_alloc(l->arena, sizeof(*quantity));
    char *dumped = json_is_number(text) ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    const char *digits = dumped ? dumped : json_string_value(text);
    int rc = !quantity ? -ENOMEM
             : digits  ? cel_quantity_parse(digits, strlen(digits), quantity)
                       : -EINVAL;

    *ret_value = (struct cel_value){.kind = CEL_QUANTITY, .quantity = quantity};
    if (rc == -EINVAL)
        error_set(l->err, EINVAL, "capacity %s: expected a quantity, got \"%s\"", name,
                  digits ? digits : "none");
    else if (rc < 0)
        error_set(l->err, -rc, "capacity %s: %s", name,
                  rc == -ERANGE ? "a quantity of more than 38 digits" : "out of memory");
    free(dumped);
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const struct cel_entry *x = a, *y = b;
    int order = 0;

    cel_compare(&x->key, &y->key, &order);
    return order;
}

static struct cel_map *new_map(struct loader *l, size_t room)
{
    struct cel_map *map = cel_arena_alloc(l->arena, sizeof(*map));

    if (map)
        map->entries = cel_arena_alloc(l->arena, room * sizeof(*map->entries));
    if (!map || !map->entries)
        return NULL;
    map->text_keys = true;
    return map;
}

static struct cel_value map_value(struct cel_map *map)
{
    qsort(map->entries, map->count, sizeof(*map->entries), by_key);
    return (struct cel_value){.kind = CEL_MAP, .map = map};
}

/* The inner map of a domain, made when it is the first of it. Linear: devices have few domains. */
static struct cel_map *domain_map(struct loader *l, struct cel_map *outer, const char *domain,
                                  size_t len, size_t room)
{
    struct cel_map *inner;

    for (size_t i = 0; i < outer->count; i++) {
        const struct cel_text *key = &outer->entries[i].key.text;
        if (key->len == len && memcmp(key->data, domain, len) == 0)
            return unconst(outer->entries[i].value.map);
    }
    inner = new_map(l, room);
    if (!inner)
        return NULL;
    outer->entries[outer->count++] = (struct cel_entry){
        cel_string(cel_arena_copy(l->arena, domain, len), len), {.kind = CEL_MAP, .map = inner}};
    return inner;
}

static void put(struct cel_map *map, struct cel_value key, struct cel_value value)
{
    for (size_t i = 0; i < map->count; i++) {
        if (!cel_equal(&map->entries[i].key, &key))
            continue;
        map->entries[i].value = value; // "a" and "driver/a" are the same name
        return;
    }
    map->entries[map->count++] = (struct cel_entry){key, value};
}

typedef int (*read_fn)(struct loader *l, const char *name, const json_t *json,
                       struct cel_value *ret_value);

static int read_domains(struct loader *l, const json_t *json, read_fn read,
                        struct cel_value *ret_value)
{
    size_t room = json_object_size(json);
    struct cel_map *outer = new_map(l, room), *inner;
    const char *name;
    json_t *value;

    if (!outer)
        return no_memory(l);
    outer->empty_inside = true;
    json_object_foreach(unconst(json), name, value)
    {
        const char *slash = strchr(name, '/'), *id = slash ? slash + 1 : name;
        const char *domain = slash ? name : l->driver;
        size_t len = slash ? (size_t)(slash - name) : strlen(l->driver);
        struct cel_value made;
        int rc = read(l, name, value, &made);
        if (rc < 0)
            return rc;
        inner = domain_map(l, outer, domain, len, room);
        if (!inner)
            return no_memory(l);
        put(inner, cel_string(cel_arena_copy(l->arena, id, strlen(id)), strlen(id)), made);
    }
    for (size_t i = 0; i < outer->count; i++)
        outer->entries[i].value = map_value(unconst(outer->entries[i].value.map));
    *ret_value = map_value(outer);
    return 0;
}

static int load(struct loader *l, const json_t *json, struct cel_value *ret_value)
{
    const json_t *basic = json_object_get(json, "basic");
    const json_t *from = basic ? basic : json;
    struct cel_map *device = new_map(l, 4);
    static const char *const names[] = {"allowMultipleAllocations", "attributes", "capacity",
                                        "driver"};
    struct cel_value fields[4];
    int rc;

    if (!json_is_object(from))
        return error_set(l->err, EINVAL, "expected a device, an object");
    if (!device)
        return no_memory(l);
    fields[0] = cel_bool(json_is_true(json_object_get(from, names[0])));
    rc = read_domains(l, json_object_get(from, "attributes"), read_attribute, &fields[1]);
    if (rc == 0)
        rc = read_domains(l, json_object_get(from, "capacity"), read_capacity, &fields[2]);
    if (rc < 0)
        return rc;
    fields[3] =
        cel_string(cel_arena_copy(l->arena, l->driver, strlen(l->driver)), strlen(l->driver));
    for (int i = 0; i < 4; i++)
        put(device, cel_string(names[i], strlen(names[i])), fields[i]);
    *ret_value = l->broken ? cel_error(l->broken) : map_value(device);
    return l->arena->failed ? no_memory(l) : 0;
}

struct cel_device *cel_device_new(const char *driver, const json_t *json, struct drarun_error *err)
{
    struct cel_device *device = calloc(1, sizeof(*device));
    struct loader l = {.driver = driver, .err = err};

    if (!device) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    cel_arena_init(&device->arena, NULL, 0, MAX_DEVICE_BYTES);
    l.arena = &device->arena;
    if (load(&l, json, &device->value) < 0) {
        cel_device_free(device);
        return NULL;
    }
    return device;
}

void cel_device_free(struct cel_device *device)
{
    if (!device)
        return;
    cel_arena_done(&device->arena);
    free(device);
}
