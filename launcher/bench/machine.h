/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line says of the machine that results are of, and the verdicts that follow. */
#ifndef DRARUN_LAUNCHER_BENCH_MACHINE_H
#define DRARUN_LAUNCHER_BENCH_MACHINE_H

#include "launcher/bench/results.h"
#include "lib/base/options.h"
#include "lib/bench/verdict.h"

struct bench_machine {
    const char *machine, *known_file, *collective;
    struct strlist logs;
    struct limit_given given;
    struct known known; /* read by bench_machine_ready */
};

int bench_machine_nic_gbit(void *target, const char *shown, const char *value,
                           struct drarun_error *err);
int bench_machine_link(void *target, const char *shown, const char *value,
                       struct drarun_error *err);

/* Entries of an option table; the target begins with a struct bench_machine. */
#define BENCH_MACHINE_GROUP "Hardware of the run"
/* What sysfs, a claim and NCCL's log may not tell, in any verdict. */
#define BENCH_LIMIT_OPTIONS                                                                        \
    {.name = "nic-gbit",                                                                           \
     .value = "GBIT",                                                                              \
     .group = BENCH_MACHINE_GROUP,                                                                 \
     .kind = OPTION_CALL,                                                                          \
     .set = bench_machine_nic_gbit,                                                                \
     .help = "speed of one NIC, in Gb/s"},                                                         \
        {.name = "link",                                                                           \
         .value = "GB/S",                                                                          \
         .group = BENCH_MACHINE_GROUP,                                                             \
         .kind = OPTION_CALL,                                                                      \
         .set = bench_machine_link,                                                                \
         .help = "bandwidth between GPUs of a host, per direction: 450\nfor NVLink 4, 900 for "    \
                 "NVLink 5"},                                                                      \
        {.name = "machine",                                                                        \
         .value = "NAME",                                                                          \
         .group = BENCH_MACHINE_GROUP,                                                             \
         .kind = OPTION_TEXT,                                                                      \
         .offset = offsetof(struct bench_machine, machine),                                        \
         .help = "a known machine, instead of the one that its GPUs suggest"},                     \
    {                                                                                              \
        .name = "known", .value = "FILE", .choices = "FILE", .group = BENCH_MACHINE_GROUP,         \
        .kind = OPTION_TEXT, .offset = offsetof(struct bench_machine, known_file),                 \
        .help = "file of your own machines, tried before the built-in ones"                        \
    }
/* What is said of results that lie there already. */
#define BENCH_MACHINE_OPTIONS                                                                      \
    {.name = "nics",                                                                               \
     .value = "N",                                                                                 \
     .group = BENCH_MACHINE_GROUP,                                                                 \
     .kind = OPTION_COUNT,                                                                         \
     .min = 1,                                                                                     \
     .max = 1024,                                                                                  \
     .offset = offsetof(struct bench_machine, given.nics),                                         \
     .help = "NICs per host that the job had"},                                                    \
        BENCH_LIMIT_OPTIONS,                                                                       \
        {.name = "collective",                                                                     \
         .value = "NAME",                                                                          \
         .group = BENCH_MACHINE_GROUP,                                                             \
         .kind = OPTION_TEXT,                                                                      \
         .offset = offsetof(struct bench_machine, collective),                                     \
         .help = "the collective, if the text does not name it"},                                  \
    {                                                                                              \
        .name = "nccl-log", .value = "FILE", .choices = "FILE", .group = BENCH_MACHINE_GROUP,      \
        .kind = OPTION_LIST, .offset = offsetof(struct bench_machine, logs),                       \
        .help = "what NCCL_DEBUG_FILE wrote; may be repeated"                                      \
    }

/* Reads the known machines and checks the words, of which the name of a machine is one. */
int bench_machine_ready(struct bench_machine *m, struct drarun_error *err);
void bench_machine_done(struct bench_machine *m);

/* The verdict on a run, which is given what the command line knows beyond it. */
int bench_machine_judge(const struct bench_machine *m, struct run *run,
                        const struct verdict_demands *demands, struct verdict *ret_verdict,
                        struct drarun_error *err);

#endif
