/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/submit.h"

#include <errno.h>
#include <stddef.h>

#include "jobs/spec/spec.h"
#include "launcher/programs/cluster_api.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct options {
    struct cluster_choice cluster;
    const char *name, *image, *output, *dry_run;
    uint32_t workers;
    bool replace, help;
};

static const char job[] = "The job";

static const struct option_spec option_list[] = {
    {.name = "name",
     .value = "NAME",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, name),
     .help = "override the spec's name"},
    {.name = "workers",
     .value = "N",
     .group = job,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, workers),
     .min = 1,
     .max = SPEC_WORKERS_MAX,
     .help = "override the spec's workers"},
    CLUSTER_IMAGE_OPTION(job, 0, offsetof(struct options, image)),
    {.name = "replace",
     .group = job,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, replace),
     .help = "first delete a finished job of the same name"},
    {.name = "dry-run",
     .value = "WHERE",
     .choices = "server",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, dry_run),
     .help = "server: ask the API server whether it would accept the\nobjects, and create none; "
             "drarun validate contacts no\nserver"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "name json yaml",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, output),
     .help = "name (default); json or yaml: its namespace and UID too"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int check(const struct options *options, struct drarun_error *err)
{
    if (options->dry_run && (options->output || options->replace))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--dry-run creates nothing: it cannot be used with --%s",
                          options->output ? "output" : "replace");
    return 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    const char *file = NULL;
    if (verb_parse_file(&verb_submit, argc, argv, &options, &options.help, &file, &err) < 0 ||
        check(&options, &err) < 0)
        return verb_fail("submit", &err);
    if (options.help) {
        verb_help(&verb_submit, &out);
        return verb_write("submit", &out);
    }
    struct cluster_run run = {
        .cluster = options.cluster,
        .file = file,
        .name = options.name,
        .image = options.image,
        .workers = options.workers,
        .replace = options.replace,
        .dry_run = options.dry_run != NULL,
        .format = (int)verb_format_of(options.output),
        .detach = true,
    };
    return cluster_api() ? cluster_api()->run(&run) : cluster_become(argv - 2);
}

const struct verb verb_submit = {"submit",       "FILE", "Starts a job on the cluster and returns.",
                                 &options_table, run,    "start a job and return"};
