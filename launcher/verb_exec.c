/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_exec.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "launcher/cluster_api.h"
#include "launcher/entry.h"
#include "launcher/input.h"
#include "launcher/remote.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"

#define AGENT_PORT 7173
#define START_TIMEOUT_MS 300000

struct options {
    struct cluster_choice cluster;
    struct entry_options entry;
    const char *index;
    bool stdin_, tty, help;
};

static const char command[] = "JOB RANK: the command beside a rank";
static const char peers[] = "-- PROGRAM: the pods of this one's controller as one job";

static const struct option_spec option_list[] = {
    {.name = "workers",
     .value = "N",
     .group = peers,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.workers),
     .min = 1,
     .max = SPEC_WORKERS_MAX,
     .help = "how many pods: a StatefulSet's replicas, an Indexed\nJob's completions (a "
             "LeaderWorkerSet tells it itself)"},
    {.name = "per-worker",
     .aliases = "-N -npernode --npernode",
     .value = "N",
     .group = peers,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.per_worker),
     .min = 1,
     .max = 65536,
     .help = "ranks of each pod (default: its GPUs, else 1)"},
    {.name = "peers",
     .value = "LIST",
     .group = peers,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.peers),
     .help = "the pods in place of what the controller tells:\nHOST[:PORT],... with ranges, as "
             "web-[0-3].web"},
    {.name = "index",
     .value = "I",
     .group = peers,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, index),
     .help = "which of --peers this pod is (default: by its name)"},
    {.name = "key-file",
     .value = "FILE",
     .choices = "FILE",
     .group = peers,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.key_file),
     .help = "the key of all pods, from a Secret (default: the\nvariable DRARUN_KEY)"},
    {.name = "port",
     .value = "PORT",
     .group = peers,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.port),
     .min = 1,
     .max = 65535,
     .help = "where the pods listen for each other (default 7173)"},
    {.name = "start-timeout",
     .value = "TIME",
     .group = peers,
     .kind = OPTION_DURATION,
     .offset = offsetof(struct options, entry.start_timeout_ms),
     .help = "until all pods have come (default 5m)"},
    {.name = "launch",
     .value = "HOW",
     .choices = "pmix env",
     .group = peers,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.launch),
     .help = "pmix (default), or env: RANK and its kin alone"},
    {.name = "network",
     .value = "KIND",
     .choices = "rdma any",
     .group = peers,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.network),
     .help = "rdma: refuse without it (default with GPUs or RDMA\ndevices), or any"},
    {.name = "bind",
     .value = "HOW",
     .group = peers,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.bind),
     .help = "none (default), core, numa or a list of CPUs"},
    {.name = "label",
     .letter = 'l',
     .group = peers,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, entry.label),
     .help = "put the rank before each line: [3] text"},
    {.name = "verbose",
     .letter = 'v',
     .group = peers,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, entry.verbose),
     .help = "say each step"},
    {.name = "stdin",
     .letter = 'i',
     .group = command,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, stdin_),
     .help = "it gets our standard input"},
    {.name = "tty",
     .letter = 't',
     .group = command,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, tty),
     .help = "it gets a terminal; without a command, a shell"},
    CLUSTER_OPTIONS(struct options),
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int usage(struct drarun_error *err, const char *text)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: drarun exec [options] %s", text,
                      verb_exec.arguments);
}

/* ---- beside a rank ---- */

/* argv begins behind the first options. */
static int parse_beside(int argc, char *const argv[], struct options *options,
                        struct cluster_exec *exec, struct drarun_error *err)
{
    int64_t rank = 0;
    if (argc < 2)
        return usage(err, "expected a job and a rank, or -- and a program");
    int rc = number_parse("the rank", argv[1], 0, UINT32_MAX, &rank, err);
    if (rc < 0)
        return rc;
    exec->job = argv[0];
    exec->rank = (uint32_t)rank;
    int more = options_parse(&options_table, argc - 2, argv + 2, false, options, err);
    if (more < 0)
        return more;
    exec->argv = argv + 2 + more;
    if (!exec->argv[0] && !options->tty)
        return usage(err, "expected a command, or -t for a shell");
    if (options->tty && !isatty(STDIN_FILENO))
        return usage(err, "-t: our standard input is no terminal");
    exec->cluster = options->cluster;
    exec->tty = options->tty;
    exec->input = (options->stdin_ || options->tty) && input_is_there();
    return 0;
}

/* ---- a container's program ---- */

static int parse_entry(char *const argv[], struct options *options, struct drarun_error *err)
{
    struct entry_options *entry = &options->entry;
    entry->index = -1;
    entry->argv = argv;
    entry->port = entry->port ? entry->port : AGENT_PORT;
    if (entry->start_timeout_ms <= 0)
        entry->start_timeout_ms = START_TIMEOUT_MS;
    if (!argv[0])
        return usage(err, "expected a program behind --");
    if (options->stdin_ || options->tty)
        return usage(err, "-i and -t are for a command beside a rank");
    return options->index
               ? number_parse("--index", options->index, 0, SPEC_WORKERS_MAX, &entry->index, err)
               : 0;
}

static int run_entry(char *const all[], const struct options *options)
{
    struct drarun_error err = {0};
    log_setup("drarun", options->entry.verbose ? LOG_VERBOSE : LOG_NORMAL);
    if (remote_api())
        return entry_run(&options->entry);
    remote_become(all, &err); /* names and TLS are its */
    log_error("exec: %s", err.text);
    return error_exit_status(err.kind);
}

/* ---- either ---- */

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct cluster_exec exec = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int at = options_parse(&options_table, argc, argv, false, &options, &err);
    if (at >= 0 && options.help) {
        verb_help(&verb_exec, &out);
        return verb_write("exec", &out);
    }
    bool entry = at > 0 && strcmp(argv[at - 1], "--") == 0;
    int rc = at < 0  ? at
             : entry ? parse_entry(argv + at, &options, &err)
                     : parse_beside(argc - at, argv + at, &options, &exec, &err);
    if (rc < 0) {
        log_error("exec: %s", err.text);
        return error_exit_status(err.kind);
    }
    if (options.help) { /* behind the job */
        verb_help(&verb_exec, &out);
        return verb_write("exec", &out);
    }
    if (entry)
        return run_entry(argv - 2, &options);
    return cluster_api() ? cluster_api()->exec(&exec) : cluster_become(argv - 2);
}

const struct verb verb_exec = {
    "exec", "JOB RANK [--] COMMAND... | -- PROGRAM...",
    "Runs a command beside a rank of a job; or, as a pod's program, pods as a job.", &options_table,
    run, "a command beside a rank"};
