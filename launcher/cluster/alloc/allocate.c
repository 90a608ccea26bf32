/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/alloc/allocate.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/alloc/alloc.h"
#include "launcher/cluster/alloc/folder.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/follow/follow.h"
#include "launcher/cluster/client/heartbeat.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/submit/submit.h"
#include "launcher/programs/signals.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define TURN_MS 60000
#define SYNC_MS 30000
#define GONE_MS 45000 /* a pod's grace of 30 s by default, and its kubelet */

struct allocation {
    struct cluster *cluster;
    const struct cluster_alloc *options;
    const struct job_spec *spec;
    const char *namespace;
    char *uid;
    char key[SUBMIT_KEY_SIZE];
    sigset_t mask; /* as it was given to us */
    struct event *beat;
    struct kube_call *beating;
    unsigned beats;
    struct board *board;
    json_t *doc;
    uint32_t attempt;
    struct allocate_folder *folder;
    struct signals *signals;
    int signo;   /* came while the job was being submitted; 0: none */
    pid_t shell; /* 0: none runs */
    int status;
    bool over, dirty;
    bool left; /* by a signal, once no shell runs: what is deleted is not waited for */
};

/* ---- the heartbeat ---- */

static struct kube_target owner_of(const struct allocation *a)
{
    return (struct kube_target){
        .resource = &kube_jobs, .namespace_ = a->namespace, .name = a->spec->name};
}

static json_t *word(const char *text)
{
    return json_pack("{s:{s:{s:s}}}", "metadata", "annotations", HEARTBEAT_ANNOTATION, text);
}

static void on_beaten(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct allocation *a = arg;
    (void)answer;
    a->beating = NULL;
    if (err)
        log_verbose("the allocation's heartbeat: %s", err->text);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    static const struct kube_write again = {.repeat = true};
    struct allocation *a = arg;
    struct drarun_error err = {0};
    const struct kube_target target = owner_of(a);
    char text[16];
    (void)fd, (void)what;
    if (a->beating) /* it is tried again by itself */
        return;
    snprintf(text, sizeof text, "%u", ++a->beats);
    CLEANUP(json_decrefp) json_t *patch = word(text);
    if (!patch || kube_merge_patch(a->cluster->client, &target, patch, &again, on_beaten, a,
                                   &a->beating, &err) < 0)
        log_verbose("the allocation's heartbeat: %s", patch ? err.text : "out of memory");
}

static uint32_t silent_s(const struct allocation *a)
{
    int64_t ms = a->options->lost_after_ms;
    return ms > 0 ? (uint32_t)((ms + 999) / 1000) : HEARTBEAT_SILENT_S;
}

static int begin_beating(struct allocation *a, struct drarun_error *err)
{
    struct timeval every = timeval_from_ms((int64_t)silent_s(a) * 1000 / HEARTBEAT_TIMES);
    a->beat = event_new(a->cluster->base, -1, EV_PERSIST, on_beat, a);
    if (!a->beat || event_add(a->beat, &every) < 0)
        return error_set(err, ENOMEM, "out of memory");
    on_beat(-1, 0, a);
    return 0;
}

static void stop_beating(struct allocation *a)
{
    if (a->beat)
        event_free(TAKE_PTR(a->beat));
    kube_call_cancel(TAKE_PTR(a->beating));
}

/* ---- until the workers are up ---- */

static void on_signal_meanwhile(void *arg, int signo)
{
    struct allocation *a = arg;
    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT)
        return;
    if (kube_client_now(a->cluster->client) == 0) { /* nothing is made, nothing has to be undone */
        log_note("%s was not submitted: the API server has not answered", a->spec->name);
        signals_restore(a->signals);
        sigprocmask(SIG_SETMASK, &a->mask, NULL);
        raise(signo);
    }
    if (!a->signo)
        log_note("%s is being submitted and will then be cancelled", a->spec->name);
    a->signo = signo;
}

/* *ret_running false: it has ended before, with the status, and that was said. */
static int await_workers(struct allocation *a, bool *ret_running)
{
    const struct follow_options options = {
        .job = a->spec->name,
        .namespace = a->namespace,
        .uid = a->uid,
        .output = true,
        .cancel = true,
        .running = ret_running,
        .rank = -1,
        .signals = TAKE_PTR(a->signals),
        .signo = a->signo,
    };
    return follow_job(a->cluster, &options);
}

static int read_doc(struct allocation *a, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL;
    int rc = job_map_get(a->cluster, a->spec->name, a->namespace, &map, err);
    if (rc < 0)
        return rc;
    if (job_map_status(map, &a->doc, err) < 0)
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO, "the job's status cannot be read");
    a->attempt = (uint32_t)json_integer_value(json_object_get(a->doc, "attempt"));
    return 0;
}

static void on_changed(void *arg)
{
    ((struct allocation *)arg)->dirty = true;
}

static int watch(struct allocation *a, struct drarun_error *err)
{
    const struct board_owner owner = {.changed = on_changed, .arg = a};
    int rc = board_new(a->cluster, a->spec, a->namespace, false, &owner, &a->board, err);
    if (rc < 0)
        return rc;
    board_own(a->board, a->uid);
    return board_sync(a->board, SYNC_MS, err);
}

static int make_folder(struct allocation *a, struct drarun_error *err)
{
    int rc = read_doc(a, err);
    if (rc == 0)
        rc = watch(a, err);
    if (rc < 0)
        return rc;
    const struct allocate_facts facts = {
        .cluster = a->cluster,
        .spec = a->spec,
        .namespace = a->namespace,
        .uid = a->uid,
        .key = a->key,
        .through = a->options->through,
        .doc = a->doc,
        .attempt = a->attempt,
        .board = a->board,
    };
    return allocate_folder_new(&facts, &a->folder, err);
}

/* ---- the shell ---- */

/* A command that the terminal has stopped, as by ^Z: the shell that has started us gets the
 * terminal back once we have stopped, too. */
static void stop_with_command(struct allocation *a)
{
    log_note("alloc: stopped as its command is; the workers of %s are deleted unless it goes on "
             "within %u s",
             a->spec->name, silent_s(a));
    raise(SIGSTOP);
    kill(a->shell, SIGCONT);
}

static bool is_of_terminal(int signo)
{
    return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

static void look_at_shell(struct allocation *a)
{
    int status = 0;
    while (a->shell > 0 && waitpid(a->shell, &status, WNOHANG | WUNTRACED) == a->shell) {
        if (WIFSTOPPED(status) && is_of_terminal(WSTOPSIG(status)))
            stop_with_command(a);
        if (WIFSTOPPED(status))
            continue;
        a->shell = 0;
        a->over = true;
        a->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

/* A terminal's signals are the shell's own business; others are passed on. */
static void pass_on(const struct allocation *a, int signo)
{
    if (signo == SIGTERM || signo == SIGHUP)
        kill(a->shell, signo);
}

static void on_signal(void *arg, int signo)
{
    struct allocation *a = arg;
    if (signo == SIGCHLD)
        look_at_shell(a);
    else if (a->shell > 0)
        pass_on(a, signo);
    else if (signo == SIGTSTP)
        raise(SIGSTOP);
    else if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT)
        a->left = true;
}

static int start_shell(struct allocation *a, struct drarun_error *err)
{
    char *usual = getenv("SHELL"), *shell[] = {usual ? usual : unconst("/bin/sh"), NULL};
    char *const *argv = a->options->argv[0] ? a->options->argv : shell;
    if (setenv(ALLOC_VARIABLE, allocate_folder_path(a->folder), 1) < 0)
        return error_set(err, ENOMEM, "out of memory");
    pid_t pid = fork();
    if (pid < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "fork: %s", strerror(errno));
    a->shell = pid;
    if (pid > 0)
        return 0;
    signals_restore(a->signals);
    sigprocmask(SIG_SETMASK, &a->mask, NULL);
    execvp(argv[0], argv);
    log_error("alloc: cannot start %s: %s", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static void look(struct allocation *a)
{
    struct drarun_error err = {0};
    a->dirty = false;
    if (allocate_folder_look(a->folder, &err) < 0)
        log_error("alloc: %s", err.text);
}

static int run_shell(struct allocation *a, struct drarun_error *err)
{
    a->signals = signals_new(a->cluster->base, on_signal, a, err);
    if (!a->signals)
        return -err->code;
    int rc = start_shell(a, err);
    if (rc < 0)
        return rc;
    while (!a->over) {
        cluster_turn(a->cluster, TURN_MS);
        if (a->dirty)
            look(a);
    }
    return 0;
}

/* ---- the end ---- */

static void await_gone(struct allocation *a)
{
    int64_t end = clock_ms() + GONE_MS;
    while (board_remains(a->board, true) > 0 && clock_ms() < end && !a->left)
        cluster_turn(a->cluster, end - clock_ms());
    size_t left = board_remains(a->board, true);
    if (left > 0 && a->left)
        log_note("alloc: interrupted: %zu pods and claims of %s are still being deleted by its "
                 "launcher; see drarun describe %s",
                 left, a->spec->name, a->spec->name);
    else if (left > 0)
        log_error("alloc: %zu pods and claims of %s still exist after %d s: their nodes may be "
                  "lost; see drarun describe %s",
                  left, a->spec->name, GONE_MS / 1000, a->spec->name);
}

struct farewell {
    struct allocation *a;
    struct drarun_error err; /* code 0: none */
};

static void on_told(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct farewell *farewell = arg;
    (void)answer;
    farewell->a->beating = NULL;
    if (err)
        farewell->err = *err;
}

/* Runs the loop until the call is answered, rc: of its start; a signal ends it. */
static int await_answer(struct farewell *farewell, int rc, struct drarun_error *err)
{
    struct allocation *a = farewell->a;
    while (rc == 0 && a->beating && !a->left)
        cluster_turn(a->cluster, TURN_MS);
    if (a->beating)
        rc = error_set(err, ECANCELED, "interrupted");
    else if (farewell->err.code)
        rc = error_kind(err, farewell->err.kind, farewell->err.code, "%s", farewell->err.text);
    kube_call_cancel(TAKE_PTR(a->beating));
    return rc;
}

static int tell_end(struct allocation *a, struct drarun_error *err)
{
    static const struct kube_write again = {.repeat = true};
    const struct kube_target target = owner_of(a);
    struct farewell farewell = {.a = a};
    CLEANUP(json_decrefp) json_t *patch = word(HEARTBEAT_ENDED);
    stop_beating(a);
    if (!patch)
        return error_set(err, ENOMEM, "out of memory");
    int rc = kube_merge_patch(a->cluster->client, &target, patch, &again, on_told, &farewell,
                              &a->beating, err);
    rc = await_answer(&farewell, rc, err);
    return rc == -ECANCELED
               ? error_set(err, ECANCELED, "interrupted before its launcher was told of the end")
               : rc;
}

/* Of an allocation that has ended in order nothing is kept: the next one may have its name. */
static void forget(struct allocation *a)
{
    const struct kube_target target = owner_of(a);
    const struct kube_delete this = {.propagation = "Background", .uid = a->uid};
    struct farewell farewell = {.a = a};
    struct drarun_error err = {0};
    stop_beating(a);
    int rc = kube_delete(a->cluster->client, &target, &this, on_told, &farewell, &a->beating, &err);
    if (await_answer(&farewell, rc, &err) < 0)
        log_verbose("%s", err.text);
}

/* The launcher takes all away, in order. */
static void give_back(struct allocation *a)
{
    struct drarun_error err = {0};
    int rc = tell_end(a, &err);
    if (rc < 0 && rc != -ENOENT)
        log_error(
            "alloc: %s; its workers are deleted within %u s; drarun cancel %s deletes them at once",
            err.text, silent_s(a), a->spec->name);
    if ((rc < 0 && rc != -ENOENT) || !a->board)
        return;
    await_gone(a);
    if (board_remains(a->board, true) == 0 && !a->left)
        forget(a);
}

static void done(struct allocation *a)
{
    stop_beating(a);
    signals_free(a->signals);
    allocate_folder_free(a->folder);
    board_free(a->board);
    json_decref(a->doc);
    free(a->uid);
    explicit_bzero(a->key, sizeof a->key);
    sigprocmask(SIG_SETMASK, &a->mask, NULL);
}

/* ---- from begin to end ---- */

static void hold_signals(struct allocation *a)
{
    static const int held[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        sigaddset(&set, held[i]);
    sigprocmask(SIG_BLOCK, &set, &a->mask);
}

static int use(struct allocation *a, struct drarun_error *err)
{
    int rc = make_folder(a, err);
    if (rc < 0)
        return rc;
    const char *program = a->options->argv[0];
    log_note("%u worker%s of %s %s kept until %s ends%s; drarun -n N PROGRAM runs there",
             a->spec->workers, a->spec->workers == 1 ? "" : "s", a->spec->name,
             a->spec->workers == 1 ? "is" : "are", program ? program : "this shell",
             allocate_folder_is_far(a->folder) ? ", reached through the API server" : "");
    return run_shell(a, err);
}

/* In place of a shell. A job that was refused may have no status yet. */
static int look_once(struct allocation *a, bool running, struct drarun_error *err)
{
    struct drarun_error none = {0};
    int rc = read_doc(a, running ? err : &none);
    if (rc == 0)
        *a->options->ret_status = json_incref(a->doc);
    return running && rc == 0 ? watch(a, err) : running ? rc : 0;
}

static int run(struct allocation *a, struct drarun_error *err)
{
    bool running = false;
    hold_signals(a);
    a->signals = signals_new(a->cluster->base, on_signal_meanwhile, a, err);
    if (!a->signals)
        return -err->code;
    int rc = submit_kept(a->cluster, a->spec, a->namespace, a->options->image, silent_s(a), a->key,
                         &a->uid, err);
    if (rc < 0)
        return rc;
    rc = begin_beating(a, err);
    if (rc == 0)
        a->status = await_workers(a, &running);
    if (rc == 0 && a->options->ret_status)
        rc = look_once(a, running, err);
    else if (rc == 0 && running)
        rc = use(a, err);
    allocate_folder_free(TAKE_PTR(a->folder));
    struct drarun_error none = {0};
    if (!a->signals) /* no shell was to run */
        a->signals = signals_new(a->cluster->base, on_signal, a, &none);
    if (running || rc < 0)
        give_back(a);
    else if (a->status > 128 || a->options->ret_status) /* there is nothing to be looked at */
        forget(a);
    return rc;
}

static int change_spec(const struct cluster_alloc *o, struct job_spec *spec,
                       struct drarun_error *err)
{
    struct job_spec changed;
    if (!o->name && !o->workers)
        return 0;
    int rc = spec_again(spec, NULL, o->name, o->workers, &changed, err);
    if (rc < 0)
        return rc;
    job_spec_done(spec);
    *spec = changed;
    return 0;
}

int allocate(struct cluster *cluster, const struct cluster_alloc *options, struct job_spec *spec)
{
    struct drarun_error err = {0};
    struct allocation a = {.cluster = cluster, .options = options, .spec = spec};
    const struct spec_role *role;
    /* a shell starts ranks that are alike on all workers; where the status is all that is wanted
     * none start */
    int rc = options->ret_status ? 0 : spec_only_role(spec, "an allocation", &role, &err);
    if (rc == 0)
        rc = change_spec(options, spec, &err);
    if (rc == 0)
        rc = spec_need_own(spec, &err);
    a.namespace = options->cluster.namespace ? options->cluster.namespace
                  : spec->namespace          ? spec->namespace
                                             : cluster->namespace;
    sigprocmask(SIG_BLOCK, NULL, &a.mask);
    if (rc == 0)
        rc = run(&a, &err);
    done(&a);
    if (rc == 0)
        return a.status;
    log_error("alloc: %s", err.text);
    return error_exit_status(err.kind);
}
