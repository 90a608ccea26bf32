/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/alloc.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/spec/spec.h"
#include "launcher/programs/agent_image.h"
#include "launcher/alloc/alloc.h"
#include "launcher/programs/cluster_api.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define WORKERS_MAX 4096 /* on one machine */

struct options {
    struct cluster_choice cluster;
    const char *name, *image, *through;
    int64_t lost_after_ms;
    uint32_t workers;
    bool help;
};

static const char pods[] = "On a cluster (with a job's FILE)";

static const struct option_spec option_list[] = {
    {.name = "workers",
     .value = "N",
     .group = "The allocation",
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, workers),
     .min = 1,
     .max = SPEC_WORKERS_MAX,
     .help = "agents on this machine (default 1); with a FILE, pods,\noverriding the spec's"},
    {.name = "name",
     .value = "NAME",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, name),
     .help = "override the spec's name"},
    CLUSTER_IMAGE_OPTION(pods, 0, offsetof(struct options, image)),
    {.name = "through",
     .value = "WAY",
     .choices = "auto direct api",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, through),
     .help =
         "how to reach the pods: direct; api: through the API\nserver; auto (default): direct if "
         "they answer"},
    {.name = "lost-after",
     .value = "TIME",
     .group = pods,
     .kind = OPTION_DURATION,
     .offset = offsetof(struct options, lost_after_ms),
     .help = "delete the pods if this process is silent for this long\n(default 1m)"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* ---- the shell ---- */

static void hold_signals(sigset_t *ret_held, sigset_t *ret_before)
{
    static const int held[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigemptyset(ret_held);
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        sigaddset(ret_held, held[i]);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would not say that the shell has ended */
    sigprocmask(SIG_BLOCK, ret_held, ret_before);
}

static pid_t start(char *const argv[], const sigset_t *mask, struct drarun_error *err)
{
    assert(argv[0]);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(argv[0], argv);
        log_error("alloc: cannot start %s: %s", argv[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (pid < 0)
        error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "fork: %s", strerror(errno));
    return pid;
}

/* Children that have ended; true when the shell is among them. */
static bool reap(struct alloc *alloc, pid_t shell, int *ret_status)
{
    int status = 0;
    bool over = false;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        int64_t worker = alloc_reaped(alloc, pid);
        if (worker >= 0)
            log_error(
                "alloc: the agent of worker %d has ended: no job can use this allocation any more",
                (int)worker);
        if (pid == shell) {
            over = true;
            *ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    return over;
}

/* A terminal's signals are the shell's own business; others are passed on. */
static int await_shell(struct alloc *alloc, pid_t shell, const sigset_t *held)
{
    int status = 0;
    while (!reap(alloc, shell, &status)) {
        int signo = sigwaitinfo(held, NULL);
        if (signo == SIGTERM || signo == SIGHUP)
            kill(shell, signo);
    }
    return status;
}

static int allocate(const struct options *options, char *const argv[], int *ret_status,
                    struct drarun_error *err)
{
    char *shell[] = {getenv("SHELL") ? getenv("SHELL") : unconst("/bin/sh"), NULL};
    uint32_t workers = options->workers ? options->workers : 1;
    sigset_t held, before;
    hold_signals(&held, &before); /* from here on what is made is taken away, whatever comes */
    struct alloc *alloc = alloc_new(workers, err);
    if (!alloc)
        return -err->code;
    int rc = setenv(ALLOC_VARIABLE, alloc_folder(alloc), 1) < 0
                 ? error_set(err, ENOMEM, "out of memory")
                 : 0;
    if (rc == 0 && !argv[0])
        log_note("%u worker%s kept until this shell ends; drarun -n N PROGRAM runs there", workers,
                 workers == 1 ? " is" : "s are");
    pid_t pid = rc == 0 ? start(argv[0] ? argv : shell, &before, err) : -1;
    if (pid > 0)
        *ret_status = await_shell(alloc, pid, &held);
    alloc_free(alloc);
    return pid > 0 ? 0 : -err->code;
}

/* The words before "--" beside options: at most one, the job's file. *ret_at: of the command. */
static int parse(int argc, char *const argv[], struct options *options, const char **ret_file,
                 int *ret_at, struct drarun_error *err)
{
    int at = options_parse(&options_table, argc, argv, false, options, err);
    if (at >= 0 && at < argc && (at == 0 || strcmp(argv[at - 1], "--") != 0)) {
        *ret_file = argv[at++];
        int more = options_parse(&options_table, argc - at, argv + at, false, options, err);
        at = more < 0 ? more : at + more;
    }
    if (at >= 0 && at < argc && strcmp(argv[at - 1], "--") != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "unexpected argument \"%s\": drarun alloc [options] %s", argv[at],
                          verb_alloc.arguments);
    *ret_at = at;
    return at < 0 ? at : 0;
}

/* The first option that is for pods; NULL: none was given. */
static const char *given_for_pods(const struct options *o)
{
    return o->name                 ? "--name"
           : o->image              ? "--image"
           : o->through            ? "--through"
           : o->lost_after_ms      ? "--lost-after"
           : o->cluster.namespace  ? "--namespace"
           : o->cluster.context    ? "--context"
           : o->cluster.kubeconfig ? "--kubeconfig"
                                   : NULL;
}

static int check(const struct options *o, const char *file, struct drarun_error *err)
{
    const char *folder = getenv(ALLOC_VARIABLE), *for_pods = given_for_pods(o);
    if (folder && folder[0])
        return error_kind(err, DRARUN_ERR_USAGE, EBUSY,
                          "this shell has an allocation (" ALLOC_VARIABLE "=%s): leave it first",
                          folder);
    if (file && !strchr(file, '.') && access(file, F_OK) < 0 && errno == ENOENT)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "there is no file %s; a command is given after --: drarun alloc -- %s",
                          file, file);
    if (file)
        return 0;
    if (for_pods)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s applies to pods, and without a job FILE the workers run on this "
                          "machine: drarun alloc [options] %s",
                          for_pods, verb_alloc.arguments);
    if (o->workers > WORKERS_MAX)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--workers %u: expected at most %d on one machine", o->workers,
                          WORKERS_MAX);
    return 0;
}

static int on_cluster(const struct options *o, const char *file, char *const argv[],
                      char *const all[])
{
    const struct cluster_alloc alloc = {
        .cluster = o->cluster,
        .file = file,
        .name = o->name,
        .image = agent_image(o->image),
        .workers = o->workers,
        .through = o->through,
        .lost_after_ms = o->lost_after_ms,
        .argv = argv,
    };
    return cluster_api() ? cluster_api()->alloc(&alloc) : cluster_become(all);
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    const char *file = NULL;
    int status = 0, at = 0;
    int rc = parse(argc, argv, &options, &file, &at, &err);
    if (rc == 0 && options.help) {
        verb_help(&verb_alloc, &out);
        return verb_write("alloc", &out);
    }
    if (rc == 0)
        rc = check(&options, file, &err);
    if (rc == 0 && file)
        return on_cluster(&options, file, argv + at, argv - 2);
    if (rc == 0)
        rc = allocate(&options, argv + at, &status, &err);
    if (rc == 0)
        return status;
    return verb_fail("alloc", &err);
}

const struct verb verb_alloc = {"alloc",
                                "[FILE] [-- COMMAND...]",
                                "Keeps workers, here or a job's pods, for a shell or a command: "
                                "each drarun -n N in it runs on "
                                "them, one after the other.",
                                &options_table,
                                run,
                                "keep workers for a shell"};
