/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank's processes do now, from /proc. Nothing is kept; nothing blocks. */
#ifndef DRARUN_WORKER_VITALS_H
#define DRARUN_WORKER_VITALS_H

#include <stdint.h>
#include <sys/types.h>

#define VITALS_STACK_MAX 1024u

struct vitals {
    pid_t pid;      /* of the process of the rank that has used the most CPU time; 0: none lives */
    char name[32];  /* its command name */
    char state;     /* proc(5): R, S, D, ... */
    char wchan[64]; /* "": none, or not told */
    char stack[VITALS_STACK_MAX]; /* "": only with CAP_SYS_ADMIN */
    uint64_t cpu_us;              /* of all of the rank's processes */
};

/* root: the rank's pid, with the children of its main threads. */
void vitals_read(pid_t root, struct vitals *ret_vitals);
/* CPU time alone. */
uint64_t vitals_cpu_us(pid_t root);

#endif
