/* SPDX-License-Identifier: Apache-2.0 */
/* What `drarun bench COLLECTIVE` was asked for: ours, and the words of drarun-bench. */
#ifndef DRARUN_LAUNCHER_BENCH_CHOICE_H
#define DRARUN_LAUNCHER_BENCH_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "launcher/bench/keep.h"
#include "launcher/bench/verdict_lines.h"
#include "launcher/programs/cluster_api.h"
#include "lib/base/buf.h"
#include "lib/base/options.h"
#include "lib/base/strlist.h"

struct bench_choice {
    struct bench_asked asked; /* first, for its options; ready after bench_choice_check */
    uint32_t ranks, workers, per_worker;               /* 0: not said */
    const char *agents, *key_file, *bind, *hang_after; /* borrowed, and checked by `drarun run` */
    struct strlist env;
    struct strlist sweep; /* "NAME=VALUE,VALUE" */
    struct strlist words; /* for drarun-bench, with its name */
    /* on a cluster */
    struct cluster_choice cluster;
    uint32_t gpus, nics;                                             /* of each worker */
    const char *gpu_class, *gpu_resource, *nic_class, *nic_resource; /* all NULL: what is served */
    const char *nic_selector, *align, *spread, *network, *profile, *image, *program, *agent_image,
        *name;
    const char *name_begins;    /* of one that is drawn, where name is NULL; NULL: bench- */
    const char *job;            /* a file: the DraJob that this one is made of */
    const char *role;           /* of that; NULL: those with devices */
    struct strlist tolerations; /* "KEY[=VALUE][:EFFECT]" */
    bool here;
    const struct option_spec *for_cluster; /* the first given one that applies there alone; NULL */

    bool backend_given;      /* among the words; set by bench_choice_check */
    struct keep_files files; /* borrowed from words; set by bench_choice_check */
    bool more;               /* they have those of an earlier job of this command */
    bool no_verdict;
    bool help;
};

void bench_choice_done(struct bench_choice *choice);

/* Refuses what drarun-bench would refuse on every rank, before there is one. */
int bench_choice_check(struct bench_choice *choice, struct drarun_error *err);

/* Appends drarun-bench's own options. */
void bench_choice_help(struct buf *out);

#endif
