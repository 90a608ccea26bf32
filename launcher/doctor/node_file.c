/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "launcher/doctor/node_checks.h"
#include "lib/topo/root.h"

bool node_text(int root, const char *path, size_t limit, struct buf *out)
{
    buf_reset(out);
    int rc = root_read_whole(root, path, limit, out);
    return rc == 0 || rc == -EFBIG;
}
