/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/seen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/array.h"
#include "lib/base/error.h"
#include "lib/base/strlist.h"
#include "plugin/prepare/checkpoint.h"

void seen_done(struct seen *seen)
{
    free(seen->list);
    *seen = (struct seen){0};
}

static struct seen_file *find(const struct seen *seen, const char *uid)
{
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->list[i].uid, uid) == 0)
            return &seen->list[i];
    return NULL;
}

static struct seen_file *add(struct seen *seen, const char *uid)
{
    struct seen_file *list = array_room(seen->list, seen->count, &seen->cap, sizeof *list);
    if (!list)
        return NULL;
    seen->list = list;
    struct seen_file *file = &seen->list[seen->count++];
    *file = (struct seen_file){0};
    snprintf(file->uid, sizeof file->uid, "%s", uid);
    return file;
}

static int look_at(struct seen *seen, const char *dir, const char *uid, seen_fn fn, void *arg,
                   struct drarun_error *err)
{
    char path[512];
    struct stat st;
    checkpoint_path(dir, uid, path, sizeof path);
    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_set(err, errno, "%s: %s", path, strerror(errno));
    int64_t changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    struct seen_file *file = find(seen, uid);
    bool same = file && file->inode == st.st_ino && file->changed_ns == changed_ns;
    if (!file && !(file = add(seen, uid)))
        return error_set(err, ENOMEM, "out of memory");
    file->there = true;
    if (same)
        return 0;
    file->inode = 0; /* until it has been taken up */
    int rc = fn(arg, uid, err);
    if (rc == 0) {
        file->inode = st.st_ino;
        file->changed_ns = changed_ns;
    }
    return rc;
}

int seen_look(struct seen *seen, const char *dir, seen_fn fn, void *arg, struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist uids = STRLIST_INIT;
    int rc = checkpoint_list(dir, &uids, err);
    for (size_t i = 0; i < seen->count; i++)
        seen->list[i].there = false;
    for (size_t i = 0; rc == 0 && i < uids.count; i++)
        rc = look_at(seen, dir, uids.items[i], fn, arg, err);
    for (size_t i = 0; rc == 0 && i < seen->count;) {
        if (seen->list[i].there) {
            i++;
            continue;
        }
        rc = fn(arg, seen->list[i].uid, err);
        if (rc == 0)
            seen->list[i] = seen->list[--seen->count];
    }
    return rc;
}
