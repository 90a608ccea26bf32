/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: rdma-core libibverbs/man; Linux drivers/infiniband/core/sysfs.c for the words. */
#include "lib/verbs/open_nics.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define QUEUE_LENGTH 16

struct open_nics {
    struct ibv_device **list;
    int count;
    void *memory; /* MAP_FAILED: could not be had */
    uint64_t bytes;
};

int open_nics_new(uint64_t memory, struct open_nics **ret_nics, struct drarun_error *err)
{
    struct open_nics *nics = calloc(1, sizeof *nics);
    if (!nics)
        return error_set(err, ENOMEM, "out of memory");
    errno = 0;
    nics->list = ibv_get_device_list(&nics->count);
    if (!nics->list) {
        int code = errno ? errno : ENODEV;
        free(nics);
        return error_set(err, code, "libibverbs cannot list RDMA devices: %s", strerror(code));
    }
    nics->bytes = memory;
    nics->memory =
        memory ? mmap(NULL, memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
               : MAP_FAILED;
    *ret_nics = nics;
    return 0;
}

void open_nics_free(struct open_nics *nics)
{
    if (!nics)
        return;
    if (nics->memory != MAP_FAILED)
        munmap(nics->memory, nics->bytes);
    ibv_free_device_list(nics->list);
    free(nics);
}

/* ---- results ---- */

static bool step_done(struct nic_open *open, enum nic_step step)
{
    open->step[step].done = NIC_DONE_YES;
    return true;
}

/* What a provider or a driver does not know how to do says nothing about the device. */
static bool is_unsupported(int code)
{
    return code == ENOSYS || code == EOPNOTSUPP || code == EPROTONOSUPPORT || code == ENOTTY;
}

static bool step_failed(struct nic_open *open, enum nic_step step, int code)
{
    struct nic_step_result *result = &open->step[step];
    result->code = code ? code : EIO; /* some providers forget to say */
    result->done = is_unsupported(code) ? NIC_DONE_UNKNOWN : NIC_DONE_NO;
    snprintf(result->why, sizeof result->why, "%s", strerror(result->code));
    return false;
}

static bool step_unknown(struct nic_open *open, enum nic_step step, const char *why)
{
    open->step[step].done = NIC_DONE_UNKNOWN;
    snprintf(open->step[step].why, sizeof open->step[step].why, "%s", why);
    return false;
}

/* ---- facts ---- */

static const char *port_state_word(enum ibv_port_state state)
{
    static const char *const words[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    return (unsigned)state < ARRAY_LEN(words) ? words[state] : "";
}

static const char *phys_state_word(uint8_t state)
{
    static const char *const words[] = {"",
                                        "Sleep",
                                        "Polling",
                                        "Disabled",
                                        "PortConfigurationTraining",
                                        "LinkUp",
                                        "LinkErrorRecovery",
                                        "Phy Test"};
    return state < ARRAY_LEN(words) ? words[state] : "";
}

static uint32_t lanes_of(uint8_t width)
{
    switch (width) {
    case 1:
        return 1;
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 0;
    }
}

static const char *lane_speed_word(uint8_t speed)
{
    static const char *const words[] = {"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (speed == 1u << i)
            return words[i];
    return "";
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

/* NDR is the last that libibverbs 44 has a word for: faster ones look like it. */
static void take_speed(struct topo_port *port, const struct ibv_port_attr *attr)
{
    const char *speed = lane_speed_word(attr->active_speed);
    if (lanes_of(attr->active_width))
        port->lanes = lanes_of(attr->active_width);
    if (speed[0] && (strcmp(speed, "NDR") != 0 || !port->lane_speed[0]))
        snprintf(port->lane_speed, sizeof port->lane_speed, "%s", speed);
}

static void take_port(struct topo_port *port, const struct ibv_port_attr *attr)
{
    snprintf(port->state, sizeof port->state, "%s", port_state_word(attr->state));
    port->active = attr->state == IBV_PORT_ACTIVE ? TOPO_YES : TOPO_NO;
    snprintf(port->phys_state, sizeof port->phys_state, "%s", phys_state_word(attr->phys_state));
    if (attr->link_layer == IBV_LINK_LAYER_INFINIBAND)
        port->link = TOPO_LINK_IB;
    else if (attr->link_layer == IBV_LINK_LAYER_ETHERNET)
        port->link = TOPO_LINK_ETHERNET;
    take_speed(port, attr);
    port->lid = attr->lid;
    port->mtu = mtu_bytes(attr->active_mtu);
    port->max_mtu = mtu_bytes(attr->max_mtu);
}

static bool query(struct ibv_context *context, struct topo_rdma *rdma, struct nic_open *open)
{
    struct ibv_device_attr attr;
    int code = ibv_query_device(context, &attr);
    if (code)
        return step_failed(open, NIC_STEP_QUERY, code);
    if (attr.fw_ver[0]) {
        char *firmware = strndup(attr.fw_ver, sizeof attr.fw_ver);
        if (!firmware)
            return step_failed(open, NIC_STEP_QUERY, ENOMEM);
        free(rdma->firmware);
        rdma->firmware = firmware;
    }
    rdma->limits = (struct topo_rdma_limits){.qps = (uint32_t)attr.max_qp,
                                             .cqs = (uint32_t)attr.max_cq,
                                             .mrs = (uint32_t)attr.max_mr,
                                             .mr_bytes = attr.max_mr_size};
    for (size_t i = 0; i < rdma->port_count; i++) {
        struct ibv_port_attr port;
        code = ibv_query_port(context, (uint8_t)rdma->ports[i].number, &port);
        if (code)
            return step_failed(open, NIC_STEP_QUERY, code);
        take_port(&rdma->ports[i], &port);
    }
    return step_done(open, NIC_STEP_QUERY);
}

/* ---- trying ---- */

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = QUEUE_LENGTH,
                .max_recv_wr = QUEUE_LENGTH,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = type,
    };
    return ibv_create_qp(pd, &attr);
}

/* EFA has no reliable connections, and says EOPNOTSUPP or EINVAL of them; it has datagrams. */
static void try_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct nic_open *open)
{
    errno = 0;
    struct ibv_qp *qp = make_qp(pd, cq, IBV_QPT_RC);
    int code = errno;
    if (!qp && (is_unsupported(code) || code == EINVAL)) {
        errno = 0;
        qp = make_qp(pd, cq, IBV_QPT_UD);
        code = errno;
    }
    if (qp) {
        step_done(open, NIC_STEP_QP);
        ibv_destroy_qp(qp);
    } else if (is_unsupported(code) || code == EINVAL) {
        step_unknown(open, NIC_STEP_QP,
                     "its provider makes neither reliable connections nor datagrams");
    } else {
        step_failed(open, NIC_STEP_QP, code);
    }
}

static void try_cq(struct ibv_context *context, struct ibv_pd *pd, struct nic_open *open)
{
    errno = 0;
    struct ibv_cq *cq = ibv_create_cq(context, QUEUE_LENGTH, NULL, NULL, 0);
    if (!cq) {
        step_failed(open, NIC_STEP_CQ, errno);
        return;
    }
    step_done(open, NIC_STEP_CQ);
    try_qp(pd, cq, open);
    ibv_destroy_cq(cq);
}

static void try_memory(const struct open_nics *nics, struct ibv_pd *pd, struct nic_open *open)
{
    if (!nics->bytes)
        return;
    if (nics->memory == MAP_FAILED) {
        step_unknown(open, NIC_STEP_MEMORY, "there is no memory to try it with");
        return;
    }
    errno = 0;
    struct ibv_mr *mr = ibv_reg_mr(pd, nics->memory, nics->bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!mr) {
        step_failed(open, NIC_STEP_MEMORY, errno);
        return;
    }
    step_done(open, NIC_STEP_MEMORY);
    ibv_dereg_mr(mr);
}

static void try_opened(const struct open_nics *nics, struct ibv_context *context,
                       struct topo_rdma *rdma, struct nic_open *open)
{
    query(context, rdma, open);
    errno = 0;
    struct ibv_pd *pd = ibv_alloc_pd(context);
    if (!pd) { /* without one nothing can be made */
        step_failed(open, NIC_STEP_CQ, errno);
        return;
    }
    try_cq(context, pd, open);
    try_memory(nics, pd, open);
    ibv_dealloc_pd(pd);
}

static struct ibv_device *find(const struct open_nics *nics, const char *name)
{
    for (int i = 0; i < nics->count; i++)
        if (strcmp(ibv_get_device_name(nics->list[i]), name) == 0)
            return nics->list[i];
    return NULL;
}

/* 0, or -errno: whether the kernel lets us open its character device. */
static int try_node(const struct topo_rdma *rdma)
{
    char path[128];
    if (!rdma->uverbs[0])
        return 0;
    snprintf(path, sizeof path, "/dev/infiniband/%s", rdma->uverbs);
    cleanup_close int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : 0;
}

/* libibverbs leaves out what has no character device, and what it has no provider for. */
static void tell_unlisted(const struct topo_rdma *rdma, struct nic_open *open)
{
    int rc = try_node(rdma);
    if (rc < 0)
        step_failed(open, NIC_STEP_OPEN, -rc);
    else
        step_unknown(open, NIC_STEP_OPEN,
                     rdma->uverbs[0] ? "the agent's libibverbs has no provider for it"
                                     : "the kernel shows no character device of it");
}

void open_nics_try(struct open_nics *nics, struct topo_rdma *rdma, struct nic_open *ret_open)
{
    struct ibv_device *device = find(nics, rdma->name);
    *ret_open = (struct nic_open){0};
    if (!device) {
        tell_unlisted(rdma, ret_open);
        return;
    }
    errno = 0;
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        int code = errno, node = try_node(rdma); /* libibverbs ends with a search for other nodes */
        step_failed(ret_open, NIC_STEP_OPEN, node < 0 ? -node : code);
        return;
    }
    step_done(ret_open, NIC_STEP_OPEN);
    try_opened(nics, context, rdma, ret_open);
    ibv_close_device(context);
}
