/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/child/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"

struct output {
    struct child *child;
    int fd;
    struct event *event;
    struct buf text;
};

struct child {
    child_fn fn;
    void *arg;
    void (*line)(void *arg, const char *text, size_t length);
    int in; /* the other end of its stdin; -1: it has none */
    struct output out, err;
    pid_t pid; /* 0: reaped */
    bool own_group, ended, status_known;
    int status; /* negative: the signal that killed it */
    int pidfd;
    struct event *exited, *deadline;
    int64_t deadline_ms;
};

static void output_done(struct output *o)
{
    if (o->event)
        event_free(o->event);
    o->event = NULL;
    close_fd(&o->fd);
}

static void output_free(struct output *o)
{
    output_done(o);
    if (o->text.data)
        explicit_bzero(o->text.data, o->text.cap);
    buf_done(&o->text);
}

/* Whether it has ended. It is reaped when it is over: until then its number, which is that of its
 * group, is no other's, and what it left behind can be killed by it. */
static bool look(struct child *p)
{
    siginfo_t info = {0};
    int rc;
    if (!p->pid)
        return true;
    while ((rc = waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG | WNOWAIT)) < 0 &&
           errno == EINTR)
        continue;
    if (rc < 0) /* somebody else has reaped it */
        p->pid = 0;
    if (rc == 0 && info.si_pid != 0) {
        p->status_known = true;
        p->status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    }
    p->ended = rc < 0 || info.si_pid != 0;
    return p->ended;
}

static void reap(struct child *p)
{
    siginfo_t info = {0};
    if (look(p) && p->pid)
        waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG);
    if (p->ended)
        p->pid = 0;
}

void child_signal(struct child *child, int signo)
{
    if (child && child->pid)
        kill(child->own_group ? -child->pid : child->pid, signo);
}

bool child_has_ended(int pidfd, int ms)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int rc;
    do
        rc = poll(&end, 1, ms);
    while (rc < 0 && errno == EINTR);
    return rc > 0;
}

bool child_is_left(int *pidfd)
{
    siginfo_t info = {0};
    if (*pidfd < 0)
        return false;
    if (!child_has_ended(*pidfd, 0))
        return true;
    waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED | WNOHANG);
    close_fd(pidfd);
    return false;
}

int child_kill(struct child *child)
{
    int left = -1;
    if (!child)
        return left;
    look(child);
    if (child->pid) {
        if (child->own_group)
            kill(-child->pid, SIGKILL);
        pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
        if (child_has_ended(child->pidfd, CHILD_KILLED_MS))
            reap(child);
        else
            left = take_fd(&child->pidfd);
    }
    if (child->exited)
        event_free(child->exited);
    if (child->deadline)
        event_free(child->deadline);
    output_free(&child->out);
    output_free(&child->err);
    close_fd(&child->in);
    close_fd(&child->pidfd);
    free(child);
    return left;
}

void child_free(struct child *child)
{
    int left = child_kill(child);
    close_fd(&left);
}

/* Its last words, on one line. */
static void last_words(const struct child *p, char *ret_text)
{
    const struct buf *text = &p->err.text;
    size_t from = text->len > CHILD_SAID_MAX ? text->len - CHILD_SAID_MAX : 0, end = text->len;
    size_t n = 0;
    while (end > from && strchr(" \n\r\t", text->data[end - 1]))
        end--;
    if (from && end > from)
        ret_text[n++] = '.', ret_text[n++] = '.';
    for (size_t i = from; i < end; i++) {
        unsigned char c = (unsigned char)text->data[i];
        ret_text[n++] = c < ' ' ? ' ' : (char)c;
    }
    ret_text[n] = '\0';
}

static void child_over(struct child *p, const struct drarun_error *err)
{
    char said[CHILD_SAID_MAX + sizeof ".."];
    last_words(p, said);
    const struct child_end end = {&p->out.text, said, p->status_known, p->status};
    child_fn fn = p->fn;
    void *arg = p->arg;
    p->fn = NULL;
    fn(&end, err, arg);
    child_free(p);
}

int child_write(struct child *child, const void *data, size_t length)
{
    ssize_t n = send(child->in, data, length, MSG_NOSIGNAL);
    if (n < 0)
        return -errno;
    return (size_t)n < length ? -ENOBUFS : 0;
}

static void pass_lines(struct child *p)
{
    struct buf *text = &p->out.text;
    const char *newline;
    size_t at = 0;
    while (at < text->len && (newline = memchr(text->data + at, '\n', text->len - at))) {
        size_t end = (size_t)(newline - text->data);
        p->line(p->arg, text->data + at, end - at);
        at = end + 1;
    }
    buf_consume(text, at);
}

/* Over when it has ended and its answer is complete. */
static void check_end(struct child *p)
{
    if (!p->ended || p->out.fd >= 0)
        return;
    reap(p); /* what it left behind may stay */
    child_over(p, NULL);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    struct output *o = arg;
    struct child *p = o->child;
    struct drarun_error err = {0};
    char bytes[4096];
    (void)what;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0 && o == &p->err && o->text.len > CHILD_OUTPUT_MAX / 2)
        buf_consume(&o->text, o->text.len - CHILD_SAID_MAX - 1);
    if (n > 0)
        buf_add(&o->text, bytes, (size_t)n);
    explicit_bzero(bytes, sizeof bytes); /* it may be a credential */
    if (o == &p->out && p->line && !o->text.failed)
        pass_lines(p);
    if (o->text.failed || o->text.len > CHILD_OUTPUT_MAX) {
        error_set(&err, EFBIG, "its answer is larger than %zu bytes", CHILD_OUTPUT_MAX);
        child_over(p, &err);
        return;
    }
    if (n <= 0) {
        output_done(o);
        check_end(p);
    }
}

static void on_exited(evutil_socket_t fd, short what, void *arg)
{
    struct child *p = arg;
    (void)fd;
    (void)what;
    if (!look(p))
        return;
    event_del(p->exited);
    check_end(p);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct child *p = arg;
    struct drarun_error err = {0};
    (void)fd;
    (void)what;
    error_set(&err, ETIMEDOUT, "no answer within %" PRId64 " s", (p->deadline_ms + 999) / 1000);
    child_over(p, &err);
}

/* in: -1: none. */
static int set_files(posix_spawn_file_actions_t *files, const struct child_program *program, int in,
                     int out, int err)
{
    int rc = posix_spawn_file_actions_init(files);
    if (rc == 0 && in >= 0)
        rc = posix_spawn_file_actions_adddup2(files, in, STDIN_FILENO);
    else if (rc == 0 && !program->interactive)
        rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
    if (rc == 0 && !program->interactive && !program->shows) /* who types sees the question */
        rc = posix_spawn_file_actions_adddup2(files, err, STDERR_FILENO);
    return rc ? rc : posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
}

static int set_attributes(posix_spawnattr_t *how, bool own_group)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_init(how);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(how, &none);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(how, &all);
    return rc ? rc
              : posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                  (own_group ? POSIX_SPAWN_SETPGROUP : 0));
}

static int spawn(struct child *p, const struct child_program *program, int in, int out, int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int rc = set_files(&files, program, in, out, err);
    if (rc)
        return -rc;
    rc = set_attributes(&how, p->own_group);
    if (rc == 0)
        rc = posix_spawnp(&p->pid, program->argv[0], &files, &how, program->argv, program->env);
    if (rc) /* it leaves the pid open then */
        p->pid = 0;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return -rc;
}

static int watch_output(struct event_base *base, struct child *p, struct output *o, int fd)
{
    o->child = p;
    o->fd = fd;
    o->event = event_new(base, fd, EV_READ | EV_PERSIST, on_output, o);
    return o->event && event_add(o->event, NULL) == 0 ? 0 : -ENOMEM;
}

static int watch_all(struct event_base *base, struct child *p)
{
    struct timeval after = timeval_from_ms(p->deadline_ms);
    p->pidfd = pidfd_open(p->pid, 0);
    if (p->pidfd < 0) {
        int code = errno; /* no name for it is left but its number, and it is our child */
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
        p->pid = 0;
        return -code;
    }
    p->exited = event_new(base, p->pidfd, EV_READ | EV_PERSIST, on_exited, p);
    p->deadline = event_new(base, -1, 0, on_deadline, p);
    if (!p->exited || !p->deadline || event_add(p->exited, NULL) < 0 ||
        (p->deadline_ms > 0 && event_add(p->deadline, &after) < 0))
        return -ENOMEM;
    return 0;
}

/* Its stdin, a socket: a pipe's writer would get SIGPIPE. */
static int open_input(struct child *p, int *ret_there)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    p->in = ends[0];
    *ret_there = ends[1];
    return fcntl(p->in, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int run(struct event_base *base, struct child *p, const struct child_program *program)
{
    int out[2], err[2];
    cleanup_close int in_there = -1;
    int rc = program->line ? open_input(p, &in_there) : 0;
    if (rc < 0)
        return rc;
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    cleanup_close int out_there = out[1];
    rc = watch_output(base, p, &p->out, out[0]);
    if (rc < 0)
        return rc;
    if (pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    cleanup_close int err_there = err[1];
    rc = watch_output(base, p, &p->err, err[0]);
    /* the program's ends block, as it expects */
    fcntl(out_there, F_SETFL, 0);
    fcntl(err_there, F_SETFL, 0);
    if (rc == 0)
        rc = spawn(p, program, in_there, out_there, err_there);
    return rc < 0 ? rc : watch_all(base, p);
}

int child_start(struct event_base *base, const struct child_program *program, child_fn fn,
                void *arg, struct child **ret_child)
{
    CLEANUP(child_freep) struct child *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->fn = fn;
    p->arg = arg;
    p->line = program->line;
    p->in = p->out.fd = p->err.fd = p->pidfd = -1;
    p->own_group = !program->interactive;
    p->deadline_ms = program->deadline_ms;
    int rc = run(base, p, program);
    if (rc == 0)
        *ret_child = TAKE_PTR(p);
    return rc;
}
