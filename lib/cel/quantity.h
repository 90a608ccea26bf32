/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as Kubernetes writes them ("1.5Gi", "200k", "5e3"), after apimachinery's
 * pkg/api/resource. Up to 38 significant digits; what needs more is refused. */
#ifndef DRARUN_CEL_QUANTITY_H
#define DRARUN_CEL_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cel_quantity {
    __int128 digits; /* the value is digits * 10^scale */
    int64_t scale;
    bool computed; /* by add or sub */
    bool wide;     /* upstream keeps it outside of int64, where it is never an integer */
};

/* 0; -EINVAL: not a quantity; -ERANGE: one, but with more digits than we hold. */
int cel_quantity_parse(const char *text, size_t len, struct cel_quantity *ret_quantity);
int cel_quantity_compare(const struct cel_quantity *a, const struct cel_quantity *b);
int cel_quantity_sign(const struct cel_quantity *quantity);
/* -ERANGE as above. */
int cel_quantity_add(const struct cel_quantity *a, const struct cel_quantity *b,
                     struct cel_quantity *ret_sum);
int cel_quantity_sub(const struct cel_quantity *a, const struct cel_quantity *b,
                     struct cel_quantity *ret_difference);
bool cel_quantity_integer(const struct cel_quantity *quantity, int64_t *ret_integer);
double cel_quantity_real(const struct cel_quantity *quantity);

#endif
