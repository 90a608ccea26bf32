/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: rdma-core libibverbs/man/ibv_modify_qp.3 (attributes of each transition), and
 * drivers/infiniband/core/verbs.c: the kernel resolves a RoCE peer's link address on the way to RTR
 * and fails there when it does not answer. */
#include "lib/verbs/reach_rail.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"

#define BYTES ((size_t)REACH_MESSAGES * REACH_MESSAGE_BYTES)
#define WORDS (BYTES / sizeof(uint64_t))
#define QUEUE_LENGTH (REACH_MESSAGES + 1)
#define RETRIES 7
#define TIMEOUT_UNIT_US 4.096 /* an attribute of t is this times 2^t */
#define RNR_TIMER 12          /* 0.64 ms */
#define HOPS 64               /* as NCCL and UCX: routed fabrics */
#define PSN_MASK 0xffffffu

struct end {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t *memory; /* WORDS */
    uint32_t psn;
};

struct reach_rail {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_port_attr attr;
    union ibv_gid gid;
    uint8_t port, gid_index;
    struct end ends[2]; /* by enum reach_end */
};

static bool fail(struct reach_failure *failure, enum reach_fault fault, int code)
{
    failure->fault = fault;
    failure->code = code ? code : EIO; /* some providers forget to say */
    snprintf(failure->why, sizeof failure->why, "%s", strerror(failure->code));
    return false;
}

/* ---- opening ---- */

static struct ibv_context *open_device(const char *name, int *ret_code)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context = NULL;
    *ret_code = ENODEV;
    for (int i = 0; list && i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) != 0)
            continue;
        errno = 0;
        context = ibv_open_device(list[i]);
        *ret_code = errno;
    }
    if (list)
        ibv_free_device_list(list);
    return context;
}

static int make_init(struct ibv_qp *qp, uint8_t port, enum reach_end end)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = port,
        .qp_access_flags = end == REACH_IN ? IBV_ACCESS_REMOTE_WRITE : 0,
    };
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* What tells that the last message is there takes a receive, which needs no memory. */
static int post_receive(struct ibv_qp *qp)
{
    struct ibv_recv_wr wr = {0}, *bad;
    return ibv_post_recv(qp, &wr, &bad);
}

/* 0 or errno. What was made of an end that fails goes with the process. */
static int make_end(struct reach_rail *rail, enum reach_end which)
{
    struct end *end = &rail->ends[which];
    errno = 0;
    end->channel = ibv_create_comp_channel(rail->context);
    end->cq =
        end->channel ? ibv_create_cq(rail->context, QUEUE_LENGTH, NULL, end->channel, 0) : NULL;
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .cap = {.max_send_wr = QUEUE_LENGTH,
                .max_recv_wr = QUEUE_LENGTH,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    end->qp = end->cq ? ibv_create_qp(rail->pd, &init) : NULL;
    if (!end->qp)
        return errno ? errno : EIO;
    end->memory = aligned_alloc(REACH_MESSAGE_BYTES, BYTES);
    if (!end->memory)
        return ENOMEM;
    memset(end->memory, 0, BYTES);
    int access = which == REACH_IN ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
    end->mr = ibv_reg_mr(rail->pd, end->memory, BYTES, access);
    if (!end->mr)
        return errno ? errno : EIO;
    if (getrandom(&end->psn, sizeof end->psn, 0) != (ssize_t)sizeof end->psn)
        return errno;
    end->psn &= PSN_MASK;
    int code = make_init(end->qp, rail->port, which);
    return code == 0 && which == REACH_IN ? post_receive(end->qp) : code;
}

static bool is_ethernet(const struct reach_rail *rail)
{
    return rail->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

bool reach_rail_open(const char *device, uint32_t port, uint32_t gid, struct reach_rail **ret_rail,
                     struct reach_failure *ret_failure)
{
    int code = ENOMEM;
    struct reach_rail *rail = calloc(1, sizeof *rail);
    if (!rail)
        return fail(ret_failure, REACH_FAULT_OPEN, code);
    rail->port = (uint8_t)port;
    rail->gid_index = (uint8_t)gid;
    rail->context = open_device(device, &code);
    if (!rail->context)
        return fail(ret_failure, REACH_FAULT_OPEN, code);
    code = ibv_query_port(rail->context, rail->port, &rail->attr);
    if (code)
        return fail(ret_failure, REACH_FAULT_PORT, code);
    errno = 0;
    if (is_ethernet(rail) && ibv_query_gid(rail->context, rail->port, (int)gid, &rail->gid) < 0)
        return fail(ret_failure, REACH_FAULT_PORT, errno);
    errno = 0;
    rail->pd = ibv_alloc_pd(rail->context);
    code = rail->pd ? make_end(rail, REACH_IN) : errno;
    if (rail->pd && code == 0)
        code = make_end(rail, REACH_OUT);
    if (!rail->pd || code)
        return fail(ret_failure, REACH_FAULT_OPEN, code);
    *ret_rail = rail;
    return true;
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

void reach_rail_address(const struct reach_rail *rail, enum reach_end end,
                        struct reach_address *ret_address)
{
    const struct end *e = &rail->ends[end];
    *ret_address = (struct reach_address){
        .qp = e->qp->qp_num,
        .psn = e->psn,
        .lid = rail->attr.lid,
        .mtu = mtu_bytes(rail->attr.active_mtu),
        .global = is_ethernet(rail),
        .at = (uint64_t)(uintptr_t)e->memory,
        .key = e->mr->rkey,
    };
    memcpy(ret_address->gid, rail->gid.raw, sizeof ret_address->gid);
}

/* ---- connecting ---- */

static enum ibv_mtu common_mtu(const struct reach_rail *rail, uint32_t theirs)
{
    enum ibv_mtu mtu = rail->attr.active_mtu;
    while (mtu > IBV_MTU_256 && mtu_bytes(mtu) > theirs)
        mtu--;
    return mtu;
}

static bool connect_end(struct reach_rail *rail, enum reach_end which,
                        const struct reach_address *peer, struct reach_failure *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = common_mtu(rail, peer->mtu),
        .dest_qp_num = peer->qp,
        .rq_psn = peer->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = {.dlid = (uint16_t)peer->lid, .port_num = rail->port},
    };
    if (peer->global) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.sgid_index = rail->gid_index;
        attr.ah_attr.grh.hop_limit = HOPS;
        memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof peer->gid);
    }
    int code = ibv_modify_qp(rail->ends[which].qp, &attr,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return code == 0 || fail(failure, REACH_FAULT_ROUTE, code);
}

bool reach_rail_accept(struct reach_rail *rail, const struct reach_address *from,
                       struct reach_failure *ret_failure)
{
    return connect_end(rail, REACH_IN, from, ret_failure);
}

/* The longest of which all tries together take a quarter of the time at most: devices may take four
 * times as long as they are told. */
static uint8_t timeout_within(int64_t ms)
{
    uint8_t timeout = 1;
    while (timeout < 31 && (RETRIES + 1) * TIMEOUT_UNIT_US * (double)(UINT64_C(2) << timeout) <
                               1000.0 * (double)ms / 4)
        timeout++;
    return timeout;
}

static int make_ready_to_send(const struct end *end, int64_t limit_ms)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = timeout_within(limit_ms),
        .retry_cnt = RETRIES,
        .rnr_retry = 3,
        .sq_psn = end->psn,
        .max_rd_atomic = 1,
    };
    return ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- data ---- */

/* splitmix64: neighbouring seeds have nothing in common. */
static uint64_t word_of(uint64_t seed, size_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The last message tells the other side that it is there; it comes after the ones before. */
static int post_writes(const struct end *end, const struct reach_address *to)
{
    for (uint32_t i = 0; i < REACH_MESSAGES; i++) {
        bool last = i + 1 == REACH_MESSAGES;
        struct ibv_sge part = {
            .addr = (uint64_t)(uintptr_t)end->memory + (uint64_t)i * REACH_MESSAGE_BYTES,
            .length = REACH_MESSAGE_BYTES,
            .lkey = end->mr->lkey,
        };
        struct ibv_send_wr wr = {
            .sg_list = &part,
            .num_sge = 1,
            .opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
            .send_flags = last ? IBV_SEND_SIGNALED : 0,
            .wr.rdma = {.remote_addr = to->at + (uint64_t)i * REACH_MESSAGE_BYTES, .rkey = to->key},
        };
        struct ibv_send_wr *bad;
        int code = ibv_post_send(end->qp, &wr, &bad);
        if (code)
            return code;
    }
    return 0;
}

/* 0 or errno; ETIMEDOUT. deadline_ms: of clock_ms; negative: none. */
static int await_completion(const struct end *end, int64_t deadline_ms, struct ibv_wc *ret_wc)
{
    for (bool armed = false;;) {
        int got = ibv_poll_cq(end->cq, 1, ret_wc);
        if (got != 0)
            return got > 0 ? 0 : EIO;
        if (!armed) { /* and look once more: it may have come before */
            int code = ibv_req_notify_cq(end->cq, 0);
            if (code)
                return code;
            armed = true;
            continue;
        }
        struct pollfd event = {.fd = end->channel->fd, .events = POLLIN};
        int64_t left = deadline_ms < 0 ? -1 : deadline_ms - clock_ms();
        if (deadline_ms >= 0 && left <= 0)
            return ETIMEDOUT;
        int rc = poll(&event, 1, (int)left);
        if (rc < 0 && errno != EINTR)
            return errno;
        struct ibv_cq *cq;
        void *context;
        if (rc <= 0)
            continue;
        if (ibv_get_cq_event(end->channel, &cq, &context) < 0)
            return errno;
        ibv_ack_cq_events(cq, 1);
        armed = false;
    }
}

static enum reach_fault fault_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return REACH_FAULT_RETRY;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return REACH_FAULT_RNR;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return REACH_FAULT_ACCESS;
    default:
        return REACH_FAULT_WRITE;
    }
}

static bool is_good(const struct ibv_wc *wc, struct reach_failure *failure)
{
    if (wc->status == IBV_WC_SUCCESS)
        return true;
    *failure = (struct reach_failure){.fault = fault_of(wc->status)};
    snprintf(failure->why, sizeof failure->why, "%s", ibv_wc_status_str(wc->status));
    return false;
}

bool reach_rail_write(struct reach_rail *rail, const struct reach_address *to, uint64_t seed,
                      int64_t limit_ms, struct reach_failure *ret_failure)
{
    struct end *end = &rail->ends[REACH_OUT];
    struct ibv_wc wc;
    for (size_t i = 0; i < WORDS; i++)
        end->memory[i] = word_of(seed, i);
    if (!connect_end(rail, REACH_OUT, to, ret_failure))
        return false;
    int code = make_ready_to_send(end, limit_ms);
    if (code)
        return fail(ret_failure, REACH_FAULT_OPEN, code);
    code = post_writes(end, to);
    if (code == 0)
        code = await_completion(end, clock_ms() + limit_ms, &wc);
    if (code == ETIMEDOUT)
        return fail(ret_failure, REACH_FAULT_RETRY, code);
    if (code)
        return fail(ret_failure, REACH_FAULT_WRITE, code);
    return is_good(&wc, ret_failure);
}

bool reach_rail_await(struct reach_rail *rail, uint64_t seed, struct reach_failure *ret_failure)
{
    const struct end *end = &rail->ends[REACH_IN];
    struct ibv_wc wc;
    int code = await_completion(end, -1, &wc);
    if (code)
        return fail(ret_failure, REACH_FAULT_WRITE, code);
    if (!is_good(&wc, ret_failure))
        return false;
    for (size_t i = 0; i < WORDS; i++) {
        if (end->memory[i] == word_of(seed, i))
            continue;
        *ret_failure = (struct reach_failure){.fault = REACH_FAULT_DATA};
        snprintf(ret_failure->why, sizeof ret_failure->why, "from byte %zu of %zu on",
                 i * sizeof(uint64_t), BYTES);
        return false;
    }
    return true;
}
