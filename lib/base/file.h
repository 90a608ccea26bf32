/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole reads with a limit, atomic writes, removing a tree. */
#ifndef DRARUN_BASE_FILE_H
#define DRARUN_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* Appends the file's content to out; -EFBIG when it is larger than limit bytes. dirfd as for
 * openat; links in the last component are not followed. */
int file_read(int dirfd, const char *path, size_t limit, struct buf *out, struct drarun_error *err);
/* The same for a file that the user has named, which may be a link, as those of a mounted ConfigMap
 * are, or a pipe, as of <(...). */
int file_read_named(const char *path, size_t limit, struct buf *out, struct drarun_error *err);
/* The same for an open file, from where its descriptor stands. path: for messages. */
int fd_read_all(int fd, const char *path, size_t limit, struct buf *out, struct drarun_error *err);

/* Opens a regular file for writing where others may have put something else: a link is not followed
 * (-ELOOP), and a pipe does not hold us, now or later (-ENXIO, as for all that is no regular file).
 * flags: further ones. */
int file_open_regular(int dirfd, const char *path, int flags);
/* Why it failed, for messages; static. */
const char *file_open_regular_why(int code);

/* Writes all of it, retrying short writes and EINTR; the descriptor must block. */
int fd_write_all(int fd, const void *data, size_t len);
/* A descriptor of memory that holds the data, at its begin, close-on-exec; -errno. name: seen in
 * /proc. */
int fd_of_data(const char *name, const void *data, size_t len);

enum file_after {                          /* a power cut, path has .. */
                  FILE_AFTER_ANYTHING = 1, /* nothing is synced: on a tmpfs, which is empty then */
                  FILE_AFTER_WHOLE, /* the old content or the new: the file is synced, not its
                                       directory */
                  FILE_AFTER_NEW,
};
/* Writes a temporary file beside path and renames it over path, so that a reader finds the
 * old content or the new, also after a kill. */
int file_replace(const char *path, const void *data, size_t len, unsigned mode,
                 enum file_after after, struct drarun_error *err);
/* As file_replace, FILE_AFTER_NEW. */
int file_write_atomic(const char *path, const void *data, size_t len, unsigned mode,
                      struct drarun_error *err);

/* Whether what the user has named is a file, or can become one: neither what stands for an open
 * descriptor, as /dev/stdout, nor a device, nor a pipe of this user. */
bool file_is_plain(const char *path);
/* Writes such a file as file_write_atomic does, with the mode that the umask of this process of one
 * thread says; anything else is written to as it is, behind what it holds, a pipe only while
 * somebody reads it (-ENXIO, -EPIPE, -ETIMEDOUT). */
int file_write_named(const char *path, const void *data, size_t len, struct drarun_error *err);

/* Makes path a copy of the file from, as file_write_atomic. Takes no memory to speak of, however
 * large the file is. A link in the last component of from is not followed. */
int file_copy(const char *from, const char *path, unsigned mode, struct drarun_error *err);
/* Whether two files have the same content; false too when one cannot be read. */
bool file_same(const char *path, const char *other);

/* Removes path and the temporary files that a kill of file_write_atomic left beside it. Missing is
 * success. */
int file_remove_atomic(const char *path, struct drarun_error *err);

/* Makes a directory of our own (0700) below $TMPDIR, or /tmp where that is no absolute path:
 * "/tmp/NAME-aB3xYz" into ret_path. -ENAMETOOLONG: it does not fit. */
int dir_make_temporary(const char *name, char *ret_path, size_t size, struct drarun_error *err);

/* Makes a directory and those above it that are missing; one that is there is left as it is. */
int dirs_make(const char *path, unsigned mode, struct drarun_error *err);
/* Whether a directory, which is no link, is ours, so that nobody else can put anything into it:
 * -EPERM, with the cure, where it is not. */
int dir_check_own(const char *path, struct drarun_error *err);
/* Those above path. */
int dirs_make_parents(const char *path, unsigned mode, struct drarun_error *err);

/* Removes name under dirfd with all below it, never following a link and never leaving the file
 * system it is on. Missing is success. Returns the first error, having removed what it could; what
 * it could not may have been moved up. Of any depth: takes three descriptors, and no stack to speak
 * of. */
int tree_remove(int dirfd, const char *name);

/* O_CLOEXEC and O_NONBLOCK on an existing descriptor. */
int fd_set_nonblock(int fd);
int fd_set_cloexec(int fd);

#endif
