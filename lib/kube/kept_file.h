/* SPDX-License-Identifier: Apache-2.0 */
/* A small file whose content is kept and read again when it has changed: tokens and certificates
 * that rotate (kubelet replaces a link for a whole directory of them). */
#ifndef DRARUN_KUBE_KEPT_FILE_H
#define DRARUN_KUBE_KEPT_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define KEPT_FILE_MAX ((size_t)1 << 20)

struct kept_file {
    char *path; /* NULL: the content never changes */
    struct buf content;
    struct stat seen;
    unsigned version; /* goes up with each new content */
};

void kept_file_done(struct kept_file *f); /* wipes the content */
bool kept_file_is_set(const struct kept_file *f);
/* Reads it if it is new. On failure the old content stays. */
int kept_file_refresh(struct kept_file *f, struct drarun_error *err);

#endif
