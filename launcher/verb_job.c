/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_job.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "launcher/cluster_api.h"
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

#define FIELD(name) offsetof(struct options, name)

static const char shown[] = "What is shown";

#define OUTPUT_OPTION                                                                              \
    {                                                                                              \
        .name = "output", .letter = 'o', .value = "FORMAT", .choices = "text json",                \
        .group = shown, .kind = OPTION_TEXT, .offset = FIELD(output),                              \
        .help = "text (default) or json"                                                           \
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

static const struct option_spec plain_list[] = {CLUSTER_OPTIONS(struct options), VERB_LEVEL_OPTIONS,
                                                VERB_HELP_OPTION(struct options)};
static const struct option_spec status_list[] = {
    {.name = "verbose",
     .letter = 'v',
     .group = shown,
     .kind = OPTION_FLAG,
     .offset = FIELD(job.verbose),
     .help = "with what the check of each worker's NICs found"},
    OUTPUT_OPTION,
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
     .help = "jobs of all namespaces"},
    OUTPUT_OPTION,
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
     .help = "go on until the job ends"},
    {.name = "rank",
     .value = "R",
     .group = shown,
     .kind = OPTION_CALL,
     .set = set_rank,
     .help = "of this rank alone (default: of all)"},
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
     .help = "give up with 124 after this (default: never)"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};

#define TABLE(list)                                                                                \
    {                                                                                              \
        list, ARRAY_LEN(list)                                                                      \
    }
static const struct option_table plain_table = TABLE(plain_list), status_table = TABLE(status_list),
                                 list_table = TABLE(list_list), logs_table = TABLE(logs_list),
                                 wait_table = TABLE(wait_list);

static int parse(const struct verb *verb, int argc, char *const argv[], struct options *options,
                 struct drarun_error *err)
{
    int rc = 0;
    if (verb->arguments) {
        rc = verb_parse_file(verb, argc, argv, options, &options->help, &options->job.job, err);
    } else {
        int used = options_parse(verb->options, argc, argv, false, options, err);
        if (used >= 0 && used < argc)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"",
                              argv[used]);
        rc = used < 0 ? used : 0;
    }
    options->job.cluster = options->cluster;
    options->job.json = options->output && strcmp(options->output, "json") == 0;
    options->job.rank = (int32_t)options->rank - 1;
    return rc;
}

static int run(const struct verb *verb, int (*do_it)(const struct cluster_job *), int argc,
               char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    if (parse(verb, argc, argv, &options, &err) < 0) {
        log_error("%s: %s", verb->name, err.text);
        return error_exit_status(err.kind);
    }
    if (options.help) {
        verb_help(verb, &out);
        return verb_write(verb->name, &out);
    }
    return do_it ? do_it(&options.job) : cluster_become(argv - 2);
}

#define API(member) (cluster_api() ? cluster_api()->member : NULL)
#define DEFINE_VERB(name, arguments, summary, table, brief)                                        \
    static int run_##name(int argc, char *const argv[])                                            \
    {                                                                                              \
        return run(&verb_##name, API(name), argc, argv);                                           \
    }                                                                                              \
    const struct verb verb_##name = {#name, arguments, summary, &table, run_##name, brief}

DEFINE_VERB(cancel, "JOB", "Ends a job of the cluster.", plain_table, "end a job");
DEFINE_VERB(describe, "JOB", "Tells all that is known of a job of the cluster.", plain_table,
            "all that is known of it");
DEFINE_VERB(list, NULL, "Lists the jobs of the cluster.", list_table, "jobs");
DEFINE_VERB(logs, "JOB", "Prints what the ranks of a job have written.", logs_table,
            "what its ranks have written");
DEFINE_VERB(status, "JOB", "Tells how far a job is, and what it waits for.", status_table,
            "how far, why it waits");
DEFINE_VERB(wait, "JOB", "Waits for the end of a job and ends with its status.", wait_table,
            "until it ends; its status");
