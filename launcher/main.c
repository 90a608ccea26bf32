/* SPDX-License-Identifier: Apache-2.0 */
/* drarun: which verb, and nothing else. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jobs/foreign/options.h"
#include "jobs/foreign/variables.h"
#include "launcher/run.h"
#include "launcher/run_options.h"
#include "launcher/verb.h"
#include "launcher/verb_accept.h"
#include "launcher/verb_alloc.h"
#include "launcher/verb_bench.h"
#include "launcher/verb_controller.h"
#include "launcher/verb_doctor.h"
#include "launcher/verb_env.h"
#include "launcher/verb_exec.h"
#include "launcher/verb_import.h"
#include "launcher/verb_install.h"
#include "launcher/verb_job.h"
#include "launcher/verb_plan.h"
#include "launcher/verb_render.h"
#include "launcher/verb_submit.h"
#include "launcher/verb_topo.h"
#include "launcher/verb_validate.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/first_process.h"
#include "lib/base/log.h"

/* The verbs beside run, by name; a new one is a file verb_NAME.c and a line here. */
static const struct verb *const verbs[] = {
    &verb_accept,   &verb_alloc, &verb_bench,  &verb_cancel, &verb_controller, &verb_describe,
    &verb_doctor,   &verb_env,   &verb_exec,   &verb_import, &verb_install,    &verb_list,
    &verb_logs,     &verb_plan,  &verb_render, &verb_status, &verb_submit,     &verb_topo,
    &verb_validate, &verb_wait,  NULL,
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; verbs[i]; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static int show_completion(int argc, char *const argv[])
{
    struct buf text = BUF_INIT;
    if (argc != 1 || strcmp(argv[0], "bash") != 0) {
        log_error("completion: expected the name of a shell: drarun completion bash");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    struct buf names = BUF_INIT;
    buf_add_str(&names, "run help version completion");
    for (size_t i = 0; verbs[i]; i++)
        buf_printf(&names, " %s", verbs[i]->name);
    if (!names.failed)
        options_completion(&run_option_table, "drarun", names.data, &text);
    text.failed |= names.failed;
    buf_done(&names);
    return verb_write("completion", &text);
}

/* "--help" and "--version" as run's options do the work of those verbs. */
static int show(char *const all[], const char *option)
{
    char *const argv[] = {(char *)option};
    return run_verb(all, 1, argv);
}

/* drarun help [VERB], or the name of another launcher. */
static int show_help(char *const all[], int argc, char *const argv[])
{
    const struct verb *verb = argc == 1 ? find_verb(argv[0]) : NULL;
    unsigned int foreign = argc == 1 ? foreign_launcher(argv[0]) : 0;
    struct buf text = BUF_INIT;
    if (foreign) {
        foreign_options_table(foreign, &text);
        buf_add_str(&text, "\n");
        foreign_variables_table(foreign, &text);
        return verb_write("help", &text);
    }
    if (!verb) {
        int status = show(all, "--help");
        if (status != 0)
            return status;
        for (size_t i = 0; verbs[i]; i++)
            buf_printf(&text, "  drarun %-10s %s\n", verbs[i]->name, verbs[i]->summary);
        return verb_write("help", &text);
    }
    verb_help(verb, &text);
    return verb_write("help", &text);
}

/* Descriptors that we open must not become 0, 1 or 2. */
static void fill_closed_stdio(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR); /* the lowest free number, hence fd */
}

int main(int argc, char *argv[])
{
    const char *first = argc > 1 ? argv[1] : "";
    first_process_begin();
    fill_closed_stdio();
    if (strcmp(first, "run") == 0)
        return run_verb(argv, argc - 2, argv + 2);
    if (strcmp(first, "help") == 0)
        return show_help(argv, argc - 2, argv + 2);
    if (strcmp(first, "version") == 0)
        return show(argv, "--version");
    if (strcmp(first, "completion") == 0)
        return show_completion(argc - 2, argv + 2);
    const struct verb *verb = find_verb(first);
    return verb ? verb->run(argc - 2, argv + 2) : run_verb(argv, argc - 1, argv + 1);
}
