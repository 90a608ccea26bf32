/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities of Kubernetes in documents: of capacities, counters and resources. Pure. */
#ifndef DRARUN_DRA_QUANTITY_READ_H
#define DRARUN_DRA_QUANTITY_READ_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/cel/quantity.h"

#define QUANTITY_NUMBER 40 /* bytes of a number as text */

/* What documents write, a text or a number, which YAML leaves unquoted (cpu: 0.5), as text:
 * borrowed from the value, or in number. NULL: it is neither. */
const char *quantity_text(const json_t *value, char number[QUANTITY_NUMBER]);

/* A quantity as documents write it. -EINVAL names where. */
int quantity_read(const json_t *value, const char *where, struct cel_quantity *ret_quantity,
                  struct drarun_error *err);

#endif
