/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a: names from names, tables, and whether bytes are as they were written. Any change of one
 * byte changes it. Not for what an adversary chooses. Source: draft-eastlake-fnv. Pure. */
#ifndef DRARUN_BASE_FNV_H
#define DRARUN_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t fnv1a_32(const void *data, size_t len)
{
    uint32_t hash = 2166136261u;
    for (const unsigned char *p = data; len > 0; p++, len--)
        hash = (hash ^ *p) * 16777619u;
    return hash;
}

static inline uint64_t fnv1a_64(const void *data, size_t len)
{
    uint64_t hash = 14695981039346656037u;
    for (const unsigned char *p = data; len > 0; p++, len--)
        hash = (hash ^ *p) * 1099511628211u;
    return hash;
}

#endif
