/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities of Kubernetes in documents: of capacities, counters and resources. Pure. */
#ifndef DRARUN_DRA_QUANTITY_READ_H
#define DRARUN_DRA_QUANTITY_READ_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/cel/quantity.h"

/* A quantity as documents write it: text or whole number. -EINVAL names where. */
int quantity_read(const json_t *value, const char *where, struct cel_quantity *ret_quantity,
                  struct drarun_error *err);

#endif
