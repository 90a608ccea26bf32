/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a watch knows, by namespace and name; and, while all is read again, which of
 * them have been seen again. Pure. Private to lib/kube. */
#ifndef DRARUN_KUBE_WATCH_STORE_H
#define DRARUN_KUBE_WATCH_STORE_H

#include <jansson.h>
#include <stddef.h>
#include "drarun/error.h"

struct watch_store {
    json_t *known; /* key: object */
    json_t *fresh; /* seen since watch_store_begin; NULL: nothing is being read again */
};

enum watch_change {
    WATCH_CHANGE_NONE = 0, /* the same resourceVersion */
    WATCH_CHANGE_NEW,
    WATCH_CHANGE_CHANGED,
    WATCH_CHANGE_REPLACED, /* another object of the same name: the old one was deleted */
};

int watch_store_init(struct watch_store *s, struct drarun_error *err);
void watch_store_done(struct watch_store *s);

/* From now on only what is put counts as there. May be called again before the end. */
int watch_store_begin(struct watch_store *s, struct drarun_error *err);
/* *ret_gone: a new reference to the objects by key that were not seen again. */
void watch_store_end(struct watch_store *s, json_t **ret_gone);

/* A change, or -errno. The store takes a reference to object; *ret_before is a new reference to
 * what it replaced, or NULL. */
int watch_store_put(struct watch_store *s, json_t *object, json_t **ret_before,
                    struct drarun_error *err);
/* A new reference to what was known by the object's name; NULL when nothing was. */
json_t *watch_store_remove(struct watch_store *s, const json_t *object);
/* Keeps other instead of what is known by its name. */
void watch_store_swap(struct watch_store *s, json_t *other);

json_t *watch_store_find(const struct watch_store *s, const char *namespace_, const char *name);
size_t watch_store_count(const struct watch_store *s);

#endif
