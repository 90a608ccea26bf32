/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/programs/cluster_api.h"
#include "launcher/alloc/alloc.h"
#include "launcher/run/command_line.h"
#include "launcher/run/foreign.h"
#include "launcher/run/hosts.h"
#include "launcher/job/job.h"
#include "launcher/run/local_spec.h"
#include "launcher/programs/remote.h"
#include "launcher/job/report.h"
#include "launcher/run/options.h"
#include "launcher/cli/verb.h"
#include "launcher/streams/console.h"
#include "launcher/streams/input.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/sigpipe.h"

static int show_help(void)
{
    struct buf text = BUF_INIT;
    run_options_help(&text);
    return verb_write("help", &text);
}

static int show_version(void)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "drarun %s\n", DRARUN_VERSION);
    return verb_write("version", &text);
}

/* What --help or --version asks for. */
static int show(const struct run_line *line)
{
    return line->help ? show_help() : show_version();
}

static void set_log_level(const struct run_line *line)
{
    enum log_level level = line->console.quiet  ? LOG_QUIET
                           : line->verbose == 0 ? LOG_NORMAL
                           : line->verbose == 1 ? LOG_VERBOSE
                                                : LOG_DEBUG;
    log_setup("drarun", level);
}

static bool is_listed(const char *list, const char *entry)
{
    size_t length = strcspn(entry, "="), n;
    for (; list && *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == length && memcmp(list, entry, n) == 0)
            return true;
    }
    return false;
}

/* What the ranks inherit of our environment. NULL: out of memory. */
static char **inherited(const struct job_request *request, struct strlist *kept)
{
    if (!request->inherit || strcmp(request->inherit, "all") == 0)
        return environ;
    strlist_add(kept, ""); /* so that there is an array */
    for (size_t i = 0; environ[i]; i++)
        if (is_listed(request->inherit_list, environ[i]))
            strlist_add(kept, environ[i]);
    return kept->failed ? NULL : kept->items + 1;
}

/* What a local agent searches for the first program. */
static const char *path_of(const struct job_request *request, char *const *env)
{
    const char *path = "not set";
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            path = *env + 5;
    const struct strlist *own = &request->programs[0].env;
    for (size_t i = 0; i < own->count; i++)
        if (strncmp(own->items[i], "PATH=", 5) == 0)
            path = own->items[i] + 5;
    return path;
}

static int run_job(const struct job_request *request, struct console *console, json_t **ret_report)
{
    CLEANUP(strlist_done) struct strlist kept = STRLIST_INIT;
    struct drarun_error err = {0};
    struct sigaction old_pipe;
    int input = input_is_there(STDIN_FILENO) ? STDIN_FILENO : -1;
    char **env = inherited(request, &kept);
    if (!env) {
        error_set(&err, ENOMEM, "out of memory");
        return verb_fail(NULL, &err);
    }
    struct job *job = job_new(request, console, input, env, &err);
    if (!job)
        return verb_fail(NULL, &err);
    job_run(job);
    sigpipe_ignore(&old_pipe); /* our status is the job's, also if nobody reads why */
    int status = cause_status(job_cause(job));
    if (status == error_exit_status(DRARUN_ERR_NOT_FOUND) && !request->agents && !request->pods)
        log_verbose("PATH of the ranks is %s", path_of(request, env));
    if (report_show(request, job, &err) < 0) {
        log_error("%s", err.text);
        status = status ? status : error_exit_status(err.kind);
    }
    if (ret_report)
        *ret_report = report_json(request, job);
    job_free(job);
    sigpipe_restore(&old_pipe);
    return status;
}

static int run_on_console(const struct run_line *line, json_t **ret_report)
{
    CLEANUP(console_freep) struct console *console = console_new(&line->console);
    struct drarun_error err = {0};
    if (!console) {
        error_set(&err, ENOMEM, "out of memory");
        return verb_fail(NULL, &err);
    }
    return run_job(&line->request, console, ret_report);
}

static int run_on_cluster(char *const all[], const struct cluster_run *run)
{
    return cluster_api() ? cluster_api()->run(run) : cluster_become(all);
}

/* The request's ranks, started from here. spec: what it was made of; NULL: the command line. */
static int run_request(char *const all[], struct run_line *line, const struct local_spec *spec,
                       json_t **ret_report)
{
    struct job_request *request = &line->request;
    struct drarun_error err = {0};
    cleanup_close int turn = -1; /* in the allocation, until the job has ended */
    if (!remote_api() && alloc_is_of_pods(request)) {
        remote_become(all, &err);
        return verb_fail(NULL, &err);
    }
    if (alloc_use(request, &turn, &err) < 0)
        return verb_fail(NULL, &err);
    if (request_is_remote(request) && !remote_api()) {
        remote_become(all, &err);
        return verb_fail(NULL, &err);
    }
    /* not before: the host file may be a pipe, which is read once */
    if (hosts_use(request, &err) < 0 || (spec && local_spec_tell(spec, &err) < 0))
        return verb_fail(NULL, &err);
    if (foreign_variables_use(&run_option_table, line, &err) < 0 ||
        request_check_warning(request, &err) < 0)
        return verb_fail(NULL, &err);
    return run_on_console(line, ret_report);
}

int run_programs(char *const all[], struct run_line *line, json_t **ret_report)
{
    struct drarun_error err = {0};
    if (command_line_check_program(line, &err) < 0)
        return verb_fail(NULL, &err);
    return run_request(all, line, NULL, ret_report);
}

/* The job of the spec that the line names: its ranks run here, or it is a cluster's. *ret_spec:
 * what the line's request borrows from. */
static int run_spec(char *const all[], struct run_line *line, struct local_spec **ret_spec)
{
    struct drarun_error err = {0};
    if (command_line_parse_spec(line, &err) < 0)
        return verb_fail(NULL, &err);
    if (line->help || line->version) /* behind the file */
        return show(line);
    set_log_level(line); /* -v and -q may stand behind the file */
    if (line->local) {
        int status = local_spec_use(line, ret_spec);
        return status ? status : run_request(all, line, *ret_spec, NULL);
    }
    /* now, and not after a wait for pods */
    if (request_check_report(&line->request, &err) < 0)
        return verb_fail(NULL, &err);
    return run_on_cluster(all, &line->cluster);
}

static int dispatch(char *const all[], struct run_line *line, struct local_spec **ret_spec)
{
    if (line->help || line->version)
        return show(line);
    set_log_level(line);
    if (line->cluster.job)
        return run_on_cluster(all, &line->cluster);
    if (command_line_is_spec(line))
        return run_spec(all, line, ret_spec);
    return run_programs(all, line, NULL);
}

int run_verb(char *const all[], int argc, char *const argv[])
{
    CLEANUP(local_spec_freep) struct local_spec *spec = NULL;
    struct run_line line;
    struct drarun_error err = {0};
    int status = command_line_parse(argc, argv, &line, &err) < 0 ? verb_fail(NULL, &err)
                                                                 : dispatch(all, &line, &spec);
    run_line_done(&line);
    return status;
}

static int run(int argc, char *const argv[])
{
    return run_verb(argv - 2, argc, argv);
}

const struct verb verb_run = {"run",
                              "PROGRAM [ARGS] [: ...] | FILE.yaml [-- ARGS]",
                              "Starts ranks of MPI and NCCL programs, here or as a job of a "
                              "cluster, and exits with\ntheir status. FILE.yaml may be -, "
                              "for standard input.",
                              &run_option_table,
                              run,
                              "ranks here, or FILE.yaml"};
