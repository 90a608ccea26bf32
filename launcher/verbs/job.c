/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/job.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "launcher/programs/cluster_api.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"

struct options {
    struct cluster_job job;
    struct cluster_choice cluster;
    uint32_t rank; /* plus 1; 0: all */
    const char *output;
    bool help;
};

#define LOG_TAIL_MAX 1000000
#define FIELD(name) offsetof(struct options, name)

static const char shown[] = "What to show";

#define FORMAT_OPTION(words)                                                                       \
    {                                                                                              \
        .name = "output", .letter = 'o', .value = "FORMAT", .choices = words, .group = shown,      \
        .kind = OPTION_TEXT, .offset = FIELD(output),                                              \
        .help = "text (default), wide, json, yaml or name"                                         \
    }
#define WATCH_OPTION                                                                               \
    {                                                                                              \
        .name = "watch", .letter = 'w', .group = shown, .kind = OPTION_FLAG,                       \
        .offset = FIELD(job.watch), .help = "keep running, and print each change"                  \
    }

static int set_rank(void *target, const char *word, const char *value, struct drarun_error *err)
{
    struct options *options = target;
    int64_t rank = 0;
    int rc = number_parse(word, value, 0, INT32_MAX - 1, &rank, err);
    if (rc == 0)
        options->rank = (uint32_t)rank + 1;
    return rc;
}

static int set_tail(void *target, const char *word, const char *value, struct drarun_error *err)
{
    struct options *options = target;
    return number_parse(word, value, 0, LOG_TAIL_MAX, &options->job.tail, err);
}

static const struct option_spec describe_list[] = {
    FORMAT_OPTION("text wide json yaml name"), CLUSTER_OPTIONS(struct options), VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options)};
static const struct option_spec cancel_list[] = {
    {.name = "all",
     .group = "Which jobs",
     .kind = OPTION_FLAG,
     .offset = FIELD(job.all),
     .help = "cancel all jobs of the namespace, also those that have\nended"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_spec status_list[] = {
    {.name = "verbose",
     .letter = 'v',
     .group = shown,
     .kind = OPTION_FLAG,
     .offset = FIELD(job.verbose),
     .help = "also show what the check of each worker's NICs found"},
    FORMAT_OPTION("text wide json yaml name"),
    WATCH_OPTION,
    CLUSTER_OPTIONS(struct options),
    VERB_QUIET_OPTION,
    VERB_HELP_OPTION(struct options),
};
static const struct option_spec list_list[] = {
    {.name = "all-namespaces",
     .letter = 'A',
     .group = shown,
     .kind = OPTION_FLAG,
     .offset = FIELD(job.all_namespaces),
     .help = "list jobs of all namespaces"},
    {.name = "selector",
     .letter = 'l',
     .value = "LABELS",
     .group = shown,
     .kind = OPTION_TEXT,
     .offset = FIELD(job.selector),
     .help = "list jobs whose objects have these labels, such as\nteam=a,!old (kubectl's -l; with "
             "run it is --label)"},
    WATCH_OPTION,
    FORMAT_OPTION("text wide json yaml name"),
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_spec logs_list[] = {
    {.name = "follow",
     .letter = 'f',
     .group = shown,
     .kind = OPTION_FLAG,
     .offset = FIELD(job.follow),
     .help = "keep printing until the job ends"},
    {.name = "rank",
     .value = "R",
     .group = shown,
     .kind = OPTION_CALL,
     .set = set_rank,
     .help = "print only this rank (default: all)"},
    {.name = "tail",
     .value = "N",
     .group = shown,
     .kind = OPTION_CALL,
     .set = set_tail,
     .help = "print only the last N lines (not with --follow)"},
    {.name = "since",
     .value = "TIME",
     .group = shown,
     .kind = OPTION_DURATION,
     .offset = FIELD(job.since_ms),
     .help = "print only lines of the last TIME, such as 90s, 10m or 2h"},
    {.name = "timestamps",
     .group = shown,
     .kind = OPTION_FLAG,
     .offset = FIELD(job.timestamps),
     .help = "put the time before each line"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_spec wait_list[] = {
    {.name = "timeout",
     .value = "TIME",
     .group = "Limits",
     .kind = OPTION_DURATION,
     .offset = FIELD(job.timeout_ms),
     .help = "give up after this time, with status 124 (default: never)"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};

#define TABLE(list)                                                                                \
    {                                                                                              \
        list, ARRAY_LEN(list)                                                                      \
    }
static const struct option_table cancel_table = TABLE(cancel_list),
                                 describe_table = TABLE(describe_list),
                                 status_table = TABLE(status_list), list_table = TABLE(list_list),
                                 logs_table = TABLE(logs_list), wait_table = TABLE(wait_list);

static int expected(const struct verb *verb, const char *what, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "expected %s: drarun %s [options] %s", what,
                      verb->name, verb->arguments);
}

static int check(const struct verb *verb, struct options *options, struct drarun_error *err)
{
    const struct cluster_job *job = &options->job;
    if (verb == &verb_cancel && (job->job_count > 0) == job->all)
        return expected(verb, "names of jobs, or --all", err);
    if (verb == &verb_list && job->job)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "unexpected argument \"%s\": drarun status %s shows one job", job->job,
                          job->job);
    if (verb != &verb_cancel && job->job_count > 1)
        return expected(verb, "the name of one job", err);
    if (verb != &verb_cancel && verb != &verb_list && verb != &verb_status && !job->job)
        return expected(verb, "the name of one job", err);
    if (job->tail >= 0 && job->follow)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--tail prints the end of the current log: it cannot be used with --follow");
    if (job->watch && (job->format == VERB_JSON || job->format == VERB_YAML))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--watch prints text: give it without -o %s", options->output);
    return 0;
}

/* names: room for argc words. */
static int parse(const struct verb *verb, int argc, char *const argv[], struct options *options,
                 char **names, struct drarun_error *err)
{
    struct cluster_job *job = &options->job;
    for (int at = 0; at < argc; at++) {
        int used = options_parse(verb->options, argc - at, argv + at, false, options, err);
        if (used < 0)
            return used;
        at += used;
        if (at < argc)
            names[job->job_count++] = argv[at];
    }
    job->jobs = names;
    job->job = job->job_count > 0 ? names[0] : NULL;
    job->cluster = options->cluster;
    job->format = verb_format_of(options->output);
    job->json = job->format == VERB_JSON || job->format == VERB_YAML;
    job->rank = (int32_t)options->rank - 1;
    return options->help ? 0 : check(verb, options, err);
}

static int run_parsed(const struct verb *verb, int (*do_it)(const struct cluster_job *), int argc,
                      char *const argv[], char **names)
{
    struct options options = {.job.tail = -1};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    if (parse(verb, argc, argv, &options, names, &err) < 0) {
        log_error("%s: %s", verb->name, err.text);
        return error_exit_status(err.kind);
    }
    if (options.help) {
        verb_help(verb, &out);
        return verb_write(verb->name, &out);
    }
    return do_it ? do_it(&options.job) : cluster_become(argv - 2);
}

static int run(const struct verb *verb, int (*do_it)(const struct cluster_job *), int argc,
               char *const argv[])
{
    cleanup_free char **names = calloc((size_t)argc + 1, sizeof *names);
    if (names)
        return run_parsed(verb, do_it, argc, argv, names);
    log_error("%s: out of memory", verb->name);
    return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}

#define API(member) (cluster_api() ? cluster_api()->member : NULL)
#define DEFINE_VERB(name, arguments, summary, table, brief)                                        \
    static int run_##name(int argc, char *const argv[])                                            \
    {                                                                                              \
        return run(&verb_##name, API(name), argc, argv);                                           \
    }                                                                                              \
    const struct verb verb_##name = {#name, arguments, summary, &table, run_##name, brief}

DEFINE_VERB(cancel, "JOB... | --all",
            "Ends jobs of the cluster; of one that has ended, deletes what is left, with its "
            "status and output.",
            cancel_table, "end jobs");
DEFINE_VERB(describe, "JOB", "Shows everything about a job of the cluster.", describe_table,
            "everything about a job");
DEFINE_VERB(list, NULL, "Lists the jobs of the cluster.", list_table, "jobs");
DEFINE_VERB(logs, "JOB", "Prints the output of a job's ranks.", logs_table, "output of its ranks");
DEFINE_VERB(status, "[JOB]", "Shows the state of a job, and what it waits for.", status_table,
            "its state, why it waits");
DEFINE_VERB(wait, "JOB", "Waits for the end of a job and exits with its status.", wait_table,
            "until it ends; its status");
