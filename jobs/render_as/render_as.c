/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/render_as/render_as.h"

#include <errno.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_merge.h"
#include "jobs/render_as/parts.h"
#include "jobs/manifests/render_parts.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "render: out of memory");
}

int foreign_check_name(const struct job_spec *spec, size_t room, const char *why,
                       struct drarun_error *err)
{
    if (strlen(spec->name) > room)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "metadata.name: at most %zu characters: %s; got %zu", room, why,
                          strlen(spec->name));
    if (spec->name[0] < 'a' || spec->name[0] > 'z')
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "metadata.name: expected a letter first, got \"%s\": Services are named "
                          "after it",
                          spec->name);
    return 0;
}

/* "of step 1, each GPU with a NIC of its PCIe root (--step 2: numaNode, --step 3: none)" */
static void tell_step(const struct job_spec *spec, unsigned step, struct strlist *told)
{
    struct buf others = BUF_INIT;
    for (unsigned other = 0; other < claims_attempts(spec); other++)
        if (other != step)
            buf_printf(&others, "%s--step %u: %s", others.len > 0 ? ", " : "", other + 1,
                       claims_rung_name(claims_rung(&spec->roles[0], other)));
    strlist_addf(told,
                 "STEP_FIXED: spec.devices.align: preferred: no launcher tries the next step; "
                 "these claims are of step %u, each GPU with %s (%s)",
                 step + 1, claims_rung_words(claims_rung(&spec->roles[0], step)), others.data);
    told->failed |= others.failed;
    buf_done(&others);
}

int foreign_begin(const struct job_spec *spec, const struct render_foreign *how,
                  enum left_out_by system, struct strlist *told, json_t **ret_list,
                  struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = json_array();
    int rc = list ? render_check(spec, &how->options, err) : no_memory(err);
    if (rc == 0 && spec->compute_domain)
        rc = render_domain(list, spec, &how->options, err);
    if (rc == 0)
        rc = render_template(list, spec, &how->options, err);
    if (rc < 0)
        return rc;
    left_out_tell(spec->document, system, told);
    if (claims_attempts(spec) > 1)
        tell_step(spec, how->options.step, told);
    if (told->failed)
        return no_memory(err);
    *ret_list = TAKE_PTR(list);
    return 0;
}

/* ---- the entry point ---- */

static void add_option(struct strlist *words, const char *option, const char *value)
{
    strlist_add(words, option);
    strlist_add(words, value);
}

/* drarun env with what the spec says of the derivation, up to "--". */
static void add_wrapper(const struct job_spec *spec, struct strlist *words)
{
    static const char *const lists[] = {[SPEC_HCA_ALWAYS] = "always", [SPEC_HCA_NEVER] = "never"};
    static const char *const transports[] = {
        [SPEC_TRANSPORT_TCP] = "tcp", [SPEC_TRANSPORT_RDMA] = "rdma"};
    strlist_add(words, POD_MERGE_DRARUN);
    strlist_add(words, "env");
    add_option(words, "--network", spec->network == SPEC_NETWORK_RDMA ? "rdma" : "any");
    if (strcmp(spec->roles[0].nccl_profile, "auto") != 0)
        add_option(words, "--profile", spec->roles[0].nccl_profile);
    if (spec->roles[0].nccl_version)
        add_option(words, "--nccl-version", spec->roles[0].nccl_version);
    if (spec->roles[0].nccl_hca_list != SPEC_HCA_AUTO)
        add_option(words, "--hca-list", lists[spec->roles[0].nccl_hca_list]);
    if (spec->mpi_transport != SPEC_TRANSPORT_AUTO)
        add_option(words, "--mpi", transports[spec->mpi_transport]);
    strlist_add(words, "--");
}

static json_t *entry_point(const struct job_spec *spec, const json_t *command)
{
    struct strlist words = STRLIST_INIT;
    json_t *list = json_array();
    add_wrapper(spec, &words);
    int rc = words.failed ? -1 : 0;
    for (size_t i = 0; rc == 0 && i < words.count; i++)
        rc = json_array_append_new(list, json_string(words.items[i]));
    if (rc == 0)
        rc = json_array_extend(list, unconst(command));
    strlist_done(&words);
    if (rc == 0)
        return list;
    json_decref(list);
    return NULL;
}

int foreign_pod(const struct job_spec *spec, const struct render_foreign *how,
                const json_t *command, json_t **ret_template, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *template = NULL;
    int rc = pod_merge(spec, &how->options, POD_MERGE_FOREIGN, &template, err);
    if (rc < 0)
        return rc;
    const json_t *pod = json_object_get(template, "spec");
    json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    json_object_del(first, "args");
    if (json_object_set_new(first, "command", entry_point(spec, command)) < 0)
        return no_memory(err);
    *ret_template = TAKE_PTR(template);
    return 0;
}

/* ---- the system's own object ---- */

json_t *foreign_suspended(const struct job_spec *spec)
{
    return spec->suspend ? json_true() : NULL;
}

int foreign_add(json_t *list, const struct job_spec *spec, const struct render_foreign *how,
                const char *api_version, const char *kind, bool queued, json_t *object_spec_take,
                struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *object_spec = object_spec_take;
    CLEANUP(json_decrefp)
    json_t *object =
        object_new(spec, &how->options, api_version, kind, json_string(spec->name), false);
    json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    int rc = json_object_set(object, "spec", object_spec);
    if (rc == 0 && queued && spec->queue)
        rc = json_object_set_new(labels, "kueue.x-k8s.io/queue-name", json_string(spec->queue));
    return rc < 0 || json_array_append(list, object) < 0 ? no_memory(err) : 0;
}
