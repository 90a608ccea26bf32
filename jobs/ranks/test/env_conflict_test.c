/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "jobs/ranks/env_conflict.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

static const struct {
    const char *ours, *value, *theirs;
    bool conflict;
} table[] = {
    {"OMPI_MCA_btl_tcp_if_include", "eth0", "OMPI_MCA_btl_tcp_if_exclude=lo,docker0", true},
    {"OMPI_MCA_btl_tcp_if_include", "eth0", "OMPI_MCA_btl_tcp_if_exclude=", false},
    {"OMPI_MCA_btl_tcp_if_include", "eth0", "OMPI_MCA_oob_tcp_if_exclude=lo", false},
    {"UCX_NET_DEVICES", "eth0", "UCX_TLS=rc,sm,self", true},
    {"UCX_NET_DEVICES", "eth0", "UCX_TLS=sm,dc_x", true},
    {"UCX_NET_DEVICES", "eth0", "UCX_TLS=all", true},
    {"UCX_NET_DEVICES", "eth0", "UCX_TLS=^tcp", true},
    {"UCX_NET_DEVICES", "eth0", "UCX_TLS=tcp,cuda_copy,self", false},
    {"UCX_NET_DEVICES", "eth0", "UCX_TLS=", false},
    {"UCX_NET_DEVICES", "mlx5_0:1", "UCX_TLS=tcp,self", true},
    {"UCX_NET_DEVICES", "mlx5_0:1", "UCX_TLS=rc_x,sm", false},
    {"UCX_NET_DEVICES", "mlx5_0:1", "UCX_TLS=^tcp", false},
    {"NCCL_NET", "IB", "NCCL_NET_PLUGIN=spcx", true},
    {"NCCL_NET", "Socket", "NCCL_NET_PLUGIN=libnccl-net-fast.so", true},
    {"NCCL_NET", "IB", "NCCL_NET_PLUGIN=None", false},
    {"NCCL_NET", "IB", "NCCL_NET_PLUGIN=", false},
    {"NCCL_NET", "gIB", "NCCL_NET_PLUGIN=libnccl-net.so", false},
    /* which is a failure, as network: rdma wants it */
    {"NCCL_NET", "IB", "NCCL_IB_DISABLE=1", false},
    {"NCCL_NET", "IB", "NCCL_COLLNET_ENABLE=1", true},
    {"NCCL_NET", "IB", "NCCL_COLLNET_ENABLE=0", false},
    {"NCCL_NET_PLUGIN", "none", "NCCL_COLLNET_ENABLE=1", true},
    {"NCCL_NET_PLUGIN", "sys", "NCCL_COLLNET_ENABLE=1", false},
    {"NCCL_IB_GID_INDEX", "3", "NCCL_IB_ADDR_RANGE=10.0.0.0/8", true},
    {"NCCL_IB_GID_INDEX", "-1", "NCCL_IB_ADDR_RANGE=10.0.0.0/8", false},
    {"NCCL_IB_GID_INDEX", "3", "NCCL_IB_ROCE_VERSION_NUM=1", true},
    {"NCCL_IB_HCA", "=mlx5_0:1", "NCCL_NET_PLUGIN=spcx", false},
};

static void rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char *env[] = {unconst("PATH=/bin"), unconst(table[i].theirs), unconst("A=b")};
        const char *why = NULL;
        const char *entry = env_conflict(env, ARRAY_LEN(env), table[i].ours, table[i].value, &why);
        if ((entry != NULL) != table[i].conflict)
            fail_msg("%s=%s beside %s: expected %s", table[i].ours, table[i].value, table[i].theirs,
                     table[i].conflict ? "a conflict" : "none");
        if (entry) {
            assert_ptr_equal(entry, env[1]);
            assert_true(why && why[0]);
        }
    }
}

static void the_last_entry_of_a_name(void **state)
{
    (void)state;
    char *env[] = {unconst("NCCL_COLLNET_ENABLE=1"), unconst("NCCL_COLLNET_ENABLE=0")};
    const char *why = NULL;
    assert_null(env_conflict(env, 2, "NCCL_NET", "IB", &why));
    assert_ptr_equal(env_conflict(env, 1, "NCCL_NET", "IB", &why), env[0]);
    assert_null(env_conflict(NULL, 0, "NCCL_NET", "IB", &why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows),
                                       cmocka_unit_test(the_last_entry_of_a_name)};
    return cmocka_run_group_tests_name("env_conflict", tests, NULL, NULL);
}
