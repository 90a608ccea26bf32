/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/topology.h"

#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"

struct topology {
    pthread_t thread;
    bool started, joined, kept;
    hwloc_topology_t hwloc; /* the thread's until it is joined */
    char *xml;              /* the same */
    char *file;
};

struct topology *topology_new(void)
{
    return calloc(1, sizeof(struct topology));
}

/* For this thread alone. hwloc reads a PCI device's whole configuration, though its header is
 * enough, as the link's speed comes from sysfs. Each word of it is a trap in a virtual machine, 1
 * ms a device, and without this capability the kernel gives the header only (pci_read_config in
 * drivers/pci/pci-sysfs.c). */
static void read_pci_headers_only(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, sets) < 0)
        return;
    sets[0].effective &= ~(1U << CAP_SYS_ADMIN);
    syscall(SYS_capset, &header, sets); /* slower without it, no more */
}

/* With I/O devices, as MPI libraries choose their NIC by them; without x86's own component, which
 * finds nothing that Linux does not show and binds the thread to each CPU in turn. */
static void *read_topology(void *arg)
{
    struct topology *topology = arg;
    hwloc_topology_t hwloc;
    int length = 0;
    if (hwloc_topology_init(&hwloc) < 0)
        return NULL;
    hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(hwloc) < 0) {
        hwloc_topology_destroy(hwloc);
        return NULL;
    }
    topology->hwloc = hwloc;
    if (hwloc_topology_export_xmlbuffer(hwloc, &topology->xml, &length, 0) < 0)
        topology->xml = NULL;
    return NULL;
}

static void *read_in_thread(void *arg)
{
    read_pci_headers_only();
    return read_topology(arg);
}

void topology_start(struct topology *topology)
{
    if (!topology || topology->started)
        return;
    topology->started = true;
    if (pthread_create(&topology->thread, NULL, read_in_thread, topology) == 0)
        return;
    topology->joined = true; /* no thread to be had: here and now */
    read_topology(topology);
}

static void finish(struct topology *topology)
{
    topology_start(topology);
    if (!topology->joined)
        pthread_join(topology->thread, NULL);
    topology->joined = true;
}

hwloc_topology_t topology_get(struct topology *topology)
{
    if (!topology)
        return NULL;
    finish(topology);
    return topology->hwloc;
}

hwloc_topology_t topology_keep(struct topology *topology)
{
    hwloc_topology_t hwloc = topology_get(topology);
    if (hwloc)
        topology->kept = true;
    return hwloc;
}

const char *topology_xml(struct topology *topology)
{
    if (!topology)
        return NULL;
    finish(topology);
    return topology->xml;
}

const char *topology_file(struct topology *topology, const char *dir)
{
    struct drarun_error err = {0};
    const char *xml = topology_xml(topology);
    if (!xml || topology->file)
        return xml ? topology->file : NULL;
    if (asprintf(&topology->file, "%s/hwloc.xml", dir) < 0)
        topology->file = NULL;
    if (topology->file && file_write_atomic(topology->file, xml, strlen(xml), 0600, &err) < 0) {
        log_error("%s", err.text);
        free(topology->file);
        topology->file = NULL;
    }
    return topology->file;
}

void topology_free(struct topology *topology)
{
    if (!topology)
        return;
    if (topology->started)
        finish(topology);
    if (topology->hwloc && topology->xml)
        hwloc_free_xmlbuffer(topology->hwloc, topology->xml);
    if (topology->hwloc && !topology->kept)
        hwloc_topology_destroy(topology->hwloc);
    free(topology->file);
    free(topology);
}
