/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

#define TYPE(name, type, help)                                                                     \
    "# HELP drarun_plugin_" name " " help "\n# TYPE drarun_plugin_" name " " type "\n"
#define OF(name, labels, value) "drarun_plugin_" name "{" labels "} " value "\n"
#define GPU "driver=\"gpu.drarun.dev\""
#define NIC "driver=\"dra.net\""

/* Two GPUs, one of them with a fault, a MIG device and a NIC; the NICs' driver has another's name.
 */
static void test_text(void **state)
{
    static const char expected[] = TYPE("info", "gauge", "Which plugin this is.") OF(
        "info", "version=\"" DRARUN_VERSION "\",node=\"n0\"",
        "1") TYPE("devices", "gauge",
                  "Devices of the node, by driver and whether they have a fault.")
        OF("devices", GPU ",fault=\"no\"", "2") OF("devices", GPU ",fault=\"yes\"", "1") OF(
            "devices", NIC ",fault=\"no\"", "1") OF("devices", NIC ",fault=\"yes\"", "0")
            TYPE("claims", "gauge", "Claims that are prepared.") OF("claims", GPU, "7") OF(
                "claims", NIC, "8") TYPE("calls_total", "counter",
                                         "Calls of the kubelet for a claim.")
                OF("calls_total", GPU ",call=\"prepare\",result=\"ok\"", "1") OF(
                    "calls_total", GPU ",call=\"prepare\",result=\"error\"",
                    "2") OF("calls_total", GPU ",call=\"unprepare\",result=\"ok\"", "3")
                    OF("calls_total", GPU ",call=\"unprepare\",result=\"error\"", "4") OF(
                        "calls_total",
                        NIC
                        ",call=\"prepare\",result=\"ok\"",
                        "0") OF("calls_total", NIC ",call=\"prepare\",result=\"error\"", "0")
                        OF("calls_total", NIC ",call=\"unprepare\",result=\"ok\"",
                           "18446744073709551615")
                            OF("calls_total", NIC ",call=\"unprepare\",result=\"error\"", "0") TYPE(
                                "call_seconds_total",
                                "counter", "How long those calls took together.")
                                OF("call_seconds_total", GPU ",call=\"prepare\"", "1.234") OF(
                                    "call_seconds_total", GPU ",call=\"unprepare\"", "0.056")
                                    OF("call_seconds_total", NIC ",call=\"prepare\"", "0.000") OF(
                                        "call_seconds_total", NIC ",call=\"unprepare\"", "3600.000")
                                        TYPE("slice_writes_total", "counter",
                                             "Writes of ResourceSlices, by result.")
                                            OF("slice_writes_total", "result=\"ok\"", "5") OF(
                                                "slice_writes_total", "result=\"error\"", "6")
                                                TYPE("slices_restored_total", "counter",
                                                     "ResourceSlices that somebody else had "
                                                     "changed or deleted.") "drarun_plugin_slices_"
                                                                            "restored_total 9\n";
    struct node_devices devices = NODE_DEVICES_INIT;
    static const struct {
        enum node_device_kind kind;
        unsigned faults;
    } of[] = {
        {NODE_DEVICE_GPU, 0}, {NODE_DEVICE_GPU, 2}, {NODE_DEVICE_MIG, 0}, {NODE_DEVICE_NIC, 0}};
    struct buf text = BUF_INIT;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct node_device *device = node_devices_add(&devices);
        assert_non_null(device);
        device->kind = of[i].kind;
        device->fault_count = of[i].faults;
    }
    const struct metrics_facts facts = {
        .node = "n0",
        .devices = &devices,
        .drivers = {{.name = "gpu.drarun.dev",
                     .devices_of = NODE_DRIVER_GPU,
                     .counts = {.claims = 7,
                                .prepared = 1,
                                .not_prepared = 2,
                                .unprepared = 3,
                                .not_unprepared = 4,
                                .prepare_ms = 1234,
                                .unprepare_ms = 56}},
                    {.name = "dra.net",
                     .devices_of = NODE_DRIVER_NIC,
                     .counts = {.claims = 8, .unprepared = UINT64_MAX, .unprepare_ms = 3600000}}},
        .driver_count = 2,
        .slices = {.writes = 5, .failures = 6, .restored = 9}};
    plugin_metrics_text(&facts, &text);
    assert_string_equal(text.data, expected);
    buf_done(&text);
    node_devices_done(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
