/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/join.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "launcher/entry/entry.h"
#include "launcher/programs/remote.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"

#define START_TIMEOUT_MS 300000

struct options {
    struct entry_options entry;
    const char *index;
    bool help;
};

static const char pods[] = "The pods";

static const struct option_spec option_list[] = {
    {.name = "workers",
     .value = "N",
     .group = pods,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.workers),
     .min = 1,
     .max = SPEC_WORKERS_MAX,
     .help = "number of pods: a StatefulSet's replicas, an Indexed\nJob's completions (a "
             "LeaderWorkerSet passes it itself)"},
    {.name = "per-worker",
     .aliases = "-N -npernode --npernode",
     .value = "N",
     .group = pods,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.per_worker),
     .min = 1,
     .max = 65536,
     .help = "ranks per pod (default: its GPUs, else 1)"},
    {.name = "slots",
     .value = "N",
     .group = pods,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.slots),
     .min = 1,
     .max = 65536,
     .help =
         "maximum ranks per pod, including spawned ones (default:\n--per-worker, else the ranks "
         "started, or the pod's CPUs if\nthey are more)"},
    {.name = "oversubscribe",
     .group = pods,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, entry.oversubscribe),
     .help = "let ranks spawn more ranks than there are slots"},
    {.name = "on-rank-failure",
     .value = "WHAT",
     .choices = "end continue",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.on_rank_failure),
     .help = "end (default): a rank that fails ends the job; continue:\nonly if others could wait "
             "for it, since it is between\nMPI_Init and MPI_Finalize"},
    {.name = "peers",
     .value = "LIST",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.peers),
     .help = "the pods, instead of those that the controller names:\nHOST[:PORT],... with ranges, "
             "such as web-[0-3].web"},
    {.name = "index",
     .value = "I",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, index),
     .help = "index of this pod in --peers (default: by its name)"},
    {.name = "key-file",
     .value = "FILE",
     .choices = "FILE",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.key_file),
     .help = "shared key of all pods, from a Secret (default: the\nvariable DRARUN_KEY)"},
    {.name = "port",
     .value = "PORT",
     .group = pods,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, entry.port),
     .min = 1,
     .max = 65535,
     .help = "where the pods listen for each other (default 7173)"},
    {.name = "start-timeout",
     .value = "TIME",
     .group = pods,
     .kind = OPTION_DURATION,
     .offset = offsetof(struct options, entry.start_timeout_ms),
     .help = "how long to wait for all pods (default 5m)"},
    {.name = "launch",
     .value = "HOW",
     .choices = "pmix env",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.launch),
     .help = "pmix (default), or env: only RANK and similar variables"},
    {.name = "network",
     .value = "KIND",
     .choices = "rdma any",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.network),
     .help = "rdma: fail without RDMA (default with GPUs or RDMA\ndevices), or any"},
    {.name = "bind",
     .value = "HOW",
     .group = pods,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, entry.bind),
     .help = "none (default), core, core:N, numa or a list of CPUs"},
    {.name = "report-bindings",
     .group = pods,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, entry.report_bindings),
     .help = "report where each rank runs, and on which CPUs"},
    {.name = "label",
     .letter = 'l',
     .group = pods,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, entry.label),
     .help = "put the rank before each line: [3] text"},
    {.name = "verbose",
     .letter = 'v',
     .group = pods,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, entry.verbose),
     .help = "log each step"},
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int parse(int argc, char *const argv[], struct options *options, struct drarun_error *err)
{
    struct entry_options *entry = &options->entry;
    int at = options_parse(&options_table, argc, argv, false, options, err);
    if (at < 0 || options->help)
        return at;
    if (at == argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "expected a program: drarun join [options] %s", verb_join.arguments);
    entry->index = -1;
    entry->argv = argv + at;
    entry->port = entry->port ? entry->port : ENTRY_PORT;
    if (entry->start_timeout_ms <= 0)
        entry->start_timeout_ms = START_TIMEOUT_MS;
    return options->index
               ? number_parse("--index", options->index, 0, SPEC_WORKERS_MAX, &entry->index, err)
               : 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    if (parse(argc, argv, &options, &err) < 0)
        return verb_fail("join", &err);
    if (options.help) {
        verb_help(&verb_join, &out);
        return verb_write("join", &out);
    }
    if (options.entry.verbose)
        log_setup("drarun", LOG_VERBOSE);
    if (remote_api())
        return entry_run(&options.entry);
    remote_become(argv - 2, &err); /* names and TLS are its */
    return verb_fail("join", &err);
}

bool verb_join_is_meant(int argc, char *const argv[])
{
    struct options options = {0};
    int at = options_parse(&options_table, argc, argv, false, &options, NULL);
    return at > 0 && !options.help && strcmp(argv[at - 1], "--") == 0;
}

const struct verb verb_join = {"join",
                               "[--] PROGRAM [ARGS]",
                               "Joins the pods of a StatefulSet, Indexed Job, JobSet or\n"
                               "LeaderWorkerSet, and runs PROGRAM in all of them as one job.",
                               &options_table,
                               run,
                               "existing pods as one job"};
