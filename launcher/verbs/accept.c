/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/optional.h"

#include <string.h>

#include "launcher/programs/accept_order.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"

struct options {
    struct accept_order order;
    struct cluster_choice cluster;
    bool help;
};

static int set_slower(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct options *options = target;
    double percent = 0;
    int rc = amount_parse(shown, value, 99, "a percentage", &percent, err);
    if (rc == 0)
        options->order.options.slower = percent / 100;
    return rc;
}

static int set_alone(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct options *options = target;
    return amount_parse(shown, value, 1e6, "GB/s", &options->order.options.floor_alone, err);
}

static int set_pair(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct options *options = target;
    return amount_parse(shown, value, 1e6, "GB/s", &options->order.options.floor_pair, err);
}

#define ORDER(member) offsetof(struct options, order.member)

static const char which[] = "Nodes, and when they pass";
static const char how[] = "Tests";

static const struct option_spec option_list[] = {
    {.name = "nodes",
     .letter = 'l',
     .value = "SELECTOR",
     .group = which,
     .kind = OPTION_TEXT,
     .offset = ORDER(selector),
     .help =
         "label selector, as with kubectl (default: all nodes but\nthose of the control plane)"},
    {.name = "slower",
     .value = "PERCENT",
     .group = which,
     .kind = OPTION_CALL,
     .set = set_slower,
     .help =
         "a result this far below the median (of at least five) is\nslow (default 10); of fewer, "
         "without a minimum, one below\nhalf of it"},
    {.name = "min-alone",
     .value = "GB/S",
     .group = which,
     .kind = OPTION_CALL,
     .set = set_alone,
     .help = "minimum bus bandwidth of each node alone, at its best size"},
    {.name = "min-pair",
     .value = "GB/S",
     .group = which,
     .kind = OPTION_CALL,
     .set = set_pair,
     .help = "minimum bus bandwidth of each pair"},
    {.name = "alone",
     .group = which,
     .kind = OPTION_FLAG,
     .offset = ORDER(options.alone_only),
     .help = "do not test pairs"},
    {.name = "parallel",
     .value = "N",
     .group = how,
     .kind = OPTION_COUNT,
     .offset = ORDER(parallel),
     .min = 1,
     .max = 1024,
     .help = "tests to run at a time (default 16)"},
    {.name = "timeout",
     .value = "TIME",
     .group = how,
     .kind = OPTION_DURATION,
     .offset = ORDER(timeout_ms),
     .help = "timeout of a test, without the time that its job waits for\nroom (default 15m)"},
    {.name = "tries",
     .value = "N",
     .group = how,
     .kind = OPTION_COUNT,
     .offset = ORDER(tries),
     .min = 1,
     .max = 100,
     .help = "attempts of a test that finds no room or loses the API\n(default 3)"},
    {.name = "priority-class",
     .value = "NAME",
     .group = how,
     .kind = OPTION_TEXT,
     .offset = ORDER(priority_class),
     .help = "PriorityClass of the tests' pods; empty: the spec's\n(default: drarun-accept, below "
             "all others, created if\nmissing)"},
    {.name = "here",
     .group = how,
     .kind = OPTION_FLAG,
     .offset = ORDER(here),
     .help = "launch from this machine, which must reach the pods"},
    CLUSTER_IMAGE_OPTION(how, 0, ORDER(image)),
    {.name = "records",
     .value = "DIR",
     .choices = "DIR",
     .group = "Results",
     .kind = OPTION_TEXT,
     .offset = ORDER(records),
     .help = "where to keep the results (default:\n~/.local/state/drarun/accept)"},
    {.name = "again",
     .group = "Results",
     .kind = OPTION_FLAG,
     .offset = ORDER(again),
     .help = "start over, instead of resuming an interrupted run"},
    {.name = "taint",
     .group = "Results",
     .kind = OPTION_FLAG,
     .offset = ORDER(taint),
     .help = "keep pods off bad nodes with\ndrarun.dev/unfit:NoSchedule, and remove this taint "
             "from\nnodes that pass"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json junit html",
     .group = "Results",
     .kind = OPTION_TEXT,
     .offset = ORDER(format),
     .help = "text (default), json, junit (XML for CI systems) or html\n(a page)"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int run(int argc, char *const argv[])
{
    struct options options = {.order = {.parallel = 16, .tries = 3, .timeout_ms = 15 * 60 * 1000}};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    if (verb_parse_file(&verb_accept, argc, argv, &options, &options.help, &options.order.file,
                        &err) < 0) {
        log_error("accept: %s", err.text);
        return error_exit_status(err.kind);
    }
    if (options.help) {
        verb_help(&verb_accept, &out);
        return verb_write("accept", &out);
    }
    options.order.cluster = options.cluster;
    return cluster_api() ? cluster_api()->accept(&options.cluster, &options.order)
                         : cluster_become(argv - 2);
}

const struct verb verb_accept = {
    "accept",
    "FILE",
    "Runs the benchmark of a job spec on a cluster's nodes, alone and in pairs, and names the bad "
    "ones.",
    &options_table,
    run,
    "find bad nodes"};
