/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's claims as devices of a spec. */
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/device_role.h"
#include "jobs/import/parts.h"
#include "jobs/manifests/pod_merge.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

struct claim { /* one entry of the pod's resourceClaims */
    struct reader_node entry, template, devices;
    struct reader_node outer, inner; /* spec, spec.spec: what devices stands in */
    const char *name;                /* in the pod */
    json_t *spec;                    /* of the job */
    json_t *stay;                    /* names of the claims that stay in the pod */
    json_t *became; /* their names in a worker's pod, of the others; null: that of its own claim */
    bool has_devices;
    const struct import_objects *objects;
};

static void take_request(struct claim *c, const struct reader_node *item)
{
    import_request(c->objects, item, c->spec);
}

/* "gpu/big" is a choice of the request gpu. */
static size_t request_length(const char *name)
{
    return strcspn(name, "/");
}

static bool has_name(const json_t *list, const char *name)
{
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each)
    {
        const char *text = json_string_value(each);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

/* Whether the list leaves out a choice of the request that is called so. */
static bool lacks_choice(const json_t *list, const json_t *request, const char *name)
{
    size_t i;
    const json_t *choice;
    json_array_foreach(json_object_get(request, "firstAvailable"), i, choice)
    {
        char whole[2 * IMPORT_NAME_ROOM];
        snprintf(whole, sizeof whole, "%s/%s", name, value_text_or(choice, "name", ""));
        if (!has_name(list, whole))
            return true;
    }
    return false;
}

/* Of a constraint or a configuration: it names some choices of firstAvailable, and not all. */
static bool is_over_some_choices(const struct claim *c, const struct reader_node *item)
{
    const json_t *named = json_object_get(item->value, "requests"), *each, *request;
    size_t i, k;
    json_array_foreach(named, i, each)
    {
        const char *text = json_string_value(each);
        if (!text || !text[request_length(text)])
            continue;
        json_array_foreach(json_object_get(c->devices.value, "requests"), k, request)
        {
            const char *name = value_text_or(request, "name", "");
            if (strlen(name) == request_length(text) && strncmp(name, text, strlen(name)) == 0 &&
                !has_name(named, name) && lacks_choice(named, request, name))
                return true;
        }
    }
    return false;
}

/* Whether the list names the request, or a choice of it. */
static bool is_named(const json_t *list, const char *name)
{
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each)
    {
        const char *text = json_string_value(each);
        if (text && strlen(name) == request_length(text) && strncmp(text, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static void take_config(struct claim *c, const struct reader_node *item)
{
    struct reader_node opaque, parameters;
    if (json_is_object(item->value) && is_over_some_choices(c, item)) {
        reader_fail(item, "this configuration is left out: it applies to some choices of "
                          "firstAvailable only, and a job has one configuration for all choices");
        return;
    }
    if (!json_is_object(item->value) || !reader_get(item, "opaque", &opaque) ||
        !json_is_object(opaque.value) || !reader_get(&opaque, "parameters", &parameters) ||
        !json_is_object(parameters.value)) {
        reader_fail(item, "this configuration is left out: it has no opaque.parameters");
        return;
    }
    const char *driver = import_text(&opaque, "driver");
    if (strncmp(driver, "compute-domain", strlen("compute-domain")) == 0)
        return; /* made with the domain */
    json_t *devices = json_object_get(c->spec, "devices");
    json_t *device = json_object_get(devices, device_role(driver) == DEVICE_GPU ? "gpus" : "nics");
    if (!device || json_object_get(device, "config")) {
        reader_fail(&opaque, "left out: %s",
                    device ? "these devices have a configuration already"
                           : "no devices of this driver were asked for");
        return;
    }
    json_object_set(device, "config", parameters.value);
    json_object_set_new(device, "driver", json_string(driver));
}

/* Kinds of devices as bits, and their keys. */
enum { GPUS = 1, NICS = 2, CPUS = 4 };
static const char *const keys[] = {"gpus", "nics", "cpus"};

static unsigned int kind_of_key(const char *key)
{
    for (size_t i = 0; key && i < ARRAY_LEN(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return 1u << i;
    return 0;
}

/* Kinds that the job claims, and does not have from a device plugin. */
static unsigned int claimed_kinds(const json_t *devices)
{
    unsigned int kinds = 0;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *device = json_object_get(devices, keys[i]);
        kinds |= device && !json_object_get(device, "resource") ? 1u << i : 0u;
    }
    return kinds;
}

/* Kinds of the claim's requests that the constraint is over; without requests it is over all of
 * them. ret_left: kinds of the others. */
static unsigned int covered_kinds(const struct claim *c, const struct reader_node *constraint,
                                  unsigned int *ret_left)
{
    const json_t *named = json_object_get(constraint->value, "requests");
    struct reader_node list;
    unsigned int covered = 0;
    *ret_left = 0;
    if (!reader_get(&c->devices, "requests", &list) && !reader_get(&c->inner, "requests", &list))
        return 0;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        unsigned int kind = kind_of_key(import_request_key(c->objects, &item));
        if (json_array_size(named) == 0 || is_named(named, value_text_or(item.value, "name", "")))
            covered |= kind;
        else
            *ret_left |= kind;
    }
    return covered;
}

static void add_match(json_t *holder, const char *attribute)
{
    json_t *list = json_object_get(holder, "match");
    if (!list) {
        list = json_array();
        json_object_set_new(holder, "match", list);
    }
    json_array_append_new(list, json_string(attribute));
}

/* False: a job cannot say so. */
static bool take_match(const struct claim *c, const struct reader_node *item, const char *attribute)
{
    json_t *devices = json_object_get(c->spec, "devices");
    unsigned int left, kinds = covered_kinds(c, item, &left), claimed = claimed_kinds(devices);
    if (kinds == 0 || (kinds & ~claimed))
        return false;
    if (strstr(attribute, "pcieRoot") && kinds == (GPUS | NICS)) {
        json_object_set_new(devices, "align", json_string("required"));
        return true;
    }
    if ((kinds & left) || kinds == CPUS)
        return false;
    if (kinds != GPUS && kinds != NICS && kinds != claimed)
        return false; /* it would be over the others, too */
    add_match(kinds == GPUS   ? json_object_get(devices, "gpus")
              : kinds == NICS ? json_object_get(devices, "nics")
                              : devices,
              attribute);
    return true;
}

static void take_constraint(struct claim *c, const struct reader_node *item)
{
    const char *attribute = json_is_object(item->value) ? import_text(item, "matchAttribute") : "";
    const char *distinct =
        json_is_object(item->value) ? import_text(item, "distinctAttribute") : "";
    if (json_is_object(item->value) && is_over_some_choices(c, item))
        reader_fail(item, "this constraint is left out: it applies to some choices of "
                          "firstAvailable only, and a job's constraints apply to all choices");
    else if (*distinct)
        reader_fail(item,
                    "this constraint is left out: a job cannot ask for devices that differ in %s",
                    distinct);
    else if (!*attribute)
        reader_fail(item, "this constraint is left out");
    else if (!take_match(c, item, attribute))
        reader_fail(item, "this constraint is left out: it does not cover all GPUs, all NICs or "
                          "all claimed devices");
}

/* Some container must list the claim: the others get no CDI edit. */
static void check_listed(const struct claim *c, const struct reader_node *pod)
{
    json_t *containers = json_object_get(pod->value, "containers"), *container = NULL;
    size_t i = 0;
    json_array_foreach(containers, i, container)
    {
        json_t *claims = json_object_get(json_object_get(container, "resources"), "claims");
        if (value_find(claims, "name", c->name))
            return;
    }
    reader_fail(&c->entry,
                "no container lists the claim %s under resources.claims, so none would "
                "get its CDI edits; drarun lists every claim",
                c->name);
}

static void each(struct claim *c, const char *key,
                 void (*take)(struct claim *, const struct reader_node *))
{
    struct reader_node list;
    if (!reader_get(&c->devices, key, &list)) {
        if (!reader_get(&c->inner, key, &list))
            return;
        reader_fail_key(&c->inner, key,
                        "is beside devices, where the API has no %s: read as if it were inside",
                        key);
    }
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        take(c, &item);
    }
}

static void become(struct claim *c, json_t *name_take)
{
    if (json_object_set_new(c->became, c->name, name_take) < 0)
        reader_fail_memory(&c->entry);
}

/* A claim that is somewhere else stays what it is, and all workers hold it. */
static void share(struct claim *c, const char *claim)
{
    json_t *devices = import_child(c->spec, "devices");
    json_t *list = json_object_get(devices, "shared");
    size_t at = 0, count = json_array_size(list);
    while (at < count && strcmp(value_text_or(json_array_get(list, at), "claim", ""), claim) != 0)
        at++;
    become(c, json_sprintf(POD_MERGE_SHARED "%zu", at));
    if (at < count)
        return;
    if (!list)
        json_object_set_new(devices, "shared", list = json_array());
    json_array_append_new(list, json_pack("{s:s}", "claim", claim));
    reader_fail(&c->entry,
                "the ResourceClaim %s is not among these manifests: all workers share it by its "
                "name (devices.shared), where its devices allow it",
                claim);
}

/* The cluster has the template: each worker gets a claim of it as the manifest's pods do. */
static void keep(struct claim *c, const char *template)
{
    if (json_array_append_new(c->stay, json_string(c->name)) < 0)
        reader_fail_memory(&c->entry);
    reader_fail(&c->entry,
                "kept unchanged: ResourceClaimTemplate %s is not among these manifests, so its "
                "devices are unknown until the workers run; to get them into spec.devices, add the "
                "output of kubectl get resourceclaimtemplate %s -o yaml",
                template, template);
}

/* Finds the claim's devices: of a template, or of a claim. */
static bool find_devices(struct claim *c)
{
    const char *template = import_text(&c->entry, "resourceClaimTemplateName");
    const char *claim = import_text(&c->entry, "resourceClaimName");
    const struct reader_node *found =
        *template ? import_find(c->objects, "ResourceClaimTemplate", template)
                  : import_find(c->objects, "ResourceClaim", claim);
    if (!found && strstr(template, "channel")) {
        import_child(c->spec, "computeDomain"); /* the domain's controller makes the template */
        become(c, json_string(POD_MERGE_CHANNEL));
        return false;
    }
    if (!found && !*template && *claim) {
        share(c, claim);
        return false;
    }
    if (!found && !*template) {
        reader_fail(&c->entry, "left out: it names neither a claim nor a template of one");
        return false;
    }
    if (!found) {
        keep(c, template);
        return false;
    }
    c->template = *found;
    if (!*template)
        reader_fail(&c->entry, "one claim for all pods becomes one for each worker: no claim spans "
                               "nodes");
    if (!reader_get(&c->template, "spec", &c->outer) || !json_is_object(c->outer.value))
        return false;
    c->inner = c->outer;
    if (*template && (!reader_get(&c->outer, "spec", &c->inner) || !json_is_object(c->inner.value)))
        return false;
    import_rest(&c->outer, "devices spec metadata", "a claim of a job has no such setting");
    if (*template && json_object_get(c->outer.value, "metadata"))
        reader_fail_key(&c->outer, "metadata",
                        "left out: claims of a job have the labels and annotations of the job");
    if (reader_get(&c->inner, "devices", &c->devices) && json_is_object(c->devices.value)) {
        import_rest(&c->devices, "requests config constraints",
                    "a claim of a job has no such setting");
        return true;
    }
    reader_fail(&c->inner, "left out: no devices; resourceClassName and parameters are of "
                           "v1alpha2, which no release of Kubernetes after 1.30 knows");
    return false;
}

static const char *const container_lists[] = {"containers", "initContainers"};

/* A container that sees one request of a claim sees all of them here. */
static void explain_listed(const struct reader_node *pod, const char *key, const json_t *stay)
{
    struct reader_node containers, resources, claims;
    if (!reader_get(pod, key, &containers))
        return;
    for (size_t i = 0; i < json_array_size(containers.value); i++) {
        struct reader_node container = reader_item(&containers, i);
        if (!json_is_object(container.value) ||
            !import_object(&container, "resources", &resources) ||
            !reader_get(&resources, "claims", &claims))
            continue;
        for (size_t k = 0; k < json_array_size(claims.value); k++) {
            struct reader_node item = reader_item(&claims, k);
            if (json_is_object(item.value) && !has_name(stay, import_text(&item, "name")))
                import_rest(&item, "name", "the container gets all devices of the claim");
        }
    }
}

/* Entries of the list at key by other names; a list that is empty goes, too. */
static void remove_others(json_t *holder, const char *key, const json_t *names)
{
    json_t *list = json_object_get(holder, key);
    for (size_t i = json_array_size(list); i-- > 0;)
        if (!has_name(names, value_text_or(json_array_get(list, i), "name", "")))
            json_array_remove(list, i);
    if (json_array_size(list) == 0)
        json_object_del(holder, key);
}

/* Of a domain, which has a claim of its own. */
static bool is_channel(const struct claim *c)
{
    const json_t *request = json_array_get(json_object_get(c->devices.value, "requests"), 0);
    const json_t *exactly = json_object_get(request, "exactly");
    const char *class = value_text_or(exactly ? exactly : request, "deviceClassName", "");
    return device_role(class) == DEVICE_CHANNEL;
}

static bool claims_devices(const json_t *spec)
{
    static const char *const kinds[] = {"gpus", "nics"};
    const json_t *devices = json_object_get(spec, "devices");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (json_object_get(json_object_get(devices, kinds[i]), "class"))
            return true;
    return json_object_get(devices, "cpus") != NULL;
}

/* The name by which a worker's pod has the claim; NULL: its devices are none of the job's. */
static const char *name_now(const struct claim *c, const char *name)
{
    const json_t *became = json_object_get(c->became, name);
    if (json_is_null(became))
        return claims_devices(c->spec) ? POD_MERGE_CLAIM : NULL;
    return json_string_value(became);
}

/* Beside the ranks' container, which gets all claims, others list those that they share. */
static void rename_listed(const struct claim *c, json_t *container)
{
    json_t *resources = json_object_get(container, "resources"), *item = NULL;
    json_t *list = json_array();
    size_t i = 0;
    json_array_foreach(json_object_get(resources, "claims"), i, item)
    {
        const char *old = value_text_or(item, "name", "");
        const char *now = has_name(c->stay, old) ? NULL : name_now(c, old);
        if (has_name(c->stay, old))
            json_array_append(list, item);
        else if (now && !value_find(list, "name", now))
            json_array_append_new(list, json_pack("{s:s}", "name", now));
    }
    if (json_array_size(list) > 0)
        json_object_set(resources, "claims", list);
    else
        json_object_del(resources, "claims");
    json_decref(list);
}

static void remove_claims(const struct claim *c, json_t *template)
{
    json_t *pod = json_object_get(template, "spec"), *container = NULL;
    size_t i = 0;
    remove_others(pod, "resourceClaims", c->stay);
    for (size_t l = 0; l < ARRAY_LEN(container_lists); l++)
        json_array_foreach(json_object_get(pod, container_lists[l]), i, container)
        {
            json_t *resources = json_object_get(container, "resources");
            if (!json_object_get(resources, "claims"))
                continue;
            if (l == 0 && i == 0)
                remove_others(resources, "claims", c->stay);
            else
                rename_listed(c, container);
            if (json_object_size(resources) == 0)
                json_object_del(container, "resources");
        }
}

static void take_claim(struct claim *c, const struct reader_node *pod)
{
    c->name = import_text(&c->entry, "name");
    check_listed(c, pod);
    c->has_devices = find_devices(c);
    if (!c->has_devices)
        return;
    become(c, is_channel(c) ? json_string(POD_MERGE_CHANNEL) : json_null());
    each(c, "requests", take_request);
    each(c, "config", take_config);
}

/* Constraints last: whether one is over all devices of the job is known then. */
static void take_claims(const struct claim *all, const struct reader_node *pod,
                        const struct reader_node *list)
{
    size_t count = json_array_size(list->value);
    struct claim *claims = count ? calloc(count, sizeof *claims) : NULL;
    if (count && !claims)
        reader_fail_memory(list);
    for (size_t i = 0; claims && i < count; i++) {
        claims[i] = *all;
        claims[i].entry = reader_item(list, i);
        if (json_is_object(claims[i].entry.value))
            take_claim(&claims[i], pod);
    }
    for (size_t i = 0; claims && i < count; i++)
        if (claims[i].has_devices)
            each(&claims[i], "constraints", take_constraint);
    free(claims);
}

void import_claims(const struct import_objects *o, const struct reader_node *pod, json_t *template,
                   json_t *spec)
{
    struct reader_node list;
    if (!reader_get(pod, "resourceClaims", &list))
        return;
    const struct claim all = {
        .spec = spec, .stay = json_array(), .became = json_object(), .objects = o};
    take_claims(&all, pod, &list);
    for (size_t l = 0; l < ARRAY_LEN(container_lists); l++)
        explain_listed(pod, container_lists[l], all.stay);
    remove_claims(&all, template);
    json_decref(all.stay);
    json_decref(all.became);
}
