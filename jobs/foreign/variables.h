/* SPDX-License-Identifier: Apache-2.0 */
/* Variables by which the user tells mpirun, mpiexec.hydra or srun what an option could, too. Those
 * that MPI libraries read themselves are not among them: ranks inherit them. Pure. */
#ifndef DRARUN_JOBS_FOREIGN_VARIABLES_H
#define DRARUN_JOBS_FOREIGN_VARIABLES_H

#include <stddef.h>
#include "lib/base/buf.h"

/* What to do about hosts on which no ranks start. */
#define FOREIGN_START_AGENTS                                                                       \
    "start drarun-worker --listen :7173 --key-file FILE on each host, then pass "                  \
    "--agents HOST:7173,... --key-file FILE"

/* What on the command line has said it already. */
enum foreign_said {
    FOREIGN_SAID_NOTHING = 1,
    FOREIGN_SAID_RANKS,   /* -n */
    FOREIGN_SAID_WORKERS, /* --workers, --agents, hosts, --ranks-per-worker */
    FOREIGN_SAID_HOSTS,   /* the same, or -n 1, which needs one host */
    FOREIGN_SAID_BIND,
    FOREIGN_SAID_OUTPUT, /* --label, --output-dir */
    FOREIGN_SAID_TIMEOUT,
    FOREIGN_SAID_FAILURE, /* --on-rank-failure */
};

struct foreign_variable {
    unsigned int from; /* enum foreign_launcher */
    const char *name;
    const char *harmless;     /* values that change nothing here, "0 false"; NULL: none */
    enum foreign_said unless; /* then nothing is said about it */
    const char *ours;         /* our option, which it sets; NULL: it is not read */
    const char *text;         /* what to say in its place; the values, in lower case, for which it
                               * sets an option with its value, "--bind=core" */
};

extern const struct foreign_variable foreign_variables[];
extern const size_t foreign_variable_count;

/* What the launcher's variables are here, as a table in Markdown. */
void foreign_variables_table(unsigned int from, struct buf *out);

#endif
