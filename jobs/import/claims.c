/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's claims as devices of a spec. */
#include <string.h>

#include "jobs/derive/device_role.h"
#include "jobs/import/parts.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

struct claim { /* one entry of the pod's resourceClaims */
    struct reader_node entry, template, devices, requests;
    struct reader_node outer, inner; /* spec, spec.spec: what devices stands in */
    const char *name;                /* in the pod */
    json_t *spec;                    /* of the job */
    const struct import_objects *objects;
};

/* What a DeviceClass among the manifests selects, as text: its driver, and attributes of its
 * devices alone. */
static enum device_kind class_role(const struct import_objects *o, const char *class)
{
    struct reader_node spec;
    const struct reader_node *found = import_find(o, "DeviceClass", class);
    bool has = found && reader_get(found, "spec", &spec);
    cleanup_free char *text = has ? json_dumps(spec.value, 0) : NULL;
    return device_role(text);
}

/* The class says it, or what it selects, the request's name, its selectors: the first that does. */
static enum device_kind kind_of(const struct import_objects *o, const char *class,
                                const struct reader_node *item, const struct reader_node *request)
{
    enum device_kind kind = device_role(class);
    cleanup_free char *selectors = NULL;
    if (kind == DEVICE_OTHER && !device_role_unsupported(class))
        kind = class_role(o, class);
    if (kind == DEVICE_OTHER)
        kind = device_role(import_text(item, "name"));
    if (kind == DEVICE_OTHER && !device_role_unsupported(class)) {
        selectors = json_dumps(json_object_get(request->value, "selectors"), 0);
        kind = device_role(selectors);
    }
    return kind;
}

/* Brackets outside of texts: 0, or how many are open at the end (negative: one too many closed). */
static int open_brackets(const char *p)
{
    int depth = 0;
    for (; *p && depth >= 0; p++) {
        if (*p == '"' || *p == '\'') {
            char quote = *p++;
            while (*p && *p != quote)
                p += *p == '\\' && p[1] ? 2 : 1;
            if (!*p)
                break;
        } else if (strchr("([{", *p)) {
            depth++;
        } else if (strchr(")]}", *p)) {
            depth--;
        }
    }
    return depth;
}

/* Attributes that no longer exist, or that pin a worker. NULL: the selector can stay. */
static const char *stale(const char *cel)
{
    if (strstr(cel, "gpu.nvidia.com") && (strstr(cel, ".index") || strstr(cel, ".minor")))
        return "index and minor left the driver's attributes with release 25.8: no GPU would "
               "match; align chooses GPUs near their NICs";
    if (strstr(cel, "ifName ==") || strstr(cel, "ifName=="))
        return "it names one NIC of each node, which pins every worker to that NIC; align takes "
               "one near the GPU";
    if (strstr(cel, ".ifName"))
        return "it chooses NICs by the names of their interfaces, which is chance where GPUs are "
               "not chosen with them; align does it by PCIe";
    return NULL;
}

static void take_selector(const struct reader_node *item, json_t *device)
{
    struct reader_node cel, expression;
    if (!json_is_object(item->value) || !reader_get(item, "cel", &cel) ||
        !json_is_object(cel.value) || !reader_get(&cel, "expression", &expression)) {
        reader_fail(item, "this selector is left out: it has no cel.expression");
        return;
    }
    const char *text = json_string_value(expression.value);
    if (!text || !*text)
        return;
    int open = open_brackets(text);
    const char *why = open > 0 ? "a bracket is not closed; an API server refuses it too"
                      : open < 0
                          ? "a bracket is closed that was not open; an API server refuses it "
                            "too"
                          : stale(text);
    bool both = why && strstr(text, ".rdma == true");
    if (why)
        reader_fail(&expression, "the selector is left out%s: %s",
                    both ? " but for rdma == true" : "", why);
    if (why && !both)
        return;
    json_t *list = json_object_get(device, "selector");
    if (!list) {
        list = json_array();
        json_object_set_new(device, "selector", list);
    }
    size_t length = strlen(text);
    while (length > 0 && strchr(" \n\t", text[length - 1]))
        length--;
    json_array_append_new(list, both ? json_string("device.attributes[\"dra.net\"].rdma == true")
                                     : json_stringn(text, length));
}

/* The selectors of a request as devices have them: a text, a list, or NULL where it has none. */
static json_t *read_selectors(const struct reader_node *request)
{
    struct reader_node selectors;
    json_t *holder = json_object();
    if (reader_get(request, "selectors", &selectors))
        for (size_t i = 0; i < json_array_size(selectors.value); i++) {
            struct reader_node item = reader_item(&selectors, i);
            take_selector(&item, holder);
        }
    json_t *list = json_incref(json_object_get(holder, "selector"));
    json_decref(holder);
    if (json_array_size(list) != 1)
        return list;
    json_t *only = json_incref(json_array_get(list, 0));
    json_decref(list);
    return only;
}

/* What a request may say and devices of a job do not. */
static void explain_request(const struct reader_node *request)
{
    static const char known[] =
        "name deviceClassName selectors tolerations allocationMode count exactly firstAvailable";
    static const char *const reasons[][2] = {
        {"capacity", "a job asks for no share of a device; the driver's default is taken"},
    };
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(request->value, key, value)
    {
        const char *why = "devices of a job have no such setting";
        if (words_index(known, key, strlen(key)) >= 0 || json_is_null(value) ||
            (strcmp(key, "adminAccess") == 0 && !json_is_true(value)))
            continue;
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
            if (strcmp(key, reasons[i][0]) == 0)
                why = reasons[i][1];
        reader_fail_key(request, key, "left out: %s", why);
    }
}

/* Why a further request cannot count with the first one of its kind; NULL: it does. */
static const char *other_request(const json_t *device, const char *class, bool all,
                                 const json_t *selectors)
{
    const char *other = json_string_value(json_object_get(device, "class"));
    json_t *first = json_object_get(device, "selector");
    if (!other || strcmp(other, class) != 0)
        return "the first is of another class";
    if (all || !json_is_integer(json_object_get(device, "count")))
        return "one of both takes all devices";
    bool same = first && selectors ? json_equal(first, selectors) : first == selectors;
    return same ? NULL : "the first has other selectors";
}

static void take_device(struct claim *c, const struct reader_node *request, const char *key,
                        const char *class)
{
    struct reader_node count;
    json_t *devices = import_child(c->spec, "devices"), *device = import_child(devices, key);
    bool all = strcmp(import_text(request, "allocationMode"), "All") == 0;
    json_int_t number = reader_get(request, "count", &count) ? json_integer_value(count.value) : 1;
    if (json_object_get(device, "resource")) {
        reader_fail(request, "left out: the container has these GPUs from a device plugin already");
        return;
    }
    json_t *selectors = read_selectors(request), *have = json_object_get(device, "count");
    const char *why = have ? other_request(device, class, all, selectors) : NULL;
    explain_request(request);
    if (why) {
        reader_fail(request,
                    "a second request for devices of this kind is left out: %s, and a worker has "
                    "one kind of GPUs and one of NICs",
                    why);
    } else if (have) {
        json_object_set_new(device, "count", json_integer(json_integer_value(have) + number));
    } else {
        json_object_set_new(device, "count", all ? json_string("all") : json_integer(number));
        json_object_set_new(device, "class", json_string(class));
        if (selectors)
            json_object_set(device, "selector", selectors);
        if (json_array_size(json_object_get(request->value, "tolerations")) > 0)
            json_object_set(device, "tolerations", json_object_get(request->value, "tolerations"));
    }
    json_decref(selectors);
}

/* v1 and v1beta2 nest a request under exactly; v1beta1 does not. */
static void take_request(struct claim *c, const struct reader_node *item)
{
    struct reader_node nested, first;
    struct reader_node request = *item;
    if (!json_is_object(item->value))
        return;
    if (reader_get(item, "exactly", &nested) && json_is_object(nested.value)) {
        request = nested;
    } else if (reader_get(item, "firstAvailable", &nested) && json_array_size(nested.value) > 0) {
        first = reader_item(&nested, 0);
        reader_fail(&nested, "of firstAvailable only the first choice is carried over");
        request = first;
    }
    const char *class =
        json_is_object(request.value) ? import_text(&request, "deviceClassName") : "";
    if (!*class) {
        reader_fail(&request, "left out: no deviceClassName");
        return;
    }
    if (json_is_true(json_object_get(request.value, "adminAccess"))) {
        reader_fail(&request, "left out: adminAccess looks at devices of others, and a job's ranks "
                              "use their own");
        return;
    }
    const char *what = device_role_unsupported(class);
    switch (kind_of(c->objects, class, item, &request)) {
    case DEVICE_GPU:
        take_device(c, &request, "gpus", class);
        return;
    case DEVICE_NIC:
        take_device(c, &request, "nics", class);
        return;
    case DEVICE_CHANNEL:
        import_child(c->spec, "computeDomain");
        return;
    default:
        if (what)
            reader_fail(&request,
                        "left out: %s (class %s) are not supported, only GPUs and NICs are", what,
                        class);
        else
            reader_fail(&request,
                        "left out: neither the class %s nor the request's name or selectors say "
                        "whether these are GPUs or NICs: call the request gpu or nic",
                        class);
    }
}

static void take_config(struct claim *c, const struct reader_node *item)
{
    struct reader_node opaque, parameters;
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

/* A constraint without requests is over all of them. */
static bool is_over_all(const struct claim *c, const struct reader_node *constraint)
{
    size_t named = json_array_size(json_object_get(constraint->value, "requests"));
    return named == 0 || named == json_array_size(json_object_get(c->devices.value, "requests"));
}

static void take_constraint(struct claim *c, const struct reader_node *item)
{
    const char *attribute = json_is_object(item->value) ? import_text(item, "matchAttribute") : "";
    json_t *devices = json_object_get(c->spec, "devices");
    bool both = json_object_get(devices, "gpus") && json_object_get(devices, "nics");
    if (strstr(attribute, "pcieRoot") && both) {
        json_object_set_new(devices, "align", json_string("required"));
        return;
    }
    json_t *device =
        both ? devices
             : json_object_get(devices, json_object_get(devices, "gpus") ? "gpus" : "nics");
    if (!*attribute || !device || (both && !is_over_all(c, item))) {
        const char *distinct =
            json_is_object(item->value) ? import_text(item, "distinctAttribute") : "";
        if (*distinct)
            reader_fail(item, "this constraint is left out: devices of a job may agree in %s",
                        distinct);
        else
            reader_fail(item, "this constraint is left out%s",
                        *attribute ? ": it is not over all GPUs, all NICs or both" : "");
        return;
    }
    json_array_append_new(json_object_get(device, "match")
                              ? json_object_get(device, "match")
                              : (json_object_set_new(device, "match", json_array()),
                                 json_object_get(device, "match")),
                          json_string(attribute));
}

/* Some container must list the claim: the others get no CDI edit. */
static void check_listed(const struct claim *c, const struct reader_node *pod)
{
    json_t *containers = json_object_get(pod->value, "containers"), *container = NULL, *item = NULL;
    size_t i = 0, k = 0;
    json_array_foreach(containers, i, container)
    {
        json_t *claims = json_object_get(json_object_get(container, "resources"), "claims");
        json_array_foreach(claims, k, item)
        {
            const char *name = json_string_value(json_object_get(item, "name"));
            if (name && strcmp(name, c->name) == 0)
                return;
        }
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
                        "stands beside devices, where the API knows no %s; taken as "
                        "if it stood inside",
                        key);
    }
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        take(c, &item);
    }
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
        return false;
    }
    if (!found) {
        reader_fail(&c->entry, "left out: %s %s is not among these manifests",
                    *template ? "the ResourceClaimTemplate" : "the ResourceClaim",
                    *template ? template : claim);
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

/* A container that sees one request of a claim sees all of them here. */
static void explain_listed(const struct reader_node *pod)
{
    struct reader_node containers, resources, claims;
    if (!reader_get(pod, "containers", &containers))
        return;
    for (size_t i = 0; i < json_array_size(containers.value); i++) {
        struct reader_node container = reader_item(&containers, i);
        if (!json_is_object(container.value) ||
            !import_object(&container, "resources", &resources) ||
            !reader_get(&resources, "claims", &claims))
            continue;
        for (size_t k = 0; k < json_array_size(claims.value); k++) {
            struct reader_node item = reader_item(&claims, k);
            if (json_is_object(item.value))
                import_rest(&item, "name", "the container gets all devices of the claim");
        }
    }
}

static void remove_claims(json_t *template)
{
    json_t *pod = json_object_get(template, "spec"), *container = NULL;
    size_t i = 0;
    json_object_del(pod, "resourceClaims");
    json_array_foreach(json_object_get(pod, "containers"), i, container)
    {
        json_t *resources = json_object_get(container, "resources");
        json_object_del(resources, "claims");
        if (json_is_object(resources) && json_object_size(resources) == 0)
            json_object_del(container, "resources");
    }
}

void import_claims(const struct import_objects *o, const struct reader_node *pod, json_t *template,
                   json_t *spec)
{
    struct reader_node list;
    if (!reader_get(pod, "resourceClaims", &list))
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct claim c = {.entry = reader_item(&list, i), .spec = spec, .objects = o};
        if (!json_is_object(c.entry.value))
            continue;
        c.name = import_text(&c.entry, "name");
        check_listed(&c, pod);
        if (!find_devices(&c))
            continue;
        each(&c, "requests", take_request);
        each(&c, "config", take_config);
        each(&c, "constraints", take_constraint);
    }
    explain_listed(pod);
    remove_claims(template);
}
