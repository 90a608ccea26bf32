/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/ranks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/proctree.h"
#include "worker/ranks/exec_path.h"
#include "worker/ranks/exec_reason.h"
#include "worker/ranks/limits.h"
#include "worker/host/oom.h"
#include "worker/ranks/input.h"
#include "worker/ranks/output.h"
#include "worker/ranks/remains.h"
#include "worker/ranks/spawn.h"

/* A pipe that is open so long after the last descendant went is held by a process that escaped us.
 */
#define GIVE_UP_MS 1000
/* What ranks left has this time to end by itself, from its last output on, and in all, before it is
 * asked to. */
#define LEAVE_QUIET_MS 300
#define LEAVE_MS 2000
/* A rank is told as ended so long after it was reaped, though a child of its keeps its pipes open:
 * its peers may wait for it, and the job's end must not wait for that child. */
#define ENDED_GRACE_MS 200
/* So long a reaped rank waits for its server to notice, see ranks_owner.reaped. */
#define UNNOTICED_MS 200
/* A rank that gave a sign of its end keeps back the news of ranks that ended after it for so long.
 */
#define DYING_GRACE_MS 1000

enum rank_state {
    RANK_UNUSED = 0,
    RANK_RUNNING,
    RANK_REAPED, /* its pipes may still hold output */
    RANK_ENDED,
};

struct rank {
    enum rank_state state;
    bool killed; /* by a SIGKILL of ours */
    bool queued; /* in ranks.order */
    int64_t started_us;
    int64_t dying_us; /* first sign of its end */
    int64_t reaped_us;
    struct rank_result result;
};

struct ranks {
    struct event_base *base;
    struct ranks_owner owner;
    uint32_t kill_after_ms;
    bool ending;           /* ranks_end was called */
    bool all_ended;        /* the owner was told */
    bool settling;         /* the owner is to be told when nothing is left to tell */
    bool limit_raised;     /* ranks get files_before */
    int64_t kill_at_us;    /* while ending: when SIGKILL follows */
    int64_t killed_us;     /* when it was sent; 0: not yet */
    int64_t all_reaped_us; /* 0: not yet */
    int64_t asked_us;      /* when what ranks left had had its time; 0: not yet */
    struct rlimit files_before;
    size_t count, started, reaped, ended; /* ranks wanted, and how many came how far */
    size_t last_found;                    /* ranks tend to end in the order of their start */
    bool unordered;                       /* some number is not above that of the slot before */
    size_t *order; /* slots, by the first sign of their end: the owner is told in this order */
    size_t queued, told;
    size_t unnoticed; /* reaped ranks that are not in it yet */
    int signals;      /* signalfd */
    int null;
    uint64_t signals_to_reset; /* in ranks, spawn.h; found when the first one starts */
    struct event *child;
    struct event *update; /* activated by each change of state */
    struct event *timer;  /* the same at the next deadline */
    struct oom oom;
    struct remains remains;
    struct rank_output *output;
    struct rank_input *input;
    struct rank *rank; /* by slot; may move when ranks are added */
};

/* ---- looking up ---- */

static struct rank *find_pid(struct ranks *ranks, pid_t pid)
{
    for (size_t i = 0; i < ranks->started; i++) {
        size_t at = (ranks->last_found + i) % ranks->started;
        if (ranks->rank[at].state == RANK_RUNNING && ranks->rank[at].result.pid == pid) {
            ranks->last_found = at + 1;
            return &ranks->rank[at];
        }
    }
    return NULL;
}

size_t ranks_running(const struct ranks *ranks)
{
    return ranks->started - ranks->reaped;
}

/* Of spawned ranks there may be very many, and callers ask for each. NULL: it was not started. */
static struct rank *find_rank(const struct ranks *ranks, uint32_t number)
{
    size_t low = 0, high = ranks->started;
    while (!ranks->unordered && high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (ranks->rank[middle].result.rank <= number)
            low = middle;
        else
            high = middle;
    }
    while (low < high && ranks->rank[low].result.rank != number)
        low++;
    return low < high ? &ranks->rank[low] : NULL;
}

pid_t ranks_pid(const struct ranks *ranks, uint32_t number)
{
    const struct rank *rank = find_rank(ranks, number);
    return rank && rank->state == RANK_RUNNING ? rank->result.pid : -1;
}

bool ranks_find(const struct ranks *ranks, uint32_t number, struct rank_result *ret, bool *ret_runs)
{
    const struct rank *rank = find_rank(ranks, number);
    if (!rank)
        return false;
    *ret = rank->result;
    ret->stderr_tail = NULL;
    ret->stderr_tail_length = 0;
    *ret_runs = rank->state == RANK_RUNNING;
    return true;
}

bool ranks_has_pid(const struct ranks *ranks, pid_t pid)
{
    for (size_t i = 0; i < ranks->started; i++)
        if (ranks->rank[i].result.pid == pid && ranks->rank[i].state == RANK_RUNNING)
            return true;
    return false;
}

/* ---- signals ---- */

/* The rank is not reaped, so its number and its group's are still its own. */
static struct log_about about_rank(const struct rank *rank)
{
    return (struct log_about){.of_rank = true, .rank = (uint32_t)rank->result.rank};
}

static void signal_rank(const struct ranks *ranks, struct rank *rank, int signo)
{
    if (rank->state != RANK_RUNNING)
        return;
    /* before, in case it ends of it at once; a signal that is passed on explains no end */
    rank->result.by_us = rank->result.by_us || ranks->ending;
    rank->killed = rank->killed || signo == SIGKILL;
    const struct log_about about = about_rank(rank);
    if (kill(-rank->result.pid, signo) < 0 && errno != ESRCH)
        log_about(&about, LOG_QUIET, "signal rank %u: %s", (unsigned)rank->result.rank,
                  strerror(errno));
}

void ranks_signal_some(struct ranks *ranks, uint32_t first, uint32_t count, int signo)
{
    for (size_t i = 0; i < ranks->started; i++)
        if (ranks->rank[i].result.rank - first < count)
            signal_rank(ranks, &ranks->rank[i], signo);
}

void ranks_signal(struct ranks *ranks, int signo)
{
    for (size_t i = 0; i < ranks->started; i++)
        signal_rank(ranks, &ranks->rank[i], signo);
}

static void kill_ranks(struct ranks *ranks)
{
    ranks->killed_us = clock_us();
    ranks_signal(ranks, SIGKILL);
}

void ranks_end(struct ranks *ranks, bool at_once)
{
    bool again = ranks->ending;
    ranks->ending = true;
    if (at_once) {
        if (ranks->killed_us == 0)
            kill_ranks(ranks);
    } else if (!again) {
        ranks->kill_at_us = clock_us() + (int64_t)ranks->kill_after_ms * 1000;
        ranks_signal(ranks, SIGTERM);
        ranks_signal(ranks, SIGCONT); /* a stopped process acts on no SIGTERM */
    }
    event_active(ranks->update, EV_TIMEOUT, 0);
}

/* ---- reaping ---- */

static int64_t timeval_us(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

static void note_end(struct ranks *ranks, struct rank *rank, int status, const struct rusage *use)
{
    struct rank_result *result = &rank->result;
    rank->state = RANK_REAPED;
    ranks->reaped++;
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    result->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->core = WIFSIGNALED(status) && WCOREDUMP(status);
    /* a shell tells of its program's death by 128 + signal */
    bool by_kill = result->signo == SIGKILL || result->code == 128 + SIGKILL;
    result->oom = by_kill && !rank->killed && oom_take_kill(&ranks->oom);
    rank->reaped_us = clock_us();
    result->ran_us = rank->reaped_us - rank->started_us;
    result->user_us = timeval_us(use->ru_utime);
    result->system_us = timeval_us(use->ru_stime);
    result->max_rss_kib = (uint64_t)use->ru_maxrss;
}

/* Room for two entries a rank: one that was told too early to be dying comes again when reaped. */
static void queue_end(struct ranks *ranks, struct rank *rank)
{
    if (rank->queued)
        return;
    rank->queued = true;
    ranks->unnoticed -= rank->state == RANK_REAPED;
    ranks->order[ranks->queued++] = (size_t)(rank - ranks->rank);
}

void ranks_dying(struct ranks *ranks, uint32_t number)
{
    struct rank *rank = find_rank(ranks, number);
    if (!rank || rank->dying_us != 0)
        return;
    rank->dying_us = clock_us();
    queue_end(ranks, rank);
    event_active(ranks->update, EV_TIMEOUT, 0);
}

bool ranks_any_dying(const struct ranks *ranks, uint32_t but)
{
    for (size_t i = ranks->told; i < ranks->queued; i++)
        if (ranks->rank[ranks->order[i]].result.rank != but)
            return true;
    return false;
}

size_t ranks_signs(const struct ranks *ranks)
{
    return ranks->queued;
}

size_t ranks_told(const struct ranks *ranks)
{
    return ranks->told;
}

static void tell_reaped(struct ranks *ranks, struct rank *rank, int status,
                        const struct rusage *use)
{
    size_t slot = (size_t)(rank - ranks->rank);
    note_end(ranks, rank, status, use);
    rank_input_drop(ranks->input, slot);
    rank->result.stderr_tail =
        rank_output_stderr_tail(ranks->output, slot, &rank->result.stderr_tail_length);
    ranks->unnoticed += !rank->queued;
    bool noticed = ranks->owner.reaped(ranks->owner.arg, &rank->result);
    if (!noticed || ranks->ending)
        queue_end(ranks, rank);
}

/* Those that SIGKILL did not end count as ended by it; wait4 may still show them one day. */
static void give_up_ranks(struct ranks *ranks)
{
    static const struct rusage unknown;
    bool told = false;
    for (size_t i = 0; i < ranks->started; i++) {
        struct rank *rank = &ranks->rank[i];
        if (rank->state != RANK_RUNNING)
            continue;
        if (!told)
            ranks->owner.stuck(ranks->owner.arg, rank->result.rank, rank->result.pid,
                               ranks_running(ranks) - 1);
        told = true;
        tell_reaped(ranks, rank, SIGKILL, &unknown);
    }
}

static void reap(struct ranks *ranks)
{
    struct rusage use;
    int status;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0) {
        struct rank *rank = find_pid(ranks, pid);
        if (rank) /* else an orphan that we adopted */
            tell_reaped(ranks, rank, status, &use);
    }
    event_active(ranks->update, EV_TIMEOUT, 0);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct signalfd_siginfo info[4];
    (void)what;
    /* one pending signal may stand for many children: only wait4 knows */
    while (read(fd, info, sizeof info) > 0)
        ;
    reap(arg);
}

void ranks_settle(struct ranks *ranks)
{
    ranks->settling = true;
    reap(ranks);
    for (size_t i = 0; i < ranks->started; i++) {
        const struct rank *rank = &ranks->rank[i];
        if (rank->state == RANK_RUNNING && proctree_is_exiting(rank->result.pid))
            ranks_dying(ranks, rank->result.rank);
    }
}

/* ---- the end, computed from the state ---- */

/* Of two times, 0 being none. */
static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return a_us == 0 || (b_us != 0 && b_us < a_us) ? b_us : a_us;
}

/* Those that were reaped and whose server says nothing. Returns when to look again, 0 when none is
 * left. */
static int64_t queue_unnoticed(struct ranks *ranks, int64_t now_us)
{
    int64_t next_us = 0;
    for (size_t i = 0; i < ranks->started && ranks->unnoticed > 0; i++) {
        struct rank *rank = &ranks->rank[i];
        if (rank->state != RANK_REAPED || rank->queued)
            continue;
        int64_t limit_us = rank->reaped_us + UNNOTICED_MS * 1000;
        if (ranks->ending || now_us >= limit_us)
            queue_end(ranks, rank);
        else
            next_us = earlier(next_us, limit_us);
    }
    return next_us;
}

/* In the order of the first signs of an end, so that the first cause comes before its echoes.
 * Returns when it is to be called again, 0 when nothing is due. */
static int64_t call_ended(struct ranks *ranks, int64_t now_us)
{
    int64_t next_us = queue_unnoticed(ranks, now_us);
    while (ranks->told < ranks->queued) {
        size_t slot = ranks->order[ranks->told];
        struct rank *rank = &ranks->rank[slot];
        bool runs = rank->state == RANK_RUNNING;
        int64_t grace_us =
            runs ? rank->dying_us + DYING_GRACE_MS * 1000 : rank->reaped_us + ENDED_GRACE_MS * 1000;
        bool finished = !runs && rank_output_finished(ranks->output, slot);
        if (!finished && now_us < grace_us)
            return earlier(next_us, grace_us);
        ranks->told++;
        if (runs) {
            rank->queued = false;
            continue;
        }
        rank->state = RANK_ENDED;
        ranks->ended++;
        rank->result.stderr_tail =
            rank_output_stderr_tail(ranks->output, slot, &rank->result.stderr_tail_length);
        ranks->owner.ended(ranks->owner.arg, &rank->result);
        rank_output_forget_tail(ranks->output, slot);
    }
    return next_us;
}

static bool all_reaped(const struct ranks *ranks)
{
    return ranks->reaped == ranks->started &&
           (ranks->ending || (ranks->started == ranks->count && !ranks->owner.hold));
}

/* Every pipe is at its end or given up; asked only when all are reaped, since it looks at each. */
static bool drained(const struct ranks *ranks)
{
    for (size_t i = 0; i < ranks->started; i++)
        if (!rank_output_finished(ranks->output, i))
            return false;
    return true;
}

/* The group got its SIGTERM with its rank; another one reads to some programs as "at once". */
static bool was_asked(pid_t pid, void *arg)
{
    const struct ranks *ranks = arg;
    pid_t group = getpgid(pid);
    for (size_t i = 0; ranks->ending && i < ranks->started; i++)
        if (ranks->rank[i].result.pid == group)
            return ranks->rank[i].result.by_us;
    return false;
}

/* What holds pipes of the ranks may be about to write the last of their output, and end: tee, of a
 * script's `exec > >(tee log)`. Until then it is left alone; 0: it is not. */
static int64_t leave_until(const struct ranks *ranks)
{
    int64_t last_us = ranks->all_reaped_us + LEAVE_MS * 1000;
    int64_t active_us = rank_output_active_us(ranks->output);
    if (ranks->ending || drained(ranks) || !remains_any())
        return 0;
    if (active_us < ranks->all_reaped_us)
        active_us = ranks->all_reaped_us;
    return earlier(active_us + LEAVE_QUIET_MS * 1000, last_us);
}

/* Ends descendants, then pipes. Returns when it is to be called again, 0 when nothing is due. */
static int64_t end_leftovers(struct ranks *ranks, int64_t now_us)
{
    if (ranks->all_reaped_us == 0)
        ranks->all_reaped_us = now_us;
    int64_t until_us = ranks->asked_us == 0 ? leave_until(ranks) : 0;
    if (now_us < until_us)
        return until_us;
    if (ranks->asked_us == 0)
        ranks->asked_us = now_us;
    int64_t kill_us = ranks->killed_us ? ranks->killed_us
                      : ranks->ending  ? ranks->kill_at_us
                                       : ranks->asked_us + REMAINS_TERM_MS * 1000;
    int64_t next_us = remains_step(&ranks->remains, kill_us, now_us, was_asked, ranks);
    if (ranks->remains.state == REMAINS_ASKED || drained(ranks))
        return next_us;
    int64_t give_up_us = ranks->remains.since_us + GIVE_UP_MS * 1000;
    if (now_us < give_up_us)
        return earlier(next_us, give_up_us);
    rank_output_give_up(ranks->output);
    return next_us;
}

/* Ends ranks. Returns when it is to be called again, 0 when nothing is due. */
static int64_t end_ranks(struct ranks *ranks, int64_t now_us)
{
    if (!ranks->ending)
        return 0;
    if (ranks->killed_us == 0 && now_us < ranks->kill_at_us)
        return ranks->kill_at_us;
    if (ranks->killed_us == 0)
        kill_ranks(ranks);
    int64_t stuck_us = ranks->killed_us + RANKS_STUCK_MS * 1000;
    if (now_us < stuck_us)
        return stuck_us;
    give_up_ranks(ranks);
    return 0;
}

static void plan_update(struct ranks *ranks, int64_t at_us, int64_t now_us)
{
    int64_t wait_us = at_us > now_us ? at_us - now_us : 0;
    struct timeval wait = timeval_from_ms((wait_us + 999) / 1000);
    if (at_us == 0)
        event_del(ranks->timer);
    else if (event_add(ranks->timer, &wait) < 0) /* libevent allocates for it: try again at once */
        event_active(ranks->timer, EV_TIMEOUT, 0);
}

static void on_update(evutil_socket_t fd, short what, void *arg)
{
    struct ranks *ranks = arg;
    int64_t now_us = clock_us();
    int64_t next_us = 0;
    (void)fd;
    (void)what;
    if (!all_reaped(ranks))
        next_us = end_ranks(ranks, now_us);
    next_us = earlier(next_us, call_ended(ranks, now_us));
    if (all_reaped(ranks))
        next_us = earlier(next_us, end_leftovers(ranks, now_us));
    plan_update(ranks, next_us, now_us);
    if (ranks->settling && ranks->told == ranks->queued && ranks->unnoticed == 0) {
        ranks->settling = false;
        ranks->owner.settled(ranks->owner.arg);
    }
    if (ranks->all_ended || !all_reaped(ranks) || ranks->ended < ranks->started ||
        ranks->remains.state != REMAINS_GONE || !drained(ranks))
        return;
    ranks->all_ended = true;
    ranks->owner.all_ended(ranks->owner.arg); /* may free us */
}

/* ---- streams ---- */

static void on_output(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                      size_t length, bool partial)
{
    struct ranks *ranks = arg;
    ranks->owner.output(ranks->owner.arg, rank, stream, data, length, partial);
}

static void on_closed(void *arg)
{
    struct ranks *ranks = arg;
    event_active(ranks->update, EV_TIMEOUT, 0);
}

static void on_said(void *arg, void *token)
{
    struct ranks *ranks = arg;
    ranks->owner.said(ranks->owner.arg, token);
}

static void on_input_done(void *arg, size_t bytes)
{
    struct ranks *ranks = arg;
    ranks->owner.input_done(ranks->owner.arg, bytes);
}

void ranks_output_done(struct ranks *ranks, size_t bytes)
{
    rank_output_done(ranks->output, bytes);
}

void ranks_output_closed(struct ranks *ranks, enum rank_stream stream)
{
    rank_output_drop(ranks->output, stream);
}

int ranks_say(struct ranks *ranks, uint32_t rank, enum rank_stream stream, const char *text,
              size_t length, void *token)
{
    const struct rank *found = find_rank(ranks, rank);
    return found ? rank_output_say(ranks->output, (size_t)(found - ranks->rank), stream, text,
                                   length, token)
                 : -ESRCH;
}

int ranks_input(struct ranks *ranks, const void *data, size_t length)
{
    return rank_input_feed(ranks->input, data, length);
}

/* ---- starting ---- */

static int find_program(const struct rank_request *request, char path[PATH_MAX], int *ret_dir,
                        struct drarun_error *err)
{
    int rc = exec_path_open_wd(request->wd, ret_dir, err);
    return rc < 0
               ? rc
               : exec_path_find(*ret_dir, request->argv[0], request->env, request->here, path, err);
}

int ranks_check_program(const struct rank_request *request, struct drarun_error *err)
{
    char path[PATH_MAX];
    cleanup_close int dir = -1;
    int rc = find_program(request, path, &dir, err);
    return rc < 0 ? rc : exec_reason_check(dir, path, err);
}

/* The rank's own ends of its pipes, closed here when it has them. */
struct stdio {
    int in, out[2];
};

static void stdio_done(struct stdio *stdio)
{
    close_fd(&stdio->in);
    close_fd(&stdio->out[0]);
    close_fd(&stdio->out[1]);
}

static int open_stdio(struct ranks *ranks, size_t slot, const struct rank_request *request,
                      struct stdio *stdio, struct drarun_error *err)
{
    int rc = rank_output_open(ranks->output, slot, request->rank, stdio->out);
    if (rc == 0 && request->stdin_open)
        rc = rank_input_open(ranks->input, slot, &stdio->in);
    return rc < 0 ? limits_file_error(-rc, &ranks->owner.files, ranks->count - ranks->reaped, err)
                  : 0;
}

static int start_process(struct ranks *ranks, const struct rank_request *request,
                         const struct stdio *stdio, pid_t *ret_pid, struct drarun_error *err)
{
    char path[PATH_MAX];
    cleanup_close int dir = -1;
    int rc = find_program(request, path, &dir, err);
    if (rc < 0)
        return rc;
    const struct spawn spawn = {
        .path = path,
        .argv = request->argv,
        .env = request->env,
        .dir = dir,
        .cpus = request->cpus,
        .cpu_count = request->cpu_count,
        .stdio = {stdio->in < 0 ? ranks->null : stdio->in, stdio->out[0], stdio->out[1]},
        .keep = request->pmi_fd,
        .stop = request->stop,
        .nofile = ranks->limit_raised ? &ranks->files_before : NULL,
        .signals_to_reset = &ranks->signals_to_reset,
        .oom_score = ranks->owner.oom_score,
    };
    return spawn_process(&spawn, ret_pid, err);
}

int ranks_start(struct ranks *ranks, const struct rank_request *request, struct drarun_error *err)
{
    assert(ranks->started < ranks->count);
    if (ranks->ending)
        return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED,
                          "start rank %u: the job is ending", (unsigned)request->rank);
    size_t slot = ranks->started;
    if (slot == 0)
        ranks->signals_to_reset = spawn_signals_to_reset();
    struct rank *rank = &ranks->rank[slot];
    CLEANUP(stdio_done) struct stdio stdio = {-1, {-1, -1}};
    pid_t pid = -1;
    int64_t now_us = clock_us();
    int rc = open_stdio(ranks, slot, request, &stdio, err);
    if (rc == 0)
        rc = start_process(ranks, request, &stdio, &pid, err);
    if (rc < 0) {
        rank_output_cancel(ranks->output, slot);
        rank_input_drop(ranks->input, slot);
        error_prefix(err, "start rank %u", (unsigned)request->rank);
        return rc;
    }
    *rank = (struct rank){
        .state = RANK_RUNNING,
        .started_us = now_us,
        .result = {.rank = request->rank, .pid = pid},
    };
    ranks->unordered |= slot > 0 && request->rank <= ranks->rank[slot - 1].result.rank;
    ranks->started++;
    return 0;
}

/* ---- more of them ---- */

static int reserve(struct ranks *ranks, size_t count)
{
    struct rank *rank = realloc(ranks->rank, (count + 1) * sizeof *rank);
    if (!rank)
        return -ENOMEM;
    ranks->rank = rank;
    size_t *order = realloc(ranks->order, (2 * count + 1) * sizeof *order);
    if (!order)
        return -ENOMEM;
    ranks->order = order;
    return 0;
}

int ranks_add(struct ranks *ranks, size_t count)
{
    size_t all = ranks->count + count;
    struct rlimit before;
    if (reserve(ranks, all) < 0 || rank_output_reserve(ranks->output, all) < 0)
        return -ENOMEM;
    memset(ranks->rank + ranks->count, 0, count * sizeof *ranks->rank);
    ranks->count = all;
    if (limits_raise_files(&ranks->owner.files, all, &before) && !ranks->limit_raised) {
        ranks->files_before = before;
        ranks->limit_raised = true;
    }
    return 0;
}

void ranks_drop(struct ranks *ranks, size_t count)
{
    assert(count <= ranks->count - ranks->started);
    ranks->count -= count;
    event_active(ranks->update, EV_TIMEOUT, 0);
}

void ranks_release(struct ranks *ranks)
{
    ranks->owner.hold = false;
    event_active(ranks->update, EV_TIMEOUT, 0);
}

/* ---- life ---- */

static int watch_children(struct ranks *ranks)
{
    sigset_t child;
    /* if our parent ignored SIGCHLD, the kernel would reap for us and tell no
     * status */
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int rc = proctree_adopt_orphans();
    if (rc < 0)
        return rc;
    ranks->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ranks->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ranks->null < 0 || ranks->signals < 0)
        return -errno;
    ranks->child = event_new(ranks->base, ranks->signals, EV_READ | EV_PERSIST, on_child, ranks);
    ranks->update = event_new(ranks->base, -1, 0, on_update, ranks);
    ranks->timer = event_new(ranks->base, -1, 0, on_update, ranks);
    if (!ranks->child || !ranks->update || !ranks->timer || event_add(ranks->child, NULL) < 0)
        return -ENOMEM;
    event_active(ranks->update, EV_TIMEOUT, 0); /* no rank at all is a job that has ended */
    return 0;
}

static int open_streams(struct ranks *ranks, struct drarun_error *err)
{
    const struct rank_output_owner owner = {
        .output = on_output, .closed = on_closed, .said = on_said, .arg = ranks};
    ranks->output = rank_output_new(ranks->base, ranks->count, &owner, err);
    if (!ranks->output)
        return -ENOMEM;
    ranks->input = rank_input_new(ranks->base, ranks->count, on_input_done, ranks);
    return ranks->input ? 0 : error_set(err, ENOMEM, "out of memory");
}

struct ranks *ranks_new(struct event_base *base, size_t count, uint32_t kill_after_ms,
                        const struct ranks_owner *owner, struct drarun_error *err)
{
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    ranks->base = base;
    ranks->owner = *owner;
    ranks->count = count;
    ranks->kill_after_ms = kill_after_ms;
    ranks->signals = ranks->null = -1;
    ranks->order = calloc(2 * count + 1, sizeof *ranks->order);
    ranks->rank = calloc(count + 1, sizeof *ranks->rank);
    oom_init(&ranks->oom);
    ranks->limit_raised = limits_raise_files(&owner->files, count, &ranks->files_before);
    int rc = ranks->order && ranks->rank ? watch_children(ranks) : -ENOMEM;
    if (rc < 0)
        error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "watch the ranks: %s", strerror(-rc));
    if (rc < 0 || open_streams(ranks, err) < 0) {
        ranks_free(ranks);
        return NULL;
    }
    return ranks;
}

void ranks_free(struct ranks *ranks)
{
    if (!ranks)
        return;
    assert(ranks->rank || ranks->started == 0);
    ranks_signal(ranks, SIGKILL);
    if (remains_any())
        proctree_signal(getpid(), SIGKILL, NULL, NULL);
    if (ranks->child)
        event_free(ranks->child);
    if (ranks->update)
        event_free(ranks->update);
    if (ranks->timer)
        event_free(ranks->timer);
    rank_output_free(ranks->output);
    rank_input_free(ranks->input);
    oom_done(&ranks->oom);
    close_fd(&ranks->signals);
    close_fd(&ranks->null);
    free(ranks->order);
    free(ranks->rank);
    free(ranks);
}
