/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/modes/nics.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/inspect/verbs_json.h"
#include "lib/topo/host.h"
#include "lib/verbs/open_nics.h"

#define MIB (UINT64_C(1) << 20)
#define MEMORY (64 * MIB)
#define MEMORY_ROOM (8 * MEMORY) /* less of the container's memory may be full already */

static int write_device(const struct topo_rdma *rdma, int root, const struct nic_open *open)
{
    json_t *object = verbs_json(rdma, root, open);
    cleanup_free char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    int rc = text ? fd_write_all(STDOUT_FILENO, text, strlen(text)) : -ENOMEM;
    return rc < 0 ? rc : fd_write_all(STDOUT_FILENO, "\n", 1);
}

/* Where libibverbs lists nothing at all, it says nothing about one device. */
static struct nic_open unlisted(const struct drarun_error *why)
{
    struct nic_open open = {0};
    struct nic_step_result *step = &open.step[NIC_STEP_OPEN];
    snprintf(step->why, sizeof step->why, "%.*s", (int)sizeof step->why - 1, why->text);
    return open;
}

static uint64_t memory_to_try(const struct topo_limits *limits)
{
    bool small = limits->memory_limited == TOPO_YES && limits->memory_max < MEMORY_ROOM;
    return small ? 0 : MEMORY;
}

static int open_all(struct topo_host *host, int root)
{
    struct open_nics *nics = NULL;
    struct drarun_error err = {0};
    int rc = 0, listed = open_nics_new(memory_to_try(&host->limits), &nics, &err);
    for (size_t i = 0; rc == 0 && i < host->rdma_count; i++) {
        struct topo_rdma *rdma = &host->rdmas[i];
        struct nic_open open;
        if (rdma->usable == TOPO_NO)
            continue;
        if (listed < 0)
            open = unlisted(&err);
        else
            open_nics_try(nics, rdma, &open);
        rc = write_device(rdma, root, &open);
    }
    open_nics_free(nics);
    return rc;
}

int nics_serve(void)
{
    struct topo_host host;
    struct drarun_error err = {0};
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc =
        root < 0 ? error_set(&err, errno, "/: %s", strerror(errno)) : host_read(root, &host, &err);
    if (rc == 0) {
        rc = open_all(&host, root);
        if (rc < 0)
            error_set(&err, -rc, "the answer cannot be written: %s", strerror(-rc));
        host_done(&host);
    }
    if (rc < 0)
        log_error("--nics: %s", err.text);
    return rc < 0 ? error_exit_status(DRARUN_ERR_INFRASTRUCTURE) : 0;
}
