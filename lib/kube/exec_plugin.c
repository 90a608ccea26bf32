/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/exec_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"

#define STDERR_KEPT 300 /* bytes of its end, for the message */

struct output {
    struct exec_plugin *plugin;
    int fd;
    struct event *event;
    struct buf text;
};

struct exec_plugin {
    const struct kube_config *config;
    exec_plugin_fn fn;
    void *arg;
    struct output out, err;
    pid_t pid; /* 0: ended */
    bool own_group, status_known;
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

static void reap(struct exec_plugin *p, int options)
{
    siginfo_t info = {0};
    int rc;
    if (!p->pid)
        return;
    while ((rc = waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | options)) < 0 && errno == EINTR)
        continue;
    if (rc == 0 && info.si_pid == 0)
        return;
    p->status_known = rc == 0;
    p->status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    p->pid = 0;
}

void exec_plugin_free(struct exec_plugin *plugin)
{
    if (!plugin)
        return;
    if (plugin->pid) {
        if (plugin->own_group)
            kill(-plugin->pid, SIGKILL);
        pidfd_send_signal(plugin->pidfd, SIGKILL, NULL, 0);
        reap(plugin, 0);
    }
    if (plugin->exited)
        event_free(plugin->exited);
    if (plugin->deadline)
        event_free(plugin->deadline);
    output_free(&plugin->out);
    output_free(&plugin->err);
    close_fd(&plugin->pidfd);
    free(plugin);
}

/* The plugin's last words on stderr, on one line. */
static void add_stderr(const struct exec_plugin *p, struct buf *to)
{
    const struct buf *text = &p->err.text;
    size_t from = text->len > STDERR_KEPT ? text->len - STDERR_KEPT : 0, end = text->len;
    while (end > from && strchr(" \n\r\t", text->data[end - 1]))
        end--;
    if (end > from)
        buf_add_str(to, from ? ": .." : ": ");
    for (size_t i = from; i < end; i++) {
        unsigned char c = (unsigned char)text->data[i];
        buf_add(to, c < ' ' ? " " : text->data + i, 1);
    }
}

static void plugin_end(struct exec_plugin *p, struct exec_credential *credential,
                       struct drarun_error *err)
{
    exec_plugin_fn fn = p->fn;
    void *arg = p->arg;
    struct buf said = BUF_INIT;
    if (err) {
        add_stderr(p, &said);
        size_t at = strlen(err->text);
        snprintf(err->text + at, sizeof err->text - at, "%s", said.data ? said.data : "");
        error_prefix(err, "credential plugin %.200s of %.150s", p->config->exec->command,
                     p->config->name);
    }
    buf_done(&said);
    exec_plugin_free(p);
    fn(credential, err, arg);
}

static void judge(struct exec_plugin *p)
{
    struct drarun_error err = {0};
    struct exec_credential credential = {0};
    int rc = 0;
    if (p->status_known && p->status < 0)
        rc = error_kind(&err, DRARUN_ERR_CLUSTER, EACCES, "it was killed by signal %d", -p->status);
    else if (p->status_known && p->status)
        rc = error_kind(&err, DRARUN_ERR_CLUSTER, EACCES, "it ended with %d", p->status);
    else
        rc = exec_answer_read(p->out.text.data ? p->out.text.data : "", p->out.text.len,
                              p->config->exec->api_version, &credential, &err);
    plugin_end(p, rc < 0 ? NULL : &credential, rc < 0 ? &err : NULL);
}

/* Over when it has ended and its answer is complete. A child that it left behind may keep its
 * stderr open. */
static void check_end(struct exec_plugin *p)
{
    if (!p->pid && p->out.fd < 0)
        judge(p);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    struct output *o = arg;
    struct exec_plugin *p = o->plugin;
    struct drarun_error err = {0};
    char bytes[4096];
    (void)what;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0 && o == &p->err && o->text.len > EXEC_OUTPUT_MAX / 2)
        buf_consume(&o->text, o->text.len - STDERR_KEPT - 1);
    if (n > 0)
        buf_add(&o->text, bytes, (size_t)n);
    explicit_bzero(bytes, sizeof bytes);
    if (o->text.failed || o->text.len > EXEC_OUTPUT_MAX) {
        error_kind(&err, DRARUN_ERR_CLUSTER, EFBIG, "its answer is larger than %zu bytes",
                   EXEC_OUTPUT_MAX);
        plugin_end(p, NULL, &err);
        return;
    }
    if (n <= 0) {
        output_done(o);
        check_end(p);
    }
}

static void on_exited(evutil_socket_t fd, short what, void *arg)
{
    struct exec_plugin *p = arg;
    (void)fd;
    (void)what;
    reap(p, WNOHANG);
    if (p->pid)
        return;
    event_del(p->exited);
    check_end(p);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct exec_plugin *p = arg;
    struct drarun_error err = {0};
    (void)fd;
    (void)what;
    error_kind(&err, DRARUN_ERR_CLUSTER, ETIMEDOUT, "no answer within %" PRId64 " s",
               (p->deadline_ms + 999) / 1000);
    plugin_end(p, NULL, &err);
}

static void set_environment(struct strlist *env, const struct kube_config *config, const char *info)
{
    strlist_add_all(env, environ);
    for (size_t i = 0; i < config->exec->env.count; i++) {
        char *entry = config->exec->env.items[i];
        char *equals = strchr(entry, '=');
        *equals = '\0'; /* for a moment */
        env_set(env, entry, equals + 1);
        *equals = '=';
    }
    env_set(env, "KUBERNETES_EXEC_INFO", info);
}

static int set_files(posix_spawn_file_actions_t *files, bool interactive, int out, int err)
{
    int rc = posix_spawn_file_actions_init(files);
    if (rc == 0 && !interactive)
        rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
    if (rc == 0 && !interactive) /* somebody who types wants to see the question */
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

static int spawn(struct exec_plugin *p, char **argv, char **env, int out, int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int rc = set_files(&files, !p->own_group, out, err);
    if (rc)
        return -rc;
    rc = set_attributes(&how, p->own_group);
    if (rc == 0)
        rc = posix_spawnp(&p->pid, argv[0], &files, &how, argv, env);
    if (rc) /* it leaves the pid open then */
        p->pid = 0;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return -rc;
}

static int watch_output(struct event_base *base, struct exec_plugin *p, struct output *o, int fd)
{
    o->plugin = p;
    o->fd = fd;
    o->event = event_new(base, fd, EV_READ | EV_PERSIST, on_output, o);
    return o->event && event_add(o->event, NULL) == 0 ? 0 : -ENOMEM;
}

static int watch_all(struct event_base *base, struct exec_plugin *p)
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
        event_add(p->deadline, &after) < 0)
        return -ENOMEM;
    return 0;
}

static int run(struct event_base *base, struct exec_plugin *p, bool interactive)
{
    struct strlist argv = STRLIST_INIT, env = STRLIST_INIT;
    cleanup_free char *info = exec_info(p->config, interactive);
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    cleanup_close int out_there = out[1];
    int rc = watch_output(base, p, &p->out, out[0]);
    if (rc < 0)
        return rc;
    if (pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    cleanup_close int err_there = err[1];
    rc = watch_output(base, p, &p->err, err[0]);
    /* the plugin's ends block, as programs expect */
    fcntl(out_there, F_SETFL, 0);
    fcntl(err_there, F_SETFL, 0);
    strlist_add(&argv, p->config->exec->command);
    strlist_add_all(&argv, p->config->exec->args.items);
    set_environment(&env, p->config, info ? info : "");
    if (rc == 0 && (!info || argv.failed || env.failed))
        rc = -ENOMEM;
    if (rc == 0)
        rc = spawn(p, argv.items, env.items, out_there, err_there);
    strlist_done(&argv);
    strlist_done(&env);
    return rc < 0 ? rc : watch_all(base, p);
}

static int refuse(const struct kube_config *config, int code, struct drarun_error *err)
{
    const struct exec_spec *exec = config->exec;
    error_kind(err, DRARUN_ERR_CLUSTER, code, "cannot be run: %s%s%.250s", strerror(code),
               code == ENOENT && exec->install_hint ? ": " : "",
               code == ENOENT && exec->install_hint ? exec->install_hint : "");
    return error_prefix(err, "credential plugin %.200s of %.150s", exec->command, config->name);
}

int exec_plugin_start(struct event_base *base, const struct kube_config *config, exec_plugin_fn fn,
                      void *arg, struct exec_plugin **ret_plugin, struct drarun_error *err)
{
    enum exec_interactive mode = config->exec->interactive;
    bool interactive = mode != EXEC_NEVER && isatty(STDIN_FILENO);
    if (mode == EXEC_ALWAYS && !interactive)
        return error_kind(err, DRARUN_ERR_CLUSTER, ENOTTY,
                          "credential plugin %s of %s: it asks on a terminal, and there is none",
                          config->exec->command, config->name);
    struct exec_plugin *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, ENOMEM, "out of memory");
    p->config = config;
    p->fn = fn;
    p->arg = arg;
    p->out.fd = p->err.fd = p->pidfd = -1;
    p->own_group = !interactive;
    p->deadline_ms = config->exec_ms ? config->exec_ms
                     : interactive   ? EXEC_INTERACTIVE_MS
                                     : EXEC_MS;
    int rc = run(base, p, interactive);
    if (rc < 0) {
        exec_plugin_free(p);
        return refuse(config, -rc, err);
    }
    *ret_plugin = p;
    return 0;
}
