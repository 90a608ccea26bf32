/* SPDX-License-Identifier: Apache-2.0 */
/* What the first bytes of a program file say about how the kernel would run it. */
#ifndef DRARUN_WORKER_EXEC_HEAD_H
#define DRARUN_WORKER_EXEC_HEAD_H

#include <stdbool.h>
#include <stdint.h>

enum exec_type {
    EXEC_UNREADABLE = 0,
    EXEC_EMPTY,
    EXEC_ELF,
    EXEC_SCRIPT,
    EXEC_MARKED, /* a byte order mark before "#!", which editors hide */
    EXEC_OTHER,  /* neither ELF nor "#!" */
};

struct exec_head {
    enum exec_type type;
    bool native;           /* ELF: of a machine that this kernel may run by itself */
    bool linked;           /* ELF: a program, not an object file or a core */
    uint16_t machine;      /* ELF: EM_* */
    char interpreter[256]; /* of the script, or the ELF program's loader; "" when there is none */
};

/* Any file is safe to look at: links are followed as execve does, devices and pipes are not read.
 */
void exec_head_read(int dir, const char *path, struct exec_head *head);

/* The name that uname -m uses for an ELF machine. */
const char *exec_head_machine_name(uint16_t machine);

#endif
