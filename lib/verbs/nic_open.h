/* SPDX-License-Identifier: Apache-2.0 */
/* What came of opening an RDMA device, as a value. Needs no libibverbs. */
#ifndef DRARUN_VERBS_NIC_OPEN_H
#define DRARUN_VERBS_NIC_OPEN_H

enum nic_step {
    NIC_STEP_OPEN = 0, /* the character device, by the provider */
    NIC_STEP_QUERY,    /* what the device and its ports tell */
    NIC_STEP_CQ,       /* a completion queue */
    NIC_STEP_QP,       /* a queue pair */
    NIC_STEP_MEMORY,   /* memory registered: it is locked, and counts against the limit */
    NIC_STEPS
};

enum nic_done {
    NIC_DONE_UNKNOWN = 0, /* not tried, or the failure says nothing about the device */
    NIC_DONE_NO,
    NIC_DONE_YES
};

struct nic_step_result {
    enum nic_done done;
    int code;      /* errno of the failure; 0 */
    char why[160]; /* in words; "": done, or not come to */
};

struct nic_open {
    struct nic_step_result step[NIC_STEPS];
};

/* "open", "query", "cq", "qp", "memory": as documents have it. */
static inline const char *nic_step_name(enum nic_step step)
{
    static const char *const names[NIC_STEPS] = {"open", "query", "cq", "qp", "memory"};
    return names[step];
}

#endif
