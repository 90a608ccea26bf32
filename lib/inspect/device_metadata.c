/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/device_metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/topo/root.h"

#define FOLDER_MAX 256u /* entries of a folder */
#define FOLDERS_MAX 1024u
#define FILES_MAX 256u             /* in all; a claim has 32 devices at most */
#define TEXT_MAX ((size_t)4 << 20) /* in all: an agent sends them in one frame */

struct reading {
    int folder; /* METADATA_FOLDER */
    json_t *texts, *errors;
    size_t files, folders, bytes;
};

static void say(struct reading *r, const char *path, const char *what)
{
    json_t *text = json_sprintf("/" METADATA_FOLDER "/%s: %s", path, what);
    /* a name need not be UTF-8 */
    json_array_append_new(r->errors,
                          text ? text : json_sprintf("/" METADATA_FOLDER ": a file: %s", what));
}

/* ---- one file ---- */

/* One byte more than the limit is enough to know. */
static int read_text(int fd, struct buf *text)
{
    while (text->len <= METADATA_SIZE_MAX) {
        if (!buf_reserve(text, 4096))
            return -ENOMEM;
        ssize_t n = read(fd, text->data + text->len, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        text->len += (size_t)n;
    }
    return -EFBIG;
}

static int open_file(int folder, const char *path)
{
    struct stat st;
    struct drarun_error err = {0};
    cleanup_close int fd = root_open(folder, path, O_RDONLY | O_NONBLOCK, &err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? take_fd(&fd) : -ENOTSUP;
}

static const char *words(int code)
{
    return code == EFBIG     ? "larger than 1 MiB"
           : code == ENOTSUP ? "no regular file"
                             : strerror(code);
}

/* JSON knows neither another encoding nor, on its way to the launcher, a zero byte. */
static void keep(struct reading *r, const char *path, const struct buf *text)
{
    const char *data = text->data ? text->data : "";
    json_t *value = memchr(data, 0, text->len) ? NULL : json_stringn(data, text->len);
    if (!value)
        say(r, path, "no UTF-8 text");
    else if (r->bytes + text->len > TEXT_MAX)
        say(r, path, "not read: the files are larger than 4 MiB together");
    else if (json_object_set(r->texts, path, value) == 0)
        r->bytes += text->len;
    json_decref(value);
}

static void read_file(struct reading *r, const char *path, bool may_lack)
{
    struct buf text = BUF_INIT;
    cleanup_close int fd = open_file(r->folder, path);
    int rc = fd < 0 ? fd : read_text(fd, &text);
    r->files++;
    if (rc == 0)
        keep(r, path, &text);
    else if (!(may_lack && rc == -ENOENT))
        say(r, path, words(-rc));
    buf_done(&text);
}

/* ---- which ---- */

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), other = strlen(end);
    return length > other && strcmp(text + length - other, end) == 0;
}

static void read_found(struct reading *r, const char *path)
{
    if (!ends_in(path, METADATA_SUFFIX))
        return;
    if (r->files < FILES_MAX)
        read_file(r, path, false);
    else if (r->files++ == FILES_MAX)
        say(r, path, "not read, nor what follows: more than 256 files");
}

/* depth: folders that are still between this one and the files. */
static void read_folder(struct reading *r, const char *path, unsigned depth)
{
    struct drarun_error err = {0};
    struct strlist names = STRLIST_INIT;
    if (r->folders++ >= FOLDERS_MAX) {
        if (r->folders == FOLDERS_MAX + 1)
            say(r, path, "not read, nor what follows: more than 1024 folders");
        return;
    }
    int rc = root_list(r->folder, path, FOLDER_MAX, &names, &err);
    if (rc < 0 && rc != -ENOENT)
        say(r, path, rc == -E2BIG ? "more than 256 entries; none is read" : strerror(-rc));
    for (size_t i = 0; rc == 0 && i < names.count && r->files <= FILES_MAX; i++) {
        struct strlist below = STRLIST_INIT;
        strlist_addf(&below, "%s/%s", path, names.items[i]);
        if (below.count == 1 && depth > 0)
            read_folder(r, below.items[0], depth - 1);
        else if (below.count == 1)
            read_found(r, below.items[0]);
        strlist_done(&below);
    }
    strlist_done(&names);
}

int device_metadata_read(int root, const struct strlist *paths, json_t *probe)
{
    struct reading r = {.folder = -1};
    struct drarun_error why = {0};
    cleanup_close int folder = root_open(root, METADATA_FOLDER, O_PATH | O_DIRECTORY, &why);
    if (folder < 0)
        return 0;
    r.folder = folder;
    r.texts = json_object();
    r.errors = json_array();
    for (size_t i = 0; paths && i < paths->count; i++)
        read_file(&r, paths->items[i], true);
    if (!paths) {
        read_folder(&r, "resourceclaims", 2);
        read_folder(&r, "resourceclaimtemplates", 2);
    }
    int texts = json_object_set_new(probe, "metadataFiles", r.texts);
    int errors = json_object_set_new(probe, "metadataErrors", r.errors);
    return texts < 0 || errors < 0 ? -ENOMEM : 0;
}
