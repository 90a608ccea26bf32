/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/child/bounded.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/child/forked.h"

#define MIB ((size_t)1 << 20)

/* What the child writes into its pipe, at once: less than PIPE_BUF. */
struct verdict {
    int rc;
    struct drarun_error err;
};

struct bounded {
    struct bounded_limits limits;
    pid_t pid; /* 0: reaped */
    int pidfd, answer;
    struct event *exited, *deadline;
    bool late;
    siginfo_t end;
    bounded_done_fn fn;
    void *arg;
};

static void bounded_free(struct bounded *b)
{
    if (b->pid) { /* our child still, so that its number is no other's */
        kill(b->pid, SIGKILL);
        waitpid(b->pid, NULL, 0);
    }
    if (b->exited)
        event_free(b->exited);
    if (b->deadline)
        event_free(b->deadline);
    close_fd(&b->pidfd);
    close_fd(&b->answer);
    free(b);
}
DEFINE_CLEANUP(struct bounded, bounded_free)

/* ---- the child ---- */

static int set_limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit now;
    if (getrlimit(resource, &now) < 0)
        return -errno;
    hard = hard < now.rlim_max ? hard : now.rlim_max;
    const struct rlimit limit = {.rlim_cur = soft < hard ? soft : hard, .rlim_max = hard};
    return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* Bytes of our private writable memory, which RLIMIT_DATA counts; 0: not known. */
static size_t data_size(void)
{
    char text[256] = "";
    unsigned long pages = 0;
    cleanup_close int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0 || sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
        return 0;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int set_limits(const struct bounded_limits *limits)
{
    size_t data = data_size();
    int rc = set_limit(RLIMIT_CORE, 0, 0);
    if (rc == 0) /* SIGXCPU; SIGKILL a second later to one that does not die of it */
        rc = set_limit(RLIMIT_CPU, limits->cpu_s, limits->cpu_s + 1);
    if (rc == 0 && data > 0)
        rc = set_limit(RLIMIT_DATA, data + limits->memory, data + limits->memory);
    return rc;
}

__attribute__((noreturn)) static void be_child(const struct bounded_limits *limits, bounded_fn fn,
                                               void *arg, int answer)
{
    struct verdict verdict;
    memset(&verdict, 0, sizeof verdict);
    int rc = set_limits(limits);
    verdict.rc = rc < 0 ? error_kind(&verdict.err, DRARUN_ERR_INFRASTRUCTURE, -rc,
                                     "cannot set limits: %s", strerror(-rc))
                        : fn(arg, &verdict.err);
    ssize_t n = write(answer, &verdict, sizeof verdict);
    _exit(n == (ssize_t)sizeof verdict ? 0 : 1);
}

/* ---- the parent ---- */

/* Else somebody sent it: a terminal, a service manager that stops us, the kernel's OOM killer. */
static bool is_crash(int signo)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
        if (crashes[i] == signo)
            return true;
    return false;
}

static int say_killed(const struct bounded *b, struct drarun_error *err)
{
    const struct bounded_limits *limits = &b->limits;
    int signo = b->end.si_code == CLD_EXITED ? 0 : b->end.si_status;
    if (b->late)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT,
                          "not read within %" PRId64 " s, in which it got less than %u s of "
                          "processor time",
                          limits->wall_ms / 1000, limits->cpu_s);
    if (signo == SIGXCPU)
        return error_kind(err, DRARUN_ERR_SPEC, ETIME,
                          "reading it takes more than %u s of processor time", limits->cpu_s);
    if (is_crash(signo))
        return error_kind(err, DRARUN_ERR_SPEC, EFAULT, "reading it ends with signal %d (%s)",
                          signo, strsignal(signo));
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EINTR,
                      "the process that reads it was ended by somebody else");
}

static int say(const struct bounded *b, struct drarun_error *err)
{
    struct verdict verdict;
    ssize_t n = read(b->answer, &verdict, sizeof verdict);
    if (n != (ssize_t)sizeof verdict)
        return say_killed(b, err);
    if (verdict.rc == 0)
        return 0;
    if (verdict.rc == -ENOMEM)
        return error_kind(err, DRARUN_ERR_SPEC, ENOMEM,
                          "reading it takes more than %zu MiB of memory", b->limits.memory / MIB);
    *err = verdict.err;
    return verdict.rc;
}

static void on_exited(evutil_socket_t fd, short what, void *arg)
{
    struct bounded *b = arg;
    struct drarun_error err = {0};
    bounded_done_fn fn = b->fn;
    void *fn_arg = b->arg;
    (void)fd, (void)what;
    int rc;
    while ((rc = waitid(P_PIDFD, (id_t)b->pidfd, &b->end, WEXITED)) < 0 && errno == EINTR)
        continue;
    b->pid = 0;
    if (rc < 0)
        b->end.si_code = 0; /* somebody else took its status: the pipe knows whether it answered */
    rc = say(b, &err);
    bounded_free(b);
    fn(rc, &err, fn_arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct bounded *b = arg;
    (void)fd, (void)what;
    b->late = true;
    pidfd_send_signal(b->pidfd, SIGKILL, NULL, 0);
}

static int start(struct bounded *b, bounded_fn fn, void *arg)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    b->answer = ends[0];
    pid_t pid = forked_process(SIGKILL);
    if (pid == 0)
        be_child(&b->limits, fn, arg, ends[1]);
    close(ends[1]);
    if (pid < 0)
        return pid;
    b->pid = pid;
    b->pidfd = pidfd_open(pid, 0);
    return b->pidfd < 0 ? -errno : 0;
}

static int watch(struct bounded *b, struct event_base *base)
{
    struct timeval after = timeval_from_ms(b->limits.wall_ms);
    b->exited = event_new(base, b->pidfd, EV_READ, on_exited, b);
    b->deadline = evtimer_new(base, on_deadline, b);
    return b->exited && b->deadline && event_add(b->exited, NULL) == 0 &&
                   event_add(b->deadline, &after) == 0
               ? 0
               : -ENOMEM;
}

static int say_not_started(int rc, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "cannot start a process: %s",
                      strerror(-rc));
}

int bounded_start(struct event_base *base, const struct bounded_limits *limits, bounded_fn fn,
                  void *arg, bounded_done_fn done, void *done_arg, struct bounded **ret_bounded,
                  struct drarun_error *err)
{
    CLEANUP(bounded_freep) struct bounded *b = calloc(1, sizeof *b);
    if (!b)
        return say_not_started(-ENOMEM, err);
    *b =
        (struct bounded){.limits = *limits, .pidfd = -1, .answer = -1, .fn = done, .arg = done_arg};
    int rc = start(b, fn, arg);
    if (rc == 0)
        rc = watch(b, base);
    if (rc < 0)
        return say_not_started(rc, err);
    *ret_bounded = TAKE_PTR(b);
    return 0;
}

void bounded_cancel(struct bounded *bounded)
{
    if (bounded)
        bounded_free(bounded);
}
