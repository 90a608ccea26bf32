/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/api/plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "jobs/derive/plan.h"
#include "jobs/preflight/fabric.h"
#include "jobs/predict/job_profile.h"
#include "launcher/files/api_options.h"
#include "launcher/api/picture.h"
#include "launcher/api/text.h"
#include "launcher/files/cluster_files.h"
#include "launcher/plan/role_warnings.h"
#include "launcher/plan/text.h"
#include "launcher/files/spec_file.h"
#include "launcher/topo/slices.h"
#include "lib/dra/device_class.h"
#include "lib/base/c_numbers.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct drarun_plan {
    struct drarun_spec *given; /* whose profiles it uses */
    struct job_spec spec;
    struct plan_objects objects;
    struct slices slices;
    json_t *labels;
    struct nodes_profile machine; /* of the nodes, where the spec leaves it open */
    char ask[512];
    struct preview_input input; /* of the above, for each role in turn */
    struct preview *previews;   /* built of them, by role */
    uint32_t built;
};

void plan_objects_init(struct plan_objects *objects)
{
    *objects = (struct plan_objects){
        .slices = json_array(),
        .nodes = json_array(),
        .classes = json_array(),
        .claims = json_array(),
        .rules = json_array(),
        .quotas = json_array(),
        .limit_ranges = json_array(),
        .config_maps = json_array(),
        .node_pools = json_array(),
    };
}

void plan_objects_done(struct plan_objects *objects)
{
    json_decref(objects->slices);
    json_decref(objects->nodes);
    json_decref(objects->classes);
    json_decref(objects->claims);
    json_decref(objects->rules);
    json_decref(objects->quotas);
    json_decref(objects->limit_ranges);
    json_decref(objects->config_maps);
    json_decref(objects->node_pools);
    *objects = (struct plan_objects){0};
}

int plan_objects_kinds(struct plan_objects *objects, struct cluster_kind kinds[PLAN_KINDS],
                       struct drarun_error *err)
{
    const struct cluster_kind all[PLAN_KINDS] = {
        [PLAN_SLICES] = {"ResourceSlice", objects->slices, NULL},
        [PLAN_NODES] = {"Node", objects->nodes, &objects->nodes_known},
        [PLAN_CLASSES] = {"DeviceClass", objects->classes, &objects->classes_known},
        [PLAN_CLAIMS] = {"ResourceClaim", objects->claims, NULL},
        [PLAN_TAINT_RULES] = {"DeviceTaintRule", objects->rules, NULL},
        [PLAN_QUOTAS] = {"ResourceQuota", objects->quotas, &objects->quotas_known},
        [PLAN_LIMIT_RANGES] = {"LimitRange", objects->limit_ranges, &objects->ranges_known},
        [PLAN_CONFIG_MAPS] = {"ConfigMap", objects->config_maps, NULL},
        [PLAN_NODE_POOLS] = {"NodePool", objects->node_pools, NULL},
    };
    for (size_t i = 0; i < PLAN_KINDS; i++)
        if (!all[i].objects)
            return error_set(err, ENOMEM, "out of memory");
    memcpy(kinds, all, sizeof all);
    return 0;
}

void drarun_plan_free(struct drarun_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t r = 0; r < plan->built; r++)
        preview_done(&plan->previews[r]);
    free(plan->previews);
    slices_done(&plan->slices);
    plan_objects_done(&plan->objects);
    json_decref(plan->labels);
    job_spec_done(&plan->spec);
    drarun_spec_free(plan->given);
    free(plan);
}
DEFINE_CLEANUP(struct drarun_plan, drarun_plan_free)

/* ---- building ---- */

/* As where the job is submitted. */
static int settle_profile(struct drarun_plan *plan, unsigned minor, struct drarun_error *err)
{
    const struct job_profile_cluster cluster = {.slices = &plan->slices,
                                                .nodes = plan->objects.nodes,
                                                .classes = plan->objects.classes,
                                                .minor = minor};
    bool open = job_profile_is_open(&plan->spec);
    int rc = job_profile_settle(&plan->spec, &plan->given->profiles,
                                plan->objects.known ? &cluster : NULL, &plan->machine, err);
    if (rc == 0 && open && plan->objects.known && !plan->machine.found)
        job_profile_ask(&plan->machine, plan->ask, sizeof plan->ask);
    return rc;
}

/* Each role of the order beside those before it. */
static int build_in_order(struct drarun_plan *plan, const uint32_t *order, struct drarun_error *err)
{
    const struct preview *earlier[SPEC_ROLES_MAX];
    struct preview_input input = plan->input;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < plan->built; i++) {
        struct preview *preview = &plan->previews[order[i]];
        input.role = &plan->spec.roles[order[i]];
        input.earlier = earlier;
        input.earlier_count = i;
        preview_done(preview); /* of another order */
        rc = preview_build(&input, preview, err);
        earlier[i] = preview;
    }
    return rc;
}

static uint32_t first_short(const struct drarun_plan *plan, const uint32_t *order)
{
    uint32_t i = 0;
    while (i < plan->built && !plan->previews[order[i]].prediction.shortage)
        i++;
    return i;
}

/* The scheduler scores nodes, so a role may leave those to a later one that it would fill here: one
 * that finds no room beside the others has its turn before them, once. */
static int build_roles(struct drarun_plan *plan, struct drarun_error *err)
{
    uint32_t count = plan->spec.role_count, order[SPEC_ROLES_MAX] = {0}, at;
    bool moved[SPEC_ROLES_MAX] = {false}, any = false;
    plan->previews = calloc(count, sizeof *plan->previews);
    if (!plan->previews)
        return error_set(err, ENOMEM, "out of memory");
    plan->built = count;
    for (uint32_t r = 0; r < count; r++)
        order[r] = r;
    int rc = build_in_order(plan, order, err);
    while (rc == 0 && (at = first_short(plan, order)) < count && at > 0 && !moved[order[at]]) {
        const uint32_t role = order[at];
        memmove(&order[1], &order[0], at * sizeof order[0]);
        order[0] = role;
        moved[role] = any = true;
        rc = build_in_order(plan, order, err);
    }
    if (rc < 0 || !any || first_short(plan, order) == count)
        return rc;
    for (uint32_t r = 0; r < count; r++)
        order[r] = r;
    return build_in_order(plan, order, err); /* no order helps: that of the document is told */
}

/* Of the newest kubelet, as none is newer than its API server; 0: none is given. */
static unsigned minor_of_nodes(const json_t *nodes)
{
    unsigned newest = 0;
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        const json_t *info = json_object_get(json_object_get(node, "status"), "nodeInfo");
        const char *version = json_string_value(json_object_get(info, "kubeletVersion"));
        unsigned minor = 0;
        if (version && predict_minor_parse(version, &minor) == 0 && minor > newest)
            newest = minor;
    }
    return newest;
}

static int choose_minor(const char *chosen, const struct plan_objects *objects, unsigned *ret_minor,
                        struct drarun_error *err)
{
    if (chosen && predict_minor_parse(chosen, ret_minor) < 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "kubernetes: expected a version such as 1.36, got \"%.40s\"", chosen);
    if (!chosen)
        *ret_minor = objects->minor ? objects->minor : minor_of_nodes(objects->nodes);
    return 0;
}

static int build(const struct drarun_plan_options *o, struct drarun_plan *plan,
                 struct drarun_error *err)
{
    struct plan_objects *objects = &plan->objects;
    int rc = plan_check_version(o->nccl_version, err);
    if (rc == 0 && objects->known)
        rc = slices_read(objects->slices, &plan->slices, err);
    plan->labels = cluster_node_labels(objects->nodes);
    if (rc == 0 && !plan->labels)
        rc = error_set(err, ENOMEM, "out of memory");
    unsigned minor = 0;
    if (rc == 0)
        rc = choose_minor(o->kubernetes, objects, &minor, err);
    if (rc == 0)
        rc = settle_profile(plan, minor, err);
    plan->input = (struct preview_input){
        .spec = &plan->spec,
        .slices = objects->known ? &plan->slices : NULL,
        .classes = objects->classes,
        .classes_known = objects->classes_known,
        .nodes = objects->nodes,
        .nodes_known = objects->nodes_known,
        .node_labels = plan->labels,
        .claims = objects->claims,
        .taint_rules = objects->rules,
        .quotas = objects->quotas,
        .limit_ranges = objects->limit_ranges,
        .rules_known = objects->quotas_known && objects->ranges_known,
        .minor = minor,
        .absent = {.config_maps = objects->config_maps, .node_pools = objects->node_pools},
        .profiles = &plan->given->profiles,
        .profile_fact = plan->machine.found ? plan->machine.why : NULL,
        .profile_ask = plan->ask,
        .nccl_version = o->nccl_version,
    };
    if (rc == 0)
        rc = build_roles(plan, err);
    plan->input.nccl_version = NULL; /* the caller's */
    return rc;
}

/* The DeviceClasses of the job's own file are those of the cluster once they are applied. */
static int add_classes(const json_t *own, json_t *classes, struct drarun_error *err)
{
    size_t i;
    json_t *class;
    json_array_foreach(own, i, class)
    {
        if (!device_class_find(classes, device_class_name(class)) &&
            json_array_append(classes, class) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

int plan_new_take(const struct drarun_spec *spec, const struct drarun_plan_options *options,
                  struct plan_objects *objects, struct drarun_plan **ret_plan,
                  struct drarun_error *err)
{
    CLEANUP(drarun_plan_freep) struct drarun_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        plan_objects_done(objects);
        return error_set(err, ENOMEM, "out of memory");
    }
    plan->objects = *objects;
    *objects = (struct plan_objects){0};
    plan->given = spec_ref(spec);
    int rc = spec_again(&spec->job, &spec->profiles, NULL, options->workers, &plan->spec, err);
    if (rc == 0)
        rc = add_classes(spec->classes, plan->objects.classes, err);
    if (rc == 0)
        rc = build(options, plan, err);
    if (rc == 0)
        *ret_plan = TAKE_PTR(plan);
    return rc;
}

/* A file of slices may hold the others too: kubectl get nodes,resourceslices,resourceclaims. */
static int read_objects(const struct drarun_plan_options *o, struct plan_objects *objects,
                        struct drarun_error *err)
{
    struct cluster_kind kinds[PLAN_KINDS];
    int rc = plan_objects_kinds(objects, kinds, err);
    if (rc < 0)
        return rc;
    objects->known = o->objects || (o->slices && o->slices[0]);
    rc = o->objects ? cluster_objects_parse("<objects>", o->objects, strlen(o->objects), kinds,
                                            PLAN_KINDS, err)
                    : 0;
    if (rc == 0)
        rc = cluster_files_read(o->slices, kinds, PLAN_KINDS, err);
    const struct cluster_kind beside_nodes[] = {kinds[PLAN_NODES], kinds[PLAN_QUOTAS],
                                                kinds[PLAN_LIMIT_RANGES]};
    if (rc == 0)
        rc = cluster_files_read_any(o->nodes, beside_nodes, ARRAY_LEN(beside_nodes), err);
    if (rc == 0)
        rc = cluster_files_read(o->classes, &kinds[PLAN_CLASSES], 1, err);
    return rc == 0 ? cluster_files_read(o->claims, &kinds[PLAN_CLAIMS], 1, err) : rc;
}

int drarun_plan_build(const struct drarun_spec *spec, const struct drarun_plan_options *options,
                      struct drarun_plan **ret_plan, struct drarun_error *err)
{
    C_NUMBERS;
    struct drarun_plan_options o;
    struct plan_objects objects;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc < 0)
        return rc;
    plan_objects_init(&objects);
    rc = read_objects(&o, &objects, err);
    if (rc == 0)
        return plan_new_take(spec, &o, &objects, ret_plan, err);
    plan_objects_done(&objects);
    return rc;
}

/* ---- what it says ---- */

static int verdict(const struct drarun_plan *plan, uint32_t index, struct drarun_error *err)
{
    const struct preview *preview = &plan->previews[index];
    const struct warning *refusal = &preview->plan.refusal;
    int rc = 0;
    if (preview->planned && refusal->code)
        rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL, "refused: %s: %s",
                        warning_name(refusal->code), refusal->detail ? refusal->detail : "");
    else if (preview->prediction.shortage)
        rc = error_kind(err, DRARUN_ERR_CAPACITY, ENOSPC, "no room%s: %s%s%s",
                        preview->absent ? " on the nodes that are there" : "",
                        preview->prediction.shortage, preview->absent ? "; " : "",
                        preview->absent ? preview->absent : "");
    return rc < 0 && spec_has_roles(&plan->spec)
               ? error_prefix(err, "role %s", plan->spec.roles[index].name)
               : rc;
}

int drarun_plan_verdict(const struct drarun_plan *plan, struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < plan->built; r++)
        rc = verdict(plan, r, err);
    return rc;
}

static struct preview_input input_of(const struct drarun_plan *plan, uint32_t role)
{
    struct preview_input input = plan->input;
    input.role = &plan->spec.roles[role];
    return input;
}

char *drarun_plan_text(const struct drarun_plan *plan, int explain)
{
    C_NUMBERS;
    struct buf text = BUF_INIT;
    bool named = spec_has_roles(&plan->spec);
    if (named)
        buf_printf(&text, "job %s: %u workers in %u roles; those of a role are counted from 0\n",
                   plan->spec.name, plan->spec.workers, plan->spec.role_count);
    for (uint32_t r = 0; r < plan->built; r++) {
        const struct preview_input input = input_of(plan, r);
        buf_add_str(&text, named ? "\n" : "");
        preview_text(&input, &plan->previews[r], explain, &text);
    }
    if (named)
        role_warnings_text(&plan->spec, plan->previews, plan->built, &text);
    return text_take(&text);
}

char *drarun_plan_json(const struct drarun_plan *plan, int explain)
{
    C_NUMBERS;
    json_t *list = json_array();
    for (uint32_t r = 0; r < plan->built; r++) {
        const struct preview_input input = input_of(plan, r);
        if (json_array_append_new(list, preview_json(&input, &plan->previews[r], explain)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    if (spec_has_roles(&plan->spec))
        return text_of_json_take(json_pack("{s:s, s:i, s:o}", "job", plan->spec.name, "workers",
                                           (int)plan->spec.workers, "roles", list));
    json_t *only = json_incref(json_array_get(list, 0));
    json_decref(list);
    return text_of_json_take(only);
}

/* ---- a picture ---- */

static int worker_of(const struct drarun_plan *plan, unsigned worker,
                     const struct plan_worker_input **ret_worker,
                     const struct plan_worker **ret_planned, struct drarun_error *err)
{
    if (worker >= plan->spec.workers)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "worker %u: expected one of the job's %u, which are counted from 0",
                          worker, plan->spec.workers);
    const struct spec_role *role = spec_role_of(&plan->spec, worker);
    const struct preview *preview = &plan->previews[role - plan->spec.roles];
    if (preview->prediction.shortage)
        return verdict(plan, (uint32_t)(role - plan->spec.roles), err);
    if (!plan->objects.known || !preview->planned || !preview->workers[worker - role->first].node)
        return error_kind(err, DRARUN_ERR_USAGE, ENODATA,
                          "worker %u: its node is not known: that takes a job with devices, and "
                          "the cluster's ResourceSlices",
                          worker);
    *ret_worker = &preview->workers[worker - role->first];
    *ret_planned = &preview->plan.workers[worker - role->first];
    return 0;
}

/* "job train: worker 1 on node-3, ranks 4 to 7 of 16" */
static void title_of(const struct drarun_plan *plan, unsigned worker, const char *node,
                     struct buf *out)
{
    const struct spec_role *role = spec_role_of(&plan->spec, worker);
    const struct plan *planned = &plan->previews[role - plan->spec.roles].plan;
    size_t i = worker - role->first;
    buf_printf(out, "job %s: worker %u", plan->spec.name, worker);
    if (spec_has_roles(&plan->spec))
        buf_printf(out, " (%s)", role->name);
    buf_printf(out, " on %s", node);
    if (spec_has_roles(&plan->spec) || planned->world_size == 0)
        return;
    uint32_t first = planned->workers[i].first_rank;
    uint32_t end =
        i + 1 < planned->worker_count ? planned->workers[i + 1].first_rank : planned->world_size;
    if (end == first + 1)
        buf_printf(out, ", rank %u of %u", first, planned->world_size);
    else
        buf_printf(out, ", ranks %u to %u of %u", first, end - 1, planned->world_size);
}

/* Where each worker is, as far as that is known: nodes and domains have room for all. */
static void find_places(const struct drarun_plan *plan, const char **nodes, const char **domains)
{
    for (uint32_t w = 0; w < plan->spec.workers; w++) {
        const struct spec_role *role = spec_role_of(&plan->spec, w);
        const struct preview *preview = &plan->previews[role - plan->spec.roles];
        uint32_t i = w - role->first;
        if (!preview->planned)
            continue;
        nodes[w] = preview->workers[i].node;
        domains[w] = i < preview->plan.worker_count ? preview->plan.workers[i].clique : NULL;
    }
}

int plan_svg(const struct drarun_plan *plan, unsigned worker, const json_t *fabric, char **ret_svg,
             struct drarun_error *err)
{
    C_NUMBERS;
    cleanup_free const char **nodes = calloc(plan->spec.workers + 1, sizeof *nodes);
    cleanup_free const char **domains = calloc(plan->spec.workers + 1, sizeof *domains);
    CLEANUP(buf_done) struct buf title = BUF_INIT;
    const struct plan_worker_input *input = NULL;
    const struct plan_worker *planned = NULL;
    struct topo_host host;
    int rc = worker_of(plan, worker, &input, &planned, err);
    assert(rc < 0 || (input && planned));
    if (rc == 0 && fabric && fabric_workers(fabric) != plan->spec.workers)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "the NICs are those of %u workers, and the plan has %u: --workers %u plans "
                        "for as many",
                        fabric_workers(fabric), plan->spec.workers, fabric_workers(fabric));
    if (rc == 0)
        rc = topo_slices_host(&plan->slices, input->claims, input->node, &host, err);
    if (rc < 0)
        return rc;
    title_of(plan, worker, input->node, &title);
    if (nodes && domains)
        find_places(plan, nodes, domains);
    const struct view_job job = {.title = title.data,
                                 .workers = plan->spec.workers,
                                 .worker = worker,
                                 .nodes = nodes,
                                 .domains = domains};
    rc = !nodes || !domains || title.failed
             ? error_set(err, ENOMEM, "out of memory")
             : picture_of_worker(&host, planned, &job, fabric, ret_svg, err);
    host_done(&host);
    return rc;
}

int drarun_plan_svg(const struct drarun_plan *plan, unsigned worker, char **ret_svg,
                    struct drarun_error *err)
{
    return plan_svg(plan, worker, NULL, ret_svg, err);
}
