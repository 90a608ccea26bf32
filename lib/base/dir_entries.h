/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a directory without opendir, which allocates 32 KiB: what cleans up must not need
 * memory. */
#ifndef DRARUN_BASE_DIR_ENTRIES_H
#define DRARUN_BASE_DIR_ENTRIES_H

#include <stdalign.h>
#include <stdint.h>

struct dir_entries {
    int fd; /* the caller's, at the directory's beginning */
    long at, length;
    alignas(uint64_t) char buffer[4096];
};

/* Without "." and ".."; valid until the next call. NULL with *ret_rc 0 at the end, or with -errno.
 */
const char *dir_entries_next(struct dir_entries *entries, int *ret_rc);

#endif
