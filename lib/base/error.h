/* SPDX-License-Identifier: Apache-2.0 */
/* Filling and reading struct drarun_error. No function here allocates, and none needs a lock. Its
 * text is plain (lib/base/plain.h), whatever is put into it, and UTF-8 also where it is cut. */
#ifndef DRARUN_BASE_ERROR_H
#define DRARUN_BASE_ERROR_H

#include <stdarg.h>
#include "drarun/error.h"

/* Fills err (which may be NULL) with an errno value and a text; returns -code, so that it can stand
 * in a return statement. A kind that was set before stays; error_set on a fresh error leaves
 * DRARUN_ERR_NONE, which exits like DRARUN_ERR_INFRASTRUCTURE. */
int error_set(struct drarun_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with the kind that decides the exit status. */
int error_kind(struct drarun_error *err, enum drarun_errkind kind, int code, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

#if defined(__clang_analyzer__) && !defined(DRARUN_BASE_ERROR_C)
/* For scripts/tidy, which does not look into error.c: these never return 0. */
#define error_set(...) (error_set(__VA_ARGS__), -1)
#define error_kind(...) (error_kind(__VA_ARGS__), -1)
#endif

/* Nothing has failed after all. err may be NULL. */
static inline void error_clear(struct drarun_error *err)
{
    if (err)
        *err = (struct drarun_error){0};
}

/* Puts "context: " before the text; returns -err->code. The text is cut at its end when it grows
 * too long. */
int error_prefix(struct drarun_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status for a kind (docs/design/000-names.md, the one table). */
int error_exit_status(enum drarun_errkind kind);

/* The word that reports use for a kind: "usage", "spec", ... */
const char *error_kind_name(enum drarun_errkind kind);
/* One sentence each without a full stop: what the status means, and what to do. NULL: of none. */
const char *error_kind_meaning(enum drarun_errkind kind);
const char *error_kind_cure(enum drarun_errkind kind);

#endif
