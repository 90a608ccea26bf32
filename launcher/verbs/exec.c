/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/exec.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "launcher/programs/cluster_api.h"
#include "launcher/streams/input.h"
#include "launcher/verbs/join.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

struct options {
    struct cluster_choice cluster;
    bool stdin_, tty, help;
};

static const char command[] = "The command";

static const struct option_spec option_list[] = {
    {.name = "stdin",
     .letter = 'i',
     .group = command,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, stdin_),
     .help = "pass our standard input to the command"},
    {.name = "tty",
     .letter = 't',
     .group = command,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, tty),
     .help = "give the command a terminal; without a command, start a\nshell"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int usage(struct drarun_error *err, const char *text)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: drarun exec [options] %s", text,
                      verb_exec.arguments);
}

/* argv begins behind the first options. */
static int parse_beside(int argc, char *const argv[], struct options *options,
                        struct cluster_exec *exec, struct drarun_error *err)
{
    int64_t rank = 0;
    if (argc < 2)
        return usage(err, "expected a job and a rank");
    int rc = number_parse("the rank", argv[1], 0, UINT32_MAX, &rank, err);
    if (rc < 0)
        return rc;
    exec->job = argv[0];
    exec->rank = (uint32_t)rank;
    int more = options_parse(&options_table, argc - 2, argv + 2, false, options, err);
    if (more < 0)
        return more;
    if (options->help)
        return 0;
    exec->argv = argv + 2 + more;
    if (!exec->argv[0] && !options->tty)
        return usage(err, "expected a command, or -t for a shell");
    if (options->tty && !isatty(STDIN_FILENO))
        return usage(err, "-t: standard input is not a terminal");
    exec->cluster = options->cluster;
    exec->tty = options->tty;
    bool wanted = options->stdin_ || options->tty;
    exec->input = wanted && input_is_there(STDIN_FILENO) ? STDIN_FILENO : -1;
    return 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct cluster_exec exec = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    if (verb_join_is_meant(argc, argv)) /* its former name */
        return verb_join.run(argc, argv);
    int at = options_parse(&options_table, argc, argv, false, &options, &err);
    int rc =
        at < 0 || options.help ? at : parse_beside(argc - at, argv + at, &options, &exec, &err);
    if (rc < 0)
        return verb_fail("exec", &err);
    if (options.help) {
        verb_help(&verb_exec, &out);
        return verb_write("exec", &out);
    }
    return cluster_api() ? cluster_api()->exec(&exec) : cluster_become(argv - 2);
}

const struct verb verb_exec = {
    "exec", "JOB RANK [--] COMMAND...", "Runs a command beside a rank of a job.", &options_table,
    run,    "a command beside a rank"};
