/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/strlist.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

void strlist_done(struct strlist *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct strlist)STRLIST_INIT;
}

static void add_take(struct strlist *l, char *text)
{
    if (text && l->count + 1 >= l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        char **items = realloc(l->items, cap * sizeof *items);
        if (items) {
            l->items = items;
            l->cap = cap;
        } else {
            free(text);
            text = NULL;
        }
    }
    if (!text) {
        l->failed = true;
        return;
    }
    l->items[l->count++] = text;
    l->items[l->count] = NULL;
}

void strlist_add(struct strlist *l, const char *text)
{
    add_take(l, strdup(text));
}

static char *format_text(const char *format, va_list args)
{
    char *text = NULL;
    return vasprintf(&text, format, args) < 0 ? NULL : text;
}

void strlist_addf(struct strlist *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_take(l, format_text(format, args));
    va_end(args);
}

void strlist_add_all(struct strlist *l, char *const items[])
{
    for (size_t i = 0; items && items[i]; i++)
        strlist_add(l, items[i]);
}

bool strlist_has(const struct strlist *l, const char *text)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i], text) == 0)
            return true;
    return false;
}

static char **env_find(const struct strlist *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return &env->items[i];
    return NULL;
}

const char *env_get(const struct strlist *env, const char *name)
{
    char **entry = env_find(env, name);
    return entry ? *entry + strlen(name) + 1 : NULL;
}

void env_set(struct strlist *env, const char *name, const char *value)
{
    char **entry = env_find(env, name);
    if (!entry) {
        strlist_addf(env, "%s=%s", name, value);
        return;
    }
    char *text = NULL;
    if (asprintf(&text, "%s=%s", name, value) < 0) {
        env->failed = true;
        return;
    }
    free(*entry);
    *entry = text;
}

void env_setf(struct strlist *env, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cleanup_free char *value = format_text(format, args);
    va_end(args);
    if (value)
        env_set(env, name, value);
    else
        env->failed = true;
}

void env_default(struct strlist *env, const char *name, const char *value)
{
    if (!env_find(env, name))
        env_set(env, name, value);
}

void strlist_remove(struct strlist *l, size_t i)
{
    free(l->items[i]);
    memmove(&l->items[i], &l->items[i + 1], (l->count - i) * sizeof *l->items);
    l->count--;
}

void env_unset(struct strlist *env, const char *name)
{
    char **entry = env_find(env, name);
    if (entry)
        strlist_remove(env, (size_t)(entry - env->items));
}

void env_unset_prefix(struct strlist *env, const char *prefix)
{
    size_t len = strlen(prefix);
    for (size_t i = env->count; i-- > 0;)
        if (strncmp(env->items[i], prefix, len) == 0)
            strlist_remove(env, i);
}
