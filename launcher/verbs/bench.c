/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/optional.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "jobs/ranks/rankmap.h"
#include "launcher/bench/choice.h"
#include "launcher/bench/local.h"
#include "launcher/bench/on_cluster.h"
#include "launcher/bench/sweep.h"
#include "launcher/verbs/bench_compare.h"
#include "launcher/verbs/bench_fabric.h"
#include "launcher/verbs/bench_judge.h"
#include "launcher/verbs/bench_report.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

#define FIELD(name) offsetof(struct bench_choice, name)

/* What an option applies to: a job of a cluster. Those that ask for one have nothing here. */
enum { TO_CLUSTER = 1 };

static const char ranks[] = "The ranks";
static const char on_cluster[] =
    "On a cluster (--gpus, --nics, --sweep, --image, --job or one of the last four)";

/* A command line of nccl-tests has an -n of its own, which would silently be another number of
 * ranks. */
static int set_ranks(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct bench_choice *choice = target;
    int64_t count;
    if (choice->ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s %s: the ranks are %u already: -n is their number here; --iters N is "
                          "that of iterations, the -n of nccl-tests",
                          shown, value, choice->ranks);
    int rc = number_parse(shown, value, 1, RANKMAP_RANKS_MAX, &count, err);
    if (rc == 0)
        choice->ranks = (uint32_t)count;
    return rc;
}

static const struct option_spec option_list[] = {
    {.name = "ranks",
     .letter = 'n',
     .aliases = "-np --np",
     .value = "N",
     .group = ranks,
     .kind = OPTION_CALL,
     .set = set_ranks,
     .help = "number of ranks (default: one per worker); -n of\nnccl-tests is --iters here"},
    {.name = "workers",
     .value = "K",
     .group = ranks,
     .kind = OPTION_COUNT,
     .offset = FIELD(workers),
     .min = 1,
     .max = RANKMAP_WORKERS_MAX,
     .help = "start K agents on this machine (default 1)"},
    {.name = "ranks-per-worker",
     .aliases = "-ppn --ppn",
     .value = "R",
     .group = ranks,
     .kind = OPTION_COUNT,
     .offset = FIELD(per_worker),
     .min = 1,
     .max = RANKMAP_RANKS_MAX,
     .help = "maximum ranks per worker (default: an even share)"},
    {.name = "agents",
     .value = "HOST:PORT,...",
     .group = ranks,
     .kind = OPTION_TEXT,
     .offset = FIELD(agents),
     .help = "use running agents, with --key-file"},
    {.name = "key-file",
     .value = "FILE",
     .choices = "FILE",
     .group = ranks,
     .kind = OPTION_TEXT,
     .offset = FIELD(key_file),
     .help = "the key of those agents"},
    {.name = "bind",
     .value = "POLICY",
     .group = ranks,
     .kind = OPTION_TEXT,
     .offset = FIELD(bind),
     .help = "CPUs of each rank: none (default), core, core:N, numa, or\na list such as 0-1;2-3"},
    {.name = "env",
     .letter = 'x',
     .value = "NAME[=VALUE]",
     .group = ranks,
     .kind = OPTION_LIST,
     .offset = FIELD(env),
     .help = "set a variable for the ranks; may be repeated"},
    {.name = "hang-after",
     .value = "TIME",
     .group = ranks,
     .kind = OPTION_TEXT,
     .offset = FIELD(hang_after),
     .help = "fail if other ranks wait this long for a rank, and name\nit (default 4s; 0: never)"},
    {.name = "gpus",
     .value = "N",
     .group = on_cluster,
     .kind = OPTION_COUNT,
     .offset = FIELD(gpus),
     .min = 1,
     .max = 128,
     .help = "GPUs per worker, with one rank for each"},
    {.name = "nics",
     .value = "N",
     .group = on_cluster,
     .kind = OPTION_COUNT,
     .offset = FIELD(nics),
     .min = 1,
     .max = 128,
     .help = "NICs per worker"},
    {.name = "gpu-class",
     .value = "CLASS",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(gpu_class),
     .help = "DeviceClass of the GPUs (default: what the cluster serves)"},
    {.name = "gpu-resource",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(gpu_resource),
     .help = "or the resource of their device plugin, such as\nnvidia.com/gpu"},
    {.name = "nic-class",
     .value = "CLASS",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(nic_class),
     .help = "DeviceClass of the NICs (default: what the cluster serves)"},
    {.name = "nic-resource",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(nic_resource),
     .help = "or the resource of their device plugin"},
    {.name = "nic-selector",
     .value = "CEL",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(nic_selector),
     .help = "which NICs to use, as in a job spec"},
    {.name = "align",
     .value = "HOW",
     .choices = "required preferred none",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(align),
     .help = "pair GPUs with NICs of the same PCIe root, as in a job\nspec: required, preferred or "
             "none"},
    {.name = "spread",
     .value = "HOW",
     .choices = "node none",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(spread),
     .help = "node: one worker per node, the default with NICs; none:\nworkers may share nodes"},
    {.name = "sweep",
     .value = "NAME=V,V",
     .group = on_cluster,
     .kind = OPTION_LIST,
     .offset = FIELD(sweep),
     .help =
         "run a job for each value of align, gpus, nics, workers or\nranks-per-worker, and print a "
         "table of the results;\nmay be repeated: then for each combination"},
    {.name = "network",
     .value = "KIND",
     .choices = "rdma any",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(network),
     .help = "rdma: fail rather than measure TCP; any (the default)"},
    {.name = "image",
     .value = "IMAGE",
     .group = on_cluster,
     .kind = OPTION_TEXT,
     .offset = FIELD(image),
     .help = "image of the ranks: any with an MPI, or with NCCL and CUDA\n(default: "
             "$DRARUN_BENCH_IMAGE)"},
    {.name = "program",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(program),
     .help = "the image's own drarun-bench (default: ours, which\nthe agent brings into the pods)"},
    {.name = "profile",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(profile),
     .help = "nccl.profile of the job: the machine's variables, mounts\nand tolerations (default: "
             "detected from the nodes with\nthese devices, else auto)"},
    {.name = "toleration",
     .value = "TAINT",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_LIST,
     .offset = FIELD(tolerations),
     .help = "KEY[=VALUE][:EFFECT] of a taint that the ranks' pods\ntolerate; may be repeated"},
    {.name = "job",
     .value = "FILE",
     .choices = "FILE",
     .group = on_cluster,
     .kind = OPTION_TEXT,
     .offset = FIELD(job),
     .help = "job spec to start from: it supplies image, template,\nmounts, devices and all else "
             "that no option here changes"},
    {.name = "role",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(role),
     .help =
         "run only this role of the job (default: all roles that\nask for devices, as one world)"},
    {.name = "agent-image",
     .value = "IMAGE",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(agent_image),
     .help = "image of agent and launcher (default: $DRARUN_IMAGE,\nelse that of this release)"},
    {.name = "name",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = FIELD(name),
     .help = "name of the job (default: bench- and five characters)"},
    {.name = "here",
     .group = on_cluster,
     .kind = OPTION_FLAG,
     .offset = FIELD(here),
     .help = "launch from this process, which must reach the pods"},
    {.name = "namespace",
     .value = "NAME",
     .group = on_cluster,
     .kind = OPTION_TEXT,
     .offset = FIELD(cluster.namespace),
     .help = "as with kubectl, like the next two options"},
    CLUSTER_CONTEXT_OPTIONS(on_cluster, 0, FIELD(cluster)),
    BENCH_LIMIT_OPTIONS,
    {.name = "no-verdict",
     .group = BENCH_MACHINE_GROUP,
     .kind = OPTION_FLAG,
     .offset = FIELD(no_verdict),
     .help = "print only the table, without a verdict"},
    BENCH_ASKED_OPTIONS,
    VERB_HELP_OPTION(struct bench_choice),
};

static void note_option(void *target, const struct option_spec *spec)
{
    struct bench_choice *choice = target;
    if (spec->applies == TO_CLUSTER && !choice->for_cluster)
        choice->for_cluster = spec;
}

static const struct option_table options_table = {
    .list = option_list, .count = ARRAY_LEN(option_list), .seen = note_option};

static int check_here(const struct bench_choice *choice, struct drarun_error *err)
{
    return choice->for_cluster
               ? error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                            "--%s applies to a job of a cluster, and no option asks for one: add "
                            "--gpus, --nics, --sweep, --image, --job, --here, --namespace, "
                            "--context or --kubeconfig",
                            choice->for_cluster->name)
               : 0;
}

/* What else there is after the word bench, by the name's last word. */
static const struct verb *const parts[] = {&verb_bench_compare, &verb_bench_fabric,
                                           &verb_bench_judge, &verb_bench_report, NULL};

static int show_help(void)
{
    struct buf out = BUF_INIT;
    verb_help(&verb_bench, &out);
    bench_choice_help(&out);
    return verb_write("bench", &out);
}

static int run(int argc, char *const argv[])
{
    CLEANUP(bench_choice_done)
    struct bench_choice choice = {
        .hang_after = "4s",
        .asked = BENCH_ASKED_INIT,
    };
    struct drarun_error err = {0};
    const struct verb *part = argc > 0 ? verb_part(&verb_bench, argv[0]) : NULL;
    if (part)
        return part->run(argc - 1, argv + 1);
    strlist_add(&choice.words, "drarun-bench");
    int rc = options_pick(&options_table, argc, argv, &choice, &choice.words, &err);
    if (rc == 0 && choice.help)
        return show_help();
    rc = rc < 0 ? rc : bench_choice_check(&choice, &err);
    bool here = !bench_on_cluster_wanted(&choice);
    if (rc == 0 && here)
        rc = check_here(&choice, &err);
    if (rc < 0)
        return verb_fail("bench", &err);
    if (here)
        return bench_local(argv - 2, &choice);
    if (!cluster_api())
        return cluster_become(argv - 2);
    return choice.sweep.count ? sweep_run(&choice) : bench_on_cluster(&choice, NULL);
}

const struct verb verb_bench = {"bench",
                                "COLLECTIVE [drarun-bench's options]",
                                "Measures a collective of MPI or NCCL, as nccl-tests does.",
                                &options_table,
                                run,
                                "measure, judge, compare",
                                parts};
