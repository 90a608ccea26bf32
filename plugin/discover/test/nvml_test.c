/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/test/skip.h"
#include "lib/nvml/gpu_errors.h"
#include "lib/topo/test/tree.h"
#include "plugin/discover/device_json.h"
#include "plugin/discover/discover.h"
#include "plugin/discover/nvml.h"

#define STAND_IN NVML_STAND_IN_LIBRARY /* of the build */

/* An answer within 10 s is one; the next process begins at once. */
static const struct nvml_limits QUICK = {.open = 60000, .ask = 10000, .again = 0};

static void gpu(const struct tree *tree, const char *address, unsigned minor)
{
    char path[256], text[256];
    static const char *const files[][2] = {
        {"class", "0x030200\n"}, {"vendor", "0x10de\n"}, {"numa_node", "-1\n"}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "sys/devices/pci0000:00/%s/%s", address, files[i][0]);
        tree_file(tree, path, files[i][1]);
    }
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s", address);
    snprintf(text, sizeof text, "../../../devices/pci0000:00/%s", address);
    tree_link(tree, path, text);
    snprintf(path, sizeof path, "proc/driver/nvidia/gpus/%s/information", address);
    snprintf(text, sizeof text, "Model: \t NVIDIA\nDevice Minor: \t %u\n", minor);
    tree_file(tree, path, text);
}

static struct tree machine(const char *library_says)
{
    char path[128];
    struct tree tree = tree_new();
    gpu(&tree, "0000:00:05.0", 0);
    gpu(&tree, "0000:00:06.0", 1);
    tree_file(&tree, "nvml", library_says);
    snprintf(path, sizeof path, "%s/nvml", tree.name);
    setenv("NVML_STAND_IN", path, 1);
    return tree;
}

static struct nvml *opened(void)
{
    struct drarun_error err = {0};
    struct nvml *nvml = NULL;
    if (nvml_open(STAND_IN, &QUICK, &nvml, &err) < 0)
        fail_msg("%s", err.text);
    return nvml;
}

static struct node_devices found(const struct tree *tree, struct nvml *nvml)
{
    struct drarun_error err = {0};
    struct discover_config config;
    struct node_devices devices;
    discover_config_default(&config);
    const struct discover_source source = {.root = tree->root, .config = &config, .nvml = nvml};
    if (discover(&source, &devices, &err) < 0)
        fail_msg("%s", err.text);
    discover_config_done(&config);
    return devices;
}

static void test_whole_gpus(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 4 183359 18 NVIDIA B200\n"
                               "gpu 0000:00:06.0 GPU-b 5 183359 0 NVIDIA \x01"
                               "B200\n"
                               "gpu 0000:00:07.0 GPU-c 6 1 0 none of this tree\n");
    struct nvml *nvml = opened();
    struct node_devices devices = found(&tree, nvml);
    assert_int_equal(devices.count, 2);
    const struct node_gpu *one = &devices.list[0].gpu;
    assert_string_equal(one->uuid, "GPU-a");
    assert_string_equal(one->product, "NVIDIA B200");
    assert_string_equal(one->architecture, "Blackwell");
    assert_string_equal(one->compute, "10.0.0");
    assert_string_equal(one->cuda_version, "13.1.0");
    assert_string_equal(one->driver_version, "580.126.09");
    assert_int_equal(one->minor, 4);
    assert_int_equal(one->nvlinks, 18);
    assert_true(one->memory == 183359ull << 20);
    assert_string_equal(devices.list[1].gpu.product, "NVIDIA ?B200");
    json_t *json = device_json(&devices.list[0]);
    const char *driver = NULL, *memory = NULL;
    assert_int_equal(json_unpack(json, "{s:{s:{s:s}}, s:{s:{s:s}}}", "attributes",
                                 "gpu.nvidia.com/driverVersion", "version", &driver, "capacity",
                                 "gpu.nvidia.com/memory", "value", &memory),
                     0);
    assert_string_equal(driver, "580.126.9");
    assert_string_equal(memory, "183359Mi");
    json_decref(json);
    node_devices_done(&devices);
    nvml_close(nvml);
    tree_drop(&tree);
}

/* A GPU in MIG mode is offered by its parts, with the nodes of their capabilities. */
static void test_mig(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 0 40960 0 NVIDIA A100\n"
                               "mig MIG-a 1 0 4864 NVIDIA A100 MIG 1g.5gb\n"
                               "mig MIG-b 2 0 19968 NVIDIA A100 MIG 3g.20gb\n"
                               "gpu 0000:00:06.0 GPU-b 1 40960 0 NVIDIA A100\n");
    tree_file(&tree, "proc/driver/nvidia-caps/mig-minors",
              "config 1\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu0/gi2/access 21\n"
              "gpu1/gi1/access 99\n");
    tree_file(&tree, "dev/nvidia-caps/nvidia-cap12", "");
    tree_file(&tree, "dev/nvidia-caps/nvidia-cap13", "");
    struct nvml *nvml = opened();
    struct node_devices devices = found(&tree, nvml);
    assert_int_equal(devices.count, 3);
    assert_string_equal(devices.list[0].name, "gpu-0000-00-06-0");
    const struct node_device *mig = &devices.list[1];
    assert_int_equal(mig->kind, NODE_DEVICE_MIG);
    assert_string_equal(mig->name, "gpu-0000-00-05-0-mig-1-0");
    assert_string_equal(mig->gpu.uuid, "MIG-a");
    assert_string_equal(mig->gpu.parent_uuid, "GPU-a");
    assert_string_equal(mig->gpu.mig_profile, "1g.5gb");
    assert_true(mig->gpu.memory == 4864ull << 20);
    assert_int_equal(mig->chardev_count, 2);
    assert_string_equal(mig->chardevs[1].path, "/dev/nvidia-caps/nvidia-cap13");
    assert_string_equal(devices.list[2].gpu.mig_profile, "3g.20gb");
    node_devices_done(&devices);
    nvml_close(nvml);
    tree_drop(&tree);
}

/* The driver lists what 32 GPUs with 15 GPU instances and 8 compute instances in each could have.
 */
static void test_mig_of_the_eighth_gpu(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    unsigned minor = 3;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 7 40960 0 NVIDIA A100\n"
                               "mig MIG-a 1 0 4864 NVIDIA A100 MIG 1g.5gb\n");
    buf_add_str(&text, "config 1\nmonitor 2\n");
    for (unsigned gpu = 0; gpu < 32; gpu++)
        for (unsigned gi = 0; gi < 15; gi++) {
            buf_printf(&text, "gpu%u/gi%u/access %u\n", gpu, gi, minor++);
            for (unsigned ci = 0; ci < 8; ci++)
                buf_printf(&text, "gpu%u/gi%u/ci%u/access %u\n", gpu, gi, ci, minor++);
        }
    tree_file(&tree, "proc/driver/nvidia-caps/mig-minors", text.data);
    struct nvml *nvml = opened();
    struct node_devices devices = found(&tree, nvml);
    const struct node_device *mig = &devices.list[devices.count - 1];
    assert_int_equal(mig->kind, NODE_DEVICE_MIG);
    assert_int_equal(mig->chardev_count, 2);
    assert_string_equal(mig->chardevs[0].path, "/dev/nvidia-caps/nvidia-cap957");
    assert_string_equal(mig->chardevs[1].path, "/dev/nvidia-caps/nvidia-cap958");
    node_devices_done(&devices);
    nvml_close(nvml);
    tree_drop(&tree);
    buf_done(&text);
}

#define HEARD_MAX 8

struct hearing {
    struct nvml_xid *xids; /* HEARD_MAX */
    size_t count;
};

static void hear(const struct nvml_xid *xid, void *arg)
{
    struct hearing *hearing = arg;
    assert_true(hearing->count < HEARD_MAX);
    hearing->xids[hearing->count++] = *xid;
}

static size_t heard(struct nvml *nvml, struct nvml_xid xids[HEARD_MAX])
{
    struct hearing hearing = {xids, 0};
    nvml_each_xid(nvml, hear, &hearing);
    return hearing.count;
}

static void test_xids(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 0 1 0 A\nxid 0000:00:05.0 48\n"
                               "xid 0000:00:05.0 79\n");
    struct nvml_xid xids[HEARD_MAX];
    struct nvml *nvml = opened();
    assert_int_equal(heard(nvml, xids), 2);
    assert_string_equal(xids[0].bus_id, "0000:00:05.0");
    assert_int_equal(xids[0].xid, 48);
    assert_false(xids[0].lost);
    assert_true(xids[1].lost);
    assert_int_equal(heard(nvml, xids), 0);
    nvml_close(nvml);
    tree_drop(&tree);
}

/* A GPU that has fallen off the bus does not say where it was. */
static void lost(const char *how)
{
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 0 1 0 A\ngpu 0000:00:06.0 GPU-b 1 1 0 A\n");
    struct nvml_xid xids[HEARD_MAX];
    struct nvml *nvml = opened();
    assert_int_equal(heard(nvml, xids), 0);
    tree_file(&tree, "nvml.lost", how);
    assert_int_equal(heard(nvml, xids), 1);
    assert_string_equal(xids[0].bus_id, "0000:00:06.0");
    assert_int_equal(xids[0].xid, 79);
    assert_true(xids[0].lost);
    assert_int_equal(heard(nvml, xids), 0); /* once */
    nvml_close(nvml);
    tree_drop(&tree);
}

static void test_lost_gpu_with_an_event(void **state)
{
    (void)state;
    lost("0000:00:06.0 event\n");
}

static void test_lost_gpu_without_an_event(void **state)
{
    (void)state;
    lost("0000:00:06.0 silence\n");
}

/* As one that has failed to start: the library counts it and does not say which it is, so that it
 * is the one that is not described. One that the library does not count is left alone. */
static void test_gpu_that_cannot_be_opened(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 0 1 0 A\ngpu 0000:00:06.0 GPU-b 1 1 0 A\n");
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            tree_file(&tree, "nvml.lost", "0000:00:05.0 silence\n");
        if (i == 2)
            tree_file(&tree, "nvml", "gpu 0000:00:06.0 GPU-b 1 1 0 A\n");
        struct nvml *nvml = opened();
        struct node_devices devices = found(&tree, nvml);
        assert_int_equal(devices.count, 2);
        assert_int_equal(devices.list[0].fault_count, i == 1);
        assert_int_equal(devices.list[1].fault_count, 0);
        if (i == 1)
            assert_string_equal(devices.list[0].faults[0].key, "drarun.dev/lost");
        node_devices_done(&devices);
        nvml_close(nvml);
    }
    tree_drop(&tree);
}

static void test_refusals(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    struct nvml *nvml = NULL;
    struct tree tree = machine("fail 9\n");
    assert_int_equal(nvml_open("/nonexistent.so.1", NULL, &nvml, &err), -ENOENT);
    assert_int_equal(nvml_open(STAND_IN, NULL, &nvml, &err), -ENODEV);
    assert_non_null(strstr(err.text, "the driver does not answer: Driver Not Loaded (9)"));
    assert_int_equal(nvml_open("libc.so.6", NULL, &nvml, &err), -ENODEV);
    assert_non_null(strstr(err.text, "libc.so.6 has no nvmlInit_v2"));
    assert_null(nvml);
    tree_drop(&tree);
}

/* What was said last counts, nothing waits for the driver any more, and a new process is asked when
 * it answers. */
static void silence(const char *suffix, int64_t ask_ms)
{
    char path[32];
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 4 183359 18 NVIDIA B200\n"
                               "xid 0000:00:05.0 48\n");
    const struct nvml_limits limits = {.open = 60000, .ask = ask_ms, .again = 0};
    struct nvml *nvml = NULL;
    struct nvml_xid xids[HEARD_MAX];
    assert_int_equal(nvml_open(STAND_IN, &limits, &nvml, NULL), 0);
    struct node_devices before = found(&tree, nvml);
    assert_string_equal(before.list[0].gpu.uuid, "GPU-a");
    snprintf(path, sizeof path, "nvml%s", suffix);
    tree_file(&tree, path, "");
    for (int i = 0; i < 3; i++) {
        struct node_devices now = found(&tree, nvml);
        assert_string_equal(now.list[0].gpu.uuid, "GPU-a");
        assert_string_equal(now.list[0].gpu.product, "NVIDIA B200");
        assert_int_equal(heard(nvml, xids), 0);
        node_devices_done(&now);
    }
    assert_int_equal(unlinkat(tree.root, path, 0), 0);
    while (heard(nvml, xids) == 0)
        usleep(10000);
    assert_int_equal(xids[0].xid, 48);
    node_devices_done(&before);
    nvml_close(nvml);
    tree_drop(&tree);
}

static void test_driver_that_hangs(void **state)
{
    (void)state;
    silence(".hang", 200);
}

static void test_library_that_crashes(void **state)
{
    (void)state;
    silence(".crash", 10000);
}

static void test_driver_that_lists_no_more(void **state)
{
    (void)state;
    silence(".deny", 10000);
}

static void test_library_that_talks(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 4 183359 18 NVIDIA B200\n"
                               "xid 0000:00:05.0 48\n");
    struct nvml *nvml = opened();
    struct nvml_xid xids[HEARD_MAX];
    tree_file(&tree, "nvml.talk", "");
    struct node_devices devices = found(&tree, nvml);
    assert_string_equal(devices.list[0].gpu.uuid, "GPU-a");
    assert_int_equal(heard(nvml, xids), 1);
    node_devices_done(&devices);
    nvml_close(nvml);
    tree_drop(&tree);
}

/* All at once: a program that has been started may just be reading it. */
static void library_changes(const struct tree *tree, const char *library_says)
{
    tree_file(tree, "next", library_says);
    assert_int_equal(renameat(tree->root, "next", tree->root, "nvml"), 0);
}

/* A driver that is loaded after the plugin has started: its library is tried again as long as there
 * is a GPU, and nothing waits for it. */
static void test_driver_that_comes_later(void **state)
{
    (void)state;
    const struct nvml_limits limits = {.open = 60000, .ask = 10000, .again = 0};
    const struct nvml_limits rare = {.open = 60000, .ask = 10000, .again = 600000};
    struct nvml *nvml = NULL;
    struct drarun_error err = {0};
    struct tree tree = machine("fail 9\n");
    assert_int_equal(nvml_open_later("/nonexistent.so.1", &limits, &nvml, &err), 0);
    nvml_close(nvml);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nvml_open_later(STAND_IN, i ? &limits : &rare, &nvml, &err), 0);
        struct node_devices devices = found(&tree, nvml);
        assert_string_equal(devices.list[0].gpu.product, "NVIDIA");
        library_changes(&tree, "gpu 0000:00:05.0 GPU-a 4 183359 18 NVIDIA B200\n");
        for (int k = 0; i ? !devices.list[0].gpu.uuid[0] : k < 3; k++) {
            node_devices_done(&devices);
            devices = found(&tree, nvml);
        }
        assert_string_equal(devices.list[0].gpu.uuid, i ? "GPU-a" : "");
        node_devices_done(&devices);
        nvml_close(nvml);
        library_changes(&tree, "fail 9\n");
    }
    tree_drop(&tree);
}

/* Without the library nothing says that MIG is on but the driver's capabilities. */
static void test_divided_without_nvml(void **state)
{
    (void)state;
    struct tree tree = machine("fail 9\n");
    tree_file(&tree, "proc/driver/nvidia/capabilities/gpu0/mig/config", "");
    tree_file(&tree, "proc/driver/nvidia/capabilities/gpu1/mig/config", "");
    tree_file(&tree, "proc/driver/nvidia/capabilities/gpu1/mig/gi3/access", "");
    struct node_devices devices = found(&tree, NULL);
    assert_int_equal(devices.count, 1);
    assert_string_equal(devices.list[0].name, "gpu-0000-00-05-0");
    assert_int_equal(devices.warnings.count, 1);
    assert_non_null(
        strstr(devices.warnings.items[0], "0000:00:06.0 is not published: it is divided"));
    node_devices_done(&devices);
    tree_drop(&tree);
}

/* How many processes have begun, and the last one. */
static size_t begun(const struct tree *tree, pid_t *ret_last)
{
    char text[1024] = "";
    size_t count = 0;
    int fd = openat(tree->root, "nvml.pids", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    *ret_last = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1, count++)
        *ret_last = (pid_t)atoi(line);
    return count;
}

/* A node without GPUs needs no library: it is not tried again. */
static void test_no_gpus(void **state)
{
    (void)state;
    const struct nvml_limits limits = {.open = 60000, .ask = 10000, .again = 0};
    struct nvml_xid xids[HEARD_MAX];
    struct nvml *nvml = NULL;
    pid_t last;
    struct tree gpus = machine("fail 9\n"), none = tree_new();
    tree_dir(&none, "sys/bus/pci/devices");
    assert_int_equal(nvml_open_later(STAND_IN, &limits, &nvml, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct node_devices devices = found(&none, nvml);
        assert_int_equal(devices.count, 0);
        assert_int_equal(heard(nvml, xids), 0);
        node_devices_done(&devices);
    }
    assert_int_equal(begun(&gpus, &last), 1);
    nvml_close(nvml);
    tree_drop(&none);
    tree_drop(&gpus);
}

/* A driver's call keeps it, as a tracer does here: no other one is started until it has ended. */
static void test_driver_that_keeps_a_process(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 4 1 1 NVIDIA B200\nxid 0000:00:05.0 48\n");
    const struct nvml_limits limits = {.open = 60000, .ask = 200, .again = 0};
    struct nvml *nvml = NULL;
    struct nvml_xid xids[HEARD_MAX];
    pid_t first = 0, last = 0;
    assert_int_equal(nvml_open(STAND_IN, &limits, &nvml, NULL), 0);
    tree_file(&tree, "nvml.hang", "");
    size_t count = begun(&tree, &first);
    if (ptrace(PTRACE_SEIZE, first, NULL, PTRACE_O_TRACEEXIT) < 0) {
        nvml_close(nvml);
        tree_drop(&tree);
        skip_for("ptrace(2) is not permitted here"); /* as in some sandboxes */
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(heard(nvml, xids), 0);
    assert_int_equal(begun(&tree, &last), count);
    assert_int_equal(unlinkat(tree.root, "nvml.hang", 0), 0);
    assert_int_equal(ptrace(PTRACE_DETACH, first, NULL, NULL), 0);
    while (heard(nvml, xids) == 0)
        usleep(10000);
    assert_int_equal(begun(&tree, &last), count + 1);
    nvml_close(nvml);
    tree_drop(&tree);
}

static void test_errors(void **state)
{
    (void)state;
    struct tree tree = machine("gpu 0000:00:05.0 GPU-a 4 1 2 NVIDIA B200\n"
                               "gpu 0000:00:06.0 GPU-b 5 1 0 NVIDIA B200\n"
                               "ecc 0000:00:06.0 4 1\n"
                               "nvlink 0000:00:05.0 1 0 7\n");
    struct nvml_library library;
    struct error_counts begun = {0}, now = {0};
    struct strlist rose = STRLIST_INIT;
    unsigned links = 0;
    assert_int_equal(nvml_library_open(STAND_IN, &library, NULL), 0);
    assert_int_equal(gpu_errors_add(&library, &begun, &links), 2);
    assert_int_equal(links, 2);
    assert_int_equal(begun.count, 2 + 2 * 3); /* ECC of two, three counters of each link */
    gpu_errors_add(&library, &now, &links);
    error_counts_rose(&begun, &now, &rose);
    assert_int_equal(rose.count, 2);
    assert_string_equal(rose.items[0], "GPU 0000:00:05.0 NVLink 1 replays +7");
    assert_string_equal(rose.items[1], "GPU 0000:00:06.0 uncorrected ECC errors +1");
    strlist_done(&rose);
    error_counts_done(&begun);
    error_counts_done(&now);
    nvml_library_close(&library);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_whole_gpus),
        cmocka_unit_test(test_mig),
        cmocka_unit_test(test_mig_of_the_eighth_gpu),
        cmocka_unit_test(test_xids),
        cmocka_unit_test(test_lost_gpu_with_an_event),
        cmocka_unit_test(test_lost_gpu_without_an_event),
        cmocka_unit_test(test_gpu_that_cannot_be_opened),
        cmocka_unit_test(test_divided_without_nvml),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_driver_that_comes_later),
        cmocka_unit_test(test_no_gpus),
        cmocka_unit_test(test_driver_that_hangs),
        cmocka_unit_test(test_library_that_crashes),
        cmocka_unit_test(test_driver_that_lists_no_more),
        cmocka_unit_test(test_library_that_talks),
        cmocka_unit_test(test_driver_that_keeps_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
