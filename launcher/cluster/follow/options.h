/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the following of a job. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_OPTIONS_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_OPTIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "launcher/programs/cluster_api.h"
#include "launcher/programs/signals.h"
#include "launcher/streams/std_streams.h"

/* A line of a rank, or a piece of a long one; nonzero: no more of them, and the following ends. */
typedef int (*follow_output_fn)(void *arg, uint32_t rank, bool is_stderr, const char *data,
                                size_t length);

struct follow_options {
    const char *job, *namespace;
    const char *uid; /* of its launcher Job: an earlier job of that name is not it; NULL: any */
    bool output;     /* the ranks' output and the launcher's own lines are shown */
    bool cancel;     /* a signal ends the job; else it ends the following alone */
    bool by_program; /* with `cancel`: a second signal does not end the following */
    bool label, quiet;
    bool *running;      /* set, and the following ends, once the ranks run and what the launcher
                         * has said until then is shown; NULL: it goes on */
    bool once;          /* the log as it is, without waiting for more */
    int32_t rank;       /* of this rank alone; -1: of all */
    bool timestamps;    /* with `streams`: the time that the log has before each line */
    int64_t last_ms;    /* no lines that were older when this began; 0: all */
    uint32_t tail;      /* with `once` and `streams`: so many lines of the end, plus 1; 0: all */
    int64_t timeout_ms; /* 0: none */
    int64_t since_ms;   /* when its time has begun, by clock_ms; 0: now */
    bool patient;       /* through.h: where the API server cannot be asked it asks again */
    /* This process is the job's: its signals, its terminal, and its output, which goes there; its
     * owner is set while it is followed. NULL: it is somebody else's. Borrowed. */
    struct std_streams *streams;
    const struct sink_reader *reader; /* follow_in_foreground: of the output; NULL: none */
    struct cluster_end *ret_end;      /* follow_job: cluster_api.h; NULL: not wanted */
    struct signals *signals; /* with `streams`: taken over, also on failure; NULL: own ones */
    int signo;               /* that came before; 0: none */
    /* else: where output goes; and what is awaited, told once a second while it is; may be NULL */
    follow_output_fn put;
    void (*progress)(void *arg, const char *text);
    void *arg;
    const volatile sig_atomic_t *stop; /* nonzero ends it: follow_look */
};

#endif
