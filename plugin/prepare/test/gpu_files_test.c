/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's files below a root: what a container gets, and what is said where something is missing.
 * Device nodes are clones of /dev/null, which needs root; without it those cases are passed over.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "plugin/prepare/gpu_files.h"
#include "plugin/prepare/nvidia_cdi.h"

#define VERSION "570.133.20"

struct tree {
    char path[64];
    int fd;
};

static void put(const struct tree *t, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", t->path, path);
    assert_int_equal(dirs_make_parents(full, 0755, NULL), 0);
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void link_to(const struct tree *t, const char *path, const char *target)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", t->path, path);
    assert_int_equal(dirs_make_parents(full, 0755, NULL), 0);
    assert_int_equal(symlink(target, full), 0);
}

static void node(const struct tree *t, const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", t->path, path);
    assert_int_equal(dirs_make_parents(full, 0755, NULL), 0);
    if (mknod(full, S_IFCHR | 0666, makedev(1, 3)) < 0)
        skip_for("needs root, to make a device node");
}

static void gone(const struct tree *t, const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", t->path, path);
    assert_int_equal(unlink(full), 0);
}

static struct tree make(const char *driver)
{
    struct tree t = {"/tmp/gpu-files-test-XXXXXX", -1};
    char path[256];
    assert_non_null(mkdtemp(t.path));
    t.fd = open(t.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (const char *const *name =
             (const char *const[]){"libcuda.so." VERSION, "libnvidia-ml.so." VERSION,
                                   "libnvidia-gpucomp.so." VERSION, "libnvidia-nvvm70.so.4",
                                   "libnvidia-tileiras.so." VERSION, NULL};
         *name; name++) {
        snprintf(path, sizeof path, "%s/usr/lib64/%s", driver, *name);
        put(&t, path, "x");
    }
    snprintf(path, sizeof path, "%s/usr/lib64/libcuda.so.1", driver);
    link_to(&t, path, "/usr/lib64/libcuda.so." VERSION); /* of the driver's root */
    snprintf(path, sizeof path, "%s/usr/lib64/libnvidia-ml.so.1", driver);
    link_to(&t, path, "libnvidia-ml.so." VERSION);
    snprintf(path, sizeof path, "%s/usr/bin/nvidia-smi", driver);
    put(&t, path, "#!");
    return t;
}

static void done(struct tree *t)
{
    close(t->fd);
    assert_int_equal(tree_remove(AT_FDCWD, t->path), 0);
}

static struct node_device gpu(void)
{
    struct node_device device = {.kind = NODE_DEVICE_GPU, .name = "gpu-0"};
    device.gpu.minor = 3;
    snprintf(device.gpu.uuid, sizeof device.gpu.uuid, "GPU-aa");
    return device;
}

static void mig(struct node_device *device)
{
    device->kind = NODE_DEVICE_MIG;
    snprintf(device->gpu.uuid, sizeof device->gpu.uuid, "MIG-bb");
    snprintf(device->chardevs[0].path, sizeof device->chardevs[0].path,
             "/dev/nvidia-caps/nvidia-cap21");
    snprintf(device->chardevs[1].path, sizeof device->chardevs[1].path,
             "/dev/nvidia-caps/nvidia-cap22");
    device->chardev_count = 2;
}

static int edits_of(const struct gpu_host *host, const struct node_device *device,
                    json_t **ret_edits, struct drarun_error *err)
{
    CLEANUP(gpu_driver_freep) struct gpu_driver *driver = NULL;
    int rc = gpu_driver_find(host, &driver, err);
    return rc < 0 ? rc : gpu_files_edits(driver, device, ret_edits, err);
}

static char *edits(const struct tree *t, const char *driver, const struct node_device *device)
{
    const struct gpu_host host = {t->fd, driver};
    json_t *value = NULL;
    struct drarun_error err = {0};
    if (edits_of(&host, device, &value, &err) < 0)
        fail_msg("%s", err.text);
    char *text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    return text;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in %s", part, text);
}

static void nodes_libraries_and_programs(void **state)
{
    (void)state;
    static const char *const roots[] = {"", "/run/nvidia/driver", "/opt/driver"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        struct tree t = make(roots[i]);
        struct node_device device = gpu();
        char wanted[512];
        node(&t, "dev/nvidia3");
        node(&t, "dev/nvidiactl");
        node(&t, "dev/nvidia-uvm");
        node(&t, "dev/nvidia4");
        char *text = edits(&t, i == 2 ? roots[i] : NULL, &device);
        has(text, "{\"path\":\"/dev/"
                  "nvidia3\",\"type\":\"c\",\"major\":1,\"minor\":3,\"permissions\":\"rw\"}");
        has(text, "/dev/nvidiactl");
        has(text, "/dev/nvidia-uvm\"");
        assert_null(strstr(text, "nvidia4"));
        assert_null(strstr(text, "uvm-tools"));
        assert_null(strstr(text, t.path));
        has(text, "NVIDIA_VISIBLE_DEVICES=void");
        for (const char *const *name =
                 (const char *const[]){"cuda.so.1", "nvidia-ml.so.1", "nvidia-gpucomp.so." VERSION,
                                       "nvidia-tileiras.so." VERSION, NULL};
             *name; name++) {
            const char *dot = strstr(*name, ".so.");
            snprintf(wanted, sizeof wanted,
                     "{\"hostPath\":\"%s/usr/lib64/lib%.*s.so." VERSION
                     "\",\"containerPath\":\"/usr/lib64/lib%s\",\"options\":[\"ro\"",
                     roots[i], (int)(dot - *name), *name, *name);
            has(text, wanted);
        }
        has(text, "-linux-gnu/libcuda.so.1\"");
        has(text,
            "/usr/lib64/libnvidia-nvvm70.so.4\",\"containerPath\":\"/usr/lib64/libnvidia-nvvm70");
        snprintf(
            wanted, sizeof wanted,
            "{\"hostPath\":\"%s/usr/bin/nvidia-smi\",\"containerPath\":\"/usr/bin/nvidia-smi\"",
            roots[i]);
        has(text, wanted);
        free(text);
        done(&t);
    }
}

static void nodes_of_the_drivers_own_root(void **state)
{
    (void)state;
    struct tree t = make("/run/nvidia/driver");
    struct node_device device = gpu();
    mig(&device);
    node(&t, "run/nvidia/driver/dev/nvidia3");
    node(&t, "run/nvidia/driver/dev/nvidiactl");
    node(&t, "dev/nvidia-uvm");
    node(&t, "dev/nvidia-caps/nvidia-cap21");
    node(&t, "dev/nvidia-caps/nvidia-cap22");
    char *text = edits(&t, NULL, &device);
    has(text, "\"hostPath\":\"/run/nvidia/driver/dev/nvidia3\"");
    has(text, "\"path\":\"/dev/nvidia-caps/nvidia-cap22\"");
    free(text);
    done(&t);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *without, *says;
    } cases[] = {
        {"dev/nvidia3", "no device node /dev/nvidia3: load"},
        {"dev/nvidiactl", "no device node /dev/nvidiactl"},
        {"dev/nvidia-uvm", "no device node /dev/nvidia-uvm:"},
        {"dev/nvidia-caps/nvidia-cap22", "no device node /dev/nvidia-caps/nvidia-cap22"},
        {"usr/lib64/libnvidia-ml.so.1", "no libnvidia-ml.so.1"},
        {"usr/lib64/libnvidia-ml.so." VERSION, "no libnvidia-ml.so.1"},
        {"usr/lib64/libcuda.so.1", "libcuda.so.1 of NVIDIA's driver is not below /, /run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t = make("");
        struct node_device device = gpu();
        const struct gpu_host host = {t.fd, NULL};
        struct drarun_error err = {0};
        json_t *value = NULL;
        mig(&device);
        node(&t, "dev/nvidia3");
        node(&t, "dev/nvidiactl");
        node(&t, "dev/nvidia-uvm");
        node(&t, "dev/nvidia-caps/nvidia-cap21");
        node(&t, "dev/nvidia-caps/nvidia-cap22");
        gone(&t, cases[i].without);
        assert_int_equal(edits_of(&host, &device, &value, &err), -ENOENT);
        has(err.text, cases[i].says);
        done(&t);
    }
}

static void a_file_is_no_device(void **state)
{
    (void)state;
    struct tree t = make("");
    struct node_device device = gpu();
    const struct gpu_host host = {t.fd, NULL};
    struct drarun_error err = {0};
    json_t *value = NULL;
    put(&t, "dev/nvidia3", "");
    assert_int_equal(edits_of(&host, &device, &value, &err), -ENOENT);
    device.gpu.minor = -1;
    assert_int_equal(edits_of(&host, &device, &value, &err), -ENOENT);
    has(err.text, "is not known");
    done(&t);
}

/* ---- NVIDIA's own ---- */

#define ENTRY(name, node)                                                                          \
    "- name: \"" name "\"\n  containerEdits:\n    deviceNodes:\n    - path: " node "\n"
#define HEAD                                                                                       \
    "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  deviceNodes:\n  - path: "    \
    "/dev/nvidiactl\ndevices:\n"

static void an_id_is_believed_where_its_nodes_are_right(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *id, *why;
        bool is_mig;
    } cases[] = {
        {"etc/cdi/nvidia.yaml", HEAD ENTRY("0", "/dev/nvidia3") ENTRY("1", "/dev/nvidia4"),
         "nvidia.com/gpu=0", "", false},
        {"var/run/cdi/nvidia.yaml", HEAD ENTRY("0", "/dev/nvidia3") ENTRY("GPU-aa", "/dev/nvidia3"),
         "nvidia.com/gpu=GPU-aa", "", false},
        {"run/cdi/nvidia.yaml", HEAD ENTRY("GPU-aa", "/dev/nvidia3") ENTRY("0", "/dev/nvidia3"),
         "nvidia.com/gpu=GPU-aa", "", false},
        {"etc/cdi/nvidia.yaml", HEAD ENTRY("GPU-aa", "/dev/nvidia4") ENTRY("0", "/dev/nvidia3"),
         NULL, "other device nodes than /dev/nvidia3", false},
        {"etc/cdi/nvidia.yaml", HEAD ENTRY("GPU-cc", "/dev/nvidia3"), NULL, "does not name it",
         false},
        {"etc/cdi/nvidia.yaml", HEAD ENTRY("all", "/dev/nvidia3\n    - path: /dev/nvidia4"), NULL,
         "does not name it", false},
        {"etc/cdi/nvidia.yaml", HEAD ENTRY("0", "/dev/nvidia33"), NULL, "does not name it", false},
        {"etc/cdi/nvidia.yaml",
         HEAD ENTRY("0:1", "/dev/nvidia3\n    - path: /dev/nvidia-caps/nvidia-cap21\n    - path: "
                           "/dev/nvidia-caps/nvidia-cap22"),
         NULL, "does not name it", false},
        {"etc/cdi/nvidia.yaml",
         HEAD ENTRY("0:1", "/dev/nvidia3\n    - path: /dev/nvidia-caps/nvidia-cap21\n    - path: "
                           "/dev/nvidia-caps/nvidia-cap22"),
         "nvidia.com/gpu=0:1", "", true},
        {"etc/cdi/nvidia.yaml",
         HEAD ENTRY("0:1", "/dev/nvidia3\n    - path: /dev/nvidia-caps/nvidia-cap21\n    - path: "
                           "/dev/nvidia-caps/nvidia-cap30"),
         NULL, "does not name it", true},
        {"etc/cdi/nvidia.yaml", HEAD ENTRY("0", "/dev/nvidia3"), NULL, "does not name it", true},
        {"etc/cdi/nvidia.json",
         "{\"kind\":\"nvidia.com/"
         "gpu\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/"
         "nvidia3\"}]}}]}",
         "nvidia.com/gpu=0", "", false},
        {"etc/cdi/other.json",
         "{\"kind\":\"other.com/gpu\",\"devices\":[{\"name\":\"nvidia.com/"
         "gpu\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia3\"}]}}]}",
         NULL, "", false},
        {"etc/cdi/broken.yaml", HEAD "- name: [", NULL, "", false},
        {"etc/cdi/nvidia.txt", HEAD ENTRY("0", "/dev/nvidia3"), NULL, "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t = make("");
        struct node_device device = gpu();
        struct buf why = BUF_INIT;
        char id[128] = "";
        if (cases[i].is_mig)
            mig(&device);
        put(&t, cases[i].file, cases[i].text);
        struct nvidia_cdi *cdi = nvidia_cdi_read(t.fd);
        bool found = nvidia_cdi_find(cdi, &device, id, sizeof id, &why);
        if (found != (cases[i].id != NULL) || (found && strcmp(id, cases[i].id) != 0))
            fail_msg("case %zu: %d %s", i, found, id);
        if (!found)
            has(why.data ? why.data : "", cases[i].why);
        nvidia_cdi_free(cdi);
        buf_done(&why);
        done(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_libraries_and_programs),
        cmocka_unit_test(nodes_of_the_drivers_own_root),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_file_is_no_device),
        cmocka_unit_test(an_id_is_believed_where_its_nodes_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
