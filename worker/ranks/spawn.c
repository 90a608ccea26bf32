/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "worker/ranks/close_from.h"
#include "worker/ranks/exec_reason.h"
#include "worker/ranks/limits.h"
#include "worker/host/oom.h"

/* For the child until execve; in the caller's frame, so that no allocation is needed. */
#define STACK_SIZE ((size_t)64 * 1024)
/* NR_CPUS of the largest kernel configurations. */
#define CPUS_MAX 8192u
#define LAST_SIGNAL 64
/* those that can be set */
#define ALL_SIGNALS (~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1)))

/* The steps of the child; what failed comes back through the memory that it shares. */
enum step {
    STEP_NONE = 0,
    STEP_PARENT,
    STEP_GROUP,
    STEP_STDIO,
    STEP_DESCRIPTORS,
    STEP_DIRECTORY,
    STEP_CPUS,
    STEP_LIMIT,
    STEP_OOM,
    STEP_STOP,
    STEP_EXEC,
};

static const char *const step_names[] = {
    [STEP_NONE] = "nothing",
    [STEP_PARENT] = "die with the agent",
    [STEP_GROUP] = "lead a process group",
    [STEP_STDIO] = "connect stdin, stdout and stderr",
    [STEP_DESCRIPTORS] = "close the agent's descriptors",
    [STEP_DIRECTORY] = "enter the working directory",
    [STEP_CPUS] = "bind to its CPUs",
    [STEP_LIMIT] = "set the limit of open files",
    [STEP_OOM] = "come within the OOM killer's reach again",
    [STEP_STOP] = "be traced until it stops for a debugger",
    [STEP_EXEC] = "execute",
};

struct child {
    const struct spawn *spawn;
    pid_t parent;
    unsigned long cpus[CPUS_MAX / (8 * sizeof(unsigned long))];
    size_t cpus_size; /* bytes in use; 0 is unbound */
    enum step failed;
    int code;
};

/* The child runs in the parent's memory while the parent's other threads go on: system calls only,
 * no allocation, no lock, no libc function that keeps state. Sanitizers would keep state. */
#define CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

/* By the system call, because libc hides its two signals and sanitizers keep a table. Ignored
 * signals would stay ignored over execve, and a handler of ours must not run in the child. */
CHILD_CODE static void default_dispositions(uint64_t signals)
{
    /* zero in each field of the kernel's struct sigaction is SIG_DFL on all architectures */
    static const unsigned long action[8];
    for (int signo = 1; signo <= LAST_SIGNAL; signo++)
        if (signals >> (signo - 1) & 1)
            syscall(SYS_rt_sigaction, signo, action, NULL, 8);
}

uint64_t spawn_signals_to_reset(void)
{
    uint64_t signals = 0;
    for (int signo = 1; signo <= LAST_SIGNAL; signo++) {
        unsigned long action[8] = {0}; /* the handler comes first on all that we build for */
        if (syscall(SYS_rt_sigaction, signo, NULL, action, 8) == 0 && action[0] != 0)
            signals |= UINT64_C(1) << (signo - 1);
    }
    return signals;
}

CHILD_CODE static void empty_mask(void)
{
    static const uint64_t none;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
}

CHILD_CODE static bool die_with_parent(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return false;
    /* it may have died before */
    if (getppid() != parent)
        _exit(127);
    return true;
}

CHILD_CODE static bool connect_stdio(const int stdio[3])
{
    int from[3];
    for (int i = 0; i < 3; i++) {
        from[i] = stdio[i];
        /* out of the way of dup2, where the agent itself was started without stdio */
        if (from[i] < 3 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3)) < 0)
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], i) < 0)
            return false;
    return true;
}

CHILD_CODE static bool keep_only(int keep)
{
    if (keep < 0)
        return close_from(3) == 0;
    return fcntl(keep, F_SETFD, 0) == 0 && close_between(3, keep - 1) == 0 &&
           close_from(keep + 1) == 0;
}

/* A process group of its own, without a terminal. In one session with the agent where that has its
 * own: sessions are what the kernel's autogroup shares CPUs among, and ranks that wait by
 * sched_yield give way only to those in the same one (MPICH, 8 ranks on 2 CPUs: MPI_Init to
 * MPI_Finalize is 15 % faster). */
CHILD_CODE static bool lead_group(pid_t parent)
{
    return getsid(0) == parent ? setpgid(0, 0) == 0 : setsid() >= 0;
}

/* Not the parent's: the kernel keeps those of a vfork's two sides apart. */
CHILD_CODE static bool set_oom_score(const char *score)
{
    size_t length = 0;
    int fd = open(OOM_SCORE_FILE, O_WRONLY | O_CLOEXEC);
    while (score[length])
        length++;
    return fd >= 0 && write(fd, score, length) >= 0 && close(fd) == 0;
}

CHILD_CODE static enum step run_steps(const struct child *child)
{
    const struct spawn *spawn = child->spawn;
    if (!die_with_parent(child->parent))
        return STEP_PARENT;
    if (!lead_group(child->parent))
        return STEP_GROUP;
    default_dispositions(spawn->signals_to_reset ? *spawn->signals_to_reset : ALL_SIGNALS);
    if (!connect_stdio(spawn->stdio))
        return STEP_STDIO;
    if (spawn->dir != AT_FDCWD && fchdir(spawn->dir) < 0)
        return STEP_DIRECTORY;
    if (!keep_only(spawn->keep))
        return STEP_DESCRIPTORS;
    if (child->cpus_size > 0 &&
        syscall(SYS_sched_setaffinity, 0, child->cpus_size, child->cpus) < 0)
        return STEP_CPUS;
    if (spawn->nofile && setrlimit(RLIMIT_NOFILE, spawn->nofile) < 0)
        return STEP_LIMIT;
    if (spawn->oom_score && !set_oom_score(spawn->oom_score))
        return STEP_OOM;
    empty_mask();
    if (spawn->stop && syscall(SYS_ptrace, PTRACE_TRACEME, 0, NULL, NULL) < 0)
        return STEP_STOP;
    execve(spawn->path, spawn->argv, spawn->env);
    return STEP_EXEC;
}

CHILD_CODE static int child_main(void *arg)
{
    struct child *child = arg;
    enum step failed = run_steps(child);
    child->code = errno;
    child->failed = failed;
    _exit(failed == STEP_EXEC && errno == ENOENT ? 127 : 126);
}

static int fill_cpus(const struct spawn *spawn, struct child *child, struct drarun_error *err)
{
    const size_t bits = 8 * sizeof child->cpus[0];
    for (size_t i = 0; i < spawn->cpu_count; i++) {
        uint32_t cpu = spawn->cpus[i];
        if (cpu >= CPUS_MAX)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "no CPU %u", (unsigned)cpu);
        child->cpus[cpu / bits] |= 1ul << (cpu % bits);
        size_t size = (cpu / bits + 1) * sizeof child->cpus[0];
        child->cpus_size = size > child->cpus_size ? size : child->cpus_size;
    }
    return 0;
}

static int child_error(const struct child *child, struct drarun_error *err)
{
    const struct spawn *spawn = child->spawn;
    int code = child->code;
    if (child->failed == STEP_EXEC)
        return exec_reason(spawn->dir, spawn->path, code, err);
    if (child->failed == STEP_CPUS && code == EINVAL)
        return error_kind(err, DRARUN_ERR_SPEC, code,
                          "cannot bind to CPU %u and %zu more: none of them is allowed here",
                          (unsigned)spawn->cpus[0], spawn->cpu_count - 1);
    enum drarun_errkind kind = child->failed == STEP_DIRECTORY && code == EACCES
                                   ? DRARUN_ERR_NOT_EXECUTABLE
                                   : DRARUN_ERR_INFRASTRUCTURE;
    return error_kind(err, kind, code, "cannot %s: %s", step_names[child->failed], strerror(code));
}

/* glibc's clone(2) by the name that the thread sanitizer has no version of: its own one lets the
 * child, which shares our memory, switch the sanitizer off for the calling thread. */
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): glibc's
extern int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

/* A frame of its own: the stack would otherwise be part of each caller's. */
static __attribute__((noinline)) pid_t clone_child(struct child *child)
{
    _Alignas(16) char stack[STACK_SIZE];
    sigset_t all, before;
    sigfillset(&all);
    /* no handler of ours may run in the child before its dispositions are reset */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = __clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, child);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return pid;
}

/* Until it stops or ends, whichever is first. It is not reaped here. */
static int await_stop(pid_t pid)
{
    siginfo_t info = {0};
    int rc;
    while ((rc = waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT)) < 0 &&
           errno == EINTR)
        ;
    return rc == 0 ? info.si_code : rc;
}

/* A traced process stops at the end of execve. It stays so without us: its tracer leaves it with a
 * SIGSTOP. */
static void leave_stopped(pid_t pid)
{
    if (await_stop(pid) == CLD_TRAPPED &&
        ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)SIGSTOP) == 0)
        await_stop(pid);
}

int spawn_process(const struct spawn *spawn, pid_t *ret_pid, struct drarun_error *err)
{
    struct child child = {.spawn = spawn, .parent = getpid()};
    int rc = fill_cpus(spawn, &child, err);
    if (rc < 0)
        return rc;
    pid_t pid = clone_child(&child);
    if (pid < 0)
        return limits_process_error(errno, err);
    if (child.failed == STEP_NONE && spawn->stop)
        leave_stopped(pid);
    if (child.failed == STEP_NONE) {
        *ret_pid = pid;
        return 0;
    }
    /* it has called _exit: this does not wait for anything but the kernel */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return child_error(&child, err);
}
