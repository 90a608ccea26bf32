/* SPDX-License-Identifier: Apache-2.0 */
/* What proves RDMA, by name and by the layer below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/nccl_net.h"

static void is(const char *network, const char *line, enum nccl_net_kind kind, const char *words)
{
    struct nccl_layers layers = {0};
    char text[96];
    nccl_layers_line(&layers, line, strlen(line));
    nccl_net_words(network, &layers, text, sizeof text);
    if (nccl_net_kind(network, &layers) != kind || strcmp(text, words) != 0)
        fail_msg("%s after \"%s\": %u, %s", network, line, nccl_net_kind(network, &layers), text);
}

static void test_names(void **state)
{
    (void)state;
    is("IB", "", NCCL_NET_RDMA, "IB");
    is("IBext_v9", "", NCCL_NET_RDMA, "IBext_v9");
    is("gIB", "", NCCL_NET_RDMA, "gIB");
    is("SHARP", "", NCCL_NET_RDMA, "SHARP");
    is("Socket", "", NCCL_NET_TCP, "Socket");
    is("", "", NCCL_NET_UNPROVEN, "");
    is("IBextra", "", NCCL_NET_UNPROVEN, "IBextra");
    is("ib", "", NCCL_NET_UNPROVEN, "ib");
}

static void test_providers(void **state)
{
    (void)state;
    is("Libfabric", "NET/OFI Selected provider is efa, fabric is efa-direct (found 8 nics)",
       NCCL_NET_RDMA, "Libfabric with provider efa");
    is("AWS Libfabric", "NET/OFI Selected Provider is verbs;ofi_rxm", NCCL_NET_RDMA,
       "AWS Libfabric with provider verbs;ofi_rxm");
    is("Libfabric", "Selected provider is tcp;ofi_rxm, fabric", NCCL_NET_TCP,
       "Libfabric with provider tcp;ofi_rxm");
    is("Libfabric", "Selected provider is ", NCCL_NET_UNPROVEN,
       "Libfabric, of which no line names the provider");
    is("Libfabric", "Selected provider is efax", NCCL_NET_UNPROVEN, "Libfabric with provider efax");
    is("IB", "Selected provider is tcp", NCCL_NET_RDMA, "IB");
}

static void test_transports(void **state)
{
    (void)state;
    is("UCX", "inter-node cfg#1 rma_am(rc_mlx5/mlx5_0:1)", NCCL_NET_RDMA,
       "UCX with transport rc_mlx5");
    is("UCX", "inter-node cfg#1 tag(rc_verbs/x tcp/eth0)", NCCL_NET_UNPROVEN,
       "UCX with transport tcp");
    is("UCX-RMA", "UCX_TLS=rc,sm", NCCL_NET_RDMA, "UCX-RMA with transport rc,sm");
    is("UCX", "UCX_TLS=sm", NCCL_NET_UNPROVEN, "UCX, of which no line names the transport");
    is("UCX", "UCX_TLS=", NCCL_NET_UNPROVEN, "UCX, of which no line names the transport");
    is("UCX", "UCX_TLS", NCCL_NET_UNPROVEN, "UCX, of which no line names the transport");
    is("UCX", "inter-node cfg /", NCCL_NET_UNPROVEN, "UCX, of which no line names the transport");
}

static void test_hosts_that_differ(void **state)
{
    struct nccl_layers layers = {0};
    static const char *const lines[] = {"Selected provider is efa,", "Selected provider is psm3,",
                                        "Selected provider is tcp,"};
    char text[96];
    (void)state;
    for (size_t i = 0; i < 3; i++)
        nccl_layers_line(&layers, lines[i], strlen(lines[i]));
    assert_int_equal(nccl_net_kind("Libfabric", &layers), NCCL_NET_UNPROVEN);
    nccl_net_words("Libfabric", &layers, text, sizeof text);
    assert_string_equal(text, "Libfabric with provider psm3"); /* the first that is no RDMA */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_providers),
        cmocka_unit_test(test_transports), cmocka_unit_test(test_hosts_that_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
