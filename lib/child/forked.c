/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/child/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/child/child.h"

#define ANSWER_FD (STDERR_FILENO + 1)

struct forked {
    forked_ended_fn ended;
    void *arg;
    pid_t pid; /* 0: reaped */
    int pidfd, answer;
    struct event *exited, *readable;
    struct buf text;
};

/* ---- the child ---- */

/* Handlers of the parent would write into its descriptors. */
static void reset_signals(void)
{
    sigset_t none;
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL); /* of those that have no other action it fails */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

pid_t forked_process(int signo)
{
    sigset_t all, before;
    pid_t self = getpid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        reset_signals();
        prctl(PR_SET_PDEATHSIG, signo);
        if (getppid() != self)
            _exit(1);
        return 0;
    }
    int code = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -code : pid;
}

/* Nothing of ours stays open in it: a lock on a file, or a connection, would outlive us. */
static int keep_only(int answer)
{
    int kept = fcntl(answer, F_DUPFD_CLOEXEC, ANSWER_FD + 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (kept < 0 || null < 0)
        return -errno;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null, fd) < 0 || fcntl(fd, F_SETFD, 0) < 0)
            return -errno;
    if (dup3(kept, ANSWER_FD, O_CLOEXEC) < 0)
        return -errno;
    closefrom(ANSWER_FD + 1);
    return 0;
}

__attribute__((noreturn)) static void be_child(forked_fn fn, void *arg, int answer)
{
    setpgid(0, 0);
    if (keep_only(answer) < 0)
        _exit(1);
    fn(arg, ANSWER_FD);
    _exit(0); /* what our exit handlers would flush is the parent's */
}

/* ---- the parent ---- */

static void reap(struct forked *f)
{
    while (f->pid && waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    f->pid = 0;
}

static void check_end(struct forked *f)
{
    if (f->pid || f->answer >= 0)
        return;
    f->ended(&f->text, f->arg);
    forked_free(f);
}

static void on_exited(evutil_socket_t fd, short what, void *arg)
{
    struct forked *f = arg;
    (void)fd, (void)what;
    reap(f);
    check_end(f);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct forked *f = arg;
    char bytes[16384];
    (void)what;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        buf_add(&f->text, bytes, (size_t)n);
        return;
    }
    event_del(f->readable);
    close_fd(&f->answer);
    check_end(f);
}

void forked_signal(struct forked *forked, int signo)
{
    if (forked && forked->pid)
        pidfd_send_signal(forked->pidfd, signo, NULL, 0);
}

void forked_free(struct forked *forked)
{
    if (!forked)
        return;
    if (forked->pid) /* our child still, so that its number is no other's */
        kill(forked->pid, SIGKILL);
    if (forked->pidfd < 0 || !forked->pid || child_has_ended(forked->pidfd, CHILD_KILLED_MS))
        reap(forked);
    if (forked->exited)
        event_free(forked->exited);
    if (forked->readable)
        event_free(forked->readable);
    close_fd(&forked->answer);
    close_fd(&forked->pidfd);
    buf_done(&forked->text);
    free(forked);
}

static int start(struct forked *f, struct event_base *base, forked_fn fn)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    f->answer = ends[0];
    cleanup_close int there = ends[1];
    if (fcntl(f->answer, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    pid_t pid = forked_process(SIGTERM);
    if (pid == 0)
        be_child(fn, f->arg, there);
    if (pid < 0)
        return pid;
    f->pid = pid;
    f->pidfd = pidfd_open(pid, 0);
    if (f->pidfd < 0)
        return -errno;
    f->exited = event_new(base, f->pidfd, EV_READ, on_exited, f);
    f->readable = event_new(base, f->answer, EV_READ | EV_PERSIST, on_readable, f);
    return f->exited && f->readable && event_add(f->exited, NULL) == 0 &&
                   event_add(f->readable, NULL) == 0
               ? 0
               : -ENOMEM;
}

int forked_start(struct event_base *base, forked_fn fn, forked_ended_fn ended, void *arg,
                 struct forked **ret_forked)
{
    CLEANUP(forked_freep) struct forked *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    *f = (struct forked){.ended = ended, .arg = arg, .pidfd = -1, .answer = -1};
    int rc = start(f, base, fn);
    if (rc == 0)
        *ret_forked = TAKE_PTR(f);
    return rc;
}
