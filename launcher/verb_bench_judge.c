/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_bench_judge.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "launcher/bench/results.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/bench/verdict.h"

struct options {
    const char *machine, *known, *collective, *output;
    struct strlist logs;
    struct limit_given given;
    struct verdict_demands demands;
    bool help;
};

static int number(const char *shown, const char *value, double most, const char *unit, double *ret,
                  struct drarun_error *err)
{
    char *end;
    double read = strtod(value, &end);
    if (end == value || *end || !(read > 0) || read > most)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected %s above 0, at most %g, got \"%s\"", shown, unit, most,
                          value);
    *ret = read;
    return 0;
}

static int set_nic_gbit(void *target, const char *shown, const char *value,
                        struct drarun_error *err)
{
    return number(shown, value, 1e5, "Gb/s", &((struct options *)target)->given.nic_gbit, err);
}

static int set_link(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    return number(shown, value, 1e6, "GB/s", &((struct options *)target)->given.link_gbs, err);
}

static int set_min_busbw(void *target, const char *shown, const char *value,
                         struct drarun_error *err)
{
    return number(shown, value, 1e6, "GB/s", &((struct options *)target)->demands.min_busbw, err);
}

static int set_min_percent(void *target, const char *shown, const char *value,
                           struct drarun_error *err)
{
    return number(shown, value, 1000, "per cent", &((struct options *)target)->demands.min_percent,
                  err);
}

#define AT(field) offsetof(struct options, field)
#define MACHINE "What it ran on"
#define DEMANDS "What is demanded: status 1 when it is not so"

static const struct option_spec option_list[] = {
    {.name = "nics",
     .value = "N",
     .group = MACHINE,
     .kind = OPTION_COUNT,
     .min = 1,
     .max = 1024,
     .offset = AT(given.nics),
     .help = "NICs of each host that the job had"},
    {.name = "nic-gbit",
     .value = "GBIT",
     .group = MACHINE,
     .kind = OPTION_CALL,
     .set = set_nic_gbit,
     .help = "the speed of one, in Gb/s"},
    {.name = "link",
     .value = "GB/S",
     .group = MACHINE,
     .kind = OPTION_CALL,
     .set = set_link,
     .help = "between GPUs of a host, each direction: 450 for\nNVLink 4, 900 for NVLink 5"},
    {.name = "machine",
     .value = "NAME",
     .group = MACHINE,
     .kind = OPTION_TEXT,
     .offset = AT(machine),
     .help = "one that is known, instead of what its GPUs look like"},
    {.name = "known",
     .value = "FILE",
     .choices = "FILE",
     .group = MACHINE,
     .kind = OPTION_TEXT,
     .offset = AT(known),
     .help = "machines of your own, before those that are built in"},
    {.name = "collective",
     .value = "NAME",
     .group = MACHINE,
     .kind = OPTION_TEXT,
     .offset = AT(collective),
     .help = "where the text does not name it"},
    {.name = "nccl-log",
     .value = "FILE",
     .choices = "FILE",
     .group = MACHINE,
     .kind = OPTION_LIST,
     .offset = AT(logs),
     .help = "what NCCL_DEBUG_FILE wrote; may be repeated"},
    {.name = "min-busbw",
     .value = "GB/S",
     .group = DEMANDS,
     .kind = OPTION_CALL,
     .set = set_min_busbw,
     .help = "bus bandwidth of the best size"},
    {.name = "min-percent",
     .value = "P",
     .group = DEMANDS,
     .kind = OPTION_CALL,
     .set = set_min_percent,
     .help = "the same as per cent of the limit"},
    {.name = "require-rdma",
     .group = DEMANDS,
     .kind = OPTION_FLAG,
     .offset = AT(demands.require_rdma),
     .help = "NCCL's log proves that hosts are not connected\nby TCP"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = "Others",
     .kind = OPTION_TEXT,
     .offset = AT(output),
     .help = "text (the default) or json"},
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int pick_machine(const struct options *o, const struct known *known, const struct result *r,
                        const struct known_machine **ret, struct drarun_error *err)
{
    struct buf names = BUF_INIT;
    *ret = known_find(known, o->machine, r);
    if (*ret || !o->machine)
        return 0;
    for (size_t i = 0; i < known->count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", known->list[i].name);
    int rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--machine %s: expected one of %s",
                        o->machine, names.data ? names.data : "none");
    buf_done(&names);
    return rc;
}

/* Adds the verdict to out, or to list; returns whether it failed, or -errno. */
static int judge_run(const struct options *o, const struct known *known, struct run *run,
                     struct buf *out, json_t *list, struct drarun_error *err)
{
    const struct known_machine *machine = NULL;
    struct verdict verdict;
    int rc = pick_machine(o, known, &run->result, &machine, err);
    for (size_t i = 0; rc == 0 && i < o->logs.count; i++)
        rc = results_read_log(o->logs.items[i], &run->log, err);
    if (rc < 0)
        return rc;
    if (o->collective)
        result_name_collective(&run->result, o->collective);
    verdict_make(run, machine, &o->given, &o->demands, &verdict);
    json_t *json = list ? verdict_json(&verdict) : NULL;
    if (!list)
        verdict_text(&verdict, out);
    else if (!json || json_array_append_new(list, json) < 0)
        out->failed = true;
    rc = verdict.failures.count > 0;
    verdict_done(&verdict);
    return rc;
}

static int judge(const struct options *o, const char *file, struct buf *out,
                 struct drarun_error *err)
{
    struct runs runs = {0};
    struct known known = {0};
    bool failed = false;
    json_t *list = o->output && strcmp(o->output, "json") == 0 ? json_array() : NULL;
    int rc = results_known(o->known, &known, err);
    rc = rc < 0 ? rc : results_read(file, &runs, err);
    for (size_t i = 0; rc >= 0 && i < runs.count; i++) {
        rc = judge_run(o, &known, runs.list[i], out, list, err);
        failed = failed || rc > 0;
    }
    if (list && rc >= 0)
        verb_add_json_take(list, out);
    else
        json_decref(list);
    runs_done(&runs);
    known_done(&known);
    return rc < 0 ? rc : failed;
}

static int run(int argc, char *const argv[])
{
    struct options options = {.demands = {.min_busbw = -1, .min_percent = -1}};
    struct drarun_error err = {0};
    struct result name = {0};
    struct buf out = BUF_INIT;
    const char *file = NULL;
    int rc = verb_parse_file(&verb_bench_judge, argc, argv, &options, &options.help, &file, &err);
    if (rc == 0 && options.help)
        verb_help(&verb_bench_judge, &out);
    if (rc == 0 && options.collective) {
        result_name_collective(&name, options.collective);
        if (!name.collective[0])
            rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "--collective %s: no such collective",
                            options.collective);
    }
    if (rc == 0 && !options.help)
        rc = judge(&options, file, &out, &err);
    strlist_done(&options.logs);
    if (rc < 0) {
        buf_done(&out);
        log_error("bench judge: %s", err.text);
        return error_exit_status(err.kind);
    }
    int status = verb_write("bench judge", &out);
    return status ? status : rc;
}

const struct verb verb_bench_judge = {
    "bench judge", "FILE",
    "Says what the output of nccl-tests (text, JSON) or drarun-bench is worth; - is stdin.",
    &options_table, run};
