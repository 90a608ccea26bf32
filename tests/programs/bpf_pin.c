/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_pin PATH: an XDP program that passes everything, pinned, for ip link set ... xdp pinned.
 * bpf_pin --tcx DEVICE: one of TCX that goes on, attached to both ways of a device. (Linux 6.6; not
 * in Debian 12's headers nor tools.) bpf_pin --tcx-count DEVICE: how many are attached. */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint32_t hooks[] = {46, 47}; /* BPF_TCX_INGRESS, BPF_TCX_EGRESS */

static long bpf(int command, void *attr, size_t size)
{
    long rc = syscall(SYS_bpf, command, attr, size);
    if (rc < 0)
        perror("bpf");
    return rc;
}

static int load(enum bpf_prog_type type, int verdict)
{
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = verdict},
                              {.code = BPF_JMP | BPF_EXIT}};
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = type;
    attr.insns = (uintptr_t)code;
    attr.insn_cnt = 2;
    attr.license = (uintptr_t) "GPL";
    return (int)bpf(BPF_PROG_LOAD, &attr, sizeof attr);
}

static int pin(const char *path)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.bpf_fd = (uint32_t)load(BPF_PROG_TYPE_XDP, 2);
    attr.pathname = (uintptr_t)path;
    return bpf(BPF_OBJ_PIN, &attr, sizeof attr) < 0;
}

static int attach(unsigned index)
{
    uint32_t attr[8] = {index, (uint32_t)load(BPF_PROG_TYPE_SCHED_CLS, -1)};
    for (int i = 0; i < 2; i++) {
        attr[2] = hooks[i];
        if (bpf(BPF_PROG_ATTACH, attr, sizeof attr) < 0)
            return 1;
    }
    return 0;
}

static int count(unsigned index)
{
    uint32_t all = 0;
    for (int i = 0; i < 2; i++) {
        uint32_t attr[16] = {index, hooks[i]};
        if (bpf(BPF_PROG_QUERY, attr, sizeof attr) < 0)
            return 1;
        all += attr[6];
    }
    printf("%u\n", all);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return pin(argv[1]);
    if (argc != 3)
        return 2;
    unsigned index = if_nametoindex(argv[2]);
    return strcmp(argv[1], "--tcx") == 0 ? attach(index) : count(index);
}
