/* SPDX-License-Identifier: Apache-2.0 */
/* Rails of a device that the test makes: what one end writes is copied into the other's memory. It
 * takes no step that a real device would refuse; tests/test_reach_guest.py has one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/verbs/reach_rail.h"

#define BYTES (REACH_MESSAGES * REACH_MESSAGE_BYTES)
#define QPS 16

enum arrival { AT_ONCE, BEFORE_THE_WAIT, LATE, NEVER };

static struct {
    const char *fails; /* this call */
    unsigned nth;      /* the how manieth, from 0 */
    int code;
    int link_layer;
    enum ibv_mtu mtu;
    enum arrival arrival;
    enum ibv_wc_status status;
    unsigned posted; /* receives */
    char last[256];  /* of ibv_modify_qp */
} device;

struct fake_cq {
    struct ibv_cq cq;
    unsigned completions;
    bool hidden; /* not to be polled yet */
};

struct fake_qp {
    struct ibv_qp qp;
    uint32_t peer;
};

static struct fake_qp qps[QPS]; /* by number */
static uint32_t qp_count, keys;
static int pipes[4 * QPS], pipe_count; /* of this test's channels */
static struct ibv_context context;
static struct ibv_device *devices[3];
static struct ibv_device first, second;

/* errno, or 0 */
static int fails(const char *call)
{
    if (!device.fails || strcmp(device.fails, call) != 0 || device.nth-- > 0)
        return 0;
    device.fails = NULL;
    errno = device.code;
    return device.code ? device.code : -1;
}

struct ibv_device **__wrap_ibv_get_device_list(int *count);
void __wrap_ibv_free_device_list(struct ibv_device **list);
const char *__wrap_ibv_get_device_name(struct ibv_device *of);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *of);
int __wrap_ibv_query_port(struct ibv_context *of, uint8_t port, struct ibv_port_attr *attr);
int __wrap_ibv_query_gid(struct ibv_context *of, uint8_t port, int index, union ibv_gid *gid);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *of);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *of);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *of, int cqe, void *arg,
                                    struct ibv_comp_channel *channel, int vector);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t length, uint64_t iova,
                                       unsigned access);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **arg);
void __wrap_ibv_ack_cq_events(struct ibv_cq *cq, unsigned count);

struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
    if (fails("list"))
        return NULL;
    devices[0] = &first;
    devices[1] = &second;
    *count = 2;
    return devices;
}

void __wrap_ibv_free_device_list(struct ibv_device **list)
{
    assert_ptr_equal(list, devices);
}

const char *__wrap_ibv_get_device_name(struct ibv_device *of)
{
    return of == &first ? "mlx5_0" : "mlx5_1";
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *of)
{
    assert_ptr_equal(of, &second);
    return fails("open") ? NULL : &context;
}

int __wrap_ibv_query_port(struct ibv_context *of, uint8_t port, struct ibv_port_attr *attr)
{
    assert_ptr_equal(of, &context);
    assert_int_equal(port, 2);
    attr->link_layer = (uint8_t)device.link_layer;
    attr->active_mtu = device.mtu;
    attr->lid = 77;
    return fails("port");
}

int __wrap_ibv_query_gid(struct ibv_context *of, uint8_t port, int index, union ibv_gid *gid)
{
    assert_ptr_equal(of, &context);
    assert_int_equal(port, 2);
    assert_int_equal(index, 5);
    for (size_t i = 0; i < sizeof gid->raw; i++)
        gid->raw[i] = (uint8_t)(0xa0 + i);
    return fails("gid") ? -1 : 0;
}

struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *of)
{
    static struct ibv_pd pd;
    pd.context = of;
    return fails("pd") ? NULL : &pd;
}

struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *of)
{
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pipes[pipe_count++] = fds[0];
    pipes[pipe_count++] = fds[1];
    channel->context = of;
    channel->fd = fds[0];
    channel->refcnt = fds[1]; /* where the device says that something came */
    return fails("channel") ? NULL : channel;
}

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *of, int cqe, void *arg,
                                    struct ibv_comp_channel *channel, int vector)
{
    (void)arg, (void)vector;
    struct fake_cq *cq = calloc(1, sizeof *cq);
    assert_true(cqe > (int)REACH_MESSAGES);
    cq->cq.context = of;
    cq->cq.channel = channel;
    return fails("cq") ? NULL : &cq->cq;
}

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct fake_qp *qp = &qps[qp_count];
    assert_true(qp_count < QPS);
    assert_int_equal(init->qp_type, IBV_QPT_RC);
    assert_ptr_equal(init->send_cq, init->recv_cq);
    assert_true(init->cap.max_send_wr >= REACH_MESSAGES);
    assert_int_equal(init->cap.max_send_sge, 1);
    qp->qp = (struct ibv_qp){.context = pd->context,
                             .send_cq = init->send_cq,
                             .recv_cq = init->recv_cq,
                             .qp_num = qp_count++};
    return fails("qp") ? NULL : &qp->qp;
}

static struct ibv_mr *reg(void *at, size_t length, int access)
{
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    const char *zero = at;
    assert_int_equal(length, BYTES);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(zero[i], 0);
    assert_true(access == 0 || access == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    mr->addr = at;
    mr->lkey = keys++;
    mr->rkey = access ? keys++ : 0; /* what is not written to has none */
    return fails("mr") ? NULL : mr;
}

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
    (void)pd;
    return reg(at, length, access);
}

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t length, uint64_t iova,
                                       unsigned access)
{
    (void)pd, (void)iova;
    return reg(at, length, (int)access);
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    const struct ibv_ah_attr *ah = &attr->ah_attr;
    char peer[64] = "";
    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        assert_int_equal(mask,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        assert_int_equal(attr->pkey_index, 0);
        assert_int_equal(attr->port_num, 2);
        assert_int_equal(attr->qp_access_flags, qp->qp_num % 2 ? 0 : IBV_ACCESS_REMOTE_WRITE);
        return fails("init");
    case IBV_QPS_RTR:
        assert_int_equal(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                   IBV_QP_MIN_RNR_TIMER);
        if (ah->is_global)
            snprintf(peer, sizeof peer, " gid %02x..%02x of %u hops %u", ah->grh.dgid.raw[0],
                     ah->grh.dgid.raw[15], ah->grh.sgid_index, ah->grh.hop_limit);
        snprintf(device.last, sizeof device.last, "rtr qp %u psn %u lid %u port %u mtu %u%s",
                 attr->dest_qp_num, attr->rq_psn, ah->dlid, ah->port_num, 128u << attr->path_mtu,
                 peer);
        qps[qp->qp_num].peer = attr->dest_qp_num;
        return fails("rtr");
    case IBV_QPS_RTS:
        assert_int_equal(mask, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
        assert_int_equal(attr->max_rd_atomic, 1);
        snprintf(device.last, sizeof device.last, "rts psn %u timeout %u retries %u rnr %u",
                 attr->sq_psn, attr->timeout, attr->retry_cnt, attr->rnr_retry);
        return fails("rts");
    default:
        fail_msg("state %d", attr->qp_state);
        return 0;
    }
}

static void complete(struct ibv_cq *cq)
{
    struct fake_cq *fake = (struct fake_cq *)cq;
    if (device.arrival == NEVER)
        return;
    fake->completions++;
    fake->hidden = device.arrival != AT_ONCE;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)bad;
    assert_int_equal(qp->qp_num % 2, 0); /* of the end that is written to */
    assert_int_equal(wr->num_sge, 0);
    assert_null(wr->next);
    device.posted++;
    return fails("receive");
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)bad;
    int code = fails("send");
    bool last = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    assert_true(last || wr->opcode == IBV_WR_RDMA_WRITE);
    assert_int_equal(wr->send_flags, last ? IBV_SEND_SIGNALED : 0);
    assert_int_equal(wr->num_sge, 1);
    assert_int_equal(wr->sg_list->length, REACH_MESSAGE_BYTES);
    assert_in_range(wr->wr.rdma.rkey, 900, 1000);
    if (code)
        return code;
    memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr, (void *)(uintptr_t)wr->sg_list->addr,
           wr->sg_list->length);
    if (last) {
        complete(qp->send_cq);
        complete(qps[qps[qp->qp_num].peer].qp.recv_cq);
    }
    return 0;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    struct fake_cq *fake = (struct fake_cq *)cq;
    assert_int_equal(count, 1);
    if (fails("poll"))
        return -1;
    if (fake->completions == 0 || fake->hidden)
        return 0;
    fake->completions--;
    *wc = (struct ibv_wc){.status = device.status};
    return 1;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
    struct fake_cq *fake = (struct fake_cq *)cq;
    assert_int_equal(solicited, 0);
    fake->hidden = device.arrival == LATE;
    if (device.arrival == LATE)
        assert_int_equal(write(cq->channel->refcnt, "", 1), 1);
    return fails("notify");
}

int __wrap_ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **arg)
{
    static struct fake_cq none;
    char byte;
    (void)arg;
    assert_int_equal(read(channel->fd, &byte, 1), 1);
    *cq = &none.cq;
    for (uint32_t i = 0; i < qp_count; i++)
        ((struct fake_cq *)qps[i].qp.recv_cq)->hidden = false;
    device.arrival = AT_ONCE;
    return fails("event") ? -1 : 0;
}

void __wrap_ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    (void)cq;
    assert_int_equal(count, 1);
}

/* ---- tests ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&device, 0, sizeof device);
    device.link_layer = IBV_LINK_LAYER_ETHERNET;
    device.mtu = IBV_MTU_1024;
    qp_count = 0;
    keys = 900;
    while (pipe_count > 0)
        close(pipes[--pipe_count]);
    context = (struct ibv_context){.ops = {.post_recv = post_recv,
                                           .post_send = post_send,
                                           .poll_cq = poll_cq,
                                           .req_notify_cq = req_notify_cq}};
    return 0;
}

static struct reach_rail *open_rail(void)
{
    struct reach_rail *rail = NULL;
    struct reach_failure failure = {0};
    if (!reach_rail_open("mlx5_1", 2, 5, &rail, &failure))
        fail_msg("%s", failure.why);
    return rail;
}

static void addresses_are_of_each_end(void **state)
{
    (void)state;
    struct reach_address in, out;
    struct reach_rail *rail = open_rail();
    assert_int_equal(device.posted, 1);
    reach_rail_address(rail, REACH_IN, &in);
    reach_rail_address(rail, REACH_OUT, &out);
    assert_int_equal(in.qp, 0);
    assert_int_equal(out.qp, 1);
    assert_int_equal(in.lid, 77);
    assert_int_equal(in.mtu, 1024);
    assert_true(in.global);
    assert_int_equal(in.gid[0], 0xa0);
    assert_int_equal(in.gid[15], 0xaf);
    assert_true(in.psn <= 0xffffff && out.psn <= 0xffffff);
    assert_true(in.at != 0 && in.at != out.at);
    assert_true(in.key >= 900);
    assert_int_equal(out.key, 0); /* nobody writes there */
    device.link_layer = IBV_LINK_LAYER_INFINIBAND;
    device.fails = "gid"; /* which nobody asks for */
    device.mtu = IBV_MTU_4096;
    reach_rail_address(open_rail(), REACH_IN, &in);
    assert_false(in.global);
    assert_int_equal(in.mtu, 4096);
    assert_int_equal(in.gid[0], 0);
}

static void what_cannot_be_opened(void **state)
{
    (void)state;
    static const struct {
        const char *fails;
        unsigned nth;
        int code;
        enum reach_fault fault;
        int expected;
    } table[] = {
        {"list", 0, 0, REACH_FAULT_OPEN, ENODEV},
        {"open", 0, EACCES, REACH_FAULT_OPEN, EACCES},
        {"open", 0, 0, REACH_FAULT_OPEN, EIO},
        {"port", 0, EINVAL, REACH_FAULT_PORT, EINVAL},
        {"gid", 0, ENODATA, REACH_FAULT_PORT, ENODATA},
        {"gid", 0, 0, REACH_FAULT_PORT, EIO},
        {"pd", 0, ENOMEM, REACH_FAULT_OPEN, ENOMEM},
        {"pd", 0, 0, REACH_FAULT_OPEN, EIO},
        {"channel", 0, EMFILE, REACH_FAULT_OPEN, EMFILE},
        {"channel", 1, EMFILE, REACH_FAULT_OPEN, EMFILE},
        {"cq", 0, ENOMEM, REACH_FAULT_OPEN, ENOMEM},
        {"cq", 1, 0, REACH_FAULT_OPEN, EIO},
        {"qp", 0, EPERM, REACH_FAULT_OPEN, EPERM},
        {"qp", 1, EPERM, REACH_FAULT_OPEN, EPERM},
        {"mr", 0, ENOMEM, REACH_FAULT_OPEN, ENOMEM},
        {"mr", 1, 0, REACH_FAULT_OPEN, EIO},
        {"init", 0, EINVAL, REACH_FAULT_OPEN, EINVAL},
        {"init", 1, EINVAL, REACH_FAULT_OPEN, EINVAL},
        {"receive", 0, ENOMEM, REACH_FAULT_OPEN, ENOMEM},
    };
    struct reach_rail *rail = NULL;
    struct reach_failure failure;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        set_up(NULL);
        device.fails = table[i].fails;
        device.nth = table[i].nth;
        device.code = table[i].code;
        assert_false(reach_rail_open("mlx5_1", 2, 5, &rail, &failure));
        assert_null(rail);
        assert_int_equal(failure.fault, table[i].fault);
        assert_int_equal(failure.code, table[i].expected);
        assert_string_equal(failure.why, strerror(table[i].expected));
    }
    assert_false(reach_rail_open("mlx5", 2, 5, &rail, &failure));
    assert_int_equal(failure.fault, REACH_FAULT_OPEN);
    assert_int_equal(failure.code, ENODEV);
}

static void an_end_is_connected_by_the_peers_address(void **state)
{
    (void)state;
    static const struct {
        enum ibv_mtu own;
        uint32_t theirs, common;
    } mtus[] = {{IBV_MTU_1024, 4096, 1024}, {IBV_MTU_1024, 1024, 1024}, {IBV_MTU_4096, 1024, 1024},
                {IBV_MTU_4096, 1023, 512},  {IBV_MTU_2048, 256, 256},   {IBV_MTU_2048, 0, 256}};
    struct reach_address peer = {
        .qp = 12, .psn = 34, .lid = 56, .mtu = 4096, .gid = {0xfe, [15] = 9}};
    struct reach_failure failure = {0};
    struct reach_rail *rail = open_rail();
    assert_true(reach_rail_accept(rail, &peer, &failure));
    assert_string_equal(device.last, "rtr qp 12 psn 34 lid 56 port 2 mtu 1024");
    peer.global = true;
    assert_true(reach_rail_accept(rail, &peer, &failure));
    assert_string_equal(device.last,
                        "rtr qp 12 psn 34 lid 56 port 2 mtu 1024 gid fe..09 of 5 hops 64");
    device.fails = "rtr";
    device.code = ETIMEDOUT;
    assert_false(reach_rail_accept(rail, &peer, &failure));
    assert_int_equal(failure.fault, REACH_FAULT_ROUTE);
    assert_int_equal(failure.code, ETIMEDOUT);
    peer.global = false;
    for (size_t i = 0; i < ARRAY_LEN(mtus); i++) {
        char expected[64];
        device.mtu = mtus[i].own;
        peer.mtu = mtus[i].theirs;
        assert_true(reach_rail_accept(open_rail(), &peer, &failure));
        snprintf(expected, sizeof expected, "rtr qp 12 psn 34 lid 56 port 2 mtu %u",
                 mtus[i].common);
        assert_string_equal(device.last, expected);
    }
}

struct pair {
    struct reach_rail *writer, *reader;
    struct reach_address out, in;
    uint64_t *memory; /* the reader's */
};

static void pair_init(struct pair *pair)
{
    struct reach_failure failure = {0};
    pair->writer = open_rail();
    pair->reader = open_rail();
    reach_rail_address(pair->writer, REACH_OUT, &pair->out);
    reach_rail_address(pair->reader, REACH_IN, &pair->in);
    pair->memory = (uint64_t *)(uintptr_t)pair->in.at;
    assert_true(reach_rail_accept(pair->reader, &pair->out, &failure));
}

static void messages_arrive_whole(void **state)
{
    (void)state;
    struct reach_failure failure = {0};
    for (int arrival = AT_ONCE; arrival <= LATE; arrival++) {
        struct pair pair;
        set_up(NULL);
        pair_init(&pair);
        device.arrival = (enum arrival)arrival;
        assert_true(reach_rail_write(pair.writer, &pair.in, 0, 60000, &failure));
        device.arrival = (enum arrival)arrival;
        assert_true(reach_rail_await(pair.reader, 0, &failure));
        /* the numbers that splitmix64 makes of 0, as published */
        assert_true(pair.memory[0] == UINT64_C(0xe220a8397b1dcdaf));
        assert_true(pair.memory[1] == UINT64_C(0x6e789e6aa1b965f4));
        assert_true(pair.memory[2] == UINT64_C(0x06c45d188009454f));
        for (size_t i = 3; i < BYTES / sizeof(uint64_t); i++)
            assert_true(pair.memory[i] != 0 && pair.memory[i] != pair.memory[i - 1]);
    }
}

static void other_data_are_noticed(void **state)
{
    (void)state;
    static const size_t words[] = {0, 1, BYTES / 8 / 2, BYTES / 8 - 1};
    struct reach_failure failure = {0};
    char expected[64];
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct pair pair;
        set_up(NULL);
        pair_init(&pair);
        assert_true(reach_rail_write(pair.writer, &pair.in, 5, 60000, &failure));
        pair.memory[words[i]] ^= 1;
        assert_false(reach_rail_await(pair.reader, 5, &failure));
        assert_int_equal(failure.fault, REACH_FAULT_DATA);
        assert_int_equal(failure.code, 0);
        snprintf(expected, sizeof expected, "from byte %zu of 32768 on", 8 * words[i]);
        assert_string_equal(failure.why, expected);
    }
    struct pair pair;
    set_up(NULL);
    pair_init(&pair);
    assert_true(reach_rail_write(pair.writer, &pair.in, 5, 60000, &failure));
    assert_false(reach_rail_await(pair.reader, 6, &failure)); /* another seed */
    assert_int_equal(failure.fault, REACH_FAULT_DATA);
}

/* All tries together take less than a quarter of the time: 8 of 4.096 us times 2^timeout. */
static void tries_fit_into_the_limit(void **state)
{
    (void)state;
    static const struct {
        int64_t limit_ms;
        unsigned timeout;
    } table[] = {{1, 2},      {1000, 12},      {1073, 12},      {1074, 13},
                 {60000, 18}, {280000000, 30}, {300000000, 31}, {INT64_C(3000000000), 31}};
    struct reach_failure failure = {0};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct pair pair;
        char expected[64];
        set_up(NULL);
        pair_init(&pair);
        assert_true(reach_rail_write(pair.writer, &pair.in, 5, table[i].limit_ms, &failure));
        snprintf(expected, sizeof expected, "rts psn %u timeout %u retries 7 rnr 3", pair.out.psn,
                 table[i].timeout);
        assert_string_equal(device.last, expected);
    }
}

static void failures_of_a_write(void **state)
{
    (void)state;
    static const struct {
        const char *fails;
        unsigned nth;
        int code;
        enum arrival arrival;
        enum reach_fault fault;
        int expected;
    } table[] = {
        {"rtr", 0, EHOSTUNREACH, AT_ONCE, REACH_FAULT_ROUTE, EHOSTUNREACH},
        {"rts", 0, EINVAL, AT_ONCE, REACH_FAULT_OPEN, EINVAL},
        {"send", 0, ENOMEM, AT_ONCE, REACH_FAULT_WRITE, ENOMEM},
        {"send", 7, ENOMEM, AT_ONCE, REACH_FAULT_WRITE, ENOMEM},
        {"poll", 0, 0, AT_ONCE, REACH_FAULT_WRITE, EIO},
        {"notify", 0, EINVAL, LATE, REACH_FAULT_WRITE, EINVAL},
        {"event", 0, EBADF, LATE, REACH_FAULT_WRITE, EBADF},
        {NULL, 0, 0, NEVER, REACH_FAULT_RETRY, ETIMEDOUT},
    };
    struct reach_failure failure;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct pair pair;
        set_up(NULL);
        pair_init(&pair);
        device.fails = table[i].fails;
        device.nth = table[i].nth;
        device.code = table[i].code;
        device.arrival = table[i].arrival;
        assert_false(reach_rail_write(pair.writer, &pair.in, 5,
                                      table[i].arrival == NEVER ? 20 : 60000, &failure));
        assert_int_equal(failure.fault, table[i].fault);
        assert_int_equal(failure.code, table[i].expected);
    }
    struct pair pair;
    set_up(NULL);
    pair_init(&pair);
    device.fails = "poll";
    assert_false(reach_rail_await(pair.reader, 5, &failure));
    assert_int_equal(failure.fault, REACH_FAULT_WRITE);
    assert_int_equal(failure.code, EIO);
}

static void completions_say_what_failed(void **state)
{
    (void)state;
    static const struct {
        enum ibv_wc_status status;
        enum reach_fault fault;
    } table[] = {
        {IBV_WC_RETRY_EXC_ERR, REACH_FAULT_RETRY},   {IBV_WC_RNR_RETRY_EXC_ERR, REACH_FAULT_RNR},
        {IBV_WC_REM_ACCESS_ERR, REACH_FAULT_ACCESS}, {IBV_WC_REM_INV_REQ_ERR, REACH_FAULT_ACCESS},
        {IBV_WC_REM_OP_ERR, REACH_FAULT_ACCESS},     {IBV_WC_WR_FLUSH_ERR, REACH_FAULT_WRITE},
        {IBV_WC_LOC_PROT_ERR, REACH_FAULT_WRITE},
    };
    struct reach_failure failure;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct pair pair;
        set_up(NULL);
        pair_init(&pair);
        device.status = table[i].status;
        assert_false(reach_rail_write(pair.writer, &pair.in, 5, 60000, &failure));
        assert_int_equal(failure.fault, table[i].fault);
        assert_int_equal(failure.code, 0);
        assert_string_equal(failure.why, ibv_wc_status_str(table[i].status));
        failure = (struct reach_failure){0};
        assert_false(reach_rail_await(pair.reader, 5, &failure));
        assert_int_equal(failure.fault, table[i].fault);
    }
}

static void faults_have_names(void **state)
{
    (void)state;
    for (int i = REACH_FAULT_OPEN; i < REACH_FAULTS; i++)
        assert_int_equal(reach_fault_find(reach_fault_name((enum reach_fault)i)), i);
    assert_string_equal(reach_fault_name(REACH_FAULT_RNR), "rnr");
    assert_int_equal(reach_fault_find("none"), REACH_FAULT_NONE);
    assert_int_equal(reach_fault_find("later"), REACH_FAULT_NONE);
    assert_int_equal(reach_fault_find(NULL), REACH_FAULT_NONE);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        CASE(addresses_are_of_each_end),
        CASE(what_cannot_be_opened),
        CASE(an_end_is_connected_by_the_peers_address),
        CASE(messages_arrive_whole),
        CASE(other_data_are_noticed),
        CASE(tries_fit_into_the_limit),
        CASE(failures_of_a_write),
        CASE(completions_say_what_failed),
        CASE(faults_have_names),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fflush(NULL);
    _exit(failed != 0); /* a rail lives as long as the process: nothing frees it */
}
