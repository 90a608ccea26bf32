/* SPDX-License-Identifier: Apache-2.0 */
/* Reading below a directory that stands for "/": absolute links start there again and ".." stops
 * there, as after chroot(2), so that a captured tree never shows this machine, nor a hostile one
 * its files. The kernel does it (openat2(2), RESOLVE_IN_ROOT), which takes one call where a walk
 * takes one for each component; where it cannot, a walk does. A tree that changes while it is read
 * may give an error, never a file outside it through a link of its last component. */
#ifndef DRARUN_TOPO_ROOT_H
#define DRARUN_TOPO_ROOT_H

#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/strlist.h"

#define ROOT_TEXT_MAX 4096u /* one sysfs file */

/* The link-free path of what path names, relative to the root ("sys/devices/..."; "." for the root
 * itself), put into ret_path, which is emptied first. -ELOOP after 40 links, -ENAMETOOLONG beyond
 * PATH_MAX, -ENOENT where a component is missing. */
int root_resolve(int root, const char *path, struct buf *ret_path, struct drarun_error *err);

/* A descriptor on what path names: flags as for openat, O_CLOEXEC and O_NOFOLLOW are added. */
int root_open(int root, const char *path, int flags, struct drarun_error *err);

/* One small regular file as text: cut at size - 1 bytes and at the first NUL, without its final
 * newlines. Returns its length or -errno; -EINVAL for what is no regular file. dir: any directory;
 * a link in the last component is refused (-ELOOP). No error text: most callers take a failure as
 * "not known". */
int attr_read(int dir, const char *name, char *ret_text, size_t size);
/* As attr_read, with links resolved in the root. */
int root_read(int root, const char *path, char *ret_text, size_t size);
/* A table, added to ret_text as it is: of procfs a read gives the lines of one page, however much
 * is asked for, so that root_read may see no more than the first ones. 0 or -errno; -EFBIG beyond
 * limit bytes, of which the first are read. */
int root_read_whole(int root, const char *path, size_t limit, struct buf *ret_text);

/* The names in a directory but . and .., in natural order (mlx5_2 before mlx5_10). At most
 * max; -E2BIG beyond. */
int root_list(int root, const char *path, size_t max, struct strlist *ret_names,
              struct drarun_error *err);

#endif
