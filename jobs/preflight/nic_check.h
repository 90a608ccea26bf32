/* SPDX-License-Identifier: Apache-2.0 */
/* Judges whether an RDMA device can carry a job's data, from the facts that a worker reports
 * (member `verbs` of docs/design/018-inspection.md). The preflight and drarun doctor --nics use it.
 * Pure. */
#ifndef DRARUN_JOBS_NIC_CHECK_H
#define DRARUN_JOBS_NIC_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each is a code of the preflight (jobs/preflight/preflight.h). */
enum nic_fault {
    NIC_FAULT_CLOSED = 1, /* it cannot be opened */
    NIC_FAULT_DOWN,
    NIC_FAULT_GID,
    NIC_FAULT_SLOW,    /* than its driver has published */
    NIC_FAULT_QUEUES,  /* a completion queue or queue pair cannot be made */
    NIC_FAULT_MEMLOCK, /* a step fails that locks memory, and little may be locked */
    NIC_FAULT_MEMORY,  /* memory cannot be registered, whatever may be locked */
    NIC_FAULT_UNTRIED, /* not known: it, or a step, was not tried */
};

/* text: what is wrong, as a sentence about "it", the worker. cure: static, or valid until the call
 * returns. port: of the device; 0: all of it. failed: false where it is not known. */
typedef void (*nic_fault_fn)(void *arg, enum nic_fault fault, uint32_t port, bool failed,
                             const char *cure, const char *text);

struct nic_check {
    const json_t *device;    /* an entry of `verbs` */
    const json_t *netdevs;   /* of the same document; NULL: not known */
    const json_t *limits;    /* likewise */
    uint32_t published_mbps; /* by its DRA driver; 0: not known */
    uint32_t ports; /* bit N: port N is to carry data, and the others are not; 0: all are */
    bool open;      /* it was to be opened: what was not tried is worth a word */
    nic_fault_fn fn;
    void *arg;
};

void nic_check(const struct nic_check *check);

/* A limit on locked memory holds for the worker, and is below 64 MiB. */
bool nic_memlock_small(const json_t *limits);
const char *nic_memlock_cure(const json_t *limits);

/* "64 KiB", "8 MiB", "1.5 GiB". */
const char *nic_bytes_text(int64_t bytes, char *text, size_t size);

#endif
