/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/warnings/warnings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/topo/cpus.h"

static const char *const names[WARNING_COUNT] = {[WARNING_NONE] = "NONE",
#define WARNING_NAME(name) [WARN_##name] = #name,
                                                 WARNING_CODES(WARNING_NAME)
#undef WARNING_NAME
};

const char *warning_name(enum warning_code code)
{
    return code < WARNING_COUNT ? names[code] : "?";
}

void warnings_add(struct warnings *warnings, enum warning_code code, int32_t worker,
                  const char *format, ...)
{
    char *detail = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&detail, format, args);
    va_end(args);
    if (n < 0) {
        warnings->failed = true;
        return;
    }
    struct warning *list =
        array_room(warnings->list, warnings->count, &warnings->cap, sizeof *list);
    if (!list) {
        free(detail);
        warnings->failed = true;
        return;
    }
    warnings->list = list;
    warnings->list[warnings->count++] = (struct warning){code, worker, detail};
}

static int compare(const void *a, const void *b)
{
    const struct warning *x = a, *y = b;
    int order = strcmp(names[x->code], names[y->code]);
    if (order == 0)
        order = (x->worker > y->worker) - (x->worker < y->worker);
    return order != 0 ? order : strcmp(x->detail, y->detail);
}

void warnings_sort(struct warnings *warnings)
{
    if (warnings->count > 1)
        qsort(warnings->list, warnings->count, sizeof *warnings->list, compare);
}

static int compare_words(const void *a, const void *b)
{
    const struct warning *x = a, *y = b;
    int order = strcmp(names[x->code], names[y->code]);
    if (order == 0)
        order = strcmp(x->detail, y->detail);
    return order != 0 ? order : (x->worker > y->worker) - (x->worker < y->worker);
}

static bool same_words(const struct warning *a, const struct warning *b)
{
    return a->code == b->code && strcmp(a->detail, b->detail) == 0;
}

/* list: of one wording, by worker. */
static int say_wording(const struct warning *list, size_t count, warning_fn fn, void *arg)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    cleanup_free uint32_t *workers = calloc(count, sizeof *workers);
    size_t some = 0;
    if (!workers)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (list[i].worker != WORKER_NONE && (i == 0 || list[i].worker != list[i - 1].worker))
            workers[some++] = (uint32_t)list[i].worker;
    if (some > 0) {
        buf_add_str(&text, some > 1 ? "workers " : "worker ");
        cpulist_format(workers, some, &text);
    }
    if (text.failed)
        return -ENOMEM;
    fn(&list[0], text.data ? text.data : "", arg);
    return 0;
}

int warnings_each_wording(const struct warnings *warnings, warning_fn fn, void *arg)
{
    size_t count = warnings->count;
    cleanup_free struct warning *list = calloc(count + 1, sizeof *list);
    int rc = list ? 0 : -ENOMEM;
    if (list && count > 0) {
        memcpy(list, warnings->list, count * sizeof *list);
        qsort(list, count, sizeof *list, compare_words);
    }
    for (size_t i = 0, n; rc == 0 && i < count; i += n) {
        for (n = 1; i + n < count && same_words(&list[i], &list[i + n]);)
            n++;
        rc = say_wording(&list[i], n, fn, arg);
    }
    return rc;
}

bool warnings_have(const struct warnings *warnings, enum warning_code code, int32_t worker)
{
    for (size_t i = 0; i < warnings->count; i++)
        if (warnings->list[i].code == code && warnings->list[i].worker == worker)
            return true;
    return false;
}

void warnings_done(struct warnings *warnings)
{
    for (size_t i = 0; i < warnings->count; i++)
        free(warnings->list[i].detail);
    free(warnings->list);
    *warnings = (struct warnings){0};
}
