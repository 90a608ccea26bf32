/* SPDX-License-Identifier: Apache-2.0 */
/* Options as callers of the public API give them: structs that begin with their size. */
#ifndef DRARUN_LAUNCHER_API_OPTIONS_H
#define DRARUN_LAUNCHER_API_OPTIONS_H

#include <stddef.h>
#include "drarun/error.h"

/* Fills ret_options, of our size, with what the caller's struct (NULL: nothing) has; the rest is
 * zero. -E2BIG, kind DRARUN_ERR_USAGE: it has something that we do not know. */
int api_options(const void *given, void *ret_options, size_t size, struct drarun_error *err);

#endif
