/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/dir_entries.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

const char *dir_entries_next(struct dir_entries *entries, int *ret_rc)
{
    *ret_rc = 0;
    for (;;) {
        if (entries->at == entries->length) {
            entries->at = 0;
            entries->length = getdents64(entries->fd, entries->buffer, sizeof entries->buffer);
            if (entries->length < 0)
                *ret_rc = -errno;
            if (entries->length <= 0) {
                entries->length = 0;
                return NULL;
            }
        }
        const struct dirent64 *entry = (const void *)(entries->buffer + entries->at);
        entries->at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    }
}
