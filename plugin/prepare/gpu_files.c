/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/gpu_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/root.h"

#define PATH_SIZE 512

/* The driver in the host itself, NVIDIA's operator's, GKE's. */
static const char *const driver_roots[] = {"", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"};

#if defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "x86_64-linux-gnu"
#endif

static const char *const library_folders[] = {
    "/usr/lib/" TRIPLET,
    "/usr/lib/" TRIPLET "/nvidia/current",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/lib/" TRIPLET,
    "/run/opengl-driver/lib",
};
/* Where loaders look without a cache: Debian's kind, and Red Hat's. An image has the one or the
 * other, and LD_LIBRARY_PATH stays the image's own. */
static const char *const container_folders[] = {"/usr/lib/" TRIPLET, "/usr/lib64"};

/* Of the driver's compute part; the first two must be there. Those whose number is the driver's own
 * version are asked for by that name. */
static const struct {
    const char *name;
    bool versioned;
} libraries[] = {
    {"libcuda.so.1", false},
    {"libnvidia-ml.so.1", false},
    {"libcudadebugger.so.1", false},
    {"libnvidia-cfg.so.1", false},
    {"libnvidia-nvvm.so.4", false},
    {"libnvidia-nvvm70.so.4", false},
    {"libnvidia-opencl.so.1", false},
    {"libnvidia-ptxjitcompiler.so.1", false},
    {"libnvidia-allocator.so.1", false},
    {"libnvidia-gpucomp.so.", true},
    {"libnvidia-tileiras.so.", true},
    {"libnvidia-pkcs11.so.", true},
    {"libnvidia-pkcs11-openssl3.so.", true},
    {"libnvidia-sandboxutils.so.1", false},
};
#define LIBRARIES_NEEDED 2u

static const char *const programs[] = {"nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control",
                                       "nvidia-cuda-mps-server", "nvidia-persistenced"};
static const char *const program_folders[] = {"/usr/bin", "/bin", "/opt/bin", "/usr/sbin"};

struct gpu_driver {
    const struct gpu_host *host;
    char root[PATH_SIZE]; /* "" or "/run/nvidia/driver": put before paths */
    json_t *mounts;
    bool failed; /* out of memory */
};

/* ---- files ---- */

/* The file's path on the host, without links; false: it is not there. */
static bool find(const struct gpu_driver *d, const char *path, char *ret_path, size_t size)
{
    struct buf found = BUF_INIT;
    cleanup_close int driver =
        root_open(d->host->root, *d->root ? d->root : "/", O_PATH | O_DIRECTORY, NULL);
    /* links of the driver's root begin there again */
    bool there = driver >= 0 && root_resolve(driver, path, &found, NULL) == 0 &&
                 snprintf(ret_path, size, "%s/%s", d->root, found.data) < (int)size;
    buf_done(&found);
    return there;
}

static void add_mount(struct gpu_driver *d, const char *host, const char *container)
{
    d->failed |=
        json_array_append_new(d->mounts, json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", host,
                                                   "containerPath", container, "options", "ro",
                                                   "nosuid", "nodev", "bind")) < 0;
}

static void add_library(struct gpu_driver *d, const char *folder, const char *name)
{
    char path[PATH_SIZE], host[PATH_SIZE], container[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!find(d, path, host, sizeof host))
        return;
    for (size_t i = 0; i < ARRAY_LEN(container_folders); i++) {
        snprintf(container, sizeof container, "%s/%s", container_folders[i], name);
        add_mount(d, host, container);
    }
}

/* "libnvidia-gpucomp.so.570.133.20": the driver's version is that of the file libcuda.so.1. */
static void add_versioned(struct gpu_driver *d, const char *folder, const char *start)
{
    char path[PATH_SIZE], cuda[PATH_SIZE], name[128];
    snprintf(path, sizeof path, "%s/%s", folder, libraries[0].name);
    const char *version = find(d, path, cuda, sizeof cuda) ? strrchr(cuda, '/') : NULL;
    version = version ? strstr(version, ".so.") : NULL;
    if (!version)
        return;
    snprintf(name, sizeof name, "%s%s", start, version + strlen(".so."));
    add_library(d, folder, name);
}

static bool has_library(const struct gpu_driver *d, const char *folder, const char *name)
{
    char path[PATH_SIZE], host[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return find(d, path, host, sizeof host);
}

/* Where the library is that everything begins with. */
static const char *find_folder(const struct gpu_driver *d)
{
    for (size_t i = 0; i < ARRAY_LEN(library_folders); i++)
        if (has_library(d, library_folders[i], libraries[0].name))
            return library_folders[i];
    return NULL;
}

static const char *find_driver(struct gpu_driver *d)
{
    const char *const given[] = {d->host->driver};
    const char *const *roots = d->host->driver ? given : driver_roots;
    size_t count = d->host->driver ? 1 : ARRAY_LEN(driver_roots);
    for (size_t i = 0; i < count; i++) {
        snprintf(d->root, sizeof d->root, "%s", strcmp(roots[i], "/") == 0 ? "" : roots[i]);
        const char *folder = find_folder(d);
        if (folder)
            return folder;
    }
    return NULL;
}

static int add_libraries(struct gpu_driver *d, struct drarun_error *err)
{
    const char *folder = find_driver(d);
    if (!folder)
        return error_set(
            err, ENOENT,
            "%s of NVIDIA's driver is not below %s: install the driver on this node, say "
            "where it is (--driver-root), or let NVIDIA's container toolkit make CDI "
            "specifications",
            libraries[0].name,
            d->host->driver ? d->host->driver
                            : "/, /run/nvidia/driver or /home/kubernetes/bin/nvidia");
    for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
        if (i < LIBRARIES_NEEDED && !has_library(d, folder, libraries[i].name))
            return error_set(err, ENOENT,
                             "%s%s has libcuda.so.1 but no %s: the driver is not whole; install it "
                             "again",
                             d->root, folder, libraries[i].name);
        if (libraries[i].versioned)
            add_versioned(d, folder, libraries[i].name);
        else
            add_library(d, folder, libraries[i].name);
    }
    return 0;
}

static void add_programs(struct gpu_driver *d)
{
    char path[PATH_SIZE], host[PATH_SIZE], container[PATH_SIZE];
    for (size_t p = 0; p < ARRAY_LEN(programs); p++)
        for (size_t f = 0; f < ARRAY_LEN(program_folders); f++) {
            snprintf(path, sizeof path, "%s/%s", program_folders[f], programs[p]);
            if (!find(d, path, host, sizeof host))
                continue;
            snprintf(container, sizeof container, "/usr/bin/%s", programs[p]);
            add_mount(d, host, container);
            break;
        }
}

/* ---- device nodes ---- */

/* In the driver's root, as its operator makes them, or the host's. False: in neither. */
static bool stat_node(const struct gpu_driver *d, const char *path, char *ret_host, size_t size,
                      struct stat *ret_st)
{
    const char *const roots[] = {d->root, ""};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        snprintf(ret_host, size, "%s%s", roots[i], path);
        cleanup_close int fd = root_open(d->host->root, ret_host, O_PATH, NULL);
        if (fd >= 0 && fstat(fd, ret_st) == 0 && S_ISCHR(ret_st->st_mode))
            return true;
    }
    return false;
}

static int add_node(const struct gpu_driver *d, json_t *nodes, const char *path, const char *cure,
                    struct drarun_error *err)
{
    char host[PATH_SIZE];
    struct stat st;
    if (!stat_node(d, path, host, sizeof host, &st))
        return cure ? error_set(err, ENOENT, "the host has no device node %s: %s", path, cure) : 0;
    json_t *node =
        json_pack("{s:s, s:s, s:i, s:i, s:s}", "path", path, "type", "c", "major",
                  (int)major(st.st_rdev), "minor", (int)minor(st.st_rdev), "permissions", "rw");
    if (strcmp(host, path) != 0)
        json_object_set_new(node, "hostPath", json_string(host));
    return json_array_append_new(nodes, node) == 0 ? 0 : error_set(err, ENOMEM, "out of memory");
}

static int add_nodes(const struct gpu_driver *d, const struct node_device *device, json_t *nodes,
                     struct drarun_error *err)
{
    static const char load[] =
        "load NVIDIA's driver, and let nvidia-modprobe -c 0 -u make its nodes";
    char path[64];
    size_t caps = 0;
    if (device->gpu.minor < 0)
        return error_set(err, ENOENT, "its number (/dev/nvidiaN) is not known: %s", load);
    snprintf(path, sizeof path, "/dev/nvidia%d", device->gpu.minor);
    int rc = add_node(d, nodes, path, load, err);
    if (rc == 0)
        rc = add_node(d, nodes, "/dev/nvidiactl", load, err);
    if (rc == 0)
        rc = add_node(d, nodes, "/dev/nvidia-uvm", load, err);
    if (rc == 0)
        rc = add_node(d, nodes, "/dev/nvidia-uvm-tools", NULL, err);
    for (size_t i = 0; rc == 0 && i < device->chardev_count; i++)
        if (strncmp(device->chardevs[i].path, "/dev/nvidia-caps/", 17) == 0 && ++caps)
            rc =
                add_node(d, nodes, device->chardevs[i].path, "let nvidia-modprobe -f make it", err);
    if (rc == 0 && device->kind == NODE_DEVICE_MIG && caps < 2)
        rc = error_set(err, ENOENT,
                       "a MIG device needs its two nodes of /dev/nvidia-caps, and the host has %zu",
                       caps);
    return rc;
}

int gpu_files_edits(const struct gpu_driver *driver, const struct node_device *device,
                    json_t **ret_edits, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *nodes = json_array();
    int rc = add_nodes(driver, device, nodes, err);
    if (rc < 0)
        return rc;
    /* NVIDIA's own runtime, where it is the default, then adds nothing; the list of mounts is the
     * device's own, for others' edits come into it */
    json_t *edits = json_pack("{s:O, s:o, s:[s]}", "deviceNodes", nodes, "mounts",
                              json_copy(driver->mounts), "env", "NVIDIA_VISIBLE_DEVICES=void");
    if (!edits)
        return error_set(err, ENOMEM, "out of memory");
    *ret_edits = edits;
    return 0;
}

/* ---- the driver ---- */

void gpu_driver_free(struct gpu_driver *driver)
{
    if (driver)
        json_decref(driver->mounts);
    free(driver);
}

int gpu_driver_find(const struct gpu_host *host, struct gpu_driver **ret_driver,
                    struct drarun_error *err)
{
    CLEANUP(gpu_driver_freep) struct gpu_driver *driver = calloc(1, sizeof *driver);
    if (!driver || !(driver->mounts = json_array()))
        return error_set(err, ENOMEM, "out of memory");
    driver->host = host;
    int rc = add_libraries(driver, err);
    if (rc < 0)
        return rc;
    add_programs(driver);
    if (driver->failed)
        return error_set(err, ENOMEM, "out of memory");
    *ret_driver = TAKE_PTR(driver);
    return 0;
}
