/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line of `drarun run` says: programs whose ranks are started from here, or a job
 * for a cluster. Strings are borrowed from the command line. */
#ifndef DRARUN_LAUNCHER_RUN_LINE_H
#define DRARUN_LAUNCHER_RUN_LINE_H

#include "launcher/alloc/kept.h"
#include "launcher/job/request.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/streams/console.h"
#include "lib/base/options.h"
#include "lib/base/strlist.h"

struct run_line {
    struct job_request request; /* the programs, or the one "program" that is a job spec's file */
    struct console_options console; /* how the programs, or the file's ranks, are shown */
    struct cluster_run cluster;     /* that file's job on a cluster, and --job */
    struct strlist args;            /* behind that file and "--", for the ranks */
    bool local;                     /* that file's ranks run here (local_spec.h) */
    bool one_program; /* all words behind the options are one program's: ":" does not divide them,
                       * and the first is no file of a job */
    /* The first given option that does not apply to programs on the command line, to a job whose
     * ranks run here, to a cluster's job. NULL: none. */
    const struct option_spec *not_for_programs, *not_for_local, *not_for_cluster;
    uint32_t verbose;    /* how often -v was given */
    const char *prtemca; /* the first parameter of PRRTE that was given; NULL: none */
    bool help, version;
};

static inline void run_line_done(struct run_line *line)
{
    kept_free(line->request.kept);
    request_done(&line->request);
    strlist_done(&line->args);
    *line = (struct run_line){0};
}

#endif
