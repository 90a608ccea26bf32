/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/bench_fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "jobs/spec/spec.h"
#include "launcher/programs/agent_image.h"
#include "launcher/bench/fabric.h"
#include "launcher/bench/measured_roles.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/programs/remote.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define START_MS 60000

struct options {
    struct fabric_order order;
    struct cluster_choice cluster;
    const char *job, *role, *name, *image, *output;
    uint32_t workers;
    bool help;
};

#define FIELD(name) offsetof(struct options, name)

static const char what[] = "Checks", where[] = "Running agents",
                  job[] = "Workers of a job, created for the check and then deleted";

static const struct option_spec option_list[] = {
    {.name = "reach",
     .group = what,
     .kind = OPTION_FLAG,
     .offset = FIELD(order.reach),
     .help = "also let each NIC write to that of the next worker;\nwithout this option, only open "
             "the NICs"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = what,
     .kind = OPTION_TEXT,
     .offset = FIELD(output),
     .help = "text (default) or json, which drarun plan --fabric reads"},
    {.name = "agents",
     .value = "HOST:PORT,...",
     .group = where,
     .kind = OPTION_TEXT,
     .offset = FIELD(order.agents),
     .help = "running agents, in the order of neighbours; needs --key-file"},
    {.name = "key-file",
     .value = "FILE",
     .choices = "FILE",
     .group = where,
     .kind = OPTION_TEXT,
     .offset = FIELD(order.key_file),
     .help = "the key of those agents"},
    {.name = "start-timeout",
     .value = "TIME",
     .group = where,
     .kind = OPTION_DURATION,
     .offset = FIELD(order.start_timeout_ms),
     .help = "timeout for connecting to the agents, and for opening\ntheir NICs (default 1m)"},
    {.name = "job",
     .value = "FILE",
     .choices = "FILE",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = FIELD(job),
     .help = "job spec; its command is not run"},
    {.name = "role",
     .value = "NAME",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = FIELD(role),
     .help = "check only this role of the job (default: all roles that\nask for devices)"},
    {.name = "workers",
     .value = "N",
     .group = job,
     .kind = OPTION_COUNT,
     .offset = FIELD(workers),
     .min = 1,
     .max = SPEC_WORKERS_MAX,
     .help = "override the spec's workers"},
    {.name = "name",
     .value = "NAME",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = FIELD(name),
     .help = "name of the job (default: fabric- and five characters)"},
    CLUSTER_IMAGE_OPTION(job, 0, FIELD(image)),
    CLUSTER_OPTIONS(struct options),
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static bool names_cluster(const struct options *o)
{
    const struct cluster_choice *c = &o->cluster;
    return o->workers || o->role || o->name || o->image || c->namespace || c->context ||
           c->kubeconfig;
}

static int parse(int argc, char *const argv[], struct options *o, struct drarun_error *err)
{
    int used = options_parse(&options_table, argc, argv, false, o, err);
    if (used < 0 || o->help)
        return used < 0 ? used : 0;
    if (used < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[used]);
    if (!o->order.agents == !o->job)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "no workers given: expected --job FILE, or --agents HOST:PORT,... with "
                          "--key-file");
    if (o->order.agents && !o->order.key_file)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--agents needs --key-file FILE, the key of the agents");
    if (o->order.agents ? names_cluster(o) : o->order.key_file != NULL)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            o->job ? "--key-file is for --agents: a job has its own key"
                   : "--role, --workers, --name, --image and the cluster's options are for "
                     "--job");
    return 0;
}

/* ---- a job's workers ---- */

/* The job as it is, but for its name and this check. */
static void change_job(json_t *changed, const struct options *o)
{
    json_t *spec = json_object_get(changed, "spec");
    json_t *metadata = json_object_get(changed, "metadata");
    json_object_del(metadata, o->name ? "generateName" : "name");
    json_object_set_new(metadata, o->name ? "name" : "generateName",
                        json_string(o->name ? o->name : "fabric-"));
    json_object_set_new(spec, "preflight",
                        json_pack("{s:s}", "fabric", o->order.reach ? "reach" : "open"));
}

/* Of the roles that are asked for; NULL with err filled. */
static json_t *choose_job(const struct job_spec *spec, const struct options *o,
                          struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *chosen = measured_roles_take(spec, o->role, err);
    const json_t *roles = measured_roles_of(chosen);
    struct buf names = BUF_INIT;
    measured_roles_names(roles, &names);
    int rc = chosen ? 0 : -1;
    if (roles && o->workers)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "--workers: the job has several roles (%s): add --role NAME",
                        names.data ? names.data : "several");
    buf_done(&names);
    if (rc < 0)
        return NULL;
    change_job(chosen, o);
    return TAKE_PTR(chosen);
}

/* *ret_status: not 0, the file's job or the changed one is wrong, which was said. */
static int make_job(const struct options *o, struct drarun_spec **ret_job, int *ret_status,
                    struct drarun_error *err)
{
    struct drarun_spec *spec = NULL;
    *ret_status = spec_file_load_program(o->job, "true", &spec);
    if (*ret_status != 0)
        return 0;
    json_t *changed = choose_job(&spec->job, o, err);
    drarun_spec_free(spec);
    if (!changed)
        return -err->code;
    cleanup_free char *text = json_dumps(changed, JSON_COMPACT);
    json_decref(changed);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    *ret_status = spec_text_load("the job of drarun bench fabric", text, strlen(text), ret_job);
    return 0;
}

static int check_job(const struct options *o, int *ret_status, json_t **ret_fabric,
                     struct drarun_error *err)
{
    struct drarun_spec *spec = NULL;
    CLEANUP(json_decrefp) json_t *status = NULL;
    int rc = make_job(o, &spec, ret_status, err);
    if (rc < 0 || *ret_status != 0)
        return rc;
    const struct cluster_alloc alloc = {
        .cluster = o->cluster,
        .spec = spec,
        .image = agent_image(o->image),
        .workers = o->workers,
        .ret_status = &status,
    };
    *ret_status = cluster_api()->alloc(&alloc);
    drarun_spec_free(spec);
    *ret_fabric = json_incref(json_object_get(status, "fabric"));
    return 0;
}

/* ---- both ---- */

static int show(const struct options *o, json_t *fabric)
{
    struct buf out = BUF_INIT;
    if (o->output && strcmp(o->output, "json") == 0)
        verb_add_json_take(json_incref(fabric), &out);
    else
        fabric_text(fabric, &out);
    return verb_write("bench fabric", &out);
}

/* What was found, and the status: 1 where the job would have run all the same. */
static int conclude(const struct options *o, int status, json_t *fabric)
{
    if (!json_is_object(fabric)) {
        if (status == 0)
            log_error("bench fabric: no worker has a NIC that carries data by RDMA");
        return status ? status : error_exit_status(DRARUN_ERR_PREFLIGHT);
    }
    int written = show(o, fabric);
    return status ? status : written ? written : !fabric_is_good(fabric);
}

static int run(int argc, char *const argv[])
{
    struct options options = {.order = {.start_timeout_ms = START_MS}};
    struct drarun_error err = {0};
    int status = 0;
    CLEANUP(json_decrefp) json_t *fabric = NULL;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0 && options.help) {
        struct buf out = BUF_INIT;
        verb_help(&verb_bench_fabric, &out);
        return verb_write("bench fabric", &out);
    }
    if (rc == 0 && options.job && !cluster_api())
        return cluster_become(argv - 3);
    if (rc == 0 && options.order.agents && !remote_api())
        rc = remote_become(argv - 3, &err);
    else if (rc == 0)
        rc = options.job ? check_job(&options, &status, &fabric, &err)
                         : fabric_check_agents(&options.order, &status, &fabric, &err);
    if (rc == 0)
        return conclude(&options, status, fabric);
    return verb_fail("bench fabric", &err);
}

const struct verb verb_bench_fabric = {
    "bench fabric", "[--reach] --job FILE | --agents HOST:PORT,... --key-file FILE",
    "Opens the NICs of workers, and checks that they reach each other, without starting ranks.",
    &options_table, run};
