/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/kept_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/load.h"

void kept_file_done(struct kept_file *f)
{
    if (f->content.data)
        explicit_bzero(f->content.data, f->content.cap);
    buf_done(&f->content);
    free(f->path);
    *f = (struct kept_file){0};
}

bool kept_file_is_set(const struct kept_file *f)
{
    return f->path || f->content.len > 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int kept_file_refresh(struct kept_file *f, struct drarun_error *err)
{
    static const struct doc_limits limits = {.size = KEPT_FILE_MAX};
    struct buf content = BUF_INIT;
    struct stat now;
    if (!f->path)
        return 0;
    if (stat(f->path, &now) < 0)
        return error_kind(err, DRARUN_ERR_SPEC, errno, "%s: %s", f->path, strerror(errno));
    if (f->version && same_file(&now, &f->seen))
        return 0;
    int rc = doc_read(f->path, &limits, &content, err);
    if (rc == 0)
        buf_add(&content, "", 0); /* its NUL */
    if (rc == 0 && content.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && content.len > KEPT_FILE_MAX)
        rc = error_kind(err, DRARUN_ERR_SPEC, EFBIG, "%s: larger than %zu bytes", f->path,
                        KEPT_FILE_MAX);
    if (rc == 0 && content.len == 0)
        rc = error_kind(err, DRARUN_ERR_SPEC, ENODATA, "%s: is empty", f->path);
    if (rc < 0) {
        buf_done(&content);
        return rc;
    }
    if (f->content.data)
        explicit_bzero(f->content.data, f->content.cap);
    buf_done(&f->content);
    f->content = content;
    f->seen = now;
    f->version++;
    return 0;
}
