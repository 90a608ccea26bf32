/* SPDX-License-Identifier: Apache-2.0 */
/* A NULL-terminated list of strings that it owns: argv, and environments of "NAME=VALUE". */
#ifndef DRARUN_BASE_STRLIST_H
#define DRARUN_BASE_STRLIST_H

#include <stdbool.h>
#include <stddef.h>

struct strlist {
    char **items; /* NULL-terminated whenever it is not NULL */
    size_t count;
    size_t cap;
    bool failed; /* an allocation failed: the list is incomplete */
};

#define STRLIST_INIT                                                                               \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

void strlist_done(struct strlist *l);
void strlist_add(struct strlist *l, const char *text);
void strlist_addf(struct strlist *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strlist_add_all(struct strlist *l, char *const items[]); /* items may be NULL */
void strlist_remove(struct strlist *l, size_t i);             /* i < count */
/* For those who only read; NULL when nothing was ever added. */
static inline const char *const *strlist_items(const struct strlist *l)
{
    return (const char *const *)l->items;
}
bool strlist_has(const struct strlist *l, const char *text);

/* For environments. The value stays valid until the entry is set or unset again. */
const char *env_get(const struct strlist *env, const char *name);
void env_set(struct strlist *env, const char *name, const char *value);
void env_setf(struct strlist *env, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As env_set, unless the name is there already. */
void env_default(struct strlist *env, const char *name, const char *value);
void env_unset(struct strlist *env, const char *name);
/* Drops every variable whose name starts with prefix. */
void env_unset_prefix(struct strlist *env, const char *prefix);

#endif
