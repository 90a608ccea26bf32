/* SPDX-License-Identifier: Apache-2.0 */
#include "drarun/render.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/predict/job_profile.h"
#include "jobs/manifests/render.h"
#include "jobs/render_as/render_as.h"
#include "launcher/programs/agent_image.h"
#include "launcher/files/api_options.h"
#include "launcher/api/text.h"
#include "launcher/cli/manifests.h"
#include "launcher/files/spec_file.h"
#include "lib/base/c_numbers.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static const char notes[] =
    "# What drarun creates for the job. When it does so itself, it puts in the Secret's key, and "
    "owner\n"
    "# references to the first object, so that deleting that one deletes all.\n";

static int unknown(struct drarun_error *err, const char *what, const char *wanted, const char *got)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected %s, got \"%s\"", what, wanted,
                      got);
}

/* Words to values; agent is the caller's to keep. */
static int read_words(const struct drarun_render_options *o, struct render_options *render,
                      struct agent_claim *agent, struct drarun_error *err)
{
    if (o->format && strcmp(o->format, "yaml") != 0 && strcmp(o->format, "json") != 0)
        return unknown(err, "format", "yaml or json", o->format);
    if (o->claims && strcmp(o->claims, "direct") != 0 && strcmp(o->claims, "template") != 0)
        return unknown(err, "claims", "direct or template", o->claims);
    render->api = o->api ? claims_api_parse(o->api) : CLAIMS_API_V1;
    if (!render->api)
        return unknown(err, "api", "v1, v1beta2 or v1beta1", o->api);
    render->pod_groups = o->pod_groups ? pod_groups_version(o->pod_groups) : NULL;
    if (o->pod_groups && !render->pod_groups)
        return unknown(err, "pod_groups", "v1, v1beta1, v1alpha3 or v1alpha2", o->pod_groups);
    if (o->agent_claim && agent_claim_parse(o->agent_claim, agent, err) < 0)
        return error_prefix(err, "agent_claim");
    render->agent = o->agent_claim ? agent : NULL;
    return 0;
}

static int fits(const struct job_spec *spec, const struct render_options *render,
                struct drarun_error *err)
{
    if (spec->queue && spec->claims == SPEC_CLAIMS_DIRECT)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "claims direct: spec.queue needs template, since Kueue counts the "
                          "claims of a Job alone");
    if (render->agent && !agent_claim_fits(spec))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "agent_claim: the job's workers have no claim of which the first "
                          "container alone has all");
    return 0;
}

/* ---- for other systems ---- */

static const struct system {
    const char *name;
    render_foreign_fn render;
    const char *notes;
} systems[] = {
    {"raycluster", render_raycluster,
     "# A RayCluster of KubeRay (ray.io/v1). drarun takes no part in it but by `drarun env`, which "
     "each\n# worker's entry point runs first.\n"},
    {"rayjob", render_rayjob,
     "# A RayJob of KubeRay (ray.io/v1): the program, and the RayCluster that it drives and that "
     "goes\n# with it. drarun takes no part in it but by `drarun env`, which each worker's entry "
     "point runs first.\n"},
    {"trainjob", render_trainjob,
     "# A TrainJob of Kubeflow Trainer 2, and the TrainingRuntime of its pods. drarun takes no "
     "part "
     "in it\n# but by `drarun env`, which each pod's entry point runs first.\n"},
};

/* What only drarun's own job has; NULL: nothing of it is asked for. */
static const char *own_option(const struct drarun_render_options *o)
{
    return o->claims        ? "claims"
           : o->agent_claim ? "agent_claim"
           : o->pod_groups  ? "pod_groups"
           : o->owner_uid   ? "owner_uid"
           : o->here        ? "here"
                            : NULL;
}

/* *ret_system: NULL for drarun's own job. */
static int find_system(const struct drarun_render_options *o, const struct system **ret_system,
                       struct drarun_error *err)
{
    const struct system *found = NULL;
    const char *own = own_option(o);
    for (size_t i = 0; o->as && i < ARRAY_LEN(systems); i++)
        if (strcmp(o->as, systems[i].name) == 0)
            found = &systems[i];
    if (o->as && !found)
        return unknown(err, "as", "raycluster, rayjob or trainjob", o->as);
    if (found && own)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: not for a %s: it is of the job that drarun creates itself", own,
                          o->as);
    if ((o->head || o->replicas) && !(found && strncmp(found->name, "ray", 3) == 0))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: for a raycluster or a rayjob alone",
                          o->head ? "head" : "replicas");
    if (o->head && strcmp(o->head, "plain") != 0 && strcmp(o->head, "worker") != 0)
        return unknown(err, "head", "plain or worker", o->head);
    *ret_system = found;
    return 0;
}

/* "MIN:MAX" */
static int read_replicas(const char *text, struct render_foreign *how, struct drarun_error *err)
{
    unsigned least, most;
    int end = -1;
    if (!text)
        return 0;
    /* sscanf itself takes signs and blanks before a number */
    if (text[strspn(text, "0123456789:")] || sscanf(text, "%6u:%6u%n", &least, &most, &end) != 2 ||
        text[end] || least > most)
        return unknown(err, "replicas", "MIN:MAX, the bounds of an autoscaler", text);
    how->scales = true;
    how->replicas_min = least;
    how->replicas_max = most;
    return 0;
}

static int render_foreign(const struct job_spec *spec, const struct system *system,
                          const struct drarun_render_options *o,
                          const struct render_options *render, json_t **ret_list,
                          struct drarun_error *err)
{
    struct render_foreign how = {.options = *render};
    struct strlist told = STRLIST_INIT;
    const struct spec_role *only;
    int rc = spec_only_role(spec, "a rendering for another system", &only, err);
    if (rc < 0)
        return rc;
    how.options.attempt = 0;
    how.head = o->head && o->head[0] == 'w' ? RENDER_HEAD_WORKER : RENDER_HEAD_PLAIN;
    rc = read_replicas(o->replicas, &how, err);
    if (rc == 0)
        rc = system->render(spec, &how, &told, ret_list, err);
    for (size_t i = 0; rc == 0 && o->note && i < told.count; i++)
        o->note(told.items[i], o->note_arg);
    strlist_done(&told);
    return rc;
}

/* ---- text ---- */

static int render_list(struct job_spec *spec, const struct system *system,
                       const struct drarun_render_options *o, const struct render_options *render,
                       json_t **ret_list, struct drarun_error *err)
{
    if (system)
        return render_foreign(spec, system, o, render, ret_list, err);
    if (o->claims)
        spec->claims = o->claims[0] == 'd' ? SPEC_CLAIMS_DIRECT : SPEC_CLAIMS_TEMPLATE;
    const struct spec_role *only;
    int rc = fits(spec, render, err);
    if (rc == 0 && spec->claims == SPEC_CLAIMS_TEMPLATE)
        rc = spec_only_role(spec, "claims: template", &only, err);
    return rc < 0 ? rc : render_job(spec, render, ret_list, err);
}

/* Without a launcher nobody goes on where no driver publishes the NUMA node: many do not yet. */
static unsigned first_step(const struct job_spec *spec, const struct system *system)
{
    const struct spec_role *role = &spec->roles[0];
    bool may_wait = role->align == SPEC_ALIGN_PREFERRED && claims_rung(role, 0) == CLAIMS_RUNG_NUMA;
    return system && may_wait ? claims_attempts(spec) - 1 : 0;
}

static int render_text(struct job_spec *spec, const struct drarun_render_options *o,
                       char **ret_text, struct drarun_error *err)
{
    struct agent_claim agent;
    struct render_options render = {
        .attempt = 1,
        .step = o->step ? o->step - 1 : 0,
        .namespace = o->namespace_,
        .image = agent_image(o->image),
        .image_volume = o->image_volume,
        .here = o->here,
        .owner_uid = o->owner_uid,
    };
    struct buf out = BUF_INIT;
    CLEANUP(json_decrefp) json_t *list = NULL;
    const struct system *system = NULL;
    int rc = read_words(o, &render, &agent, err);
    if (rc == 0)
        rc = find_system(o, &system, err);
    if (rc == 0 && o->step == 0)
        render.step = first_step(spec, system);
    if (rc == 0)
        rc = render_list(spec, system, o, &render, &list, err);
    if (rc == 0)
        rc = manifests_write(list, system ? system->notes : notes, o->format && o->format[0] == 'j',
                             &out, err);
    char *text = text_take(&out);
    if (rc == 0 && !text)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_text = TAKE_PTR(text);
    free(text);
    return rc;
}

/* The objects show what the site's profile wants of them; applied, they are a job that ends before
 * its ranks start. */
static void note_profile(const struct job_spec *job, const struct profiles *profiles,
                         const struct drarun_render_options *o)
{
    struct drarun_error why = {0};
    if (o->note && spec_need_known_profile(job, profiles, &why) < 0)
        o->note(why.text, o->note_arg);
}

int drarun_render(const struct drarun_spec *spec, const struct drarun_render_options *options,
                  char **ret_text, struct drarun_error *err)
{
    C_NUMBERS;
    struct drarun_render_options o;
    struct job_spec own;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc == 0)
        rc = spec_again(&spec->job, &spec->profiles, NULL, 0, &own, err);
    if (rc < 0)
        return rc;
    rc = job_profile_settle(&own, &spec->profiles, NULL, NULL, err);
    if (rc == 0)
        rc = render_text(&own, &o, ret_text, err);
    if (rc == 0)
        note_profile(&own, &spec->profiles, &o);
    job_spec_done(&own);
    return rc;
}
