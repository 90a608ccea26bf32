/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_render.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/render.h"
#include "launcher/manifests.h"
#include "launcher/profile_file.h"
#include "launcher/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    struct render_options render;
    struct agent_claim agent;
    const char *format, *mode, *profiles;
    uint32_t step; /* from 1 */
    bool help;
};

static int set_api(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct options *options = target;
    enum claims_api api = claims_api_parse(value);
    if (!api)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected v1, v1beta2 or v1beta1, got \"%s\"", shown, value);
    options->render.api = api;
    return 0;
}

static int set_agent_claim(void *target, const char *shown, const char *value,
                           struct drarun_error *err)
{
    struct options *options = target;
    int rc = agent_claim_parse(value, &options->agent, err);
    if (rc < 0)
        return error_prefix(err, "%s", shown);
    options->render.agent = &options->agent;
    return 0;
}

static int set_pod_groups(void *target, const char *shown, const char *value,
                          struct drarun_error *err)
{
    struct options *options = target;
    const char *version = pod_groups_version(value);
    if (!version)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected v1beta1, v1alpha3 or v1alpha2, got \"%s\"", shown, value);
    options->render.pod_groups = version;
    return 0;
}

#define RENDER(field) offsetof(struct options, render.field)

static const char manifests[] = "Manifests";

static const struct option_spec option_list[] = {
    {.name = "api",
     .value = "VERSION",
     .choices = "v1 v1beta2 v1beta1",
     .group = manifests,
     .kind = OPTION_CALL,
     .set = set_api,
     .help = "version of resource.k8s.io (default v1)"},
    {.name = "claims",
     .value = "MODE",
     .choices = "direct template",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, mode),
     .help = "a claim and a pod for each worker, or a template\nand an Indexed Job (default: the "
             "spec's)"},
    {.name = "step",
     .value = "N",
     .group = manifests,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct options, step),
     .min = 1,
     .max = 8,
     .help = "of the ladder that `align: preferred` has: 1 (default)\naligned, 2 without "
             "constraints"},
    {.name = "namespace",
     .value = "NAME",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(namespace),
     .help = "where the objects are made (default: the spec's, else\ndefault)"},
    {.name = "image",
     .value = "IMAGE",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(image),
     .help = "image of agent and launcher (default: DRARUN_IMAGE,\nelse " RENDER_IMAGE ")"},
    {.name = "image-volume",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = RENDER(image_volume),
     .help = "mount the agent's image instead of copying from it"},
    {.name = "agent-claim",
     .value = "DRIVER=AGENT",
     .group = manifests,
     .kind = OPTION_CALL,
     .set = set_agent_claim,
     .help = "the claim brings the agent, where the node plugin offers\nit: the driver of the "
             "devices, and the attribute\n" AGENT_OFFER_ATTRIBUTE " that they have"},
    {.name = "pod-groups",
     .value = "VERSION",
     .choices = "v1beta1 v1alpha3 v1alpha2",
     .group = manifests,
     .kind = OPTION_CALL,
     .set = set_pod_groups,
     .help = "of scheduling.k8s.io, for gangScheduling: auto (default:\nthe cluster serves none)"},
    {.name = "here",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = RENDER(here),
     .help = "as `drarun run --here` creates them: no launcher Job,\nthe ConfigMap owns the rest"},
    {.name = "owner-uid",
     .value = "UID",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = RENDER(owner_uid),
     .help = "of the first object, for owner references; without it\nthere are none"},
    {.name = "profiles",
     .value = "FILE",
     .choices = "FILE",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, profiles),
     .help = "further profiles of the site, tried first"},
    {.name = "format",
     .value = "FORMAT",
     .choices = "yaml json",
     .group = "Output",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, format),
     .help = "yaml (default): a document each; json: one List"},
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static const char notes[] =
    "# What drarun creates for the job. When it does so itself, it puts in the Secret's key, and "
    "owner\n"
    "# references to the first object, so that deleting that one deletes all.\n";

/* The exit status, or -errno. */
static int read_spec(const char *file, const char *site, struct job_spec *ret_spec,
                     struct drarun_error *err)
{
    struct profiles profiles = {0};
    int rc = profile_file_load(site, &profiles, err);
    if (rc == 0)
        rc = spec_file_load(file, &profiles, ret_spec);
    if (rc == 0)
        rc = spec_use_profiles(ret_spec, &profiles, err);
    profiles_done(&profiles);
    return rc;
}

static int render(struct job_spec *spec, const struct options *options, struct buf *out,
                  struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    struct render_options render = options->render;
    render.step = options->step - 1;
    if (options->mode)
        spec->claims = options->mode[0] == 'd' ? SPEC_CLAIMS_DIRECT : SPEC_CLAIMS_TEMPLATE;
    if (spec->queue && spec->claims == SPEC_CLAIMS_DIRECT)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--claims direct: spec.queue needs template, since Kueue counts the "
                          "claims of a Job alone");
    if (render.agent && !agent_claim_fits(spec))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--agent-claim: the job's workers have no claim of which the first "
                          "container alone has all");
    int rc = render_job(spec, &render, &list, err);
    if (rc < 0)
        return rc;
    bool json = options->format && strcmp(options->format, "json") == 0;
    return manifests_write(list, notes, json, out, err);
}

static int run(int argc, char *const argv[])
{
    struct options options = {
        .render = {.api = CLAIMS_API_V1, .attempt = 1, .image = getenv("DRARUN_IMAGE")}, .step = 1};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    struct job_spec spec;
    const char *file = NULL;
    if (verb_parse_file(&verb_render, argc, argv, &options, &options.help, &file, &err) < 0) {
        log_error("render: %s", err.text);
        return error_exit_status(err.kind);
    }
    if (options.help) {
        verb_help(&verb_render, &out);
        return verb_write("render", &out);
    }
    int rc = read_spec(file, options.profiles, &spec, &err);
    if (rc > 0)
        return rc;
    if (rc == 0) {
        rc = render(&spec, &options, &out, &err);
        job_spec_done(&spec);
    }
    if (rc == 0)
        return verb_write("render", &out);
    buf_done(&out);
    log_error("render: %s: %s", file, err.text);
    return error_exit_status(err.kind);
}

const struct verb verb_render = {"render", "FILE", "Prints the manifests that a job creates.",
                                 &options_table, run};
