/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/inventory/device_role.h"
#include "lib/base/cleanup.h"

static void tells_roles(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum device_kind kind;
    } rows[] = {
        {"gpu.nvidia.com", DEVICE_GPU},
        {"gpu.amd.com", DEVICE_GPU},
        {"gpu.intel.com", DEVICE_GPU},
        {"h100-gpus", DEVICE_GPU},
        {"amdgpu-partition", DEVICE_GPU},
        {"mig.nvidia.com", DEVICE_GPU},
        {"dra.net", DEVICE_NIC},
        {"dranet.net", DEVICE_NIC},
        {"mrdma.google.com", DEVICE_NIC},
        {"netdev.google.com", DEVICE_NIC},
        {"sriovnetwork.k8snetworkplumbingwg.io", DEVICE_NIC},
        {"efa.networking.k8s.aws", DEVICE_NIC},
        {"vf", DEVICE_NIC},
        {"nic-3", DEVICE_NIC},
        {"nic0", DEVICE_NIC},
        {"net1", DEVICE_NIC},
        {"fast-nics", DEVICE_NIC},
        {"RDMA", DEVICE_NIC},
        {"compute-domain-default-channel.nvidia.com", DEVICE_CHANNEL},
        {"compute-domain.nvidia.com", DEVICE_CHANNEL},
        {"kubernetes.io", DEVICE_OTHER},
        {"example.com", DEVICE_OTHER},
        {"unicorn", DEVICE_OTHER},
        {"planet", DEVICE_OTHER},
        {"tpu.google.com", DEVICE_OTHER},
        {"vfio", DEVICE_OTHER},
        {"", DEVICE_OTHER},
        {NULL, DEVICE_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (device_role(rows[i].name) != rows[i].kind)
            fail_msg("%s: %d", rows[i].name ? rows[i].name : "NULL", device_role(rows[i].name));
}

static void names_what_is_not_supported(void **state)
{
    (void)state;
    assert_string_equal(device_role_unsupported("tpu.google.com"), "TPUs");
    assert_string_equal(device_role_unsupported("neuroncore.aws.com"), "Neuron devices");
    assert_string_equal(device_role_unsupported("dra.cpu"), "CPUs");
    assert_null(device_role_unsupported("gpu.nvidia.com"));
    assert_null(device_role_unsupported("example.com"));
    assert_null(device_role_unsupported(NULL));
}

static void tells_vendors(void **state)
{
    (void)state;
    assert_string_equal(device_vendor("gpu.nvidia.com"), "NVIDIA");
    assert_string_equal(device_vendor("gpu.amd.com"), "AMD");
    assert_string_equal(device_vendor("gpu.intel.com"), "Intel");
    assert_string_equal(device_vendor("gpu.drarun.dev"), "NVIDIA");
    assert_null(device_vendor("gpu.example.com"));
    assert_null(device_vendor(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_roles),
        cmocka_unit_test(names_what_is_not_supported),
        cmocka_unit_test(tells_vendors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
