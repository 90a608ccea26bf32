/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/host_errors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/nvml/gpu_errors.h"

#define ROSE_MAX 16u /* of a host: more say no more */

struct told { /* by one rank to all */
    bool looked;
    unsigned ports, interfaces, gpus, links, rose_count;
    char why_not[160];
    char rose[ROSE_MAX][144];
};

static void look(struct host_errors *errors, struct error_counts *counts, struct told *ret_told)
{
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ret_told->ports = error_counts_of_ports(root, counts);
    ret_told->interfaces = error_counts_of_interfaces(root, counts);
    if (errors->asks)
        ret_told->gpus = gpu_errors_add(&errors->nvml, counts, &ret_told->links);
}

void host_errors_begin(struct host_errors *errors, const struct table_rank *ranks, unsigned rank)
{
    struct drarun_error why = {0};
    struct told unused = {0};
    *errors = (struct host_errors){.looks = table_is_first_of_host(ranks, rank)};
    if (!errors->looks)
        return;
    errors->asks = nvml_library_open(NULL, &errors->nvml, &why) == 0;
    if (why.code == ENOENT)
        snprintf(errors->why_not, sizeof errors->why_not, "no NVML in the image");
    else
        snprintf(errors->why_not, sizeof errors->why_not, "%.150s", why.text);
    look(errors, &errors->begun, &unused);
}

static void compare(struct host_errors *errors, struct told *ret_told)
{
    CLEANUP(error_counts_done) struct error_counts now = {0};
    CLEANUP(strlist_done) struct strlist rose = STRLIST_INIT;
    look(errors, &now, ret_told);
    error_counts_rose(&errors->begun, &now, &rose);
    ret_told->looked = !now.failed && !errors->begun.failed && !rose.failed;
    for (; ret_told->rose_count < rose.count && ret_told->rose_count < ROSE_MAX;
         ret_told->rose_count++)
        snprintf(ret_told->rose[ret_told->rose_count], sizeof ret_told->rose[0], "%s",
                 rose.items[ret_told->rose_count]);
    memcpy(ret_told->why_not, errors->why_not, sizeof ret_told->why_not);
}

/* Of all hosts together. */
static void put(const struct told *all, const struct table_rank *ranks, unsigned count,
                struct result_faults *faults)
{
    struct told sum = {.looked = true};
    for (unsigned i = 0; i < count; i++) {
        const struct told *told = &all[i];
        const char *node = ranks[i].place.node;
        if (!table_is_first_of_host(ranks, i))
            continue;
        sum.looked = sum.looked && told->looked;
        sum.ports += told->ports;
        sum.interfaces += told->interfaces;
        sum.gpus += told->gpus;
        sum.links += told->links;
        if (told->why_not[0] && !sum.why_not[0])
            memcpy(sum.why_not, told->why_not, sizeof sum.why_not);
        for (unsigned k = 0; k < told->rose_count; k++)
            strlist_addf(&faults->rose, "%s: %s", node[0] ? node : ranks[i].host, told->rose[k]);
    }
    faults->known = sum.looked;
    snprintf(faults->looked, sizeof faults->looked,
             "RDMA ports: %u, interfaces: %u, GPUs: %u, NVLinks: %u", sum.ports, sum.interfaces,
             sum.gpus, sum.links);
    snprintf(faults->not_looked, sizeof faults->not_looked, "%s%s", sum.why_not[0] ? "GPUs: " : "",
             sum.why_not);
}

int host_errors_end(struct host_errors *errors, const struct backend *backend,
                    const struct table_rank *ranks, unsigned count, struct result_faults *faults,
                    struct drarun_error *err)
{
    struct told mine = {0};
    cleanup_free struct told *all = calloc(count, sizeof mine);
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    if (errors->looks)
        compare(errors, &mine);
    int rc = backend->share(&mine, all, sizeof mine, err);
    if (rc == 0)
        put(all, ranks, count, faults);
    return rc;
}

void host_errors_done(struct host_errors *errors)
{
    nvml_library_close(&errors->nvml);
    error_counts_done(&errors->begun);
}
