/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that the test makes, and lets fail at each step. tests/test_nics_guest.py has devices of
 * the kernel's. */
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

#include "lib/base/cleanup.h"
#include "lib/verbs/open_nics.h"

#define MEMORY ((uint64_t)1 << 16)

static struct {
    const char *fails, *fails_too; /* these calls */
    int code;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    int open;      /* what was made and not unmade */
    unsigned regs; /* memory that was registered */
} device;

static struct ibv_device one;
static struct ibv_device *devices[] = {&one, NULL};
static struct ibv_context context;
static struct ibv_pd pd = {.context = &context};
static struct ibv_cq cq = {.context = &context};
static struct ibv_qp qp = {.context = &context};
static struct ibv_mr mr = {.context = &context};

/* Counts what is made. */
static bool is_made(const char *call)
{
    if ((device.fails && strcmp(device.fails, call) == 0) ||
        (device.fails_too && strcmp(device.fails_too, call) == 0)) {
        errno = device.code;
        return false;
    }
    device.open++;
    return true;
}

struct ibv_device **__wrap_ibv_get_device_list(int *count);
void __wrap_ibv_free_device_list(struct ibv_device **list);
const char *__wrap_ibv_get_device_name(struct ibv_device *of);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *of);
int __wrap_ibv_close_device(struct ibv_context *of);
int __wrap_ibv_query_device(struct ibv_context *of, struct ibv_device_attr *attr);
int __wrap_ibv_query_port(struct ibv_context *of, uint8_t port, struct ibv_port_attr *attr);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *of);
int __wrap_ibv_dealloc_pd(struct ibv_pd *of);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *of, int cqe, void *arg,
                                    struct ibv_comp_channel *channel, int vector);
int __wrap_ibv_destroy_cq(struct ibv_cq *of);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *init);
int __wrap_ibv_destroy_qp(struct ibv_qp *of);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *of, void *at, size_t length, int access);
int __wrap_ibv_dereg_mr(struct ibv_mr *of);

struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
    *count = 1;
    return is_made("list") ? devices : NULL;
}

void __wrap_ibv_free_device_list(struct ibv_device **list)
{
    assert_ptr_equal(list, devices);
    device.open--;
}

const char *__wrap_ibv_get_device_name(struct ibv_device *of)
{
    assert_ptr_equal(of, &one);
    return "mlx5_0";
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *of)
{
    assert_ptr_equal(of, &one);
    return is_made("open") ? &context : NULL;
}

int __wrap_ibv_close_device(struct ibv_context *of)
{
    assert_ptr_equal(of, &context);
    device.open--;
    return 0;
}

int __wrap_ibv_query_device(struct ibv_context *of, struct ibv_device_attr *attr)
{
    assert_ptr_equal(of, &context);
    *attr = device.attr;
    if (!is_made("query"))
        return device.code;
    device.open--;
    return 0;
}

int __wrap_ibv_query_port(struct ibv_context *of, uint8_t port, struct ibv_port_attr *attr)
{
    assert_ptr_equal(of, &context);
    assert_in_range(port, 1, 2);
    *attr = device.port;
    attr->lid = (uint16_t)(attr->lid + port);
    if (!is_made(port == 1 ? "port 1" : "port 2"))
        return device.code;
    device.open--;
    return 0;
}

struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *of)
{
    assert_ptr_equal(of, &context);
    return is_made("pd") ? &pd : NULL;
}

int __wrap_ibv_dealloc_pd(struct ibv_pd *of)
{
    assert_ptr_equal(of, &pd);
    device.open--;
    return 0;
}

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *of, int cqe, void *arg,
                                    struct ibv_comp_channel *channel, int vector)
{
    (void)of, (void)cqe, (void)arg, (void)vector;
    assert_null(channel);
    return is_made("cq") ? &cq : NULL;
}

int __wrap_ibv_destroy_cq(struct ibv_cq *of)
{
    assert_ptr_equal(of, &cq);
    device.open--;
    return 0;
}

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *init)
{
    assert_ptr_equal(of, &pd);
    assert_ptr_equal(init->send_cq, &cq);
    assert_ptr_equal(init->recv_cq, &cq);
    assert_true(init->qp_type == IBV_QPT_RC || init->qp_type == IBV_QPT_UD);
    return is_made(init->qp_type == IBV_QPT_RC ? "rc" : "ud") ? &qp : NULL;
}

int __wrap_ibv_destroy_qp(struct ibv_qp *of)
{
    assert_ptr_equal(of, &qp);
    device.open--;
    return 0;
}

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *of, void *at, size_t length, int access)
{
    assert_ptr_equal(of, &pd);
    assert_non_null(at);
    assert_int_equal(length, MEMORY);
    assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
    device.regs++;
    return is_made("mr") ? &mr : NULL;
}

int __wrap_ibv_dereg_mr(struct ibv_mr *of)
{
    assert_ptr_equal(of, &mr);
    device.open--;
    return 0;
}

/* ---- tests ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&device, 0, sizeof device);
    return 0;
}

static void try_device(const char *name, const char *uverbs, uint64_t memory,
                       struct topo_rdma *rdma, struct nic_open *ret_open)
{
    struct open_nics *nics = NULL;
    snprintf(rdma->name, sizeof rdma->name, "%s", name);
    snprintf(rdma->uverbs, sizeof rdma->uverbs, "%s", uverbs);
    assert_int_equal(open_nics_new(memory, &nics, NULL), 0);
    open_nics_try(nics, rdma, ret_open);
    open_nics_free(nics);
    assert_int_equal(device.open, 0); /* nothing stays */
}

/* "y" or "n", "?" for unknown, of each step. */
static void assert_steps(const struct nic_open *open, const char *expected)
{
    char text[NIC_STEPS + 1] = "";
    for (int i = 0; i < NIC_STEPS; i++)
        text[i] = "?ny"[open->step[i].done];
    assert_string_equal(text, expected);
}

static void each_step_may_fail(void **state)
{
    (void)state;
    static const struct {
        const char *fails, *fails_too;
        int code;
        const char *steps;
        enum nic_step step; /* whose reason is: */
        int reason;         /* errno; 0: none */
    } table[] = {
        {NULL, NULL, 0, "yyyyy", NIC_STEP_OPEN, 0},
        {"open", NULL, EACCES, "n????", NIC_STEP_OPEN, EACCES},
        {"open", NULL, 0, "n????", NIC_STEP_OPEN, EIO},
        {"open", NULL, ENOSYS, "?????", NIC_STEP_OPEN, ENOSYS},
        {"query", NULL, EINVAL, "ynyyy", NIC_STEP_QUERY, EINVAL},
        {"query", NULL, EOPNOTSUPP, "y?yyy", NIC_STEP_QUERY, EOPNOTSUPP},
        {"port 1", NULL, EINVAL, "ynyyy", NIC_STEP_QUERY, EINVAL},
        {"port 2", NULL, EPROTONOSUPPORT, "y?yyy", NIC_STEP_QUERY, EPROTONOSUPPORT},
        {"pd", NULL, ENOMEM, "yyn??", NIC_STEP_CQ, ENOMEM},
        {"pd", NULL, ENOTTY, "yy???", NIC_STEP_CQ, ENOTTY},
        {"cq", NULL, ENOMEM, "yyn?y", NIC_STEP_CQ, ENOMEM},
        {"rc", NULL, EPERM, "yyyny", NIC_STEP_QP, EPERM},
        {"rc", NULL, EINVAL, "yyyyy", NIC_STEP_QP, 0}, /* datagrams do */
        {"rc", NULL, EOPNOTSUPP, "yyyyy", NIC_STEP_QP, 0},
        {"rc", "mr", ENOMEM, "yyynn", NIC_STEP_QP, ENOMEM},
        {"mr", NULL, ENOMEM, "yyyyn", NIC_STEP_MEMORY, ENOMEM},
        {"mr", NULL, 0, "yyyyn", NIC_STEP_MEMORY, EIO},
        {"ud", NULL, ENOMEM, "yyyyy", NIC_STEP_QP, 0}, /* which nobody needs */
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct topo_port ports[2] = {{.number = 1}, {.number = 2}};
        struct topo_rdma rdma = {.ports = ports, .port_count = 2};
        struct nic_open open;
        set_up(NULL);
        device.fails = table[i].fails;
        device.fails_too = table[i].fails_too;
        device.code = table[i].code;
        try_device("mlx5_0", "", MEMORY, &rdma, &open);
        assert_steps(&open, table[i].steps);
        assert_int_equal(open.step[table[i].step].code, table[i].reason);
        assert_string_equal(open.step[table[i].step].why,
                            table[i].reason ? strerror(table[i].reason) : "");
    }
}

static void without_connections_and_datagrams(void **state)
{
    (void)state;
    struct topo_rdma rdma = {.port_count = 0};
    struct nic_open open;
    device.fails = "rc";
    device.fails_too = "ud";
    device.code = EINVAL;
    try_device("mlx5_0", "", MEMORY, &rdma, &open);
    assert_steps(&open, "yyy?y");
    assert_string_equal(open.step[NIC_STEP_QP].why,
                        "its provider makes neither reliable connections nor datagrams");
}

static void memory_that_is_not_tried(void **state)
{
    (void)state;
    struct topo_rdma rdma = {.port_count = 0};
    struct nic_open open;
    try_device("mlx5_0", "", 0, &rdma, &open);
    assert_steps(&open, "yyyy?");
    assert_string_equal(open.step[NIC_STEP_MEMORY].why, "");
    try_device("mlx5_0", "", UINT64_MAX / 2, &rdma, &open); /* more than there is */
    assert_steps(&open, "yyyy?");
    assert_string_equal(open.step[NIC_STEP_MEMORY].why, "there is no memory to try it with");
    assert_int_equal(device.regs, 0);
}

static void devices_that_are_not_listed(void **state)
{
    (void)state;
    struct topo_rdma rdma = {.port_count = 0};
    struct nic_open open;
    try_device("mlx5_1", "", MEMORY, &rdma, &open);
    assert_steps(&open, "?????");
    assert_string_equal(open.step[NIC_STEP_OPEN].why, "the kernel shows no character device of it");
    try_device("mlx5_1", "no-such-uverbs", MEMORY, &rdma, &open);
    assert_steps(&open, "n????");
    assert_int_equal(open.step[NIC_STEP_OPEN].code, ENOENT);
    device.fails = "open";
    device.code = EIO;
    try_device("mlx5_0", "no-such-uverbs", MEMORY, &rdma, &open); /* the node's own reason */
    assert_int_equal(open.step[NIC_STEP_OPEN].code, ENOENT);
}

static void a_list_that_cannot_be_had(void **state)
{
    (void)state;
    static const int codes[] = {ENOSYS, EPERM, 0};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct open_nics *nics = NULL;
        struct drarun_error err = {0};
        char expected[128];
        int code = codes[i] ? codes[i] : ENODEV;
        device.fails = "list";
        device.code = codes[i];
        assert_int_equal(open_nics_new(0, &nics, &err), -code);
        snprintf(expected, sizeof expected, "libibverbs cannot list RDMA devices: %s",
                 strerror(code));
        assert_string_equal(err.text, expected);
        assert_null(nics);
    }
    open_nics_free(NULL);
}

static void the_device_tells_of_itself(void **state)
{
    (void)state;
    struct topo_port ports[2] = {{.number = 1, .lane_speed = "old"}, {.number = 2}};
    struct topo_rdma rdma = {.ports = ports, .port_count = 2, .firmware = strdup("old")};
    struct nic_open open;
    snprintf(device.attr.fw_ver, sizeof device.attr.fw_ver, "%s", "20.1");
    device.attr.max_qp = 11;
    device.attr.max_cq = 12;
    device.attr.max_mr = 13;
    device.attr.max_mr_size = 14;
    device.port =
        (struct ibv_port_attr){.lid = 40, .active_mtu = IBV_MTU_1024, .max_mtu = IBV_MTU_4096};
    try_device("mlx5_0", "", MEMORY, &rdma, &open);
    assert_string_equal(rdma.firmware, "20.1");
    assert_int_equal(rdma.limits.qps, 11);
    assert_int_equal(rdma.limits.cqs, 12);
    assert_int_equal(rdma.limits.mrs, 13);
    assert_int_equal(rdma.limits.mr_bytes, 14);
    assert_int_equal(ports[0].lid, 41);
    assert_int_equal(ports[1].lid, 42);
    assert_int_equal(ports[0].mtu, 1024);
    assert_int_equal(ports[0].max_mtu, 4096);
    device.attr.fw_ver[0] = '\0';
    try_device("mlx5_0", "", MEMORY, &rdma, &open);
    assert_string_equal(rdma.firmware, "20.1"); /* what is known stays */
    free(rdma.firmware);
}

static void take(struct topo_port *port, struct ibv_port_attr attr)
{
    struct topo_rdma rdma = {.ports = port, .port_count = 1};
    struct nic_open open;
    port->number = 1;
    device.port = attr;
    try_device("mlx5_0", "", MEMORY, &rdma, &open);
    free(rdma.firmware);
}

static void words_of_a_port(void **state)
{
    (void)state;
    static const char *const states[] = {"NOP",    "DOWN",         "INIT", "ARMED",
                                         "ACTIVE", "ACTIVE_DEFER", ""};
    static const char *const phys[] = {"",
                                       "Sleep",
                                       "Polling",
                                       "Disabled",
                                       "PortConfigurationTraining",
                                       "LinkUp",
                                       "LinkErrorRecovery",
                                       "Phy Test",
                                       ""};
    static const char *const speeds[] = {"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR"};
    static const struct {
        uint8_t width;
        uint32_t lanes;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}, {3, 9}, {0, 9}};
    static const struct {
        uint8_t layer;
        enum topo_link link;
    } links[] = {{IBV_LINK_LAYER_INFINIBAND, TOPO_LINK_IB},
                 {IBV_LINK_LAYER_ETHERNET, TOPO_LINK_ETHERNET},
                 {IBV_LINK_LAYER_UNSPECIFIED, TOPO_LINK_OTHER}};
    for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
        struct topo_port port = {.active = TOPO_UNKNOWN};
        take(&port, (struct ibv_port_attr){.state = (enum ibv_port_state)i});
        assert_string_equal(port.state, states[i]);
        assert_int_equal(port.active, i == IBV_PORT_ACTIVE ? TOPO_YES : TOPO_NO);
    }
    for (unsigned i = 0; i < ARRAY_LEN(phys); i++) {
        struct topo_port port = {.number = 1};
        take(&port, (struct ibv_port_attr){.phys_state = (uint8_t)i});
        assert_string_equal(port.phys_state, phys[i]);
    }
    for (unsigned i = 0; i < ARRAY_LEN(speeds); i++) {
        struct topo_port port = {.lane_speed = "old"};
        take(&port, (struct ibv_port_attr){.active_speed = (uint8_t)(1u << i)});
        assert_string_equal(port.lane_speed, speeds[i]);
    }
    for (unsigned i = 0; i < ARRAY_LEN(widths); i++) {
        struct topo_port port = {.lanes = 9};
        take(&port, (struct ibv_port_attr){.active_width = widths[i].width});
        assert_int_equal(port.lanes, widths[i].lanes);
    }
    for (unsigned i = 0; i < ARRAY_LEN(links); i++) {
        struct topo_port port = {.link = TOPO_LINK_OTHER};
        take(&port, (struct ibv_port_attr){.link_layer = links[i].layer});
        assert_int_equal(port.link, links[i].link);
    }
    for (int i = 0; i <= IBV_MTU_4096 + 1; i++) {
        struct topo_port port = {.mtu = 1};
        take(&port, (struct ibv_port_attr){.active_mtu = (enum ibv_mtu)i});
        assert_int_equal(port.mtu, i >= IBV_MTU_256 && i <= IBV_MTU_4096 ? 128u << i : 0);
    }
    /* faster ones look like NDR, and sysfs knows them */
    struct topo_port fast = {.lane_speed = "XDR"}, unknown = {.number = 1};
    take(&fast, (struct ibv_port_attr){.active_speed = 128});
    assert_string_equal(fast.lane_speed, "XDR");
    take(&unknown, (struct ibv_port_attr){.active_speed = 128});
    assert_string_equal(unknown.lane_speed, "NDR");
    take(&fast, (struct ibv_port_attr){.active_speed = 3});
    assert_string_equal(fast.lane_speed, "XDR");
}

static void steps_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"open", "query", "cq", "qp", "memory"};
    for (int i = 0; i < NIC_STEPS; i++)
        assert_string_equal(nic_step_name((enum nic_step)i), names[i]);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        CASE(each_step_may_fail),        CASE(without_connections_and_datagrams),
        CASE(memory_that_is_not_tried),  CASE(devices_that_are_not_listed),
        CASE(a_list_that_cannot_be_had), CASE(the_device_tells_of_itself),
        CASE(words_of_a_port),           CASE(steps_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
