/* SPDX-License-Identifier: Apache-2.0 */
/* Why a NIC does not reach another, as a value. Needs no libibverbs. */
#ifndef DRARUN_VERBS_REACH_FAULT_H
#define DRARUN_VERBS_REACH_FAULT_H

#include <string.h>

enum reach_fault {
    REACH_FAULT_NONE = 0,
    REACH_FAULT_OPEN,   /* the device, its queues or its memory */
    REACH_FAULT_PORT,   /* the port or its GID */
    REACH_FAULT_ROUTE,  /* the queue pair cannot be connected: the other's address does not resolve
                         */
    REACH_FAULT_RETRY,  /* no packet was acknowledged, however often it was sent */
    REACH_FAULT_RNR,    /* the other side was never ready to receive */
    REACH_FAULT_ACCESS, /* the other side refused the write */
    REACH_FAULT_WRITE,  /* any other failure of a write */
    REACH_FAULT_DATA,   /* other data came than were sent */
    REACH_FAULTS
};

/* "route": as the process's lines have it. */
static inline const char *reach_fault_name(enum reach_fault fault)
{
    static const char *const names[REACH_FAULTS] = {"none", "open",   "port",  "route", "retry",
                                                    "rnr",  "access", "write", "data"};
    return names[fault];
}

/* NONE for anything else. */
static inline enum reach_fault reach_fault_find(const char *name)
{
    for (int i = REACH_FAULT_OPEN; name && i < REACH_FAULTS; i++)
        if (strcmp(name, reach_fault_name((enum reach_fault)i)) == 0)
            return (enum reach_fault)i;
    return REACH_FAULT_NONE;
}

#endif
