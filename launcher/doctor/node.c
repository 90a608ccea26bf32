/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/root.h"

static const node_check_fn checks[] = {
    check_kubelet,    check_cdi,       check_links,     check_port_errors, check_mtu,
    check_netns_mode, check_gpudirect, check_pcie,      check_iommu,       check_acs,
    check_memlock,    check_nofile,    check_hugepages, check_shm,
};

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

int node_check(int root, struct findings *findings, struct drarun_error *err)
{
    struct topo_host host;
    int rc = host_read(root, &host, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        checks[i](root, &host, findings);
    host_done(&host);
    return findings->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}
