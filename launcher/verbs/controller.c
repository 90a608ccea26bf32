/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/controller.h"

#include <errno.h>
#include <stddef.h>

#include "launcher/programs/agent_image.h"
#include "launcher/programs/cluster_api.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/heartbeat_file.h"

struct options {
    struct cluster_controller how;
    struct cluster_choice cluster;
    const char *check; /* the file of another one's heartbeat */
    bool help;
};

#define FIELD(name) offsetof(struct options, name)

static const char service[] = "Service";

static const struct option_spec option_list[] = {
    {.name = "all-namespaces",
     .letter = 'A',
     .group = "Jobs",
     .kind = OPTION_FLAG,
     .offset = FIELD(how.all_namespaces),
     .help = "run DraJobs of all namespaces; --namespace is then that\nof its Lease"},
    CLUSTER_IMAGE_OPTION("Jobs", 0, FIELD(how.image)),
    {.name = "ttl",
     .value = "TIME",
     .group = "Jobs",
     .kind = OPTION_DURATION,
     .offset = FIELD(how.ttl_ms),
     .help = "delete jobs this long after their end, such as 12h or\n7d, if their spec has no "
             "ttlSecondsAfterFinished\n(default: 0, keep them)"},
    {.name = "heartbeat",
     .value = "FILE",
     .group = service,
     .kind = OPTION_TEXT,
     .offset = FIELD(how.heartbeat),
     .help = "write the time into FILE every 2 s while it works"},
    {.name = "check-heartbeat",
     .value = "FILE",
     .group = service,
     .kind = OPTION_TEXT,
     .offset = FIELD(check),
     .help = "instead exit with 0 if FILE was written in the last 30\ns: a liveness probe"},
    {.name = "metrics-port",
     .value = "PORT",
     .group = service,
     .kind = OPTION_COUNT,
     .offset = FIELD(how.metrics_port),
     .min = 0,
     .max = UINT16_MAX,
     .help = "serve GET /metrics for Prometheus on PORT (default: 0, off)"},
    {.name = "log",
     .value = "FORMAT",
     .choices = "text json",
     .group = service,
     .kind = OPTION_TEXT,
     .offset = FIELD(how.log),
     .help = "text, or json: one object per line (default: json in a pod)"},
    CLUSTER_OPTIONS(struct options),
    {.name = "verbose",
     .letter = 'v',
     .group = "Others",
     .kind = OPTION_FLAG,
     .offset = FIELD(how.verbose),
     .help = "log more"},
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int check(const char *heartbeat)
{
    struct drarun_error err = {0};
    if (heartbeat_file_check(heartbeat, clock_ms(), &err) == 0)
        return 0;
    return verb_fail("controller", &err);
}

static int run(int argc, char *const argv[])
{
    struct options options = {.how.image = agent_image(NULL)};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = options_parse(&options_table, argc, argv, false, &options, &err);
    if (rc >= 0 && rc < argc)
        rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[rc]);
    if (rc < 0)
        return verb_fail("controller", &err);
    if (options.help) {
        verb_help(&verb_controller, &out);
        return verb_write("controller", &out);
    }
    if (options.check)
        return check(options.check);
    options.how.cluster = options.cluster;
    return cluster_api() ? cluster_api()->controller(&options.how) : cluster_become(argv - 2);
}

const struct verb verb_controller = {
    "controller",   NULL, "Runs the DraJobs that are applied to a cluster.",
    &options_table, run,  "run applied DraJobs"};
