/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/render.h"

#include <stddef.h>
#include <string.h>

#include "drarun/render.h"
#include "jobs/manifests/render.h"
#include "launcher/programs/agent_image.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    struct drarun_render_options render;
    const char *profiles;
    uint32_t step; /* from 1 */
    bool image_volume, here, help;
};

#define RENDER(field) offsetof(struct options, render.field)

static const char manifests[] = "Manifests";

static const struct option_spec option_list[] = {
    {.name = "as",
     .value = "KIND",
     .choices = "raycluster rayjob trainjob",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(as),
     .help = "render for another system's controller: raycluster and\nrayjob for KubeRay, trainjob "
             "for Kubeflow Trainer\n(default: as drarun creates the job)"},
    {.name = "head",
     .value = "POD",
     .choices = "plain worker",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(head),
     .help = "head of a RayCluster: a pod without devices (plain,\ndefault), or the first worker"},
    {.name = "replicas",
     .value = "MIN:MAX",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(replicas),
     .help =
         "limits within which an autoscaler keeps Ray's worker\ngroup (default: no autoscaler)"},
    {.name = "api",
     .value = "VERSION",
     .choices = "v1 v1beta2 v1beta1",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(api),
     .help = "version of resource.k8s.io: v1 (default), v1beta2 or\nv1beta1"},
    {.name = "claims",
     .value = "MODE",
     .choices = "direct template",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(claims),
     .help = "direct: one claim and pod for each worker; template: one\ntemplate and an Indexed "
             "Job (default: the "
             "spec's)"},
    {.name = "step",
     .value = "N",
     .group = manifests,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, step),
     .min = 1,
     .max = 8,
     .help = "fallback step of `align: preferred`: 1 uses the nearest\nNICs, the last has no "
             "constraints (default: 1; with --as\nthe last if the first is the NUMA node)"},
    {.name = "namespace",
     .value = "NAME",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(namespace_),
     .help = "namespace of the objects (default: the spec's, else default)"},
    {.name = "image",
     .value = "IMAGE",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(image),
     .help = "image of agent and launcher (default: DRARUN_IMAGE,\nelse " RENDER_IMAGE ")"},
    {.name = "image-volume",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, image_volume),
     .help = "mount the agent's image instead of copying from it"},
    {.name = "agent-claim",
     .value = "DRIVER=AGENT",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(agent_claim),
     .help = "let the claim deliver the agent, if the node plugin offers\nit: the devices' driver, "
             "and their attribute\n" AGENT_OFFER_ATTRIBUTE},
    {.name = "pod-groups",
     .value = "VERSION",
     .choices = POD_GROUPS_VERSIONS,
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(pod_groups),
     .help = "version of scheduling.k8s.io, for gangScheduling: auto:\nv1, v1beta1, v1alpha3 or "
             "v1alpha2 (default: the cluster serves\nnone)"},
    {.name = "here",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, here),
     .help = "as `drarun run --here` creates them: no launcher Job,\nthe ConfigMap owns the rest"},
    {.name = "owner-uid",
     .value = "UID",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(owner_uid),
     .help = "UID of the first object, for owner references (default:\nno owner references)"},
    VERB_PROFILES_OPTION(manifests, offsetof(struct options, profiles)),
    {.name = "output",
     .letter = 'o',
     .aliases = "--format",
     .value = "FORMAT",
     .choices = "yaml json",
     .group = "Output",
     .kind = OPTION_TEXT,
     .offset = RENDER(format),
     .help = "yaml (default): one document each; json: one List"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static void tell(const char *line, void *unused)
{
    (void)unused;
    log_note("render: %s", line);
}

static int render(const char *file, struct options *options, char **ret_text)
{
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    if (options->render.as && options->profiles) {
        log_error("render: --profiles cannot be used with --as: drarun env in the pods knows only "
                  "the built-in profiles");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    int status = spec_file_load(file, options->profiles, &spec);
    if (status != 0)
        return status;
    options->render.size = sizeof options->render;
    options->render.step = options->step;
    options->render.image_volume = options->image_volume;
    options->render.here = options->here;
    options->render.note = tell;
    if (drarun_render(spec, &options->render, ret_text, &err) < 0) {
        log_error("render: %s: %s", file, err.text);
        status = error_exit_status(err.kind);
    }
    drarun_spec_free(spec);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct options options = {.render = {.image = agent_image(NULL)}};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    const char *file = NULL;
    if (verb_parse_file(&verb_render, argc, argv, &options, &options.help, &file, &err) < 0)
        return verb_fail("render", &err);
    if (options.help) {
        verb_help(&verb_render, &out);
        return verb_write("render", &out);
    }
    cleanup_free char *text = NULL;
    int status = render(file, &options, &text);
    if (status == 0)
        buf_add_str(&out, text);
    return status == 0 ? verb_write("render", &out) : status;
}

const struct verb verb_render = {"render",       "FILE", "Prints the manifests that a job creates.",
                                 &options_table, run,    "manifests it creates"};
