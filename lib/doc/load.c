/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/error.h"

#define CHUNK ((size_t)64 << 10)

/* What the file has, so that a small one that is kept takes no more than it needs; the one byte
 * more finds its end. */
static size_t first_chunk(int fd)
{
    struct stat st;
    bool known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    return known && (size_t)st.st_size < CHUNK ? (size_t)st.st_size + 1 : CHUNK;
}

/* One byte more than the limit is enough to know. */
static int read_all(int fd, size_t limit, struct buf *text)
{
    if (!buf_reserve(text, first_chunk(fd)))
        return -ENOMEM;
    while (text->len <= limit) {
        if (text->cap - text->len == 1 && !buf_reserve(text, CHUNK)) /* its NUL has its place */
            return -ENOMEM;
        ssize_t n = read(fd, text->data + text->len, text->cap - text->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        text->len += (size_t)n;
    }
    return 0;
}

static const char *shown(const char *path)
{
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

int doc_read(const char *path, const struct doc_limits *limits, struct buf *text,
             struct drarun_error *err)
{
    bool input = strcmp(path, "-") == 0;
    cleanup_close int opened = input ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (!input && opened < 0)
        return error_kind(err, DRARUN_ERR_SPEC, errno, "%s: cannot be opened: %s", path,
                          strerror(errno));
    limits = limits ? limits : &doc_limits_default;
    int rc = read_all(input ? STDIN_FILENO : opened, limits->size, text);
    return rc < 0 ? error_kind(err, DRARUN_ERR_SPEC, -rc, "%s: cannot be read: %s", shown(path),
                               strerror(-rc))
                  : 0;
}

int doc_load(const char *path, const struct doc_limits *limits, struct doc **ret_doc,
             struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    int rc = doc_read(path, limits, &text, err);
    if (rc == 0)
        rc = doc_parse(shown(path), text.data ? text.data : "", text.len, DOC_FORMAT_GUESS, limits,
                       ret_doc, err);
    buf_done(&text);
    return rc;
}

int doc_load_one(const char *path, struct doc **ret_doc, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    int rc = doc_load(path, NULL, &doc, err);
    if (rc < 0)
        return rc;
    if (doc_count(doc) != 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected one document, got %zu",
                          shown(path), doc_count(doc));
    *ret_doc = TAKE_PTR(doc);
    return 0;
}
