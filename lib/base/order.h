/* SPDX-License-Identifier: Apache-2.0 */
/* The usual orders of qsort. Pure. */
#ifndef DRARUN_BASE_ORDER_H
#define DRARUN_BASE_ORDER_H

#include <string.h>

/* Of double, from the least. */
static inline int order_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of char *, as strcmp. */
static inline int order_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

#endif
