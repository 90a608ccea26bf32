/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/host_traffic.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* A counter that was set back counts from there. */
static double grown(uint64_t begun, uint64_t now)
{
    return (double)(now >= begun ? now - begun : now);
}

int host_traffic(const struct backend *backend, const struct table_rank *ranks, unsigned count,
                 const struct traffic *begun, struct result_traffic *ret_traffic,
                 struct drarun_error *err)
{
    struct traffic now;
    traffic_read(-1, &now);
    double mine[3] = {grown(begun->rdma, now.rdma), grown(begun->net, now.net), now.untold};
    cleanup_free double *all = calloc(count, sizeof mine);
    struct result_traffic total = {0};
    unsigned hosts = 0;
    double untold = 0;
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    int rc = backend->share(mine, all, sizeof mine, err);
    for (unsigned i = 0; rc == 0 && i < count; i++)
        if (table_is_first_of_host(ranks, i)) {
            total.rdma += all[3 * i];
            total.net += all[3 * i + 1];
            untold += all[3 * i + 2];
            hosts++;
        }
    /* devices that count nothing say nothing of what they moved */
    total.known = hosts > 1 && (total.rdma > 0 || untold <= 0);
    if (rc == 0)
        *ret_traffic = total;
    return rc;
}
