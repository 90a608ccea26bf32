/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and reductions under the names of nccl-tests, and values that survive a reduction
 * over any number of ranks exactly. Pure. */
#ifndef DRARUN_BENCH_ELEMENT_H
#define DRARUN_BENCH_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum element {
    ELEMENT_INT8,
    ELEMENT_UINT8,
    ELEMENT_INT32,
    ELEMENT_UINT32,
    ELEMENT_INT64,
    ELEMENT_UINT64,
    ELEMENT_HALF,
    ELEMENT_FLOAT,
    ELEMENT_DOUBLE,
    ELEMENT_BFLOAT16,
    ELEMENT_F8E4M3,
    ELEMENT_F8E5M2,
    ELEMENTS
};

enum reduction {
    REDUCE_SUM,
    REDUCE_PROD,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_AVG,
    REDUCE_MULSUM,
    REDUCTIONS
};

const char *element_name(enum element type);
size_t element_size(enum element type);                     /* bytes */
int element_find(const char *name, enum element *ret_type); /* -ENOENT */
const char *reduction_name(enum reduction op);
int reduction_find(const char *name, enum reduction *ret_op); /* -ENOENT */

/* One element at memory that need not be aligned. What the type cannot hold is cut as a cast of C
 * cuts it, or rounded to nearest even. */
void element_store(enum element type, void *to, double value);
double element_load(enum element type, const void *from);

/* a op b, as one step of a reduction; AVG and MULSUM are sums here. */
void element_reduce(enum element type, enum reduction op, void *into, const void *from,
                    size_t count);

/* The largest whole number up to which the type holds all of them. */
double element_whole_max(enum element type);

#endif
