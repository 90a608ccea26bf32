/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/rdma_text.h"

/* Of one port; 0: not known. */
static double port_gbit(const char *root, const char *nic, unsigned port)
{
    char path[PATH_MAX], text[64] = "";
    if (strchr(nic, '/') || nic[0] == '.')
        return 0;
    snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/ports/%u/rate", root, nic, port);
    cleanup_file FILE *file = fopen(path, "re");
    if (!file || !fgets(text, sizeof text, file))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return rdma_rate_parse(text) / 1000.0;
}

/* "=mlx5_0,mlx5_1:1" names devices and their ports; without "=" those are prefixes, with "^" what
 * is left out: then nobody but NCCL knows. */
static void read_nics(const char *root, const char *list, struct place *to)
{
    char names[sizeof to->nics], *rest = NULL;
    double sum = 0;
    size_t length = 0;
    if (!list || list[0] != '=' || strlen(list) > sizeof names)
        return;
    snprintf(names, sizeof names, "%s", list + 1);
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(name, ':');
        unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 1;
        if (colon)
            *colon = '\0';
        double gbit = port_gbit(root, name, port);
        sum = gbit > 0 && sum >= 0 ? sum + gbit : -1;
        length += (size_t)snprintf(to->nics + length, sizeof to->nics - length, "%s%s",
                                   length ? "," : "", name);
    }
    const char *ranks = getenv("DRARUN_LOCAL_SIZE");
    unsigned long share = ranks ? strtoul(ranks, NULL, 10) : 0;
    if (sum > 0 && share > 0)
        to->nic_gbit = sum / (double)share;
}

void place_read(const char *root, struct place *ret_place)
{
    struct place place = {0};
    const char *node = getenv("DRARUN_NODE");
    snprintf(place.node, sizeof place.node, "%s", node ? node : "");
    read_nics(root, getenv("NCCL_IB_HCA"), &place);
    *ret_place = place;
}
