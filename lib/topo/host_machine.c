/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/cpus.h"
#include "lib/topo/host_private.h"

/* ---- CPUs ---- */

static int add_node(struct facts_reader *r, uint32_t id)
{
    char path[64];
    struct topo_host *host = r->host;
    struct topo_numa *numa = facts_grow(r, &host->numas, &host->numa_count, sizeof *numa);
    if (!numa)
        return -ENOMEM;
    numa->id = id;
    snprintf(path, sizeof path, "sys/devices/system/node/node%u/cpulist", id);
    int rc = facts_cpulist(r, path, &numa->cpulist);
    if (rc == 0 && !numa->cpulist) {
        numa->cpulist = strdup("");
        if (!numa->cpulist)
            rc = facts_nomem(r);
    }
    return rc;
}

int read_numa(struct facts_reader *r)
{
    static const char online[] = "sys/devices/system/node/online";
    char text[ROOT_TEXT_MAX];
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    struct drarun_error own = {0};
    int rc = facts_cpulist(r, "sys/devices/system/cpu/online", &r->host->cpus);
    if (rc < 0 || root_read(r->root, online, text, sizeof text) < 0)
        return rc;
    rc = cpulist_parse(text, &ids, &count, &own);
    if (rc < 0 && rc != -ENOMEM)
        facts_warn(r, "%s: %s", online, own.text);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (add_node(r, ids[i]) < 0)
            return -ENOMEM;
    return rc == -ENOMEM ? facts_nomem(r) : 0;
}

/* ---- the machine ---- */

/* "vendor_id\t: GenuineIntel" of /proc/cpuinfo. */
static const char *cpu_field(const char *text, const char *key, char *value, size_t size)
{
    const char *line = strncmp(text, key, strlen(key)) == 0 ? text : NULL;
    char start[40];
    snprintf(start, sizeof start, "\n%s", key);
    if (!line) {
        line = strstr(text, start);
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return NULL;
    line += strlen(key);
    line += strspn(line, " \t");
    if (*line != ':')
        return NULL;
    line += 1 + strspn(line + 1, " \t");
    size_t len = strcspn(line, "\n");
    snprintf(value, size, "%.*s", (int)(len < 64 ? len : 64), line);
    return value;
}

static int32_t cpu_number(const char *text, const char *key)
{
    char value[80], *end;
    if (!cpu_field(text, key, value, sizeof value))
        return -1;
    long number = strtol(value, &end, 10);
    return end == value || *end != '\0' || number < 0 || number > 65535 ? -1 : (int32_t)number;
}

static int read_cpuinfo(struct facts_reader *r)
{
    /* the first CPU is enough: all of a large machine's take the kernel many milliseconds */
    char text[2048], value[80];
    struct topo_host *host = r->host;
    if (root_read(r->root, "proc/cpuinfo", text, sizeof text) <= 0)
        return 0;
    bool x86 = cpu_field(text, "vendor_id", value, sizeof value) != NULL;
    if (x86 &&
        strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ") == strlen(value)) {
        host->cpu_vendor = strdup(value);
        host->cpu_family = cpu_number(text, "cpu family");
        host->cpu_model = cpu_number(text, "model");
        if (!host->cpu_vendor)
            return facts_nomem(r);
    }
    bool arm = !x86 && cpu_field(text, "CPU implementer", value, sizeof value);
    if (!x86 && !arm)
        return 0;
    host->arch = strdup(x86 ? "x86_64" : "arm64");
    return host->arch ? 0 : facts_nomem(r);
}

/* The version stands before the date in "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64
 * 570.124.06  Release Build". */
static int read_driver(struct facts_reader *r)
{
    char text[ROOT_TEXT_MAX];
    struct topo_host *host = r->host;
    if (root_read(r->root, "proc/driver/nvidia/version", text, sizeof text) <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    host->driver_open = strstr(text, "Open Kernel Module") ? TOPO_YES : TOPO_NO;
    for (char *word = text; *word; word += strspn(word, " \t")) {
        size_t len = strcspn(word, " \t");
        if (memchr(word, '.', len) && strspn(word, "0123456789.") == len) {
            host->driver = strndup(word, len);
            return host->driver ? 0 : facts_nomem(r);
        }
        word += len;
    }
    return 0;
}

static int read_dmi(struct facts_reader *r)
{
    cleanup_free char *vendor = NULL, *product = NULL;
    int rc = facts_text(r, "sys/class/dmi/id/sys_vendor", &vendor);
    if (rc == 0)
        rc = facts_text(r, "sys/class/dmi/id/product_name", &product);
    if (rc < 0 || (!vendor && !product))
        return rc;
    if (asprintf(&r->host->machine, "%s%s%s", vendor ? vendor : "", vendor && product ? " " : "",
                 product ? product : "") < 0) {
        r->host->machine = NULL;
        return facts_nomem(r);
    }
    return 0;
}

static bool there(struct facts_reader *r, const char *path)
{
    cleanup_close int fd = root_open(r->root, path, O_PATH, NULL);
    return fd >= 0;
}

/* Where NCCL looks (src/transport/net_ib/gdr.cc). */
static void read_peermem(struct facts_reader *r)
{
    static const char *const places[] = {
        "sys/module/nvidia_peermem/version",
        "sys/kernel/mm/memory_peers/nv_mem/version",
        "sys/kernel/mm/memory_peers/nv_mem_nc/version",
    };
    if (there(r, "sys/module"))
        r->host->peermem = TOPO_NO;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (there(r, places[i]))
            r->host->peermem = TOPO_YES;
}

/* RDMA takes DMA-BUF from Linux 5.12 on; of NVIDIA's modules only the open ones export it. */
static void judge_dmabuf(struct topo_host *host)
{
    unsigned major = 0, minor = 0;
    if (!host->kernel || sscanf(host->kernel, "%3u.%3u", &major, &minor) != 2)
        return;
    bool kernel = major > 5 || (major == 5 && minor >= 12);
    if (!kernel || host->driver_open == TOPO_NO)
        host->dmabuf = TOPO_NO;
    else if (host->driver_open == TOPO_YES)
        host->dmabuf = TOPO_YES;
}

int read_machine(struct facts_reader *r)
{
    static int (*const parts[])(struct facts_reader *) = {read_cpuinfo, read_driver, read_dmi};
    int rc = facts_text(r, "proc/sys/kernel/osrelease", &r->host->kernel);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(parts); i++)
        rc = parts[i](r);
    read_peermem(r);
    judge_dmabuf(r->host);
    return rc;
}
