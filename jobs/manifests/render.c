/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/render.h"

#include <errno.h>
#include <string.h>

#include "jobs/manifests/limits.h"
#include "jobs/manifests/network_policy.h"
#include "jobs/manifests/objects.h"
#include "jobs/manifests/pods.h"
#include "jobs/manifests/render_parts.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

const char *pod_groups_version(const char *text)
{
    static const char *const versions[] = {"v1", "v1beta1", "v1alpha3", "v1alpha2"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (strcmp(versions[i], text) == 0)
            return versions[i];
    return NULL;
}

static int add_take(json_t *list, json_t *object, struct drarun_error *err)
{
    return json_array_append_new(list, object) < 0 ? error_set(err, ENOMEM, "render: out of memory")
                                                   : 0;
}

static int add_control(json_t *list, const struct job_spec *spec,
                       const struct render_options *options, struct drarun_error *err)
{
    int rc = options->here ? 0 : add_take(list, object_launcher(spec, options), err);
    if (rc == 0)
        rc = add_take(list, object_status(spec, options), err);
    if (rc == 0)
        rc = add_take(list, object_secret(spec, options), err);
    return rc < 0 || options->shared_policy
               ? rc
               : add_take(list, network_policy_of_job(spec, options), err);
}

int render_domain(json_t *list, const struct job_spec *spec, const struct render_options *options,
                  struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *domain = NULL, *template = NULL;
    int rc = claims_compute_domain(spec, &domain, &template, err);
    if (rc < 0)
        return rc;
    json_t *object = object_new(spec, options, "resource.nvidia.com/v1beta1", "ComputeDomain",
                                json_sprintf("%s-domain", spec->name), true);
    if (json_object_set(object, "spec", domain) < 0) {
        json_decref(object);
        object = NULL;
    }
    return add_take(list, object, err);
}

/* The claim of a worker, or with worker < 0 the template of all. */
static int make_claim(const struct job_spec *spec, const struct render_options *options,
                      int64_t worker, json_t **ret_claim, struct drarun_error *err)
{
    const struct spec_role *role = spec_role_of(spec, worker < 0 ? 0 : (uint32_t)worker);
    json_t *claim = NULL;
    int rc = claims_spec(role, options->api, options->step, &claim, err);
    if (rc == 0 && options->agent)
        rc = agent_claim_add(options->agent, role, claim, err);
    if (rc < 0) {
        json_decref(claim);
        return rc;
    }
    if (worker < 0)
        claim = json_pack("{s:{s:o}, s:o}", "metadata", "labels", object_labels(spec, options),
                          "spec", claim);
    CLEANUP(json_decrefp)
    json_t *object =
        object_new(spec, options, claims_api_version(options->api),
                   worker < 0 ? "ResourceClaimTemplate" : "ResourceClaim",
                   worker < 0 ? json_sprintf("%s-w", spec->name)
                              : json_sprintf("%s-w-%lld", spec->name, (long long)worker),
                   true);
    json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    rc = json_object_set_new(object, "spec", claim);
    if (worker >= 0)
        rc |= json_object_set_new(labels, "drarun.dev/worker",
                                  json_sprintf("%lld", (long long)worker));
    if (rc < 0)
        return error_set(err, ENOMEM, "render: out of memory");
    *ret_claim = TAKE_PTR(object);
    return 0;
}

int render_claim(const struct job_spec *spec, const struct render_options *options, uint32_t worker,
                 json_t **ret_claim, struct drarun_error *err)
{
    return make_claim(spec, options, worker, ret_claim, err);
}

int render_pod(const struct job_spec *spec, const struct render_options *options, uint32_t worker,
               json_t **ret_pod, struct drarun_error *err)
{
    return pods_worker(spec, options, worker, ret_pod, err);
}

static int add_workers(json_t *list, const struct job_spec *spec,
                       const struct render_options *options, struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < spec->workers; i++) {
        json_t *claim = NULL;
        if (!claims_wanted_by(spec_role_of(spec, i)))
            continue;
        rc = render_claim(spec, options, i, &claim, err);
        rc = rc < 0 ? rc : add_take(list, claim, err);
    }
    for (uint32_t i = 0; rc == 0 && i < spec->workers; i++) {
        json_t *pod = NULL;
        rc = render_pod(spec, options, i, &pod, err);
        rc = rc < 0 ? rc : add_take(list, pod, err);
    }
    return rc;
}

int render_template(json_t *list, const struct job_spec *spec, const struct render_options *options,
                    struct drarun_error *err)
{
    json_t *template = NULL;
    int rc = claims_wanted(spec) ? make_claim(spec, options, -1, &template, err) : 0;
    return rc == 0 && template ? add_take(list, template, err) : rc;
}

static int add_indexed(json_t *list, const struct job_spec *spec,
                       const struct render_options *options, struct drarun_error *err)
{
    json_t *job = NULL;
    int rc = render_template(list, spec, options, err);
    if (rc == 0)
        rc = pods_indexed_job(spec, options, &job, err);
    return rc < 0 ? rc : add_take(list, job, err);
}

int render_check(const struct job_spec *spec, const struct render_options *options,
                 struct drarun_error *err)
{
    int rc = limits_check(spec, err);
    if (rc == 0 && options->step >= claims_attempts(spec))
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL, "step %u: the job's ladder has %u",
                        options->step + 1, claims_attempts(spec));
    return rc;
}

int render_shared(const struct job_spec *spec, const struct render_options *options,
                  json_t **ret_manifests, struct drarun_error *err)
{
    int rc = render_check(spec, options, err);
    CLEANUP(json_decrefp) json_t *list = json_array();
    if (rc == 0)
        rc = add_control(list, spec, options, err);
    if (rc == 0 && spec->compute_domain)
        rc = render_domain(list, spec, options, err);
    if (rc == 0 && object_has_pod_group(spec, options))
        rc = add_take(list, object_pod_group(spec, options), err);
    if (rc == 0 && spec->claims == SPEC_CLAIMS_TEMPLATE)
        rc = add_indexed(list, spec, options, err);
    if (rc == 0)
        *ret_manifests = TAKE_PTR(list);
    return rc;
}

int render_job(const struct job_spec *spec, const struct render_options *options,
               json_t **ret_manifests, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    int rc = render_shared(spec, options, &list, err);
    if (rc == 0 && spec->claims != SPEC_CLAIMS_TEMPLATE)
        rc = add_workers(list, spec, options, err);
    if (rc == 0)
        *ret_manifests = TAKE_PTR(list);
    return rc;
}
