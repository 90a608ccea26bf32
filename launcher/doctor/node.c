/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static const node_check_fn checks[] = {
    check_kubelet,    check_cdi,       check_links,     check_port_errors, check_mtu,
    check_netns_mode, check_gpudirect, check_pcie,      check_iommu,       check_acs,
    check_memlock,    check_nofile,    check_hugepages, check_shm,
};

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
