/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/plan.h"
#include "launcher/cluster_files.h"
#include "launcher/env_print.h"
#include "launcher/host_probe.h"
#include "launcher/profile_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/load.h"

struct options {
    struct strlist claims, slices, nodes;
    const char *probe, *root, *format, *network, *version, *profile, *profiles, *interface;
    bool explain, help;
};

static const char input[] = "Input, as kubectl get -o json or yaml prints it", derive[] = "Rules";

static const struct option_spec option_list[] = {
    {.name = "claims",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, claims),
     .help = "the pod's ResourceClaims, allocated; may come again\n(default: the GPUs and NICs "
             "that this machine shows)"},
    {.name = "slices",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, slices),
     .help = "ResourceSlices of the time of allocation; may come again"},
    {.name = "nodes",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, nodes),
     .help = "Nodes, whose labels tell the machine type; may come again"},
    {.name = "probe",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, probe),
     .help = "what the pod shows, as JSON"},
    {.name = "root",
     .value = "DIR",
     .choices = "DIR",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, root),
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
     .offset = offsetof(struct options, profiles),
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
    {.name = "help",
     .letter = 'h',
     .group = "Others",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, help),
     .help = "show this"},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* ---- deriving ---- */

struct inputs {
    json_t *claims, *slices_json, *nodes, *labels;
    struct doc *probe_file;
    json_t *probe; /* of the file, or made of what the machine shows */
    struct slices slices;
    struct profiles profiles;
    struct strlist user;
};

static void inputs_done(struct inputs *in)
{
    slices_done(&in->slices);
    profiles_done(&in->profiles);
    strlist_done(&in->user);
    json_decref(in->claims);
    json_decref(in->slices_json);
    json_decref(in->nodes);
    json_decref(in->labels);
    json_decref(in->probe);
    doc_free(in->probe_file);
}

/* A variable that an earlier `eval "$(drarun env)"` set and nobody has changed since is no wish of
 * the user's (env_print.h). */
static bool is_derived(const char *entry)
{
    const char *list = getenv(ENV_DERIVED);
    size_t length = strlen(entry);
    for (const char *line = list; line && *line;) {
        const char *end = strchrnul(line, '\n');
        if ((size_t)(end - line) == length && strncmp(line, entry, length) == 0)
            return true;
        line = *end ? end + 1 : end;
    }
    return false;
}

/* What the user has set for the libraries that we set variables for. */
static void read_environment(struct strlist *user)
{
    static const char *const prefixes[] = {"NCCL_", "UCX_", "OMPI_MCA_", "FI_", "GLOO_"};
    for (char **item = environ; item && *item; item++)
        for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
            if (strncmp(*item, prefixes[i], strlen(prefixes[i])) == 0 && !is_derived(*item))
                strlist_add(user, *item);
}

/* One file may hold all of them. */
static int read_objects(const struct options *o, struct inputs *in, struct drarun_error *err)
{
    const struct cluster_kind claims[] = {
        {"ResourceClaim", in->claims}, {"ResourceSlice", in->slices_json}, {"Node", in->nodes}};
    const struct cluster_kind slices[] = {{"ResourceSlice", in->slices_json}, {"Node", in->nodes}};
    int rc = cluster_files_read(&o->claims, claims, ARRAY_LEN(claims), err);
    if (rc == 0)
        rc = cluster_files_read(&o->slices, slices, ARRAY_LEN(slices), err);
    return rc == 0 ? cluster_files_read(&o->nodes, &slices[1], 1, err) : rc;
}

static int read_probe(const char *path, struct inputs *in, struct drarun_error *err)
{
    int rc = doc_load_one(path, &in->probe_file, err);
    if (rc == 0)
        in->probe = json_incref(doc_root(in->probe_file, 0));
    return rc;
}

static int read_inputs(const struct options *o, struct inputs *in, struct drarun_error *err)
{
    int rc = profile_file_load(o->profiles, &in->profiles, err);
    in->claims = json_array();
    in->slices_json = json_array();
    in->nodes = json_array();
    if (rc == 0)
        rc = read_objects(o, in, err);
    if (rc == 0)
        rc = slices_read(in->slices_json, &in->slices, err);
    if (rc == 0 && o->probe)
        rc = read_probe(o->probe, in, err);
    if (rc == 0 && !o->probe && (o->root || o->claims.count == 0))
        rc = host_probe(o->root, &in->profiles, &in->probe, err);
    in->labels = cluster_node_labels(in->nodes);
    read_environment(&in->user);
    return rc;
}

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

static int derive_and_print(const struct options *o, struct inputs *in, struct buf *out,
                            struct drarun_error *err)
{
    struct plan_worker_input worker = {.claims = o->claims.count > 0 ? in->claims : NULL,
                                       .probe = in->probe};
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
    if (options->claims.count > 0 && options->slices.count == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--claims needs --slices, which say what the devices are");
    return 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct inputs in = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0 && options.help) {
        verb_help(&verb_env, &out);
    } else if (rc == 0) {
        rc = read_inputs(&options, &in, &err);
        if (rc == 0)
            rc = derive_and_print(&options, &in, &out, &err);
    }
    inputs_done(&in);
    strlist_done(&options.claims);
    strlist_done(&options.slices);
    strlist_done(&options.nodes);
    if (rc == 0)
        return verb_write("env", &out);
    buf_done(&out);
    log_error("env: %s", err.text);
    return error_exit_status(err.kind);
}

const struct verb verb_env = {
    "env", NULL, "Prints the NCCL, UCX and MPI environment for what a pod or machine holds.",
    &options_table, run};
