/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_plan.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cluster_api.h"
#include "launcher/cluster_files.h"
#include "launcher/plan_text.h"
#include "launcher/profile_file.h"
#include "launcher/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    struct strlist slices, nodes, classes, claims;
    const char *output, *nccl_version, *profiles;
    uint32_t workers;
    struct cluster_choice cluster;
    bool live, explain, help;
};

#define FIELD(name) offsetof(struct options, name)

static const char live[] = "The cluster itself, as with kubectl";
static const char cluster[] = "The cluster, from files as kubectl get ... -o json or yaml prints";
static const char output[] = "Output";

static const struct option_spec option_list[] = {
    {.name = "slices",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(slices),
     .help = "ResourceSlices: predict which devices each worker gets;\nmay be repeated and hold "
             "Nodes, DeviceClasses, ResourceClaims\nand DeviceTaintRules too"},
    {.name = "nodes",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(nodes),
     .help = "Nodes, whose labels tell the machine type"},
    {.name = "classes",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(classes),
     .help = "DeviceClasses, beyond those that drivers install"},
    {.name = "claims",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(claims),
     .help = "ResourceClaims that are there already: what they hold is\ntaken"},
    {.name = "live",
     .group = live,
     .kind = OPTION_FLAG,
     .offset = FIELD(live),
     .help = "instead of files the cluster as it is now; implied by\nthe next two"},
    {.name = "context",
     .value = "NAME",
     .group = live,
     .kind = OPTION_TEXT,
     .offset = FIELD(cluster.context),
     .help = "of the kubeconfig (default: the current one)"},
    {.name = "kubeconfig",
     .value = "FILE",
     .choices = "FILE",
     .group = live,
     .kind = OPTION_TEXT,
     .offset = FIELD(cluster.kubeconfig),
     .help = "default: $KUBECONFIG, else ~/.kube/config"},
    {.name = "workers",
     .value = "N",
     .group = cluster,
     .kind = OPTION_COUNT,
     .offset = FIELD(workers),
     .min = 1,
     .max = 100000,
     .help = "in place of the spec's"},
    {.name = "nccl-version",
     .value = "VERSION",
     .group = cluster,
     .kind = OPTION_TEXT,
     .offset = FIELD(nccl_version),
     .help = "of the image's NCCL, as 2.28.9 (default: the spec's, else\nthe newest known)"},
    {.name = "profiles",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_TEXT,
     .offset = FIELD(profiles),
     .help = "further profiles of the site, tried first"},
    {.name = "explain",
     .group = output,
     .kind = OPTION_FLAG,
     .offset = FIELD(explain),
     .help = "each variable with rule, fact, reason and source"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = output,
     .kind = OPTION_TEXT,
     .offset = FIELD(output),
     .help = "text or json (text)"},
    {.name = "help",
     .letter = 'h',
     .group = output,
     .kind = OPTION_FLAG,
     .offset = FIELD(help),
     .help = "show this"},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int write_preview(const struct preview_input *input, const struct preview *preview,
                         const struct options *options)
{
    struct buf out = BUF_INIT;
    if (options->output && strcmp(options->output, "json") == 0)
        verb_add_json_take(preview_json(input, preview, options->explain), &out);
    else
        preview_text(input, preview, options->explain, &out);
    return verb_write("plan", &out);
}

/* A refused plan is an end of its own, shown like any other. */
static int status_of(const struct preview *preview)
{
    if (preview->planned && preview->plan.refusal.code)
        return error_exit_status(DRARUN_ERR_SPEC);
    if (preview->predicted && preview->prediction.shortage)
        return error_exit_status(DRARUN_ERR_CAPACITY);
    return 0;
}

static int show_plan(const struct options *options, const struct preview_input *input,
                     struct drarun_error *err)
{
    struct preview preview;
    int rc = preview_build(input, &preview, err);
    if (rc < 0)
        return rc;
    int status = write_preview(input, &preview, options);
    status = status ? status : status_of(&preview);
    preview_done(&preview);
    return status;
}

struct objects { /* arrays */
    json_t *slices, *nodes, *classes, *claims, *rules;
};

/* A file of slices may hold the others too: kubectl get nodes,resourceslices,resourceclaims. */
static int read_cluster(const struct options *options, const struct objects *objects,
                        struct drarun_error *err)
{
    const struct cluster_kind kinds[] = {{"ResourceSlice", objects->slices},
                                         {"Node", objects->nodes},
                                         {"DeviceClass", objects->classes},
                                         {"ResourceClaim", objects->claims},
                                         {"DeviceTaintRule", objects->rules}};
    if (options->live)
        return cluster_api()->read(&options->cluster, kinds, ARRAY_LEN(kinds), err);
    int rc = cluster_files_read(&options->slices, kinds, ARRAY_LEN(kinds), err);
    if (rc == 0)
        rc = cluster_files_read(&options->nodes, &kinds[1], 1, err);
    if (rc == 0)
        rc = cluster_files_read(&options->classes, &kinds[2], 1, err);
    return rc == 0 ? cluster_files_read(&options->claims, &kinds[3], 1, err) : rc;
}

/* The exit status, or -errno. */
static int plan(const struct options *options, const struct profiles *profiles,
                struct job_spec *spec, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *documents = json_array();
    CLEANUP(json_decrefp) json_t *nodes = json_array();
    CLEANUP(json_decrefp) json_t *classes = json_array();
    CLEANUP(json_decrefp) json_t *claims = json_array();
    CLEANUP(json_decrefp) json_t *rules = json_array();
    CLEANUP(json_decrefp) json_t *labels = NULL;
    struct slices slices = {0};
    const struct objects objects = {documents, nodes, classes, claims, rules};
    int rc = read_cluster(options, &objects, err);
    if (rc == 0)
        rc = spec_use_profiles(spec, profiles, err);
    bool known = options->live || options->slices.count > 0;
    if (rc == 0 && known)
        rc = slices_read(documents, &slices, err);
    labels = cluster_node_labels(nodes);
    struct preview_input input = {
        .spec = spec,
        .slices = known ? &slices : NULL,
        .classes = classes,
        .node_labels = labels,
        .claims = claims,
        .taint_rules = rules,
        .profiles = profiles,
        .nccl_version = options->nccl_version,
    };
    if (rc == 0)
        rc = show_plan(options, &input, err);
    if (known)
        slices_done(&slices);
    return rc;
}

static int plan_file(const char *file, const struct options *options)
{
    struct drarun_error err = {0};
    struct profiles profiles = {0};
    struct job_spec spec;
    int rc = profile_file_load(options->profiles, &profiles, &err);
    if (rc == 0)
        rc = spec_file_load(file, &profiles, &spec);
    if (rc == 0) {
        if (options->workers)
            spec.workers = options->workers;
        rc = plan(options, &profiles, &spec, &err);
        job_spec_done(&spec);
    }
    profiles_done(&profiles);
    if (rc >= 0)
        return rc;
    log_error("plan: %s: %s", file, err.text);
    return error_exit_status(err.kind);
}

static int check(struct options *options, struct drarun_error *err)
{
    options->live |= options->cluster.context || options->cluster.kubeconfig;
    if (options->live && options->slices.count > 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--slices and --live (--context, --kubeconfig): give one of them");
    return 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    const char *file = NULL;
    int status;
    if (verb_parse_file(&verb_plan, argc, argv, &options, &options.help, &file, &err) < 0 ||
        check(&options, &err) < 0) {
        log_error("plan: %s", err.text);
        status = error_exit_status(err.kind);
    } else if (options.help) {
        struct buf out = BUF_INIT;
        verb_help(&verb_plan, &out);
        status = verb_write("plan", &out);
    } else if (options.live && !cluster_api()) {
        status = cluster_become(argv - 2);
    } else {
        status = plan_file(file, &options);
    }
    strlist_done(&options.slices);
    strlist_done(&options.nodes);
    strlist_done(&options.classes);
    strlist_done(&options.claims);
    return status;
}

const struct verb verb_plan = {
    "plan", "FILE", "Shows what a job would claim, which devices it would get, and what follows.",
    &options_table, run};
