/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/discover/faults.h"
#include "plugin/slices/table.h"

static void check(const struct node_devices *devices, const char *expected)
{
    struct buf out = BUF_INIT;
    devices_table(devices, &out);
    assert_string_equal(out.data, expected);
    buf_done(&out);
}

static void table_is_as_wide_as_its_cells(void **state)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    (void)state;
    check(&devices, "NAME  KIND  PCIEROOT  SWITCH  NUMA  INTERFACE/PRODUCT  RDMA/UUID  "
                    "SPEED/MEMORY  STATE\n");
    struct node_device *gpu = node_devices_add(&devices);
    gpu->kind = NODE_DEVICE_GPU;
    snprintf(gpu->name, sizeof gpu->name, "gpu-0");
    snprintf(gpu->pci.root, sizeof gpu->pci.root, "pci0000:8c");
    snprintf(gpu->pci.pcie_switch, sizeof gpu->pci.pcie_switch, "0000:8d:00.0");
    snprintf(gpu->gpu.product, sizeof gpu->gpu.product, "NVIDIA B200");
    snprintf(gpu->gpu.uuid, sizeof gpu->gpu.uuid, "GPU-a");
    gpu->gpu.memory = (1536ull << 20) + 1;
    struct node_device *mig = node_devices_add(&devices);
    mig->kind = NODE_DEVICE_MIG;
    mig->pci.numa = -1;
    snprintf(mig->name, sizeof mig->name, "gpu-0-mig-1-0");
    struct node_device *nic = node_devices_add(&devices);
    nic->kind = NODE_DEVICE_NIC;
    nic->pci.numa = 1;
    snprintf(nic->name, sizeof nic->name, "nic-0");
    snprintf(nic->netdev.name, sizeof nic->netdev.name, "eth1");
    snprintf(nic->rdma.name, sizeof nic->rdma.name, "mlx5_0");
    nic->netdev.speed_mbps = 1;
    nic->rdma.rate_mbps = 2500;
    fault_add(nic, FAULT_NO_SCHEDULE, FAULT_LINK_DOWN, "", "no link");
    fault_add(nic, FAULT_NO_EXECUTE, FAULT_LOST, "", "lost");
    struct node_device *other = node_devices_add(&devices);
    other->kind = NODE_DEVICE_NIC;
    other->netdev.speed_mbps = 1;
    check(&devices,
          "NAME           KIND  PCIEROOT    SWITCH        NUMA  INTERFACE/PRODUCT  RDMA/UUID  "
          "SPEED/MEMORY  STATE\n"
          "gpu-0          GPU   pci0000:8c  0000:8d:00.0  0     NVIDIA B200        GPU-a      "
          "1536 MiB      ok\n"
          "gpu-0-mig-1-0  MIG   -           -             -     -                  -          "
          "-             ok\n"
          "nic-0          NIC   -           -             1     eth1               mlx5_0     "
          "2.5 Gb/s      no link\n"
          "-              NIC   -           -             0     -                  -          "
          "0.001 Gb/s    ok\n");
    node_devices_done(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table_is_as_wide_as_its_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
