/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/claims.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

static const struct {
    enum claims_api api;
    const char *text; /* the version begins behind the slash */
} apis[] = {
    {CLAIMS_API_V1, "resource.k8s.io/v1"},
    {CLAIMS_API_V1BETA2, "resource.k8s.io/v1beta2"},
    {CLAIMS_API_V1BETA1, "resource.k8s.io/v1beta1"},
};

const char *claims_api_version(enum claims_api api)
{
    for (size_t i = 0; i < ARRAY_LEN(apis); i++)
        if (apis[i].api == api)
            return apis[i].text;
    return NULL;
}

enum claims_api claims_api_parse(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(apis); i++)
        if (strcmp(apis[i].text, text) == 0 || strcmp(strchr(apis[i].text, '/') + 1, text) == 0)
            return apis[i].api;
    return 0;
}

/* ---- the ladder ---- */

static bool is_claimed(const struct spec_devices *devices)
{
    return devices->class && (devices->all || devices->count > 0);
}

static bool is_asked(const struct spec_devices *devices)
{
    return devices->all || devices->count > 0;
}

bool claims_wanted_by(const struct spec_role *role)
{
    return is_claimed(&role->gpus) || is_claimed(&role->nics) || is_claimed(&role->cpus);
}

bool claims_wanted(const struct job_spec *spec)
{
    bool wanted = false;
    for (uint32_t r = 0; r < spec->role_count; r++)
        wanted |= claims_wanted_by(&spec->roles[r]);
    return wanted;
}

bool claims_named(const struct job_spec *spec)
{
    bool named = spec->compute_domain != NULL;
    for (uint32_t r = 0; r < spec->role_count; r++)
        named |= spec_role_names_claims(&spec->roles[r]);
    return named;
}

static bool has_class(const json_t *classes, const char *name)
{
    size_t i;
    const json_t *class;
    json_array_foreach(classes, i, class)
    {
        const json_t *metadata = json_object_get(class, "metadata");
        const char *there = json_string_value(json_object_get(metadata, "name"));
        if (there && strcmp(there, name) == 0)
            return true;
    }
    return false;
}

static const char *missing_class(const struct spec_role *role, const json_t *classes)
{
    const struct spec_devices *const kinds[] = {&role->gpus, &role->nics, &role->cpus};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct spec_devices *kind = kinds[i];
        if (!is_claimed(kind))
            continue;
        if (kind->choice_count == 0 && !has_class(classes, kind->class))
            return kind->class;
        for (size_t c = 0; c < kind->choice_count; c++)
            if (!has_class(classes, kind->choices[c].class))
                return kind->choices[c].class;
    }
    return NULL;
}

const char *claims_missing_class(const struct job_spec *spec, const json_t *classes)
{
    const char *missing = NULL;
    for (uint32_t r = 0; classes && !missing && r < spec->role_count; r++)
        missing = missing_class(&spec->roles[r], classes);
    return missing;
}

static uint32_t pairs_of(const struct spec_role *role)
{
    return role->gpus.count < role->nics.count ? role->gpus.count : role->nics.count;
}

/* To find that a node lacks one NIC for so many pairs takes the allocator more than the 10 s after
 * which the scheduler gives up on the node (docs/design/010-claims.md). */
static bool numa_is_costly(const struct spec_role *role)
{
    return pairs_of(role) >= 8;
}

enum claims_alignment claims_alignment(const struct spec_role *role)
{
    if (role->align == SPEC_ALIGN_NONE || !is_asked(&role->gpus) || !is_asked(&role->nics))
        return CLAIMS_NOT_ALIGNED;
    if (!is_claimed(&role->gpus) || !is_claimed(&role->nics) || role->gpus.all || role->nics.all ||
        (role->machine.no_root && role->align == SPEC_ALIGN_PREFERRED && numa_is_costly(role)))
        return CLAIMS_ALIGNED_IN_POD;
    return CLAIMS_ALIGNED_BY_CLAIM;
}

static const struct {
    const char *name, *words, *attribute;
} rungs[] = {
    [CLAIMS_RUNG_ROOT] = {"pcieRoot", "a NIC of its PCIe root", CLAIMS_ROOT_ATTRIBUTE},
    [CLAIMS_RUNG_NUMA] = {"numaNode", "a NIC of its NUMA node", CLAIMS_NUMA_ATTRIBUTE},
    [CLAIMS_RUNG_NONE] = {"none", "any NIC", NULL},
};

const char *claims_rung_name(enum claims_rung rung)
{
    return rungs[rung].name;
}

const char *claims_rung_words(enum claims_rung rung)
{
    return rungs[rung].words;
}

#define RUNGS_MAX 3u

/* The rungs of the role's ladder from the top, as many as it returns. */
static unsigned ladder(const struct spec_role *role, enum claims_rung ret_rungs[RUNGS_MAX])
{
    bool preferred = role->align == SPEC_ALIGN_PREFERRED;
    bool by_claim = claims_alignment(role) == CLAIMS_ALIGNED_BY_CLAIM;
    unsigned count = 0;
    if (by_claim && !role->machine.no_root)
        ret_rungs[count++] = CLAIMS_RUNG_ROOT;
    if (by_claim && (preferred ? !numa_is_costly(role) : role->machine.no_root != NULL))
        ret_rungs[count++] = CLAIMS_RUNG_NUMA;
    if (!by_claim || preferred)
        ret_rungs[count++] = CLAIMS_RUNG_NONE;
    return count;
}

enum claims_rung claims_rung(const struct spec_role *role, unsigned step)
{
    enum claims_rung list[RUNGS_MAX];
    unsigned count = ladder(role, list);
    return list[step < count ? step : count - 1];
}

unsigned claims_attempts_of(const struct spec_role *role)
{
    enum claims_rung list[RUNGS_MAX];
    return ladder(role, list);
}

const struct spec_role *claims_aligned_role(const struct job_spec *spec)
{
    const struct spec_role *longest = &spec->roles[0];
    for (uint32_t r = 1; r < spec->role_count; r++)
        if (claims_attempts_of(&spec->roles[r]) > claims_attempts_of(longest))
            longest = &spec->roles[r];
    return longest;
}

unsigned claims_attempts(const struct job_spec *spec)
{
    return claims_attempts_of(claims_aligned_role(spec));
}

/* How the devices are split into requests. */
struct layout {
    uint32_t pairs;                /* 0: the requests gpu and nic */
    uint32_t gpus, nics;           /* of each pair */
    uint32_t more_gpus, more_nics; /* that do not divide: the requests gpu-more, nic-more */
};

static struct layout plan_layout(const struct spec_role *role, unsigned step)
{
    uint32_t gpus = role->gpus.count, nics = role->nics.count;
    if (claims_rung(role, step) == CLAIMS_RUNG_NONE)
        return (struct layout){0};
    uint32_t pairs = pairs_of(role);
    assert(pairs > 0);
    return (struct layout){.pairs = pairs,
                           .gpus = gpus / pairs,
                           .nics = nics / pairs,
                           .more_gpus = gpus % pairs,
                           .more_nics = nics % pairs};
}

/* ---- requests ---- */

struct build {
    const struct spec_role *role;
    enum claims_api api;
    json_t *requests, *constraints, *configs;  /* arrays */
    json_t *gpu_names, *nic_names, *cpu_names; /* of the requests: arrays */
};

static int add_selectors(json_t *list, const struct strlist *texts)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < texts->count; i++)
        rc = json_array_append_new(list,
                                   json_pack("{s:{s:s}}", "cel", "expression", texts->items[i]));
    return rc;
}

/* That a device has so much of it, as a CEL selector says it. */
static void write_minimum(struct buf *out, const char *name, const char *amount)
{
    const char *slash = strchr(name, '/'), *id = slash ? slash + 1 : name;
    struct buf domain = BUF_INIT;
    if (slash)
        buf_printf(&domain, "\"%.*s\"", (int)(slash - name), name);
    else
        buf_add_str(&domain, "device.driver"); /* whose names have no domain of their own */
    const char *of = domain.data ? domain.data : "";
    buf_printf(out,
               "%s\"%s\" in device.capacity[%s] && "
               "device.capacity[%s][\"%s\"].compareTo(quantity(\"%s\")) >= 0",
               out->len ? " && " : "", id, of, of, id, amount);
    out->failed |= domain.failed;
    buf_done(&domain);
}

/* Where DRAConsumableCapacity is off, the API server drops the request's capacity, and devices have
 * no shares: there the selector alone makes the minimum hold. Versions before v1 are of servers
 * that refuse the field. */
static int add_capacity(const struct build *b, json_t *request, const json_t *capacity,
                        json_t *selectors)
{
    struct buf minimum = BUF_INIT;
    const char *name;
    json_t *amount;
    value_foreach(capacity, name, amount) write_minimum(&minimum, name, json_string_value(amount));
    int rc = minimum.failed ? -1 : 0;
    if (rc == 0)
        rc = json_array_append_new(selectors,
                                   json_pack("{s:{s:s}}", "cel", "expression", minimum.data));
    if (rc == 0 && b->api == CLAIMS_API_V1)
        rc = json_object_set_new(request, "capacity", json_pack("{s:O}", "requests", capacity));
    buf_done(&minimum);
    return rc;
}

/* The fields of DeviceRequest (v1beta1), ExactDeviceRequest or DeviceSubRequest. choice: of
 * firstAvailable, or NULL. */
static int fill_request(const struct build *b, json_t *request, const struct spec_devices *devices,
                        const struct spec_choice *choice, uint32_t count)
{
    CLEANUP(json_decrefp) json_t *capacity = json_object();
    CLEANUP(json_decrefp) json_t *selectors = json_array(), *tolerations = json_array();
    const char *class = choice ? choice->class : devices->class;
    int rc = json_object_set_new(request, "deviceClassName", json_string(class));
    rc |= add_selectors(selectors, &devices->selectors);
    if (choice)
        rc |= add_selectors(selectors, &choice->selectors);
    if (devices->capacity)
        rc |= json_object_update(capacity, devices->capacity);
    if (choice && choice->capacity)
        rc |= json_object_update(capacity, choice->capacity);
    if (json_object_size(capacity) > 0)
        rc |= add_capacity(b, request, capacity, selectors);
    if (json_array_size(selectors) > 0)
        rc |= json_object_set(request, "selectors", selectors);
    if (devices->tolerations)
        rc |= json_array_extend(tolerations, devices->tolerations);
    if (choice && choice->tolerations)
        rc |= json_array_extend(tolerations, choice->tolerations);
    if (json_array_size(tolerations) > 0)
        rc |= json_object_set(request, "tolerations", tolerations);
    if (devices->all)
        rc |= json_object_set_new(request, "allocationMode", json_string("All"));
    else
        rc |= json_object_set_new(request, "count", json_integer(count));
    return rc;
}

static json_t *first_available(const struct build *b, const struct spec_devices *devices,
                               uint32_t count)
{
    CLEANUP(json_decrefp) json_t *list = json_array();
    for (size_t i = 0; i < devices->choice_count; i++) {
        json_t *choice = json_pack("{s:o}", "name", json_sprintf("choice-%zu", i));
        if (json_array_append_new(list, choice) < 0 ||
            fill_request(b, choice, devices, &devices->choices[i], count) < 0)
            return NULL;
    }
    return json_incref(list);
}

/* Adds the request KIND[-WHICH] and its name to names. */
static int add_request(struct build *b, json_t *names, const struct spec_devices *devices,
                       json_t *name_take, uint32_t count)
{
    CLEANUP(json_decrefp) json_t *name = name_take;
    CLEANUP(json_decrefp) json_t *request = json_pack("{s:O?}", "name", name);
    if (!name || !request)
        return -1;
    json_t *fields = request;
    if (devices->choice_count > 0) {
        if (json_object_set_new(request, "firstAvailable", first_available(b, devices, count)) < 0)
            return -1;
        return json_array_append(b->requests, request) | json_array_append(names, name);
    }
    if (b->api != CLAIMS_API_V1BETA1) {
        fields = json_object();
        if (json_object_set_new(request, "exactly", fields) < 0)
            return -1;
    }
    if (fill_request(b, fields, devices, NULL, count) < 0)
        return -1;
    return json_array_append(b->requests, request) | json_array_append(names, name);
}

/* In turns, GPU then NIC: the allocator goes through requests in order, so that a constraint that
 * cannot be met cuts the search at once. */
static int add_pairs(struct build *b, const struct layout *layout, const char *attribute)
{
    const struct spec_role *role = b->role;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < layout->pairs; i++) {
        json_t *requests =
            json_pack("[o, o]", json_sprintf("gpu-%u", i), json_sprintf("nic-%u", i));
        json_t *constraint =
            json_pack("{s:o, s:s}", "requests", requests, "matchAttribute", attribute);
        rc = json_array_append_new(b->constraints, constraint);
        if (rc == 0)
            rc = add_request(b, b->gpu_names, &role->gpus, json_sprintf("gpu-%u", i), layout->gpus);
        if (rc == 0)
            rc = add_request(b, b->nic_names, &role->nics, json_sprintf("nic-%u", i), layout->nics);
    }
    if (rc == 0 && layout->more_gpus)
        rc = add_request(b, b->gpu_names, &role->gpus, json_string("gpu-more"), layout->more_gpus);
    if (rc == 0 && layout->more_nics)
        rc = add_request(b, b->nic_names, &role->nics, json_string("nic-more"), layout->more_nics);
    return rc;
}

static int add_whole(struct build *b)
{
    const struct spec_role *role = b->role;
    int rc = 0;
    if (is_claimed(&role->gpus))
        rc = add_request(b, b->gpu_names, &role->gpus, json_string("gpu"), role->gpus.count);
    if (rc == 0 && is_claimed(&role->nics))
        rc = add_request(b, b->nic_names, &role->nics, json_string("nic"), role->nics.count);
    return rc;
}

/* As kubectl writes it. With other keys first, drivers could not write the claim's status: the API
 * server sorts them on the way, and takes the allocation, which has a copy, for changed. */
static json_t *sorted_copy(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    json_t *copy = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return copy;
}

static int add_match(struct build *b, const struct strlist *attributes, const json_t *names)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < attributes->count; i++)
        rc = json_array_append_new(b->constraints,
                                   json_pack("{s:o, s:s}", "requests", json_copy(unconst(names)),
                                             "matchAttribute", attributes->items[i]));
    return rc;
}

/* What the user wants of a kind as a whole: equal attributes, configuration. */
static int add_wishes(struct build *b, const struct spec_devices *devices, json_t *names)
{
    if (json_array_size(names) == 0)
        return 0;
    int rc = add_match(b, &devices->match, names);
    if (rc == 0 && devices->config)
        rc = json_array_append_new(b->configs,
                                   json_pack("{s:o, s:{s:s, s:o}}", "requests", json_copy(names),
                                             "opaque", "driver", devices->config_driver,
                                             "parameters", sorted_copy(devices->config)));
    return rc;
}

/* Behind the others, which are scarcer. Parts of one NUMA node would be near to half of the GPUs.
 */
static int add_cpus(struct build *b)
{
    const struct spec_devices *cpus = &b->role->cpus;
    if (!is_claimed(cpus))
        return 0;
    int rc = add_request(b, b->cpu_names, cpus, json_string("cpu"), cpus->count);
    if (rc == 0 && cpus->count > 1 && b->api == CLAIMS_API_V1)
        rc = json_array_append_new(b->constraints,
                                   json_pack("{s:[s], s:s}", "requests", "cpu", "distinctAttribute",
                                             CLAIMS_NUMA_ATTRIBUTE));
    return rc;
}

static int build_devices(struct build *b, unsigned step)
{
    struct layout layout = plan_layout(b->role, step);
    const char *attribute = rungs[claims_rung(b->role, step)].attribute;
    int rc = layout.pairs ? add_pairs(b, &layout, attribute) : add_whole(b);
    if (rc == 0)
        rc = add_cpus(b);
    if (rc == 0)
        rc = add_wishes(b, &b->role->gpus, b->gpu_names);
    if (rc == 0)
        rc = add_wishes(b, &b->role->nics, b->nic_names);
    CLEANUP(json_decrefp) json_t *all = json_copy(b->gpu_names);
    if (rc == 0)
        rc = json_array_extend(all, b->nic_names);
    if (rc == 0)
        rc = json_array_extend(all, b->cpu_names);
    return rc < 0 ? rc : add_match(b, &b->role->match, all);
}

int claims_spec(const struct spec_role *role, enum claims_api api, unsigned step,
                json_t **ret_claim_spec, struct drarun_error *err)
{
    if (!claims_wanted_by(role))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "spec.devices: nothing to claim");
    CLEANUP(json_decrefp) json_t *requests = json_array(), *constraints = json_array();
    CLEANUP(json_decrefp)
    json_t *configs = json_array(), *gpus = json_array(), *nics = json_array();
    CLEANUP(json_decrefp) json_t *cpus = json_array();
    struct build b = {role, api, requests, constraints, configs, gpus, nics, cpus};
    json_t *claim = json_object(), *devices = json_object();
    int rc = json_object_set_new(claim, "devices", devices);
    if (rc == 0)
        rc = build_devices(&b, step);
    if (rc == 0)
        rc = json_object_set(devices, "requests", requests);
    if (rc == 0 && json_array_size(constraints) > 0)
        rc = json_object_set(devices, "constraints", constraints);
    if (rc == 0 && json_array_size(configs) > 0)
        rc = json_object_set(devices, "config", configs);
    if (rc < 0) {
        json_decref(claim);
        return error_set(err, ENOMEM, "claim: out of memory");
    }
    *ret_claim_spec = claim;
    return 0;
}

/* What GPU and NIC of the first pair share, as those of each other one do; NULL: nothing. The
 * user's own constraints come behind it. */
static const char *pair_attribute(const json_t *claim_spec)
{
    const json_t *devices = json_object_get(claim_spec, "devices"), *constraint;
    size_t i;
    json_array_foreach(json_object_get(devices, "constraints"), i, constraint)
    {
        const json_t *requests = json_object_get(constraint, "requests");
        const char *gpu = json_string_value(json_array_get(requests, 0));
        const char *nic = json_string_value(json_array_get(requests, 1));
        if (json_array_size(requests) == 2 && gpu && nic && strcmp(gpu, "gpu-0") == 0 &&
            strcmp(nic, "nic-0") == 0)
            return json_string_value(json_object_get(constraint, "matchAttribute"));
    }
    return NULL;
}

bool claims_same_step(const json_t *claim_spec, const json_t *other)
{
    const char *one = pair_attribute(claim_spec), *two = pair_attribute(other);
    return one && two ? strcmp(one, two) == 0 : one == two;
}

/* ---- the NVLink domain ---- */

int claims_compute_domain(const struct job_spec *spec, json_t **ret_domain_spec,
                          json_t **ret_template, struct drarun_error *err)
{
    CLEANUP(json_decrefp)
    json_t *domain =
        json_pack("{s:i, s:{s:{s:o}}}", "numNodes", 0, "channel", "resourceClaimTemplate", "name",
                  json_sprintf("%s-channel", spec->name));
    CLEANUP(json_decrefp) json_t *user = json_deep_copy(spec->compute_domain);
    if (!domain || !user || json_object_update_recursive(domain, user) < 0)
        return error_set(err, ENOMEM, "ComputeDomain: out of memory");
    json_t *channel = json_object_get(domain, "channel");
    json_t *name = json_object_get(json_object_get(channel, "resourceClaimTemplate"), "name");
    if (!json_is_string(name))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "spec.computeDomain.channel.resourceClaimTemplate.name: expected a text");
    *ret_template = json_incref(name);
    *ret_domain_spec = TAKE_PTR(domain);
    return 0;
}
