/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/inspect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/inspect/device_metadata.h"
#include "lib/inspect/members.h"
#include "lib/inspect/probe_json.h"
#include "lib/inspect/verbs_json.h"
#include "lib/topo/root.h"

#define UNLIMITED (-1)

static void set_bytes(json_t *object, const char *key, uint64_t bytes)
{
    member_set(object, key, json_integer(bytes > INT64_MAX ? UNLIMITED : (json_int_t)bytes));
}

/* ---- limits ---- */

static json_t *limits_json(const struct topo_limits *limits)
{
    json_t *object = json_object();
    if (limits->memlock_known == TOPO_YES)
        set_bytes(object, "memlock", limits->memlock);
    member_tri(object, "ipcLock", limits->ipc_lock);
    if (limits->uid >= 0)
        member_set(object, "uid", json_integer(limits->uid));
    if (limits->shm_mounted == TOPO_YES) {
        set_bytes(object, "shm", limits->shm_bytes);
        set_bytes(object, "shmFree", limits->shm_free);
        member_set(object, "shmInMemory", json_boolean(limits->shm_memory));
    }
    member_text(object, "cpuset", limits->cpuset);
    if (limits->memory_limited != TOPO_UNKNOWN)
        set_bytes(object, "memory",
                  limits->memory_limited == TOPO_YES ? limits->memory_max : UINT64_MAX);
    if (limits->cpu_limited != TOPO_UNKNOWN)
        member_set(object, "cpuMillis",
                   json_integer(limits->cpu_limited == TOPO_YES ? (json_int_t)limits->cpu_millis
                                                                : UNLIMITED));
    return object;
}

/* ---- devices ---- */

/* Opening a GPU's node would wake the GPU, which takes seconds where nothing keeps it awake; the
 * permission to do so is known without, the container's device rules included. */
static int try_access(int root, const char *path)
{
    cleanup_close int place = root_open(root, path, O_PATH, NULL);
    if (place < 0)
        return place;
    int rc = faccessat(place, "", R_OK | W_OK, AT_EMPTY_PATH | AT_EACCESS) < 0 ? -errno : 0;
    return rc == -ENOSYS || rc == -EINVAL ? 0 : rc; /* before Linux 5.8 the presence must do */
}

static void set_opens(json_t *object, const char *path, int rc)
{
    member_text(object, "path", path);
    member_set(object, "opens", json_boolean(rc == 0));
    if (rc < 0)
        member_text(object, "why", strerror(-rc));
}

/* Those alone whose node is here or not known to be missing: sysfs shows the whole node's devices
 * in every pod that shares its network. */
static json_t *all_verbs(const struct topo_host *host, int root)
{
    json_t *list = json_array();
    for (size_t i = 0; i < host->rdma_count; i++)
        if (host->rdmas[i].usable != TOPO_NO)
            json_array_append_new(list, verbs_json(&host->rdmas[i], root, NULL));
    return list;
}

static json_t *gpu_nodes(const struct topo_host *host, int root)
{
    char path[64];
    json_t *list = json_array();
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct topo_gpu *gpu = &host->gpus[i];
        if (gpu->minor < 0 || gpu->usable == TOPO_NO)
            continue;
        json_t *object = json_object();
        snprintf(path, sizeof path, "/dev/nvidia%d", (int)gpu->minor);
        set_opens(object, path, try_access(root, path));
        json_array_append_new(list, object);
    }
    return list;
}

static void add_narrow(json_t *list, const struct topo_host *host, size_t pci, bool gpu)
{
    char address[PCI_ADDR_TEXT];
    const struct topo_pci *function = pci < host->pci_count ? &host->pci[pci] : NULL;
    if (!function || !topo_pci_is_narrow(function, gpu))
        return;
    json_t *object = json_object();
    pci_addr_format(function->place.addr, address);
    member_text(object, "pci", address);
    member_text(object, "kind", gpu ? "GPU" : "NIC");
    member_set(object, "lanes", json_integer(function->width));
    member_set(object, "maxLanes", json_integer(function->max_width));
    member_set(object, "mts", json_integer(function->speed_mts));
    member_set(object, "maxMts", json_integer(function->max_speed_mts));
    json_array_append_new(list, object);
}

/* Devices whose PCIe link is narrower or slower than they could have it. */
static json_t *narrow_json(const struct topo_host *host)
{
    json_t *list = json_array();
    for (size_t i = 0; i < host->gpu_count; i++)
        if (host->gpus[i].usable != TOPO_NO)
            add_narrow(list, host, host->gpus[i].pci, true);
    for (size_t i = 0; i < host->rdma_count; i++)
        if (host->rdmas[i].usable != TOPO_NO)
            add_narrow(list, host, host->rdmas[i].pci, false);
    return list;
}

static json_t *addresses_json(const struct ifaddrs *all, const char *interface)
{
    json_t *list = json_array();
    for (const struct ifaddrs *each = all; each; each = each->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        int family = each->ifa_addr ? each->ifa_addr->sa_family : AF_UNSPEC;
        const void *address =
            family == AF_INET    ? (const void *)&((struct sockaddr_in *)each->ifa_addr)->sin_addr
            : family == AF_INET6 ? (const void *)&((struct sockaddr_in6 *)each->ifa_addr)->sin6_addr
                                 : NULL;
        if (address && strcmp(each->ifa_name, interface) == 0 &&
            inet_ntop(family, address, text, sizeof text))
            json_array_append_new(list, json_string(text));
    }
    return list;
}

/* here: the root is this machine's, whose addresses can be asked for; files do not have them. */
static json_t *netdevs_json(const struct topo_host *host, bool here)
{
    json_t *list = json_array();
    struct ifaddrs *addresses = NULL;
    if (here && getifaddrs(&addresses) < 0)
        here = false;
    for (size_t i = 0; i < host->netdev_count; i++) {
        const struct topo_netdev *netdev = &host->netdevs[i];
        json_t *object = json_object();
        member_text(object, "name", netdev->name);
        member_tri(object, "up", netdev->up);
        member_set(object, "mtu", json_integer(netdev->mtu));
        if (here)
            member_set(object, "addresses", addresses_json(addresses, netdev->name));
        json_array_append_new(list, object);
    }
    if (addresses)
        freeifaddrs(addresses);
    return list;
}

/* ---- the rest ---- */

static json_t *session_json(const char *dir)
{
    struct statvfs fs;
    json_t *object = json_object();
    if (!dir)
        return object;
    member_text(object, "dir", dir);
    if (statvfs(dir, &fs) == 0)
        set_bytes(object, "free", (uint64_t)fs.f_bavail * fs.f_frsize);
    return object;
}

bool inspect_steers(const char *entry)
{
    static const char *const prefixes[] = {"NCCL_", "UCX_", "OMPI_MCA_", "FI_", "GLOO_"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* The image's and the pod's: what stands there wins over what is derived, and nothing else of the
 * environment is anybody's business. */
static json_t *environment_json(char *const *environ)
{
    json_t *object = json_object();
    for (char *const *item = environ; item && *item; item++) {
        const char *equals = strchr(*item, '=');
        if (equals && inspect_steers(*item))
            json_object_setn_new(object, *item, (size_t)(equals - *item), json_string(equals + 1));
    }
    return object;
}

static json_t *versions_json(const struct inspect_options *options, const struct topo_host *host)
{
    json_t *object = json_object();
    member_text(object, "drarun", options->build);
    member_text(object, "pmix", options->pmix);
    member_text(object, "kernel", host->kernel);
    member_text(object, "driver", host->driver);
    return object;
}

static json_t *document(const struct inspect_options *options, const struct topo_host *host,
                        int root)
{
    static const struct strlist none = STRLIST_INIT;
    json_t *all = json_object();
    json_t *probe = probe_json(host, root, options->files ? options->files : &none);
    if (probe && device_metadata_read(root, NULL, probe) < 0)
        json_decref(TAKE_PTR(probe));
    member_set(all, "probe", probe);
    member_set(all, "limits", limits_json(&host->limits));
    member_set(all, "verbs", all_verbs(host, root));
    member_set(all, "gpuNodes", gpu_nodes(host, root));
    member_set(all, "narrow", narrow_json(host));
    member_set(all, "netdevs", netdevs_json(host, !options->root));
    member_set(all, "session", session_json(options->session_dir));
    member_set(all, "versions", versions_json(options, host));
    if (options->environ)
        member_set(all, "environment", environment_json(options->environ));
    member_text(all, "arch", host->arch);
    return all;
}

static int read_root(const char *root, struct topo_host *ret_host, struct drarun_error *err)
{
    const char *path = root ? root : "/";
    cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_kind(err, root ? DRARUN_ERR_SPEC : DRARUN_ERR_NONE, errno, "%s: %s", path,
                          strerror(errno));
    int rc = host_read(fd, ret_host, err);
    return rc < 0 ? rc : take_fd(&fd);
}

int inspect(const struct inspect_options *options, json_t **ret_document, struct drarun_error *err)
{
    struct topo_host host;
    int rc = read_root(options->root, &host, err);
    if (rc < 0)
        return rc;
    cleanup_close int root = rc;
    json_t *all = document(options, &host, root);
    host_done(&host);
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    *ret_document = all;
    return 0;
}

int inspect_probe(const char *root, const struct strlist *files, json_t **ret_probe,
                  struct drarun_error *err)
{
    struct topo_host host;
    int rc = read_root(root, &host, err);
    if (rc < 0)
        return rc;
    cleanup_close int fd = rc;
    json_t *probe = probe_json(&host, fd, files);
    host_done(&host);
    if (!probe)
        return error_set(err, ENOMEM, "out of memory");
    *ret_probe = probe;
    return 0;
}
