/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_alloc.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define WORKERS_MAX 4096

struct options {
    uint32_t workers;
    bool help;
};

static const struct option_spec option_list[] = {
    {.name = "workers",
     .value = "N",
     .group = "The allocation",
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, workers),
     .min = 1,
     .max = WORKERS_MAX,
     .help = "agents on this machine (default 1)"},
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
    sigprocmask(SIG_BLOCK, ret_held, ret_before);
}

static pid_t start(char *const argv[], const sigset_t *mask, struct drarun_error *err)
{
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
    char *shell[] = {getenv("SHELL") ? getenv("SHELL") : (char *)"/bin/sh", NULL};
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

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int status = 0;
    int at = options_parse(&options_table, argc, argv, false, &options, &err);
    if (at >= 0 && options.help) {
        verb_help(&verb_alloc, &out);
        return verb_write("alloc", &out);
    }
    int rc = at;
    if (rc >= 0 && at < argc && (at == 0 || strcmp(argv[at - 1], "--") != 0))
        rc = error_kind(
            &err, DRARUN_ERR_USAGE, EINVAL,
            "unexpected argument \"%s\": drarun alloc [options] %s keeps workers of this "
            "machine; a job's pods end with their job",
            argv[at], verb_alloc.arguments);
    if (rc >= 0 && getenv(ALLOC_VARIABLE))
        rc = error_kind(&err, DRARUN_ERR_USAGE, EBUSY,
                        "this shell has an allocation (" ALLOC_VARIABLE "=%s): leave it first",
                        getenv(ALLOC_VARIABLE));
    if (rc >= 0)
        rc = allocate(&options, argv + at, &status, &err);
    if (rc >= 0)
        return status;
    log_error("alloc: %s", err.text);
    return error_exit_status(err.kind);
}

const struct verb verb_alloc = {
    "alloc", "[-- COMMAND...]",
    "Keeps workers for a shell, or a command: each drarun -n N in it runs on them.", &options_table,
    run};
