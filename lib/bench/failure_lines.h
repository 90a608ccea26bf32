/* SPDX-License-Identifier: Apache-2.0 */
/* How a run failed, from the lines that it and its launcher wrote:
 *
 *   a2: Test NCCL failure all_reduce.cu:44 'remote process exited or there was a network error / '
 *    .. a2 pid 1010: Test failure common.cu:401
 *   a1: Test timeout (60s) common.cu:523
 *   a2:1010:1100 [2] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion ... with error 12
 *   mpirun noticed that process rank 3 with PID 0 on node a2 exited on signal 9 (Killed).
 *
 * (src/common.h and src/common.cu of nccl-tests 2.0 to 2.19; Open MPI, PRRTE, Hydra, Slurm). Of
 * several failures the first counts that is not an echo of another rank's. Pure. */
#ifndef DRARUN_LIB_BENCH_FAILURE_LINES_H
#define DRARUN_LIB_BENCH_FAILURE_LINES_H

#include "lib/bench/result.h"

#define FAILURE_HOSTS 16u /* whose last warning is kept */

struct failure_warning { /* NCCL's last of a host */
    char host[64];
    char text[320]; /* "Attribute arch of node cpu not found (graph/xml.h:101)" */
};

struct failure_lines { /* of one run */
    struct failure_warning warnings[FAILURE_HOSTS];
    size_t count, last; /* last: that of the latest line, where there is any */
    unsigned weight;    /* of the failure that is known; 0: none is */
};

/* Is it a failure of the program's own, which belongs to a run even before its heading? */
bool failure_line_is(const char *line, size_t length);

/* Takes a line without its end into account, for the failure of *r. */
void failure_lines_take(struct failure_lines *lines, const char *line, size_t length,
                        struct result *r);

/* Takes only warnings, of a log that lies beside the run's own text. */
void failure_lines_warn(struct failure_lines *lines, const char *line, size_t length);

/* Gives a failure without a cause the last warning of its host. */
void failure_lines_explain(const struct failure_lines *lines, struct result *r);

/* At the end: a launcher's words count where the run itself did not end; else they go to
 * ret_launcher, which is empty where there are none. Of a run that did not end and names no
 * failure, NCCL's last warning goes to ret_warning, empty or "HOST: TEXT". */
void failure_lines_end(const struct failure_lines *lines, struct result *r,
                       char ret_launcher[RESULT_FAILURE], char ret_warning[RESULT_FAILURE]);

#endif
