/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations from text, strictly: the whole text must be the number. */
#ifndef DRARUN_BASE_NUMBER_H
#define DRARUN_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

/* Decimal in [min, max]; the error names what and says the range. */
int number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret_value,
                 struct drarun_error *err);

/* A decimal number above 0 and at most `most`, of this unit ("GB/s", in the message). */
int amount_parse(const char *what, const char *text, double most, const char *unit,
                 double *ret_value, struct drarun_error *err);

#define DURATION_MAX_MS (10 * 365 * INT64_C(86400000))

/* "90s", "1h30m", "2d", "250ms": numbers, each with its unit, in milliseconds. False: it is none,
 * or beyond the maximum. "0" needs no unit. */
bool duration_read(const char *text, int64_t *ret_ms);
/* The same, or a bare number of seconds: "90", "0.5". */
int duration_parse(const char *what, const char *text, int64_t *ret_ms, struct drarun_error *err);

#endif
