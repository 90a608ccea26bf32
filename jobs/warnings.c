/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (warnings->count == warnings->cap) {
        size_t cap = warnings->cap ? 2 * warnings->cap : 16;
        struct warning *list = reallocarray(warnings->list, cap, sizeof *list);
        if (!list) {
            free(detail);
            warnings->failed = true;
            return;
        }
        warnings->list = list;
        warnings->cap = cap;
    }
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
