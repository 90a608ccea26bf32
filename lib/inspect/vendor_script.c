/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/vendor_script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/plain.h"
#include "lib/base/proctree.h"
#include "lib/base/unconst.h"

#define SHELL "/bin/sh"
#define NOISE_MAX 200u /* of what the script prints */
#define CHUNK 4096u

/* The path comes as an argument, so that no character of it means anything. "exit" without a number
 * hands the script's own status on; under "set -e" the shell ends by itself. */
static const char command[] = "drarun_script=$1; shift; . \"$drarun_script\" >&2; "
                              "case $? in 0) exec env -0 ;; *) exit ;; esac";

/* All that the script finds in its environment. */
static char clean_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
static char clean_home[] = "HOME=/";
static char *const clean[] = {clean_path, clean_home, NULL};

struct running {
    pid_t pid;
    int pidfd, env, noise; /* -1: closed */
    struct buf text, said;
};

static void running_done(struct running *r)
{
    close_fd(&r->pidfd);
    close_fd(&r->env);
    close_fd(&r->noise);
    buf_done(&r->text);
    buf_done(&r->said);
}

/* ---- starting and ending ---- */

__attribute__((noreturn)) static void child(const char *path, int env, int noise)
{
    static const char failed[] = "cannot execute " SHELL "\n";
    const char *const argv[] = {"sh", "-c", command, "sh", path, NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would take its answer */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (setsid() >= 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
        dup2(env, STDOUT_FILENO) >= 0 && dup2(noise, STDERR_FILENO) >= 0 && chdir("/") == 0) {
        close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC); /* what our caller left open */
        execve(SHELL, unconst(argv), clean);
        (void)!write(STDERR_FILENO, failed, sizeof failed - 1);
    }
    _exit(127);
}

static int start(const char *path, struct running *r, struct drarun_error *err)
{
    int env[2] = {-1, -1}, noise[2] = {-1, -1};
    int rc = pipe2(env, O_CLOEXEC) < 0 || pipe2(noise, O_CLOEXEC) < 0 ? -errno : 0;
    if (rc == 0 && ((r->pid = fork()) < 0))
        rc = -errno;
    if (rc == 0 && r->pid == 0)
        child(path, env[1], noise[1]);
    close_fd(&env[1]);
    close_fd(&noise[1]);
    r->env = env[0];
    r->noise = noise[0];
    if (rc == 0 && (fd_set_nonblock(r->env) < 0 || fd_set_nonblock(r->noise) < 0 ||
                    (r->pidfd = pidfd_open(r->pid, 0)) < 0))
        rc = -errno;
    return rc < 0 ? error_set(err, -rc, "%s: cannot be run: %s", path, strerror(-rc)) : 0;
}

/* Everything that it started, whatever session that is in. What a driver keeps from dying is not
 * waited for. A process that was forked while the list was read is in the next. */
static void end(const struct running *r, int *ret_status)
{
    pid_t pid = waitpid(r->pid, ret_status, WNOHANG);
    kill(-r->pid, SIGKILL);
    if (pid == 0)
        kill(r->pid, SIGKILL); /* until setsid it is in our group */
    for (int i = 0; i < 3 && proctree_signal(getpid(), SIGKILL, NULL, NULL) > 0; i++)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
}

/* ---- what it prints ---- */

/* Reads what is there. *fd is closed at its end. */
static int take(int *fd, size_t limit, bool drop, struct buf *out)
{
    char chunk[CHUNK];
    ssize_t n;
    while (*fd >= 0 && (n = read(*fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        size_t room = limit - out->len, take = (size_t)n < room ? (size_t)n : room;
        buf_add(out, chunk, take);
        if (take < (size_t)n && !drop)
            return -EFBIG;
        if (drop)
            return 0; /* a script that never stops printing must not keep us from the deadline */
    }
    close_fd(fd);
    return 0;
}

/* Until the shell ends, however long its children keep the pipes. */
static int wait_for(struct running *r, const char *path, uint32_t ms, struct drarun_error *err)
{
    int64_t deadline = clock_ms() + ms;
    bool ended = false;
    while (!ended) {
        int64_t left = deadline - clock_ms();
        struct pollfd fds[] = {{.fd = r->pidfd, .events = POLLIN},
                               {.fd = r->env, .events = POLLIN},
                               {.fd = r->noise, .events = POLLIN}};
        int n = left > 0 ? poll(fds, ARRAY_LEN(fds), (int)left) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? error_set(err, ETIMEDOUT, "%s: not done after %.1f s; killed", path,
                                      ms / 1000.0)
                          : error_set(err, errno, "%s: poll: %s", path, strerror(errno));
        ended = fds[0].revents != 0;
        int rc = take(&r->env, VENDOR_SCRIPT_OUTPUT, false, &r->text);
        take(&r->noise, NOISE_MAX, true, &r->said);
        if (rc < 0)
            return error_set(err, -rc, "%s: its environment is larger than %zu KiB", path,
                             VENDOR_SCRIPT_OUTPUT >> 10);
    }
    return 0;
}

static int judge(const struct running *r, const char *path, int status, struct drarun_error *err)
{
    int length = r->said.data ? (int)strcspn(r->said.data, "\r\n") : 0;
    const char *said = length > 0 ? r->said.data : "";
    const char *colon = length > 0 ? ": " : "";
    if (WIFSIGNALED(status))
        return error_set(err, EIO, "%s: ended by signal %d%s%.*s", path, WTERMSIG(status), colon,
                         length, said);
    if (WEXITSTATUS(status) != 0)
        return error_set(err, EIO, "%s: ended with status %d%s%.*s", path, WEXITSTATUS(status),
                         colon, length, said);
    if (r->text.len == 0)
        return error_set(err, EIO, "%s: ended the shell before it told what it set", path);
    return 0;
}

/* ---- what it set ---- */

static bool is_name(const char *text, size_t length)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return length > 0 && strchr(first, text[0]) && strspn(text, rest) >= length;
}

/* Of the shell, of ours, or where programs are looked for: nobody's business but theirs. */
static bool is_shells(const char *text, size_t length)
{
    static const char *const names[] = {"_",     "PWD",  "OLDPWD",       "SHLVL",
                                        "SHELL", "PATH", "drarun_script"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
            return true;
    for (size_t i = 0; clean[i]; i++)
        if (strcmp(clean[i], text) == 0)
            return true;
    return false;
}

/* text: NUL-terminated entries, as env -0 writes them. */
static json_t *environment(const struct buf *text)
{
    json_t *env = json_object();
    for (size_t at = 0; env && at < text->len; at += strlen(text->data + at) + 1) {
        const char *entry = text->data + at;
        size_t length = strcspn(entry, "=");
        char name[256];
        if (entry[length] != '=' || !is_name(entry, length) || is_shells(entry, length) ||
            length >= sizeof name)
            continue;
        memcpy(name, entry, length);
        name[length] = '\0';
        json_t *value = json_string(entry + length + 1);
        json_object_set_new(env, name, value ? value : json_null());
    }
    return env;
}

int vendor_script_run(const char *path, uint32_t deadline_ms, json_t **ret_env,
                      struct drarun_error *err)
{
    struct stat st;
    struct running r = {.pid = -1, .pidfd = -1, .env = -1, .noise = -1};
    if (access(SHELL, X_OK) < 0)
        return error_set(err, errno, "%s: the image has no " SHELL " to run it: %s", path,
                         strerror(errno));
    if (stat(path, &st) < 0 || access(path, R_OK) < 0)
        return error_set(err, errno, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) /* of a directory a shell reads nothing, and is content */
        return error_set(err, EINVAL, "%s: cannot be read: it is no regular file", path);
    proctree_adopt_orphans();
    int rc = start(path, &r, err);
    if (rc == 0)
        rc = wait_for(&r, path, deadline_ms, err);
    int status = 0;
    if (r.pid > 0)
        end(&r, &status);
    if (r.said.data)
        plain_text(r.said.data, r.said.len); /* cut anywhere: JSON wants UTF-8 */
    if (rc == 0)
        rc = judge(&r, path, status, err);
    json_t *env = rc == 0 && !r.text.failed ? environment(&r.text) : NULL;
    running_done(&r);
    if (rc < 0)
        return rc;
    if (!env)
        return error_set(err, ENOMEM, "%s: out of memory", path);
    if (json_object_size(env) == 0) {
        json_decref(env);
        return error_set(err, ENODATA, "%s: set nothing", path);
    }
    *ret_env = env;
    return 0;
}

/* ---- apart ---- */

#define ANSWER_FD (STDERR_FILENO + 1)
#define APART_MS 2000 /* beyond the script's own deadline */

/* {"env": {..}} or {"code": errno, "text": ".."} */
int vendor_script_tell(const char *path, uint32_t deadline_ms, int out)
{
    struct drarun_error err = {0};
    json_t *env = NULL;
    int rc = vendor_script_run(path, deadline_ms, &env, &err);
    CLEANUP(json_decrefp)
    json_t *answer = rc == 0 ? json_pack("{s:o}", "env", env)
                             : json_pack("{s:i, s:s}", "code", err.code, "text", err.text);
    cleanup_free char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    cleanup_close int fd = out;
    return text ? fd_write_all(fd, text, strlen(text)) : -ENOMEM;
}

/* Whatever the caller does with signals and descriptors stays with the caller. */
__attribute__((noreturn)) static void serve(const char *path, uint32_t ms, int out)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the script's status away */
    if (out != ANSWER_FD && dup2(out, ANSWER_FD) < 0)
        _exit(1);
    close_range(ANSWER_FD + 1, ~0u, 0);
    if (fcntl(ANSWER_FD, F_SETFD, FD_CLOEXEC) < 0)
        _exit(1);
    _exit(vendor_script_tell(path, ms, ANSWER_FD) == 0 ? 0 : 1);
}

/* Until its end or the deadline. */
static int read_answer(int *fd, uint32_t ms, struct buf *text)
{
    int64_t deadline = clock_ms() + ms + APART_MS;
    int rc = fd_set_nonblock(*fd);
    while (rc == 0 && *fd >= 0) {
        struct pollfd ready = {.fd = *fd, .events = POLLIN};
        int64_t left = deadline - clock_ms();
        int n = left > 0 ? poll(&ready, 1, (int)left) : 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (n < 0 && errno != EINTR)
            return -errno;
        rc = n > 0 ? take(fd, 2 * VENDOR_SCRIPT_OUTPUT + CHUNK, false, text) : 0;
    }
    return rc == 0 && text->failed ? -ENOMEM : rc;
}

int vendor_script_answer(const char *path, const char *text, size_t length, json_t **ret_env,
                         struct drarun_error *err)
{
    CLEANUP(json_decrefp)
    json_t *answer = length > 0 ? json_loadb(text, length, 0, NULL) : NULL;
    json_t *env = json_object_get(answer, "env");
    const char *why = json_string_value(json_object_get(answer, "text"));
    int code = (int)json_integer_value(json_object_get(answer, "code"));
    if (!env)
        return error_set(err, code ? code : EIO, "%s%s", why ? "" : path,
                         why ? why : ": the process that ran it ended early");
    *ret_env = json_incref(env);
    return 0;
}

int vendor_script_run_apart(const char *path, uint32_t deadline_ms, json_t **ret_env,
                            struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set(err, errno, "%s: cannot be run: %s", path, strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        serve(path, deadline_ms, fds[1]);
    int rc = pid < 0 ? -errno : 0;
    close(fds[1]);
    if (rc == 0)
        rc = read_answer(&fds[0], deadline_ms, &text);
    if (fds[0] >= 0)
        close(fds[0]);
    if (rc < 0 && pid > 0)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc < 0 ? error_set(err, -rc, "%s: cannot be run: %s", path, strerror(-rc))
                  : vendor_script_answer(path, text.data, text.len, ret_env, err);
}
