/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/plan.h"
#include "launcher/env_inputs.h"
#include "launcher/env_print.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    struct env_sources sources;
    const char *format, *network, *version, *profile, *interface;
    bool explain, help;
};

static const char input[] = "Input, as kubectl get -o json or yaml prints it", derive[] = "Rules";

static const struct option_spec option_list[] = {
    {.name = "claims",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, sources.claims),
     .help = "the pod's ResourceClaims, allocated; with the Pod among\nthem, its own of many; may "
             "come again (default: the\nGPUs and NICs that this machine shows)"},
    {.name = "slices",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, sources.slices),
     .help = "ResourceSlices of the time of allocation; may come again"},
    {.name = "nodes",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, sources.nodes),
     .help = "Nodes, whose labels tell the machine type; may come again"},
    {.name = "pod",
     .value = "NAME",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, sources.pod),
     .help = "which of the Pods among the claims"},
    {.name = "probe",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, sources.probe),
     .help = "what the pod shows, as JSON"},
    {.name = "root",
     .value = "DIR",
     .choices = "DIR",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, sources.root),
     .help = "a captured tree in place of / to look at"},
    {.name = "network",
     .value = "KIND",
     .choices = "rdma any",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, network),
     .help = "rdma (default): refuse without it; any: else Socket"},
    {.name = "nccl-version",
     .value = "V",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, version),
     .help = "of the program, as 2.28.9 (default: the newest known)"},
    {.name = "profile",
     .value = "NAME",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, profile),
     .help = "fabric profile (default: detected)"},
    {.name = "profiles",
     .value = "FILE",
     .choices = "FILE",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, sources.profiles),
     .help = "further profiles of the site, tried first"},
    {.name = "interface",
     .value = "NAME",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, interface),
     .help = "of the pod network (default eth0)"},
    {.name = "format",
     .value = "FORMAT",
     .choices = "sh json docker nccl.conf",
     .group = "Output",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, format),
     .help = "sh (default): for eval; docker: for --env-file"},
    {.name = "explain",
     .group = "Output",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, explain),
     .help = "with rule, fact, reason and source of each variable"},
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* ---- deriving ---- */

static void print(const struct plan *plan, const struct options *o, struct buf *out)
{
    const char *format = o->format ? o->format : "sh";
    if (strcmp(format, "json") == 0)
        verb_add_json_take(plan_to_json(plan, o->explain), out);
    else
        env_print(plan,
                  format[0] == 's'   ? ENV_SH
                  : format[0] == 'd' ? ENV_DOCKER
                                     : ENV_NCCL_CONF,
                  o->explain, out);
}

static void log_plan(const struct plan *plan)
{
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < plan->warnings.count; i++)
        log_note("env: %s: %s", warning_name(plan->warnings.list[i].code),
                 plan->warnings.list[i].detail);
    if (plan->refusal.code)
        return;
    plan_worker_summary(&plan->workers[0], &line);
    if (line.data)
        log_note("env: %s (%s): %s", plan->profile->name, plan->profile_fact, line.data);
    buf_done(&line);
}

static int derive_and_print(const struct options *o, struct env_inputs *in, struct buf *out,
                            struct drarun_error *err)
{
    struct plan_worker_input worker = {
        .pod = in->pod, .node = in->node, .claims = in->claims, .probe = in->probe};
    struct plan_input plan_in = {
        .network =
            o->network && strcmp(o->network, "any") == 0 ? SPEC_NETWORK_ANY : SPEC_NETWORK_RDMA,
        .ranks = PLAN_RANKS_POD,
        .profile = o->profile,
        .nccl_version = o->version,
        .pod_interface = o->interface,
        .user_env = in->user.items,
        .slices = &in->slices,
        .node_labels = in->labels,
        .profiles = &in->profiles,
        .workers = &worker,
        .worker_count = 1,
    };
    struct plan plan;
    int rc = plan_build(&plan_in, &plan, err);
    if (rc == 0 && !plan.refusal.code && env_inputs_run_script(in, plan.profile)) {
        plan_done(&plan); /* which script it is, the first plan told */
        rc = plan_build(&plan_in, &plan, err);
    }
    if (rc < 0)
        return rc;
    log_plan(&plan);
    if (plan.refusal.code)
        rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL, "refused: %s: %s",
                        warning_name(plan.refusal.code), plan.refusal.detail);
    else
        print(&plan, o, out);
    plan_done(&plan);
    return rc;
}

static int parse(int argc, char *const argv[], struct options *options, struct drarun_error *err)
{
    int used = options_parse(&options_table, argc, argv, false, options, err);
    if (used < 0 || options->help)
        return used < 0 ? used : 0;
    if (used < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[used]);
    if (options->sources.claims.count > 0 && options->sources.slices.count == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--claims needs --slices, which say what the devices are");
    return 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct env_inputs in = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0 && options.help) {
        verb_help(&verb_env, &out);
    } else if (rc == 0) {
        rc = env_inputs_read(&options.sources, &in, &err);
        if (rc == 0)
            rc = derive_and_print(&options, &in, &out, &err);
    }
    env_inputs_done(&in);
    strlist_done(&options.sources.claims);
    strlist_done(&options.sources.slices);
    strlist_done(&options.sources.nodes);
    if (rc == 0)
        return verb_write("env", &out);
    buf_done(&out);
    log_error("env: %s", err.text);
    return error_exit_status(err.kind);
}

const struct verb verb_env = {
    "env", NULL, "Prints the NCCL, UCX and MPI environment for what a pod or machine holds.",
    &options_table, run};
