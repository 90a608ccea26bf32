/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/watch_store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/kube/object.h"

#define KEY_SIZE 512 /* a namespace has at most 63 characters, a name 253 */

static bool make_key(char key[KEY_SIZE], const char *namespace_, const char *name)
{
    int length = snprintf(key, KEY_SIZE, "%s/%s", namespace_, name);
    return *name && length > 0 && length < KEY_SIZE;
}

int watch_store_init(struct watch_store *s, struct drarun_error *err)
{
    s->known = json_object();
    return s->known ? 0 : error_set(err, ENOMEM, "out of memory");
}

void watch_store_done(struct watch_store *s)
{
    json_decref(s->known);
    json_decref(s->fresh);
    *s = (struct watch_store){0};
}

int watch_store_begin(struct watch_store *s, struct drarun_error *err)
{
    json_t *fresh = json_object();
    if (!fresh || (s->fresh && json_object_update(s->known, s->fresh) < 0)) {
        json_decref(fresh);
        return error_set(err, ENOMEM, "out of memory");
    }
    json_decref(s->fresh);
    s->fresh = fresh;
    return 0;
}

void watch_store_end(struct watch_store *s, json_t **ret_gone)
{
    *ret_gone = s->known;
    s->known = s->fresh;
    s->fresh = NULL;
}

static enum watch_change compare(const json_t *before, const json_t *object)
{
    if (!before)
        return WATCH_CHANGE_NEW;
    if (strcmp(kube_uid(before), kube_uid(object)) != 0)
        return WATCH_CHANGE_REPLACED;
    return strcmp(kube_resource_version(before), kube_resource_version(object)) == 0
               ? WATCH_CHANGE_NONE
               : WATCH_CHANGE_CHANGED;
}

int watch_store_put(struct watch_store *s, json_t *object, json_t **ret_before,
                    struct drarun_error *err)
{
    char key[KEY_SIZE];
    json_t *into = s->fresh ? s->fresh : s->known;
    if (!make_key(key, kube_namespace(object), kube_name(object)))
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO,
                          "an object without a usable name: \"%s\"", kube_name(object));
    json_t *before = json_incref(watch_store_find(s, kube_namespace(object), kube_name(object)));
    enum watch_change change = compare(before, object);
    /* unchanged, what the owner may have kept a pointer to stays */
    if (json_object_set(into, key, change == WATCH_CHANGE_NONE ? before : object) < 0) {
        json_decref(before);
        return error_set(err, ENOMEM, "out of memory");
    }
    if (s->fresh)
        json_object_del(s->known, key);
    *ret_before = before;
    return (int)change;
}

json_t *watch_store_remove(struct watch_store *s, const json_t *object)
{
    char key[KEY_SIZE];
    if (!make_key(key, kube_namespace(object), kube_name(object)))
        return NULL;
    json_t *before = json_incref(watch_store_find(s, kube_namespace(object), kube_name(object)));
    json_object_del(s->known, key);
    if (s->fresh)
        json_object_del(s->fresh, key);
    return before;
}

void watch_store_swap(struct watch_store *s, json_t *other)
{
    char key[KEY_SIZE];
    if (!make_key(key, kube_namespace(other), kube_name(other)))
        return;
    json_t *map = s->fresh && json_object_get(s->fresh, key) ? s->fresh : s->known;
    if (json_object_get(map, key))
        json_object_set(map, key, other);
}

json_t *watch_store_find(const struct watch_store *s, const char *namespace_, const char *name)
{
    char key[KEY_SIZE];
    if (!make_key(key, namespace_, name))
        return NULL;
    json_t *found = s->fresh ? json_object_get(s->fresh, key) : NULL;
    return found ? found : json_object_get(s->known, key);
}

size_t watch_store_count(const struct watch_store *s)
{
    return json_object_size(s->known) + (s->fresh ? json_object_size(s->fresh) : 0);
}
