/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations from text, strictly: the whole text must be the number. */
#ifndef DRARUN_BASE_NUMBER_H
#define DRARUN_BASE_NUMBER_H

#include <stdint.h>
#include "drarun/error.h"

/* Decimal in [min, max]; the error names what and says the range. */
int number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret_value,
                 struct drarun_error *err);

/* A decimal number above 0 and at most `most`, of this unit ("GB/s", in the message). */
int amount_parse(const char *what, const char *text, double most, const char *unit,
                 double *ret_value, struct drarun_error *err);

/* "90", "90s", "1.5m", "2h", "250ms": milliseconds, at most 10 years. A bare number is seconds. */
int duration_parse(const char *what, const char *text, int64_t *ret_ms, struct drarun_error *err);

#endif
