/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of host_read; each fills its arrays of the host under construction. All return 0 or
 * -ENOMEM with the error set; what is missing stays unknown, what is broken becomes a warning. */
#ifndef DRARUN_TOPO_HOST_PRIVATE_H
#define DRARUN_TOPO_HOST_PRIVATE_H

#include "lib/topo/host.h"
#include "lib/topo/root.h"

#define TOPO_ENTRIES_MAX 8192u /* names read of one directory */
#define TOPO_DEVICES_MAX 4096u /* of one kind: 8 NICs may have 1016 virtual functions */

struct facts_reader {
    int root;
    bool devices_alone; /* of bridges only their place; no limits, nodes in /dev and NUMA nodes */
    struct topo_host *host;
    struct drarun_error *err;
    unsigned below; /* how many functions hang on the one that is being added */
};

/* What they share: host_facts.c. */
int facts_nomem(struct facts_reader *r);
/* Control characters become '?', the line is cut at 300 bytes. */
void facts_warn(struct facts_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The names in a directory as root_list; a missing one is empty, a broken one a warning. */
int facts_list(struct facts_reader *r, const char *path, struct strlist *ret_names);
/* The same of a class of devices: those beyond TOPO_DEVICES_MAX are left out, with a warning. */
int facts_list_devices(struct facts_reader *r, const char *path, struct strlist *ret_names);
/* Room for one more in an array of the host; NULL, with the error set, when out of memory. Gives
 * zeroed memory and counts it. */
void *facts_grow(struct facts_reader *r, void *array_pointer, size_t *count, size_t size);
/* The file's text without control characters at its ends, malloc'ed; *ret NULL when not readable
 * or empty. */
int facts_text(struct facts_reader *r, const char *path, char **ret_text);

/* A list of CPUs as canonical text, malloc'ed, "" for none; *ret NULL when not readable, and when
 * malformed, with a warning. */
int facts_cpulist(struct facts_reader *r, const char *path, char **ret_list);

/* Whether a device name is one that can be printed, put into variables and found again: letters,
 * digits and _.:@- only, shorter than TOPO_NAME_MAX. Warns when not. */
bool facts_name_ok(struct facts_reader *r, const char *where, const char *name);

/* A number of at most 9 digits, decimal or with 0x hexadecimal; false for anything else. */
bool attr_number(int dir, const char *name, uint32_t *ret_value);

int read_pci(struct facts_reader *r);
int read_kfd(struct facts_reader *r); /* of the GPUs that were read */
/* Index of the function that a link-free path goes through, added with its bridges when new;
 * TOPO_NONE when there is none. */
int facts_add_pci(struct facts_reader *r, const char *path, size_t *ret_index);
/* The same for a class device: its link `device`, or its own place in the tree. With the name of
 * the sub-function that it is of, "" for none. */
int facts_device_pci(struct facts_reader *r, const char *path, size_t *ret_index,
                     char ret_subfunction[TOPO_NAME_MAX]);

int read_gpus(struct facts_reader *r);
int read_rdma(struct facts_reader *r);
int read_netdevs(struct facts_reader *r);
int read_gid_owners(struct facts_reader *r); /* of the RDMA devices that were read */
int read_numa(struct facts_reader *r);
int read_machine(struct facts_reader *r);
int read_limits(struct facts_reader *r);
int read_nodes(struct facts_reader *r); /* /dev */

#endif
