/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one agent as processes: start, stdio, signals, reaping, the end. Knows nothing of
 * PMIx or of the launcher. Everything on the loop's thread, which must be one that lives as long as
 * the agent: ranks get SIGKILL when the thread that started them ends. */
#ifndef DRARUN_WORKER_RANKS_H
#define DRARUN_WORKER_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "worker/host/room.h"

enum rank_stream { RANK_STDOUT = 1, RANK_STDERR = 2 };

/* Bytes of output that may be on their way to the launcher, over all ranks of an agent. */
#define RANKS_OUTPUT_WINDOW (1024u * 1024)
/* The longest line that is kept whole; a longer one is passed on in pieces. */
#define RANKS_LINE_MAX (64u * 1024)
/* What may wait of the texts that a rank says to one stream (ranks_say), besides those of one
 * request, of any length. */
#define RANKS_TEXT_MAX (1024u * 1024)

/* So long after SIGKILL a rank that has not ended is given up: the kernel is not done with it, or a
 * debugger holds it. The launcher waits longer for an agent (OVERDUE_MS and OVERDUE_MORE_MS of
 * launcher/job), so that it can name the rank. */
#define RANKS_STUCK_MS 3000

struct rank_request {
    uint32_t rank;
    char *const *argv; /* argv[0] is looked up in the PATH of env, as execvpe does */
    char *const *env;
    const char *wd;       /* NULL or empty: the agent's */
    bool here;            /* argv[0] is looked up in wd, too, after PATH: Open MPI's spawn */
    const uint32_t *cpus; /* to bind to; none: unchanged */
    size_t cpu_count;
    bool stop;       /* before its first instruction, as by SIGSTOP */
    bool stdin_open; /* a pipe that ranks_input feeds; else /dev/null */
    int pmi_fd;      /* inherited under this very number, or -1; the caller closes its copy */
};

struct rank_result {
    uint32_t rank;
    pid_t pid;
    int code; /* exit status when signo is 0 */
    int signo;
    bool core;
    bool oom;   /* SIGKILL or 137, and the cgroup (or kernel) has counted an OOM kill */
    bool by_us; /* it ended after ranks_end; signals that were only passed on do not count */
    int64_t ran_us, user_us, system_us;
    uint64_t max_rss_kib; /* at least the agent's own: the kernel counts what it started in */
    /* Last lines, at most 2 KiB; borrowed during the callback. In `reaped`, as far as read. */
    const char *stderr_tail;
    size_t stderr_tail_length;
};

/* Callbacks come from the loop (input_done also from ranks_input, said from ranks_say). They may
 * call everything here but ranks_free, which only all_ended may call. */
struct ranks_owner {
    /* Output of a rank, in its order: one or more whole lines, or `partial` pieces that end in no
     * newline (a line longer than RANKS_LINE_MAX, the start of one when the rank has been silent
     * for 50 ms since, or the last one before EOF). length is at most RANKS_LINE_MAX. The sum of
     * lengths not yet given back by ranks_output_done stays within RANKS_OUTPUT_WINDOW: beyond it,
     * pipes are not read and ranks block in write. */
    void (*output)(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                   size_t length, bool partial);
    /* A text of ranks_say was passed on, or nobody wants it: it is not read any more. Once for
     * each; ranks_free calls it for those that are left. */
    void (*said)(void *arg, void *token);
    /* Called once for each rank, when it is reaped and its pipes are at EOF, or 200 ms later when a
     * child of its keeps them open; that child's output may still follow. Ranks come in the order
     * in which they showed signs of their ends. */
    void (*ended)(void *arg, const struct rank_result *result);
    /* A rank was reaped: called at once, before its output is drained, so that the owner can judge
     * (and must first drain its queue of PMIx upcalls). True: its server is about to notice and
     * ranks_dying will follow, which gives this end its place among others (200 ms at most). */
    bool (*reaped)(void *arg, const struct rank_result *result);
    /* All ended, all descendants gone, and none is to come. Called once, when `count` ranks and
     * those of ranks_add were started, or after ranks_end when those that were started have ended.
     */
    void (*all_ended)(void *arg);
    /* This rank, and so many more, are still there a while after SIGKILL: they are given up. */
    void (*stuck)(void *arg, uint32_t rank, pid_t pid, size_t more);
    /* After ranks_settle: no rank is dying, and each that has ended was told. */
    void (*settled)(void *arg);
    /* So many bytes of input went into the stdin pipe of every rank that reads (or were dropped).
     */
    void (*input_done)(void *arg, size_t bytes);
    void *arg;
    struct room_files files; /* of this process for them */
    bool hold;               /* when all have ended more may come, until ranks_release */
    const char *oom_score;   /* of the ranks, where it is not this process' own; or NULL */
};

struct ranks;

/* The caller has blocked SIGCHLD in every thread, SIGPIPE is ignored, and the process has and gets
 * no children but ranks: all others are taken for what ranks left. ranks_new makes this process a
 * child subreaper, watches SIGCHLD by signalfd, and raises the soft limit of open files when count
 * ranks need it (they get the old one). count: how many will be started. kill_after_ms: from
 * SIGTERM to SIGKILL in ranks_end. */
struct ranks *ranks_new(struct event_base *base, size_t count, uint32_t kill_after_ms,
                        const struct ranks_owner *owner, struct drarun_error *err);
/* So many more will be started; -ENOMEM. And they will not be, after all. */
int ranks_add(struct ranks *ranks, size_t count);
void ranks_drop(struct ranks *ranks, size_t count);
/* No more will come. */
void ranks_release(struct ranks *ranks);
/* SIGKILLs what still runs, without waiting for it. */
void ranks_free(struct ranks *ranks);

/* Starts one process in a process group of its own (so that it can be signalled), with SIGKILL on
 * the agent's death, default signal dispositions, an empty mask, and no descriptor but 0, 1, 2 and
 * pmi_fd. Errors name the program and what to do: kind
 * DRARUN_ERR_NOT_FOUND, _NOT_EXECUTABLE (permission, ENOEXEC: wrong architecture, with both named),
 * DRARUN_ERR_INFRASTRUCTURE for EAGAIN (limit of processes: says RLIMIT_NPROC / pids.max), EMFILE
 * (says ulimit -n and how many are needed). After an error the rank does not count as started, and
 * no callback tells of it: the owner calls ranks_end. -ECANCELED after ranks_end. */
int ranks_start(struct ranks *ranks, const struct rank_request *request, struct drarun_error *err);

/* Checks that the program of argv, env, wd and here of a request can be started, without starting
 * it; same errors as ranks_start. */
int ranks_check_program(const struct rank_request *request, struct drarun_error *err);

/* The launcher has written (or dropped) so many bytes. */
void ranks_output_done(struct ranks *ranks, size_t bytes);
/* Nobody reads this stream any more: pipes' read ends are closed, ranks get EPIPE/SIGPIPE. */
void ranks_output_closed(struct ranks *ranks, enum rank_stream stream);

/* Output of the rank that comes another way than by its pipes: it follows what is in the stream's
 * pipe now, waits for room as that does, and goes into none of its lines, unless the rest of the
 * line does not come within 1 s, or within 50 ms from a rank that writes nothing and has no other
 * request. text is borrowed until `said`, which may come at once. token: the request; texts that
 * follow one another with the same token are of one. -ESRCH: the rank was not started here;
 * -EDQUOT: more than RANKS_TEXT_MAX would wait; -ENOMEM. */
int ranks_say(struct ranks *ranks, uint32_t rank, enum rank_stream stream, const char *text,
              size_t length, void *token);

/* Bytes for the stdin of every started rank with stdin_open, queued until the slowest has them;
 * input_done bounds the sender. length 0 closes. A rank that has closed its stdin or ended is not
 * waited for. -ENOMEM, or -EPIPE after the close. */
int ranks_input(struct ranks *ranks, const void *data, size_t length);

/* A sign that this rank has ended or is about to, as its lost connection to a server: ranks whose
 * sign comes later are told (`ended`) after it, unless it lives on for 1 s. */
void ranks_dying(struct ranks *ranks, uint32_t number);
/* Some rank but this one is dying, or has ended and was not told yet. */
bool ranks_any_dying(const struct ranks *ranks, uint32_t but);
/* How many such signs there have been, and how many of them are dealt with: told by `ended`, which
 * counts already while it is called, or no sign of an end. */
size_t ranks_signs(const struct ranks *ranks);
size_t ranks_told(const struct ranks *ranks);

/* Looks which ranks have ended or are exiting, and calls `settled` once all of them were told, or
 * after about a second without an end. What has become of a rank that a fellow lost before this
 * call is told by then. */
void ranks_settle(struct ranks *ranks);

/* Signals every live rank's process group. */
void ranks_signal(struct ranks *ranks, int signo);
/* Signals the ranks [first, first + count). */
void ranks_signal_some(struct ranks *ranks, uint32_t first, uint32_t count, int signo);
/* Ends all: SIGTERM and SIGCONT (or SIGKILL at_once), SIGKILL after kill_after_ms to whatever
 * descendant is left, orphans and other sessions included. A rank that survives SIGKILL for
 * RANKS_STUCK_MS counts as ended by it. Idempotent; at_once may follow. */
void ranks_end(struct ranks *ranks, bool at_once);

size_t ranks_running(const struct ranks *ranks);           /* started and not reaped */
pid_t ranks_pid(const struct ranks *ranks, uint32_t rank); /* -1 when it does not run */
/* Whether a rank was started; how it is or was, without its tail, and whether it still runs. */
bool ranks_find(const struct ranks *ranks, uint32_t rank, struct rank_result *ret, bool *ret_runs);
bool ranks_has_pid(const struct ranks *ranks, pid_t pid); /* a rank that runs has it */

#endif
