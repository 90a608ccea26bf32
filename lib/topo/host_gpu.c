/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"

#define NVIDIA 0x10deu
#define AMD 0x1002u
#define INTEL 0x8086u
#define HABANA 0x1da3u

/* NULL: a display that computes nothing for us, as the one of a BMC or of a virtual machine. */
static const char *gpu_vendor(const struct topo_pci *pci)
{
    uint32_t sub = pci->class_code >> 8;
    bool display = pci->class_code >> 16 == 0x03, compute = sub == 0x1200 || sub == 0x0302;
    if (pci->vendor == NVIDIA && (display || compute))
        return "NVIDIA";
    if (pci->vendor == AMD && (display || compute))
        return "AMD";
    if ((pci->vendor == INTEL || pci->vendor == HABANA) && (sub == 0x0380 || compute))
        return "Intel";
    return compute ? "other" : NULL;
}

/* "Model: \t NVIDIA H100" in the driver's information file: malloc'ed, NULL when not there. */
static int field(struct facts_reader *r, const char *text, const char *key, char **ret_value)
{
    size_t len = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, len) != 0 || line[len] != ':')
            continue;
        const char *value = line + len + 1;
        value += strspn(value, " \t");
        size_t size = strcspn(value, "\n");
        *ret_value = strndup(value, size < 127 ? size : 127);
        for (char *p = *ret_value; p && *p; p++)
            if (!isprint((unsigned char)*p))
                *p = '?';
        return *ret_value ? 0 : facts_nomem(r);
    }
    return 0;
}

static int read_information(struct facts_reader *r, struct topo_gpu *gpu)
{
    char path[96], name[PCI_ADDR_TEXT], text[ROOT_TEXT_MAX];
    cleanup_free char *minor = NULL;
    pci_addr_format(r->host->pci[gpu->pci].place.addr, name);
    snprintf(path, sizeof path, "proc/driver/nvidia/gpus/%s/information", name);
    if (root_read(r->root, path, text, sizeof text) <= 0)
        return 0;
    int rc = field(r, text, "Model", &gpu->product);
    if (rc == 0)
        rc = field(r, text, "GPU UUID", &gpu->uuid);
    if (rc == 0)
        rc = field(r, text, "Device Minor", &minor);
    if (rc == 0 && minor && strspn(minor, "0123456789") == strlen(minor) && strlen(minor) < 5)
        gpu->minor = (int32_t)strtol(minor, NULL, 10);
    if (gpu->uuid &&
        strchr(gpu->uuid, '?')) { /* "GPU-????????-...": no program has opened it yet */
        free(TAKE_PTR(gpu->uuid));
    } else if (gpu->uuid && strncmp(gpu->uuid, "GPU-", 4) != 0) {
        facts_warn(r, "%s: \"%.60s\" is no GPU UUID", path, gpu->uuid);
        free(TAKE_PTR(gpu->uuid));
    }
    return rc;
}

/* Without the driver's directory nothing is known of its nodes. */
static void look_for_node(struct facts_reader *r, struct topo_gpu *gpu)
{
    char path[32];
    if (gpu->minor < 0)
        return;
    snprintf(path, sizeof path, "dev/nvidia%d", gpu->minor);
    cleanup_close int fd = root_open(r->root, path, O_PATH, NULL);
    gpu->usable = fd >= 0 ? TOPO_YES : TOPO_NO;
}

static int add_gpu(struct facts_reader *r, size_t index, const char *vendor)
{
    struct topo_host *host = r->host;
    struct topo_gpu *gpu = facts_grow(r, &host->gpus, &host->gpu_count, sizeof *gpu);
    if (!gpu)
        return -ENOMEM;
    gpu->pci = index;
    gpu->vendor = vendor;
    gpu->minor = -1;
    int rc = read_information(r, gpu);
    look_for_node(r, gpu);
    return rc;
}

/* GPUs with a chip-to-chip link are sold under these names only. */
static bool grace(const char *product)
{
    return strstr(product, "GH200") || strstr(product, "GB200") || strstr(product, "GB300");
}

static void judge_c2c(struct topo_host *host)
{
    if (host->arch && strcmp(host->arch, "x86_64") == 0)
        host->c2c = TOPO_NO;
    for (size_t i = 0; i < host->gpu_count; i++)
        if (host->gpus[i].product)
            host->c2c = grace(host->gpus[i].product) ? TOPO_YES : TOPO_NO;
}

/* NVIDIA names the switches of NVLink as bridges of class 0680. */
static bool is_nvswitch(const struct topo_pci *pci)
{
    return pci->vendor == NVIDIA && pci->class_code >> 8 == 0x0680;
}

int read_gpus(struct facts_reader *r)
{
    struct topo_host *host = r->host;
    for (size_t i = 0; i < host->pci_count; i++) {
        const char *vendor = gpu_vendor(&host->pci[i]);
        int rc = vendor && host->gpu_count < TOPO_DEVICES_MAX ? add_gpu(r, i, vendor) : 0;
        if (rc < 0)
            return rc;
        host->nvswitch_count += is_nvswitch(&host->pci[i]);
    }
    judge_c2c(host);
    return r->devices_alone ? 0 : read_kfd(r);
}
