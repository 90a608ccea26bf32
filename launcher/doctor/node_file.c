/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/topo/root.h"

bool node_text(int root, const char *path, size_t limit, struct buf *out)
{
    cleanup_close int fd = root_open(root, path, O_RDONLY | O_NONBLOCK, NULL);
    ssize_t n = 0;
    if (fd < 0)
        return false;
    buf_reset(out);
    while (out->len < limit && buf_reserve(out, 4096) &&
           (n = read(fd, out->data + out->len, 4096)) > 0) {
        out->len += (size_t)n;
        out->data[out->len] = '\0';
    }
    return n >= 0 && !out->failed && out->data;
}
