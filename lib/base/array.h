/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by one element at a time. */
#ifndef DRARUN_BASE_ARRAY_H
#define DRARUN_BASE_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* A list of count elements, each of that size, with room for one more: the list as it is, or a
 * larger one in its place, for *cap elements. NULL: no memory; the list and *cap stay. */
static inline void *array_room(void *list, size_t count, size_t *cap, size_t size)
{
    size_t larger = *cap ? 2 * *cap : 16;
    if (count < *cap)
        return list;
    void *grown = larger > SIZE_MAX / size ? NULL : realloc(list, larger * size);
    if (grown)
        *cap = larger;
    return grown;
}

#endif
