/* SPDX-License-Identifier: Apache-2.0 */
/* What a vector expects against what came out. */
#ifndef DRARUN_TESTS_COMPARE_H
#define DRARUN_TESTS_COMPARE_H

#include <jansson.h>
#include <stdbool.h>
#include "lib/base/strlist.h"

/* Adds "path: expected X, got Y" for each difference. Compared is all but ncclOracle, which is
 * information, and the words of warnings: of those the pairs of code and worker, with strict also
 * how often each comes. */
void compare_plans(const json_t *expected, const json_t *got, bool strict,
                   struct strlist *differences);

#endif
