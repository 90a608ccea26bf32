/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/local_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/proctree.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"

#define INHERITED 3   /* the agent's first descriptor beyond the usual three */
#define OUT_OF_WAY 10 /* above what the agent inherits */

struct child {
    const struct local_agents *agents;
    char *const *argv;
    int fds[2]; /* become 3 and 4; -1: none */
    pid_t parent;
    int failed; /* errno of what went wrong in the child; shared memory under vfork */
};

void local_agent_raise_limit(struct local_agents *agents)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &agents->files) < 0)
        agents->files = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY}; /* setrlimit then refuses */
    most = agents->files;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
}

/* Copies a descriptor to where dup2 to the agent's numbers cannot hit it. */
static int move_away(struct child *child, int fd)
{
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD, OUT_OF_WAY);
    if (fd >= 0 && moved < 0)
        child->failed = errno;
    return moved;
}

static void let_signals_through(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Between vfork and exec: system calls only, and no writes but to *child and the stack. */
static void __attribute__((noinline, noreturn)) become_agent(struct child *child)
{
    int moved[2] = {move_away(child, child->fds[0]), move_away(child, child->fds[1])};
    int last = INHERITED;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (child->failed || getppid() != child->parent)
        _exit(127); /* its parent died before prctl */
    setsid(); /* no terminal's signals, and its ranks share its session, worker/ranks/spawn.c */
    if (child->agents->signals)
        signals_restore(child->agents->signals);
    else
        let_signals_through();
    for (int i = 0; i < 2; i++)
        if (moved[i] >= 0)
            last = dup2(moved[i], INHERITED + i) + 1;
    close_range((unsigned int)last, ~0u, 0); /* also makes room for the next */
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
    setrlimit(RLIMIT_NOFILE, &child->agents->files);
    execv(child->argv[0], child->argv);
    child->failed = errno;
    _exit(127);
}

static int no_descriptor(struct drarun_error *err, int code)
{
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code, "cannot connect an agent: %s%s",
                      strerror(code),
                      code == EMFILE ? ": raise the limit of open files (ulimit -n)" : "");
}

static int start(struct child *child, pid_t *ret_pid, struct drarun_error *err)
{
    child->parent = getpid();
    child->failed = 0;
    pid_t pid = vfork();
    if (pid == 0)
        become_agent(child); // NOLINT(clang-analyzer-unix.Vfork): it calls the kernel alone
    if (pid < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "cannot start drarun-worker: %s%s",
                          strerror(errno),
                          errno == EAGAIN ? ": the limit of processes (ulimit -u) is reached" : "");
    if (child->failed) {
        waitpid(pid, NULL, 0);
        if (child->failed == EMFILE || child->failed == EINVAL) /* the limit is below OUT_OF_WAY */
            return no_descriptor(err, EMFILE);
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, child->failed, "cannot start %s: %s",
                          child->argv[0], strerror(child->failed));
    }
    *ret_pid = pid;
    return 0;
}

int local_agent_start(const struct local_agents *agents, pid_t *ret_pid, int *ret_fd,
                      struct drarun_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return no_descriptor(err, errno);
    cleanup_close int ours = pair[0];
    cleanup_close int theirs = pair[1];
    char *const argv[] = {unconst(agents->program), unconst("--fd"), unconst("3"), NULL};
    struct child child = {.agents = agents, .argv = argv, .fds = {theirs, -1}};
    int rc = start(&child, ret_pid, err);
    if (rc == 0)
        *ret_fd = take_fd(&ours);
    return rc;
}

int local_agent_pass_key(const struct tls_key *key, int *ret_fd, struct drarun_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return no_descriptor(err, errno);
    int rc = fd_write_all(ends[1], key->bytes, sizeof key->bytes);
    close(ends[1]);
    if (rc < 0) {
        close(ends[0]);
        return error_set(err, -rc, "cannot pass the key: %s", strerror(-rc));
    }
    *ret_fd = ends[0];
    return 0;
}

/* more: one option more, or NULL. */
static int listening(const struct local_agents *agents, const struct tls_key *key, const char *more,
                     pid_t *ret_pid, uint16_t *ret_port, struct drarun_error *err)
{
    cleanup_close int door = -1;
    cleanup_close int key_fd = -1;
    char *const argv[] = {unconst(agents->program),
                          unconst("--listen-fd"),
                          unconst("3"),
                          unconst("--key-fd"),
                          unconst("4"),
                          unconst(more),
                          NULL};
    int rc = listen_on("127.0.0.1:0", &door, ret_port, err);
    if (rc == 0)
        rc = local_agent_pass_key(key, &key_fd, err);
    if (rc < 0)
        return rc;
    struct child child = {.agents = agents, .argv = argv, .fds = {door, key_fd}};
    return start(&child, ret_pid, err);
}

int local_agent_listen(const struct local_agents *agents, const struct tls_key *key, pid_t *ret_pid,
                       uint16_t *ret_port, struct drarun_error *err)
{
    return listening(agents, key, NULL, ret_pid, ret_port, err);
}

int local_agent_keep(const struct local_agents *agents, const struct tls_key *key, pid_t *ret_pid,
                     uint16_t *ret_port, struct drarun_error *err)
{
    return listening(agents, key, "--keep", ret_pid, ret_port, err);
}

void local_agent_describe(int wait_status, char *text, size_t size)
{
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        snprintf(text, size, "was killed by %s%s", name ? "SIG" : "signal ",
                 name ? name : "unknown");
    } else {
        snprintf(text, size, "exited with %d", WEXITSTATUS(wait_status));
    }
}

/* Pids separated by spaces (proc(5), /proc/PID/task/TID/children). */
static char *own_children(void)
{
    char path[64];
    struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (file_read(AT_FDCWD, path, 1 << 20, &text, NULL) < 0)
        buf_reset(&text);
    return buf_take(&text);
}

size_t local_agent_sweep(bool (*is_agent)(pid_t pid, void *arg), void *arg)
{
    cleanup_free char *children = own_children();
    size_t found = 0;
    char *at = children;
    while (at && *at) {
        char *end;
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        at = end + (*end == ' ');
        if (pid <= 0 || is_agent(pid, arg))
            continue;
        found++;
        proctree_signal(pid, SIGKILL, NULL, NULL);
        kill(pid, SIGKILL); /* our child, which nobody else reaps: the number is still its */
        waitpid(pid, NULL, WNOHANG);
    }
    return found;
}
