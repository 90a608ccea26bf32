/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/nccl_hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/number.h"

static int check_problems(const struct nccl_hello *all, unsigned ranks, struct drarun_error *err)
{
    unsigned first = ranks, count = 0;
    char others[48] = "";
    for (unsigned i = 0; i < ranks; i++) {
        first = all[i].code && first == ranks ? i : first;
        count += all[i].code != 0;
    }
    if (count == 0)
        return 0;
    if (count == ranks && ranks > 1)
        snprintf(others, sizeof others, " (and all other ranks)");
    else if (count > 1)
        snprintf(others, sizeof others, " (and %u more rank%s)", count - 1, count > 2 ? "s" : "");
    return error_set(err, all[first].code, "rank %u on %s%s: %s", first, all[first].host, others,
                     all[first].problem);
}

static int check_versions(const struct nccl_hello *all, unsigned ranks, struct drarun_error *err)
{
    char mine[24], theirs[24];
    unsigned other = 0, count = 0;
    for (unsigned i = ranks; i-- > 1;) {
        other = all[i].nccl != all[0].nccl ? i : other;
        count += all[i].nccl != all[0].nccl;
    }
    if (other == 0)
        return 0;
    nccl_version_text(all[0].nccl, mine, sizeof mine);
    nccl_version_text(all[other].nccl, theirs, sizeof theirs);
    return error_set(err, EPROTO,
                     "ranks have different versions of NCCL: rank 0 on %s has %s, rank %u on %s "
                     "has %s (%u of %u differ from rank 0): use one image for all",
                     all[0].host, mine, other, all[other].host, theirs, count, ranks);
}

static int check_devices(const struct nccl_hello *all, unsigned ranks, struct drarun_error *err)
{
    for (unsigned i = 1; i < ranks; i++)
        for (unsigned j = 0; j < i; j++)
            if (strcmp(all[i].address, all[j].address) == 0 &&
                strcmp(all[i].host, all[j].host) == 0)
                return error_set(err, EBUSY,
                                 "ranks %u and %u both have GPU %s of %s: NCCL wants one for each "
                                 "rank; start as many ranks as there are GPUs",
                                 j, i, all[i].address, all[i].host);
    return 0;
}

int nccl_hello_check(const struct nccl_hello *all, unsigned ranks, struct drarun_error *err)
{
    int rc = check_problems(all, ranks, err);
    rc = rc < 0 ? rc : check_versions(all, ranks, err);
    return rc < 0 ? rc : check_devices(all, ranks, err);
}

int nccl_hello_device(unsigned local_rank, int devices, const char *named, int *ret,
                      struct drarun_error *err)
{
    int64_t device = devices == 1 ? 0 : local_rank; /* one alone: the pod's or the mask's own */
    int rc = named ? number_parse("NCCL_TESTS_DEVICE", named, 0, devices - 1, &device, err) : 0;
    if (rc < 0)
        return rc;
    if (device >= devices)
        return error_set(err, EINVAL,
                         "no GPU is left for it: the node shows %d, and this is rank %u of it, "
                         "from 0; start fewer ranks a node",
                         devices, local_rank);
    *ret = (int)device;
    return 0;
}
