/* SPDX-License-Identifier: Apache-2.0 */
#include "drarun/local.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/outcome/cause.h"
#include "jobs/spec/spec_words.h"
#include "launcher/files/api_options.h"
#include "launcher/streams/frames.h"
#include "launcher/files/spec_file.h"
#include "lib/base/buf.h"
#include "lib/base/c_numbers.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/expand.h"
#include "lib/base/file.h"
#include "lib/base/strlist.h"

/* Bytes of its stderr that are kept: the report has the command's words and all failures. */
#define SAID_MAX ((size_t)16 << 20)
#define PIECE 65536
#define PIECES_MAX 16     /* before others get their turn */
#define END_WAIT_MS 10000 /* between SIGTERM and SIGKILL: --kill-after is 1 s */

struct drarun_local {
    struct drarun_local_options options; /* with nothing borrowed but its functions */
    int epoll, out, err, pidfd;
    pid_t pid;
    pid_t owner; /* the process that started it: a child of a fork has a copy, and no job */
    struct frames frames;
    struct buf said; /* on its stderr */
    bool reaped;
    bool ended;
    int wait_status;      /* -1: somebody else took it */
    volatile int refused; /* output() wants no more */
    volatile sig_atomic_t signalled;
};

static bool is_owner(const struct drarun_local *local)
{
    return local->owner == getpid();
}

/* ---- its command line ---- */

/* The job goes to drarun as it is: nothing of it is replaced, which further options may do, too; or
 * it has several roles. */
static bool is_whole(const char *const *command, const struct drarun_local_options *o)
{
    bool more = o->more && o->more[0];
    return o->spec && (o->spec->job.role_count > 1 ||
                       (!command && !o->ranks && !o->workers && !o->launch && !more));
}

static int check_whole(const char *const *command, const struct drarun_local_options *o,
                       struct drarun_error *err)
{
    const char *said = command      ? "command"
                       : o->ranks   ? "ranks"
                       : o->workers ? "workers"
                       : o->launch  ? "launch"
                                    : NULL;
    if (said)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: the job has several roles, and its spec says this for each: leave "
                          "it out",
                          said);
    return 0;
}

/* Its spec, at its begin, to read; -errno. */
static int spec_input(const struct job_spec *job)
{
    cleanup_free char *text = json_dumps(job->document, JSON_COMPACT);
    cleanup_close int fd = text ? fd_of_data("job", text, strlen(text)) : -ENOMEM;
    if (fd < 0)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return above < 0 ? -errno : above;
}

/* The command runs once, and starts the ranks itself: how many is not ours to say. */
static bool is_mpirun(const struct drarun_local_options *o)
{
    return o->launch && strcmp(o->launch, "mpirun") == 0;
}

/* What the options leave to the job. command: instead of the job's own; NULL: none. */
static void take_counts(const struct job_spec *job, const char *const *command,
                        struct drarun_local_options *o)
{
    static const char *const launches[] = {NULL, "pmix", "env", "mpirun"};
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT;
    const struct spec_role *role = &job->roles[0];
    for (size_t i = 0; command && command[i]; i++)
        strlist_add(&argv, command[i]);
    uint32_t each = spec_role_ranks(role, false, argv.items, role->gpus.count);
    if (!o->launch)
        o->launch = launches[job->launch];
    if (!o->workers && !o->ranks && job->workers > 1)
        o->workers = job->workers;
    if (!o->ranks && !is_mpirun(o))
        o->ranks = (o->workers ? o->workers : 1) * each;
    if (!o->bind)
        o->bind = job->bind;
}

/* Beside the library: PREFIX/lib/libdrarun.so, or of a build tree; Debian has a folder between, and
 * a Python package is lib/python3.x/site-packages/drarun. */
static bool find_beside(char path[PATH_MAX])
{
    static const char *const places[] = {"../bin/drarun", "../../bin/drarun",
                                         "../../../../bin/drarun"};
    Dl_info library;
    char folder[PATH_MAX], tried[PATH_MAX + 16];
    if (!dladdr((void *)(uintptr_t)drarun_local_start, &library) || !library.dli_fname ||
        !realpath(library.dli_fname, folder))
        return false;
    *strrchr(folder, '/') = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(tried, sizeof tried, "%s/%s", folder, places[i]);
        if (access(tried, X_OK) == 0 && realpath(tried, path))
            return true;
    }
    return false;
}

/* A job's variables that have a value of their own */
static void add_env(const struct job_spec *job, struct strlist *words)
{
    CLEANUP(strlist_done) struct strlist env = STRLIST_INIT;
    spec_words_env(&job->roles[0], &env);
    strlist_add_all(&env, job->roles[0].nccl_env.items);
    for (size_t i = 0; i < env.count; i++) {
        strlist_add(words, "--env");
        strlist_add(words, env.items[i]);
    }
    words->failed |= env.failed;
}

static void add_number(struct strlist *words, const char *option, unsigned number)
{
    if (number > 0) {
        strlist_add(words, option);
        strlist_addf(words, "%u", number);
    }
}

static void add_text(struct strlist *words, const char *option, const char *text)
{
    if (text) {
        strlist_add(words, option);
        strlist_add(words, text);
    }
}

/* A word ":" would begin another program. A drarun of another release may not know the option. */
static void add_program(const char *const *program, struct strlist *words)
{
    bool divides = false;
    for (size_t i = 0; program && program[i]; i++)
        divides |= strcmp(program[i], ":") == 0;
    if (divides)
        strlist_add(words, "--one-program");
    strlist_add(words, "--");
    for (size_t i = 0; program && program[i]; i++)
        strlist_add(words, program[i]);
}

/* The job's command. An older drarun may not know --expand. */
static void add_spec_words(const struct job_spec *job, struct strlist *words)
{
    CLEANUP(strlist_done) struct strlist own = STRLIST_INIT;
    bool refers = false;
    spec_words_add(&job->roles[0], NULL, &own);
    for (size_t i = 0; i < own.count; i++)
        refers |= expand_refers(own.items[i]);
    if (refers)
        strlist_add(words, "--expand");
    add_program(strlist_items(&own), words);
    words->failed |= own.failed;
}

/* What no member of the options is for. */
static void add_rank_options(const struct job_spec *job, struct strlist *words)
{
    add_number(words, "--slots", job->roles[0].slots);
    if (job->oversubscribe)
        strlist_add(words, "--oversubscribe");
    if (job->report_bindings)
        strlist_add(words, "--report-bindings");
}

static void make_words(const char *program, const char *const *command,
                       const struct drarun_local_options *o, bool whole, struct strlist *words)
{
    static const char *const more[] = {"", "", "-v", "-vv"};
    strlist_add(words, program);
    strlist_add(words, "run");
    strlist_add(words, "--frames");
    add_text(words, "--output", "json");
    if (!whole)
        add_text(words, "--stdin", "none");
    add_number(words, "-n", o->ranks || is_mpirun(o) ? o->ranks : o->workers);
    add_number(words, "--workers", o->workers);
    if (o->spec && !whole)
        add_rank_options(&o->spec->job, words);
    add_text(words, "--launch", o->launch);
    add_text(words, "--bind", o->bind);
    add_text(words, "--wd", o->directory);
    if (o->timeout_ms > 0)
        strlist_addf(words, "--timeout=%lldms", o->timeout_ms);
    if (o->log && o->level > DRARUN_LOG_NOTE && o->level <= DRARUN_LOG_DEBUG)
        strlist_add(words, more[o->level]);
    if (o->spec && !whole)
        add_env(&o->spec->job, words);
    for (size_t i = 0; o->env && o->env[i]; i++)
        add_text(words, "--env", o->env[i]);
    for (size_t i = 0; o->more && o->more[i]; i++)
        strlist_add(words, o->more[i]);
    if (whole) {
        strlist_add(words, "--local");
        strlist_add(words, "-");
        return;
    }
    if (!command && o->spec)
        add_spec_words(&o->spec->job, words);
    else
        add_program(command, words);
}

/* ---- its output ---- */

static void on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    struct drarun_local *local = arg;
    const struct drarun_local_options *o = &local->options;
    if (!o->output || local->refused || o->output(o->arg, rank, is_stderr, data, length) == 0)
        return;
    local->refused = 1;
    drarun_local_signal(local, SIGTERM);
}

static enum drarun_loglevel level_of(const char *name)
{
    static const char *const names[] = {"error", "note", "verbose", "debug"};
    for (size_t i = 0; name && i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum drarun_loglevel)i;
    return DRARUN_LOG_ERROR;
}

static void on_own(void *arg, const char *line, size_t length)
{
    const struct drarun_local_options *o = &((struct drarun_local *)arg)->options;
    CLEANUP(json_decrefp) json_t *json = json_loadb(line, length, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    enum drarun_loglevel level = level_of(json_string_value(json_object_get(json, "level")));
    if (text && o->log && level <= o->level)
        o->log(o->arg, level, text);
}

/* Of what is too much, the lines before the last go first. */
static void keep_said(struct buf *said, const char *piece, size_t length)
{
    if (said->len + length > SAID_MAX) {
        const char *newline = memrchr(said->data, '\n', said->len);
        buf_consume(said, newline ? (size_t)(newline + 1 - said->data) : said->len);
    }
    buf_add(said, piece, length);
}

/* What has come on *fd; at its end it is closed. */
static void read_from(struct drarun_local *local, int *fd)
{
    cleanup_free char *piece = malloc(PIECE);
    for (int i = 0; piece && i < PIECES_MAX && *fd >= 0; i++) {
        ssize_t n = read(*fd, piece, PIECE);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(fd);
        } else if (fd == &local->out) {
            frames_add(&local->frames, piece, (size_t)n);
        } else {
            keep_said(&local->said, piece, (size_t)n);
        }
    }
}

/* As waitpid has it. */
static int wait_status_of(const siginfo_t *end)
{
    return end->si_code == CLD_EXITED ? W_EXITCODE(end->si_status, 0)
                                      : W_EXITCODE(0, end->si_status);
}

/* Signals of the caller end a poll. */
static bool await_end(const struct drarun_local *local, int64_t limit_ms)
{
    struct pollfd ended = {.fd = local->pidfd, .events = POLLIN};
    int64_t end_ms = clock_ms() + limit_ms;
    int count;
    do {
        int64_t left_ms = end_ms - clock_ms();
        count = poll(&ended, 1, left_ms > 0 ? (int)left_ms : 0);
    } while (count < 0 && errno == EINTR);
    return count == 1;
}

/* It has ended. */
static void reap(struct drarun_local *local)
{
    local->reaped = true;
    siginfo_t end = {0};
    /* by its descriptor: the host may have reaped it, and the number may be another child's */
    if (waitid(P_PIDFD, (id_t)local->pidfd, &end, WEXITED) < 0)
        local->wait_status = -1;
    else
        local->wait_status = wait_status_of(&end);
    epoll_ctl(local->epoll, EPOLL_CTL_DEL, local->pidfd, NULL);
}

int drarun_local_dispatch(struct drarun_local *local, struct drarun_error *err)
{
    if (!is_owner(local))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "the job was started by process %d: a child of a fork cannot follow it",
                          (int)local->owner);
    read_from(local, &local->out);
    read_from(local, &local->err);
    if (!local->reaped && await_end(local, 0))
        reap(local);
    if (!local->ended && local->reaped && local->out < 0 && local->err < 0) {
        frames_end(&local->frames);
        local->ended = true;
    }
    return local->ended;
}

int drarun_local_fd(const struct drarun_local *local)
{
    return local->epoll;
}

/* ---- its end ---- */

static int code_of(enum drarun_errkind kind)
{
    return kind == DRARUN_ERR_TIMEOUT       ? ETIMEDOUT
           : kind == DRARUN_ERR_INTERRUPTED ? ECANCELED
           : kind == DRARUN_ERR_NOT_FOUND   ? ENOENT
           : kind == DRARUN_ERR_USAGE       ? EINVAL
                                            : EIO;
}

/* drarun has failed, but no job: its words, and its own exit status. */
static int no_report(const struct drarun_local *local, const char *text, struct drarun_error *err)
{
    static const char prefix[] = "drarun: ", unknown[] = "unknown option ";
    static const char *const added[] = {"--frames", "--expand", "--one-program"};
    int status = local->wait_status;
    enum drarun_errkind kind = DRARUN_ERR_INFRASTRUCTURE;
    for (int each = DRARUN_ERR_USAGE; each <= DRARUN_ERR_TIMEOUT; each++)
        if (status >= 0 && WIFEXITED(status) &&
            WEXITSTATUS(status) == drarun_exit_status((enum drarun_errkind)each))
            kind = (enum drarun_errkind)each;
    if (local->signalled)
        kind = DRARUN_ERR_INTERRUPTED;
    const char *option = strstr(text, unknown);
    for (size_t i = 0; option && i < ARRAY_LEN(added); i++)
        if (strncmp(option + strlen(unknown), added[i], strlen(added[i])) == 0)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOTSUP,
                              "the program drarun is older than libdrarun " DRARUN_VERSION
                              " and has no %s: update it, or name another",
                              added[i]);
    if (strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    if (!*text)
        text = "it ended without a word";
    return error_kind(err, kind, code_of(kind), "drarun: %.*s", (int)strcspn(text, "\n"), text);
}

/* The report is the last line of its stderr that can be one: notes and errors may follow it.
 * ret_after: what does. */
static json_t *report(const struct drarun_local *local, const char **ret_after)
{
    const char *text = local->said.data;
    for (size_t length = local->said.len; length > 0;) {
        const char *newline = memrchr(text, '\n', length - 1);
        const char *line = newline ? newline + 1 : text, *after = text + length;
        json_t *json = json_loadb(line, (size_t)(after - line), 0, NULL);
        if (json_is_integer(json_object_get(json, "status"))) {
            *ret_after = after;
            return json;
        }
        json_decref(json);
        length = (size_t)(line - text);
    }
    return NULL;
}

static int result(const struct drarun_local *local, int *ret_status, struct drarun_error *err)
{
    C_NUMBERS;
    const char *after = NULL;
    CLEANUP(json_decrefp) json_t *json = report(local, &after);
    const json_t *cause = json_object_get(json, "cause");
    const char *text = json_string_value(json_object_get(cause, "text"));
    if (!json)
        return no_report(local, local->said.data ? local->said.data : "", err);
    enum drarun_errkind kind = cause_reported_error(cause);
    int status = (int)json_integer_value(json_object_get(json, "status"));
    if (local->refused)
        return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED,
                          "the job was ended by who gets its output");
    if (kind)
        return error_kind(err, kind, code_of(kind), "%s", text ? text : "");
    if (status == 0 && *after && local->wait_status > 0)
        return no_report(local, after, err); /* such as a --report that cannot be written */
    if (text && local->options.log)
        local->options.log(local->options.arg, DRARUN_LOG_ERROR, text);
    if (ret_status)
        *ret_status = status;
    return 0;
}

int drarun_local_wait(struct drarun_local *local, int *ret_status, struct drarun_error *err)
{
    int rc;
    struct pollfd ready = {.fd = local->epoll, .events = POLLIN};
    while ((rc = drarun_local_dispatch(local, err)) == 0)
        poll(&ready, 1, -1);
    if (rc < 0)
        return rc;
    return result(local, ret_status, err);
}

void drarun_local_signal(struct drarun_local *local, int signo)
{
    int before = errno;
    if (!is_owner(local))
        return;
    if (signo == SIGINT || signo == SIGTERM)
        local->signalled = 1;
    pidfd_send_signal(local->pidfd, signo, NULL, 0);
    errno = before;
}

static void end_it(struct drarun_local *local)
{
    local->options.output = NULL;
    local->options.log = NULL;
    close_fd(&local->out); /* which would hold up one whose pipe is full */
    drarun_local_signal(local, SIGTERM);
    while (!await_end(local, END_WAIT_MS))
        drarun_local_signal(local, SIGKILL); /* its agents follow it */
    reap(local);
}

void drarun_local_free(struct drarun_local *local)
{
    if (!local)
        return;
    if (local->pid > 0 && !local->reaped && is_owner(local))
        end_it(local);
    close_fd(&local->out);
    close_fd(&local->err);
    close_fd(&local->pidfd);
    close_fd(&local->epoll);
    frames_done(&local->frames);
    buf_done(&local->said);
    free(local);
}
DEFINE_CLEANUP(struct drarun_local, drarun_local_free)

/* ---- its begin ---- */

static int add(int epoll, int fd)
{
    struct epoll_event wanted = {.events = EPOLLIN};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
}

/* In a process group of its own: a terminal's Ctrl-C is for the caller. ends: its standard
 * input (-1: empty), output and error. */
static int spawn(const char *program, struct strlist *words, const int ends[3], pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawn_file_actions_init(&files);
    if (ends[0] >= 0)
        posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[2], STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    int code = posix_spawnp(ret_pid, program, &files, &how, words->items, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return code;
}

/* A pipe whose ends are above the three that the program gets. */
static int pipe_above(int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_read = fcntl(ends[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    *ret_write = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int code = errno;
    close(ends[0]);
    close(ends[1]);
    if (*ret_read < 0 || *ret_write < 0)
        return -code;
    return fcntl(*ret_read, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* whole: the job that it reads; NULL: none. */
static int start(struct drarun_local *local, const char *program, struct strlist *words,
                 const struct job_spec *whole, struct drarun_error *err)
{
    cleanup_close int in = whole ? spec_input(whole) : -1;
    cleanup_close int out = -1;
    cleanup_close int said = -1;
    int rc = whole && in < 0 ? in : 0;
    if (rc == 0)
        rc = pipe_above(&local->out, &out);
    if (rc == 0)
        rc = pipe_above(&local->err, &said);
    if (rc == 0 && (local->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
        rc = -errno;
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "cannot connect drarun: %s",
                          strerror(-rc));
    const int ends[3] = {in, out, said};
    int code = spawn(program, words, ends, &local->pid);
    if (code != 0) {
        local->pid = 0;
        return error_kind(err, code == ENOENT ? DRARUN_ERR_NOT_FOUND : DRARUN_ERR_INFRASTRUCTURE,
                          code, "cannot start the program %s: %s%s", program, strerror(code),
                          code == ENOENT ? "; it comes with drarun: install it, or name it" : "");
    }
    local->pidfd = pidfd_open(local->pid, 0);
    if (local->pidfd < 0 || add(local->epoll, local->pidfd) < 0 ||
        add(local->epoll, local->out) < 0 || add(local->epoll, local->err) < 0) {
        code = errno;
        kill(local->pid, SIGTERM);
        while (waitpid(local->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        local->pid = 0;
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code, "cannot watch drarun: %s",
                          strerror(code));
    }
    return 0;
}

static struct drarun_local *local_new(const struct drarun_local_options *o)
{
    struct drarun_local *local = calloc(1, sizeof *local);
    const struct frames_owner owner = {.output = on_output, .own = on_own, .arg = local};
    if (!local)
        return NULL;
    local->options.output = o->output;
    local->options.log = o->log;
    local->options.level = o->level;
    local->options.arg = o->arg;
    local->owner = getpid();
    local->out = local->err = local->pidfd = local->epoll = -1;
    local->wait_status = -1;
    frames_init(&local->frames, &owner);
    return local;
}

int drarun_local_start(const char *const *command, const struct drarun_local_options *options,
                       struct drarun_local **ret_local, struct drarun_error *err)
{
    struct drarun_local_options o;
    char beside[PATH_MAX];
    struct strlist words = STRLIST_INIT;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc < 0)
        return rc;
    bool whole = is_whole(command, &o);
    if (whole && (rc = check_whole(command, &o, err)) < 0)
        return rc;
    if (o.spec && !whole)
        take_counts(&o.spec->job, command, &o);
    if (command ? !command[0] : !o.spec)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "command: expected a program, got none");
    const char *program = o.program ? o.program : find_beside(beside) ? beside : "drarun";
    CLEANUP(drarun_local_freep) struct drarun_local *local = local_new(&o);
    make_words(program, command, &o, whole, &words);
    if (!local || words.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    else
        rc = start(local, program, &words, whole ? &o.spec->job : NULL, err);
    strlist_done(&words);
    if (rc == 0)
        *ret_local = TAKE_PTR(local);
    return rc;
}

int drarun_local_run(const char *const *command, const struct drarun_local_options *options,
                     int *ret_status, struct drarun_error *err)
{
    struct drarun_local *local = NULL;
    int rc = drarun_local_start(command, options, &local, err);
    if (rc < 0)
        return rc;
    assert(local);
    rc = drarun_local_wait(local, ret_status, err);
    drarun_local_free(local);
    return rc;
}
