/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/plan.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "launcher/api/plan.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/files/cluster_files.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/load.h"

struct options {
    struct strlist slices, nodes, classes, claims;
    const char *output, *nccl_version, *kubernetes, *profiles, *fabric;
    uint32_t workers, worker;
    struct cluster_choice cluster;
    bool live, explain, help;
};

#define FIELD(name) offsetof(struct options, name)

static const char live[] = "The cluster itself, as with kubectl";
static const char cluster[] = "The cluster, from files as kubectl get ... -o json or yaml prints";
static const char job[] = "The job";
static const char output[] = "Output";

static const struct option_spec option_list[] = {
    {.name = "slices",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(slices),
     .help =
         "ResourceSlices: predict which devices each worker gets;\nmay be repeated, and may also "
         "hold Nodes, DeviceClasses,\nResourceClaims, DeviceTaintRules, "
         "ResourceQuotas,\nLimitRanges, cluster-autoscaler's status and Karpenter's\nNodePools"},
    {.name = "nodes",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(nodes),
     .help = "Nodes, whose labels give the machine type; may also hold\nthe namespace's "
             "ResourceQuotas and LimitRanges"},
    {.name = "classes",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(classes),
     .help = "DeviceClasses other than those that drivers install"},
    {.name = "claims",
     .value = "FILE",
     .choices = "FILE",
     .group = cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(claims),
     .help = "existing ResourceClaims, whose devices are taken"},
    {.name = "kubernetes",
     .value = "VERSION",
     .group = cluster,
     .kind = OPTION_TEXT,
     .offset = FIELD(kubernetes),
     .help = "version whose scheduler rules apply, such as 1.36\n(default: the cluster's, else "
             "that of the Nodes'\nkubelets, else the newest known)"},
    {.name = "live",
     .group = live,
     .kind = OPTION_FLAG,
     .offset = FIELD(live),
     .help = "read the current cluster instead of files; implied by\nthe next two options"},
    CLUSTER_CONTEXT_OPTIONS(live, 0, FIELD(cluster)),
    {.name = "workers",
     .value = "N",
     .group = job,
     .kind = OPTION_COUNT,
     .offset = FIELD(workers),
     .min = 1,
     .max = 100000,
     .help = "override the spec's workers"},
    {.name = "nccl-version",
     .value = "VERSION",
     .group = job,
     .kind = OPTION_TEXT,
     .offset = FIELD(nccl_version),
     .help = "the image's NCCL, such as 2.28.9 (default: the spec's,\nelse the newest known)"},
    VERB_PROFILES_OPTION(job, FIELD(profiles)),
    {.name = "explain",
     .group = output,
     .kind = OPTION_FLAG,
     .offset = FIELD(explain),
     .help = "show the rule, fact, reason and source of each variable"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json svg",
     .group = output,
     .kind = OPTION_TEXT,
     .offset = FIELD(output),
     .help = "text, json, or svg: a picture of a worker's node (text)"},
    {.name = "worker",
     .value = "I",
     .group = output,
     .kind = OPTION_COUNT,
     .offset = FIELD(worker),
     .max = 100000,
     .help = "with svg: which worker (0)"},
    {.name = "fabric",
     .value = "FILE",
     .choices = "FILE",
     .group = output,
     .kind = OPTION_TEXT,
     .offset = FIELD(fabric),
     .help = "with svg: draw the results of the job's NIC check, from\nits status (drarun status "
             "-o json) or its report\n(--report)"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static bool is_svg(const struct options *options)
{
    return options->output && strcmp(options->output, "svg") == 0;
}

static int read_fabric(const char *file, json_t **ret_fabric, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    json_error_t why;
    int rc = file ? doc_read(file, NULL, &text, err) : 0;
    if (rc < 0 || !file)
        return rc;
    CLEANUP(json_decrefp)
    json_t *document = json_loadb(text.data ? text.data : "", text.len, 0, &why);
    if (!document)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s:%d:%d: %s", file, why.line, why.column,
                          why.text);
    rc = fabric_find(document, ret_fabric, err);
    if (rc < 0) {
        err->kind = DRARUN_ERR_SPEC;
        error_prefix(err, "%s", file);
    }
    return rc;
}

static int draw(const struct drarun_plan *plan, const struct options *options, char **ret_text,
                struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *fabric = NULL;
    int rc = read_fabric(options->fabric, &fabric, err);
    return rc < 0 ? rc : plan_svg(plan, options->worker, fabric, ret_text, err);
}

static int write_plan(const struct drarun_plan *plan, const struct options *options)
{
    struct buf out = BUF_INIT;
    struct drarun_error err = {0};
    cleanup_free char *text = NULL;
    bool prose = false;
    if (is_svg(options)) {
        if (draw(plan, options, &text, &err) < 0)
            return verb_fail("plan", &err);
    } else if (options->output && strcmp(options->output, "json") == 0) {
        text = drarun_plan_json(plan, options->explain);
    } else {
        text = drarun_plan_text(plan, options->explain);
        prose = true;
    }
    if (text)
        buf_add_str(&out, text);
    else
        out.failed = true;
    return prose ? verb_write_prose("plan", &out) : verb_write("plan", &out);
}

/* The cluster as it is now. */
static int build_live(const struct options *options, const struct drarun_spec *spec,
                      const struct drarun_plan_options *chosen, struct drarun_plan **ret_plan,
                      struct drarun_error *err)
{
    struct plan_objects objects;
    plan_objects_init(&objects);
    struct cluster_kind kinds[PLAN_KINDS];
    int rc = plan_objects_kinds(&objects, kinds, err);
    struct cluster_choice choice = options->cluster;
    choice.namespace = spec->job.namespace; /* NULL: the context's */
    if (rc == 0)
        rc = cluster_api()->read(&choice, kinds, PLAN_KINDS, &objects.minor, err);
    objects.known = true;
    if (rc == 0)
        return plan_new_take(spec, chosen, &objects, ret_plan, err);
    plan_objects_done(&objects);
    return rc;
}

static int build(const struct options *options, const struct drarun_spec *spec,
                 struct drarun_plan **ret_plan, struct drarun_error *err)
{
    const struct drarun_plan_options chosen = {
        .size = sizeof chosen,
        .slices = strlist_items(&options->slices),
        .nodes = strlist_items(&options->nodes),
        .classes = strlist_items(&options->classes),
        .claims = strlist_items(&options->claims),
        .nccl_version = options->nccl_version,
        .workers = options->workers,
        .kubernetes = options->kubernetes,
    };
    return options->live ? build_live(options, spec, &chosen, ret_plan, err)
                         : drarun_plan_build(spec, &chosen, ret_plan, err);
}

static int plan_file(const char *file, const struct options *options)
{
    struct drarun_error err = {0}, verdict = {0};
    struct drarun_spec *spec = NULL;
    struct drarun_plan *plan = NULL;
    int status = spec_file_load(file, options->profiles, &spec);
    if (status != 0)
        return status;
    if (build(options, spec, &plan, &err) < 0) {
        log_error("plan: %s: %s", file, err.text);
        status = options->live ? verb_exit_status(&err) : error_exit_status(err.kind);
    } else {
        status = write_plan(plan, options);
        /* a refused plan is an end of its own, shown like any other */
        if (status == 0 && drarun_plan_verdict(plan, &verdict) < 0)
            status = error_exit_status(verdict.kind);
    }
    drarun_plan_free(plan);
    drarun_spec_free(spec);
    return status;
}

/* NULL: none is given. */
static const char *file_of_cluster(const struct options *o)
{
    return o->slices.count    ? "--slices"
           : o->nodes.count   ? "--nodes"
           : o->classes.count ? "--classes"
           : o->claims.count  ? "--claims"
                              : NULL;
}

static int check(struct options *options, struct drarun_error *err)
{
    options->live |= options->cluster.context || options->cluster.kubeconfig;
    const char *file = file_of_cluster(options);
    if (options->live && file)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s and --live (--context, --kubeconfig): give one of them: a file takes "
                          "the place of what the cluster has",
                          file);
    if (options->worker && !is_svg(options))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--worker is for --output svg");
    if (options->fabric && !is_svg(options))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--fabric is for --output svg");
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
        status = verb_fail("plan", &err);
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
    "plan",
    "FILE",
    "Shows what a job would claim, which devices it would get, and its environment.",
    &options_table,
    run,
    "devices and ranks it gets"};
