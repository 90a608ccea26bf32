/* SPDX-License-Identifier: Apache-2.0 */
/* A claim's requests as devices of a spec. */
#include <string.h>

#include "jobs/derive/inventory/device_role.h"
#include "jobs/import/parts.h"
#include "jobs/spec/spec.h"
#include "lib/base/number.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

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
        "name deviceClassName selectors capacity tolerations allocationMode count exactly "
        "firstAvailable";
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(request->value, key, value)
    {
        if (words_has(known, key) || json_is_null(value) ||
            (strcmp(key, "adminAccess") == 0 && !json_is_true(value)))
            continue;
        reader_fail_key(request, key, "left out: devices of a job have no such setting");
    }
}

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
    json_t *one = json_object_get(a, key), *two = json_object_get(b, key);
    return one && two ? json_equal(one, two) : one == two;
}

/* Why a further request cannot count with the first one of its kind; NULL: it does. */
static const char *other_request(const json_t *device, const json_t *asked)
{
    static const char *const reasons[][2] = {
        {"class", "the first is of another class"},
        {"selector", "the first has other selectors"},
        {"capacity", "the first asks for other capacity"},
        {"tolerations", "the first has other tolerations"},
        {"firstAvailable", "the first has other choices"},
    };
    if (!json_is_integer(json_object_get(device, "count")) ||
        !json_is_integer(json_object_get(asked, "count")))
        return "one of both takes all devices";
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (!is_same(device, asked, reasons[i][0]))
            return reasons[i][1];
    return NULL;
}

/* asked: devices as of a spec, with count and class. */
static void add_device(json_t *spec, const struct reader_node *request, enum device_kind kind,
                       json_t *asked)
{
    json_t *devices = import_child(spec, "devices");
    json_t *device = import_child(devices, kind == DEVICE_GPU ? "gpus" : "nics");
    json_t *have = json_object_get(device, "count"), *more = json_object_get(asked, "count");
    const char *why = have ? other_request(device, asked) : NULL;
    if (json_object_get(device, "resource"))
        reader_fail(request, "left out: the container has these GPUs from a device plugin already");
    else if (why)
        reader_fail(request,
                    "a second request for devices of this kind is left out: %s, and a worker has "
                    "one kind of GPUs and one of NICs",
                    why);
    else if (have)
        json_object_set_new(device, "count",
                            json_integer(json_integer_value(have) + json_integer_value(more)));
    else
        json_object_update(device, asked);
}

static json_t *count_of(const struct reader_node *request)
{
    struct reader_node count;
    if (strcmp(import_text(request, "allocationMode"), "All") == 0)
        return json_string("all");
    return json_integer(reader_get(request, "count", &count) ? json_integer_value(count.value) : 1);
}

/* Which devices of the class: of a request, or of a choice. */
static void add_which(const struct reader_node *request, json_t *asked)
{
    json_t *tolerations = json_object_get(request->value, "tolerations");
    json_t *amounts = json_object_get(json_object_get(request->value, "capacity"), "requests");
    json_t *selectors = read_selectors(request);
    if (selectors)
        json_object_set_new(asked, "selector", selectors);
    if (json_object_size(amounts) > 0)
        json_object_set(asked, "capacity", amounts);
    if (json_array_size(tolerations) > 0)
        json_object_set(asked, "tolerations", tolerations);
    explain_request(request);
}

/* What the request asks for, DEVICE_OTHER where that has no place in a job, which is told. item:
 * what the request stands in, and has its name. */
static enum device_kind find_kind(const struct import_objects *o, const struct reader_node *item,
                                  const struct reader_node *request)
{
    const char *class =
        json_is_object(request->value) ? import_text(request, "deviceClassName") : "";
    const char *what = device_role_unsupported(class);
    if (!*class) {
        reader_fail(request, "left out: no deviceClassName");
        return DEVICE_OTHER;
    }
    if (json_is_true(json_object_get(request->value, "adminAccess"))) {
        reader_fail(request, "left out: adminAccess looks at devices of others, and a job's ranks "
                             "use their own");
        return DEVICE_OTHER;
    }
    enum device_kind kind = kind_of(o, class, item, request);
    if (kind == DEVICE_OTHER && what)
        reader_fail(request, "left out: %s (class %s) are not supported, only GPUs and NICs are",
                    what, class);
    else if (kind == DEVICE_OTHER)
        reader_fail(request,
                    "left out: neither the class %s nor the request's name or selectors say "
                    "whether these are GPUs or NICs: call the request gpu or nic",
                    class);
    return kind;
}

/* A group of CPUs with so much of its capacity, of dra-driver-cpu. */
static void take_cpus(json_t *spec, const struct reader_node *request)
{
    json_t *devices = import_child(spec, "devices"), *cpus = json_object_get(devices, "cpus");
    json_t *amounts = json_object_get(json_object_get(request->value, "capacity"), "requests");
    json_t *amount = json_object_get(amounts, SPEC_CPU_CAPACITY), *count = count_of(request);
    json_int_t groups = json_integer_value(count);
    int64_t each = json_integer_value(amount);
    json_decref(count);
    if (cpus)
        reader_fail(request, "a second request for CPUs is left out: a worker has one");
    else if (groups < 1 || !amount || json_object_size(amounts) > 1 ||
             (json_is_string(amount) &&
              number_parse("cpu", json_string_value(amount), 1, INT32_MAX, &each, NULL) < 0))
        reader_fail(request,
                    "left out: CPUs of a job are a whole number of the capacity " SPEC_CPU_CAPACITY
                    " of each group");
    else {
        cpus = import_child(devices, "cpus");
        json_object_set_new(cpus, "count", json_integer(groups * each));
        if (groups > 1)
            json_object_set_new(cpus, "groups", json_integer(groups));
        add_which(request, cpus);
        json_object_del(cpus, "capacity");
        if (json_object_del(cpus, "tolerations") == 0)
            reader_fail_key(request, "tolerations", "left out: CPUs of a job have none");
    }
    if (json_object_size(devices) == 0)
        json_object_del(spec, "devices");
}

static void take_exactly(const struct import_objects *o, json_t *spec,
                         const struct reader_node *item, const struct reader_node *request)
{
    if (json_is_object(request->value) &&
        strcmp(import_text(request, "deviceClassName"), SPEC_CPU_CLASS) == 0) {
        take_cpus(spec, request);
        return;
    }
    enum device_kind kind = find_kind(o, item, request);
    if (kind == DEVICE_CHANNEL)
        import_child(spec, "computeDomain");
    if (kind != DEVICE_GPU && kind != DEVICE_NIC)
        return;
    json_t *asked = json_pack("{s:o, s:s}", "count", count_of(request), "class",
                              import_text(request, "deviceClassName"));
    add_which(request, asked);
    add_device(spec, request, kind, asked);
    json_decref(asked);
}

/* Why a choice cannot stand beside the first one, which has this kind and count; NULL: it can. */
static const char *other_choice(enum device_kind kind, enum device_kind first, const json_t *count,
                                const json_t *first_count)
{
    if (kind == DEVICE_CHANNEL)
        return "a channel is no choice of devices: computeDomain asks for it";
    if (kind != first)
        return "earlier choices are of the other kind (GPUs or NICs), and a job asks for each kind "
               "separately";
    return json_equal(count, first_count) ? NULL
                                          : "its count differs from that of earlier choices, and a "
                                            "job has one count for all choices";
}

/* Each choice as a spec has it. The class of the first is that of all, as far as they do not say
 * another. */
static json_t *read_choices(const struct import_objects *o, const struct reader_node *item,
                            const struct reader_node *list, json_t *asked,
                            enum device_kind *ret_kind)
{
    json_t *choices = json_array();
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct reader_node request = reader_item(list, i);
        enum device_kind kind = find_kind(o, item, &request);
        if (kind == DEVICE_OTHER)
            continue;
        json_t *count = count_of(&request);
        const char *class = import_text(&request, "deviceClassName");
        bool is_first = json_array_size(choices) == 0;
        const char *why = other_choice(kind, is_first ? kind : *ret_kind, count,
                                       is_first ? count : json_object_get(asked, "count"));
        if (why) {
            reader_fail(&request, "this choice is left out: %s", why);
            json_decref(count);
            continue;
        }
        json_t *choice = json_object();
        if (is_first) {
            *ret_kind = kind;
            json_object_set(asked, "count", count);
            json_object_set_new(asked, "class", json_string(class));
        }
        add_which(&request, choice);
        if (json_object_size(choice) == 0 ||
            strcmp(class, json_string_value(json_object_get(asked, "class"))) != 0)
            json_object_set_new(choice, "class", json_string(class));
        json_array_append_new(choices, choice);
        json_decref(count);
    }
    return choices;
}

static void take_first_available(const struct import_objects *o, json_t *spec,
                                 const struct reader_node *item, const struct reader_node *list)
{
    enum device_kind kind = DEVICE_OTHER;
    json_t *asked = json_object(), *choices = read_choices(o, item, list, asked, &kind);
    if (json_array_size(choices) == 1) /* which is no choice any more */
        json_object_update(asked, json_array_get(choices, 0));
    else
        json_object_set(asked, "firstAvailable", choices);
    if (kind != DEVICE_OTHER)
        add_device(spec, list, kind, asked);
    json_decref(choices);
    json_decref(asked);
}

/* v1 and v1beta2 nest a request under exactly; v1beta1 does not. */
void import_request(const struct import_objects *o, const struct reader_node *item, json_t *spec)
{
    struct reader_node nested;
    if (!json_is_object(item->value))
        return;
    if (reader_get(item, "exactly", &nested) && json_is_object(nested.value))
        take_exactly(o, spec, item, &nested);
    else if (reader_get(item, "firstAvailable", &nested) && json_array_size(nested.value) > 0)
        take_first_available(o, spec, item, &nested);
    else
        take_exactly(o, spec, item, item);
}

const char *import_request_key(const struct import_objects *o, const struct reader_node *item)
{
    struct reader_node nested, request = *item;
    if (!json_is_object(item->value))
        return NULL;
    if (reader_get(item, "exactly", &nested) && json_is_object(nested.value))
        request = nested;
    else if (reader_get(item, "firstAvailable", &nested) && json_array_size(nested.value) > 0)
        request = reader_item(&nested, 0);
    const char *class =
        json_is_object(request.value) ? import_text(&request, "deviceClassName") : "";
    if (!*class)
        return NULL;
    if (strcmp(class, SPEC_CPU_CLASS) == 0)
        return "cpus";
    enum device_kind kind = kind_of(o, class, item, &request);
    return kind == DEVICE_GPU ? "gpus" : kind == DEVICE_NIC ? "nics" : NULL;
}
