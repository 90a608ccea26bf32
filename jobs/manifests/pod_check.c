/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/pod_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/pod_amounts.h"
#include "jobs/manifests/pod_merge.h"
#include "jobs/spec/k8s_name.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/base/strlist.h"
#include "lib/dra/quantity_read.h"
#include "lib/doc/value.h"

#define PATH_SIZE 1024
#define MESSAGE_SIZE 512
#define PORT_NAME_MAX 15

struct check {
    pod_check_fn add;
    void *arg;
    const json_t *pod;
};

struct place {
    char path[PATH_SIZE];
};

/* One thing that is looked at, where an object has such a member. */
struct rule {
    const char *key;
    void (*look)(const struct check *c, const struct place *at, const json_t *value);
};

__attribute__((format(printf, 2, 3))) static struct place below(const struct place *at,
                                                                const char *format, ...)
{
    struct place place = *at;
    size_t used = strlen(place.path);
    va_list list;
    va_start(list, format);
    vsnprintf(place.path + used, sizeof place.path - used, format, list);
    va_end(list);
    return place;
}

__attribute__((format(printf, 3, 4))) static void
refuse(const struct check *c, const struct place *at, const char *format, ...)
{
    char message[MESSAGE_SIZE] = "the API server would reject it: ";
    size_t used = strlen(message);
    va_list list;
    va_start(list, format);
    vsnprintf(message + used, sizeof message - used, format, list);
    va_end(list);
    c->add(c->arg, at->path, message);
}

static void look_at_all(const struct check *c, const struct place *at, const json_t *object,
                        const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, rules[i].key);
        struct place own = below(at, ".%s", rules[i].key);
        if (value)
            rules[i].look(c, &own, value);
    }
}

/* ---- members and items ---- */

/* How many of the words, separated by spaces, the object has as keys. */
static size_t count_members(const json_t *object, const char *words)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    value_foreach(object, key, value)
    {
        count += words_has(words, key);
    }
    return count;
}

/* One of an object's members says what it is. */
static void check_one_of(const struct check *c, const struct place *at, const json_t *object,
                         const char *words)
{
    size_t count = count_members(object, words), length;
    struct buf list = BUF_INIT;
    if (count == 1)
        return;
    for (const char *word, *next = words; (word = words_next(&next, &length));)
        buf_printf(&list, "%s%.*s", list.len ? ", " : "", (int)length, word);
    refuse(c, at, "expected one of %s; got %zu", list.data ? list.data : words, count);
    buf_done(&list);
}

/* The item of the list before `end` whose `key` is the text. */
static const json_t *find_before(const json_t *list, size_t end, const char *key, const char *text)
{
    for (size_t i = 0; i < end; i++) {
        const json_t *item = json_array_get(list, i);
        if (strcmp(value_text_or(item, key, ""), text) == 0)
            return item;
    }
    return NULL;
}

static const json_t *find_named(const json_t *list, const char *name)
{
    return find_before(list, json_array_size(list), "name", name);
}

/* Names of a list's items, which are labels and differ. */
static void check_name(const struct check *c, const struct place *at, const json_t *list,
                       size_t index)
{
    const char *name = value_text_or(json_array_get(list, index), "name", "");
    struct place own = below(at, ".name");
    if (!k8s_is_label(name))
        refuse(c, &own, "a name has at most %d lower case letters, digits and inner \"-\"",
               K8S_LABEL_MAX);
    else if (find_before(list, index, "name", name))
        refuse(c, &own, "another entry has this name");
}

static bool has_backstep(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
            return true;
    return false;
}

/* ---- volumes and mounts ---- */

static void check_volumes(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *volume;
    json_array_foreach(list, i, volume)
    {
        struct place own = below(at, "[\"%s\"]", value_text_or(volume, "name", ""));
        size_t sources = json_object_size(volume) - 1;
        check_name(c, &own, list, i);
        if (sources > 1) /* none: an emptyDir */
            refuse(c, &own, "a volume has one source, and this one has %zu", sources);
    }
}

static void check_sub_path(const struct check *c, const struct place *at, const json_t *mount)
{
    static const char *const keys[] = {"subPath", "subPathExpr"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *path = value_text_or(mount, keys[i], "");
        if (*path == '/' || has_backstep(path))
            refuse(c, at, "%s must be relative to the volume, without ..", keys[i]);
    }
    if (*value_text_or(mount, keys[0], "") && *value_text_or(mount, keys[1], ""))
        refuse(c, at, "subPath and subPathExpr exclude each other");
}

static void check_mounts(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *mount;
    json_array_foreach(list, i, mount)
    {
        const char *name = value_text_or(mount, "name", "");
        const char *path = value_text_or(mount, "mountPath", "");
        struct place own = below(at, "[\"%s\"]", path);
        const json_t *other = find_before(list, i, "mountPath", path);
        if (!find_named(json_object_get(c->pod, "volumes"), name))
            refuse(c, &own, "no volume is called \"%.80s\": add one to volumes", name);
        if (other)
            refuse(c, &own, "the volumes %.80s and %.80s are both mounted at %.200s: drop one",
                   value_text_or(other, "name", ""), name, path);
        check_sub_path(c, &own, mount);
    }
}

/* ---- amounts and claims ---- */

/* One of Kubernetes' own, whose request and limit may differ but for huge pages. */
static bool is_native(const char *name)
{
    return !strchr(name, '/') || strstr(name, "kubernetes.io/");
}

static bool is_resource(const char *name)
{
    return k8s_is_qualified(name) && (strchr(name, '/') || pod_amount_is_huge_pages(name) ||
                                      words_has("cpu memory ephemeral-storage", name));
}

/* False: what we cannot compare. */
static bool read_amount(const json_t *value, struct cel_quantity *ret_amount)
{
    return value && quantity_read(value, "", ret_amount, NULL) == 0;
}

static bool is_whole(struct cel_quantity amount)
{
    for (; amount.scale < 0 && amount.digits % 10 == 0 && amount.digits != 0; amount.scale++)
        amount.digits /= 10;
    return amount.scale >= 0 || amount.digits == 0;
}

static void check_amount(const struct check *c, const struct place *at, const char *name,
                         const json_t *value)
{
    struct cel_quantity amount;
    if (!read_amount(value, &amount))
        return;
    if (cel_quantity_sign(&amount) < 0)
        refuse(c, at, "an amount is not negative");
    else if (!is_native(name) && !is_whole(amount))
        refuse(c, at, "a device plugin's resource comes in whole numbers");
}

static void check_request(const struct check *c, const struct place *at, const char *name,
                          const json_t *request, const json_t *limit)
{
    struct cel_quantity wanted, most;
    bool equal = !is_native(name) || pod_amount_is_huge_pages(name);
    if (equal && !limit)
        refuse(c, at, "%.80s needs a limit equal to the request: give limits alone, which is both",
               name);
    if (!limit || !read_amount(request, &wanted) || !read_amount(limit, &most))
        return;
    int order = cel_quantity_compare(&wanted, &most);
    if (equal && order != 0)
        refuse(c, at, "request and limit of %.80s must be equal: give limits alone", name);
    else if (order > 0)
        refuse(c, at, "the request is above the limit: raise the limit, or drop it");
}

/* A claim with one of its requests is listed beside others of it, but not beside the whole. */
static void check_claims(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i, j;
    json_t *claim;
    json_array_foreach(list, i, claim)
    {
        const char *name = value_text_or(claim, "name", "");
        const char *request = value_text_or(claim, "request", "");
        struct place own = below(at, "[%zu]", i);
        if (!find_named(json_object_get(c->pod, "resourceClaims"), name))
            refuse(c, &own, "the pod has no claim \"%.80s\" in resourceClaims", name);
        for (j = 0; j < i; j++) {
            const json_t *other = json_array_get(list, j);
            const char *others = value_text_or(other, "request", "");
            if (strcmp(value_text_or(other, "name", ""), name) == 0 &&
                (!*request || !*others || strcmp(request, others) == 0)) {
                refuse(c, &own, "another entry has the same devices");
                break;
            }
        }
    }
}

/* Of what has them: which resources, and what is said of others. */
struct holder {
    bool (*has)(const char *resource);
    const char *expected;
};

static void check_lists(const struct check *c, const struct place *at, const json_t *resources,
                        const struct holder *holder)
{
    static const char *const lists[] = {"limits", "requests"};
    const json_t *limits = json_object_get(resources, "limits");
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        const char *name;
        json_t *value;
        value_foreach(json_object_get(resources, lists[l]), name, value)
        {
            struct place own = below(at, ".%s[\"%s\"]", lists[l], name);
            if (!holder->has(name)) {
                refuse(c, &own, "%s", holder->expected);
                continue;
            }
            check_amount(c, &own, name, value);
            if (l > 0)
                check_request(c, &own, name, value, json_object_get(limits, name));
        }
    }
}

static void check_resources(const struct check *c, const struct place *at, const json_t *resources)
{
    static const struct rule rules[] = {{"claims", check_claims}};
    static const struct holder container = {
        is_resource,
        "no resource of a container: expected cpu, memory, ephemeral-storage, hugepages-SIZE or a "
        "device plugin's, as nvidia.com/gpu"};
    check_lists(c, at, resources, &container);
    look_at_all(c, at, resources, rules, ARRAY_LEN(rules));
}

/* Those of the pod itself, for all of its containers. */
static void check_own_resources(const struct check *c, const struct place *at,
                                const json_t *resources)
{
    static const struct holder pod = {pod_amount_is_of_pods,
                                      "no resource of a pod itself: expected cpu, memory or "
                                      "hugepages-SIZE; others are of its containers"};
    struct place own = below(at, ".claims");
    check_lists(c, at, resources, &pod);
    if (json_array_size(json_object_get(resources, "claims")) > 0)
        refuse(c, &own, "claims are of containers: name them there");
}

static void check_resource_claims(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *claim;
    json_array_foreach(list, i, claim)
    {
        struct place own = below(at, "[\"%s\"]", value_text_or(claim, "name", ""));
        check_name(c, &own, list, i);
        check_one_of(c, &own, claim, "resourceClaimName resourceClaimTemplateName");
    }
}

/* ---- variables ---- */

/* As IsRelaxedEnvVarName. */
static bool is_variable(const char *name)
{
    size_t length = 0;
    for (; name[length] >= ' ' && name[length] <= '~' && name[length] != '='; length++)
        ;
    return length > 0 && !name[length];
}

static void check_env(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *variable;
    json_array_foreach(list, i, variable)
    {
        const char *name = value_text_or(variable, "name", "");
        struct place own = below(at, "[\"%s\"]", name);
        const json_t *from = json_object_get(variable, "valueFrom");
        if (!is_variable(name))
            refuse(c, &own, "a variable's name is of printable ASCII characters without =");
        if (from && json_object_size(from) != 1)
            refuse(c, &own, "valueFrom has one source, and this one has %zu",
                   json_object_size(from));
        else if (from && *value_text_or(variable, "value", ""))
            refuse(c, &own, "value and valueFrom exclude each other");
    }
}

static void check_env_from(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *source;
    json_array_foreach(list, i, source)
    {
        struct place own = below(at, "[%zu]", i);
        check_one_of(c, &own, source, "configMapRef secretRef");
    }
}

/* ---- ports, probes and hooks ---- */

/* As IsValidPortName. */
static bool is_port_name(const char *name)
{
    return strlen(name) <= PORT_NAME_MAX && k8s_is_label(name) && !strstr(name, "--") &&
           name[strcspn(name, "abcdefghijklmnopqrstuvwxyz")];
}

static void check_ports(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *port;
    bool on_host = json_object_get(c->pod, "hostNetwork") == json_true();
    json_array_foreach(list, i, port)
    {
        struct place own = below(at, "[%zu]", i);
        const char *name = value_text_or(port, "name", "");
        json_int_t host = json_integer_value(json_object_get(port, "hostPort"));
        if (*name && !is_port_name(name))
            refuse(c, &own,
                   "a port's name has at most %d lower case letters, digits and single inner "
                   "\"-\", with a letter among them",
                   PORT_NAME_MAX);
        else if (*name && find_before(list, i, "name", name))
            refuse(c, &own, "another port is called %s", name);
        if (on_host && host != 0 &&
            host != json_integer_value(json_object_get(port, "containerPort")))
            refuse(c, &own, "with hostNetwork, hostPort and containerPort are one: drop hostPort");
    }
}

static void check_handler(const struct check *c, const struct place *at, const json_t *handler,
                          const char *words)
{
    const json_t *exec = json_object_get(handler, "exec");
    check_one_of(c, at, handler, words);
    if (exec && json_array_size(json_object_get(exec, "command")) == 0)
        refuse(c, at, "exec.command is missing");
}

static void check_probe(const struct check *c, const struct place *at, const json_t *probe)
{
    check_handler(c, at, probe, "exec httpGet tcpSocket grpc");
}

static void check_probe_of_life(const struct check *c, const struct place *at, const json_t *probe)
{
    json_int_t threshold = json_integer_value(json_object_get(probe, "successThreshold"));
    check_probe(c, at, probe);
    if (threshold > 1)
        refuse(c, at, "successThreshold is 1 for this kind of probe");
}

static void check_hook(const struct check *c, const struct place *at, const json_t *hook)
{
    check_handler(c, at, hook, "exec httpGet tcpSocket sleep");
}

static void check_lifecycle(const struct check *c, const struct place *at, const json_t *lifecycle)
{
    static const struct rule rules[] = {{"postStart", check_hook}, {"preStop", check_hook}};
    look_at_all(c, at, lifecycle, rules, ARRAY_LEN(rules));
}

/* ---- containers ---- */

static void check_security(const struct check *c, const struct place *at, const json_t *security)
{
    if (json_object_get(security, "privileged") == json_true() &&
        json_object_get(security, "allowPrivilegeEscalation") == json_false())
        refuse(c, at, "privileged excludes allowPrivilegeEscalation: false");
}

static void check_container(const struct check *c, const struct place *at, const json_t *container)
{
    static const struct rule rules[] = {
        {"volumeMounts", check_mounts},
        {"resources", check_resources},
        {"env", check_env},
        {"envFrom", check_env_from},
        {"ports", check_ports},
        {"livenessProbe", check_probe_of_life},
        {"readinessProbe", check_probe},
        {"startupProbe", check_probe_of_life},
        {"lifecycle", check_lifecycle},
        {"securityContext", check_security},
    };
    look_at_all(c, at, container, rules, ARRAY_LEN(rules));
}

static void check_containers(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *container;
    json_array_foreach(list, i, container)
    {
        struct place own = below(at, "[\"%s\"]", value_text_or(container, "name", ""));
        check_name(c, &own, list, i);
        if (strcmp(value_text_or(container, "name", ""), POD_MERGE_AGENT_CONTAINER) != 0)
            check_container(c, &own, container); /* drarun's has the worker's amounts */
    }
}

/* They end before the pod's containers begin, unless they restart always. */
static void check_initial(const struct check *c, const struct place *at, const json_t *list)
{
    static const char *const running[] = {"livenessProbe", "readinessProbe", "startupProbe",
                                          "lifecycle"};
    size_t i;
    json_t *container;
    check_containers(c, at, list);
    json_array_foreach(list, i, container)
    {
        const char *name = value_text_or(container, "name", "");
        bool stays = strcmp(value_text_or(container, "restartPolicy", ""), "Always") == 0;
        struct place own = below(at, "[\"%s\"]", name);
        if (find_named(json_object_get(c->pod, "containers"), name))
            refuse(c, &own, "a container of the pod has this name, too");
        for (size_t k = 0; k < ARRAY_LEN(running) && !stays; k++)
            if (json_object_get(container, running[k]))
                refuse(c, &own, "%s needs restartPolicy: Always", running[k]);
    }
}

static void check_ephemeral(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *container;
    json_array_foreach(list, i, container)
    {
        const char *name = value_text_or(container, "name", "");
        struct place own = below(at, "[\"%s\"]", name);
        refuse(c, &own,
               "ephemeral containers are added to a pod that runs (kubectl debug): drop it, or "
               "make it one of initContainers with restartPolicy: Always");
    }
}

/* ---- scheduling and names ---- */

static void check_tolerations(const struct check *c, const struct place *at, const json_t *list)
{
    size_t i;
    json_t *toleration;
    json_array_foreach(list, i, toleration)
    {
        struct place own = below(at, "[%zu]", i);
        const char *key = value_text_or(toleration, "key", "");
        const char *value = value_text_or(toleration, "value", "");
        const char *operator= value_text_or(toleration, "operator", "Equal");
        bool exists = strcmp(operator, "Exists") == 0;
        if (*key && !k8s_is_qualified(key))
            refuse(c, &own, "\"%.80s\" is no key of a taint: expected [PREFIX/]NAME", key);
        if (!*key && !exists)
            refuse(c, &own, "key is missing; operator: Exists without a key is for all taints");
        if (exists && *value)
            refuse(c, &own, "operator: Exists takes no value: drop it, or use Equal");
        if (strcmp(operator, "Equal") == 0 && !k8s_is_label_value(value))
            refuse(c, &own, "\"%.80s\" is no value of a taint", value);
        if (json_object_get(toleration, "tolerationSeconds") &&
            strcmp(value_text_or(toleration, "effect", ""), "NoExecute") != 0)
            refuse(c, &own, "tolerationSeconds needs effect: NoExecute");
    }
}

static void check_node_selector(const struct check *c, const struct place *at,
                                const json_t *selector)
{
    const char *key;
    json_t *value;
    value_foreach(selector, key, value)
    {
        struct place own = below(at, "[\"%s\"]", key);
        const char *text = json_string_value(value);
        if (!k8s_is_qualified(key))
            refuse(c, &own, "no key of a label: expected [PREFIX/]NAME");
        if (text && !k8s_is_label_value(text))
            refuse(c, &own,
                   "a label's value has at most %d letters, digits and inner \"-\", \"_\", \".\"",
                   K8S_LABEL_MAX);
    }
}

static void check_subdomain(const struct check *c, const struct place *at, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text && *text && !k8s_is_subdomain(text))
        refuse(c, at, "a name has lower case letters, digits, \"-\" and \".\"");
}

static void check_label(const struct check *c, const struct place *at, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text && *text && !k8s_is_label(text))
        refuse(c, at, "a name has at most %d lower case letters, digits and inner \"-\"",
               K8S_LABEL_MAX);
}

void pod_check(const json_t *pod, pod_check_fn add, void *arg)
{
    static const struct rule rules[] = {
        {"volumes", check_volumes},
        {"resourceClaims", check_resource_claims},
        {"containers", check_containers},
        {"initContainers", check_initial},
        {"ephemeralContainers", check_ephemeral},
        {"tolerations", check_tolerations},
        {"nodeSelector", check_node_selector},
        {"resources", check_own_resources},
        {"serviceAccountName", check_subdomain},
        {"priorityClassName", check_subdomain},
        {"runtimeClassName", check_subdomain},
        {"hostname", check_label},
        {"subdomain", check_label},
    };
    const struct check check = {add, arg, pod};
    const struct place at = {"spec.template.spec"};
    look_at_all(&check, &at, pod, rules, ARRAY_LEN(rules));
}

void pod_check_launcher(const struct spec_launcher *launcher, pod_check_fn add, void *arg)
{
    const struct {
        struct rule rule;
        const json_t *value;
    } parts[] = {
        {{"resources", check_resources}, launcher->resources},
        {{"tolerations", check_tolerations}, launcher->tolerations},
        {{"nodeSelector", check_node_selector}, launcher->node_selector},
    };
    const struct check check = {add, arg, NULL};
    const struct place at = {"spec.launcher"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct place own = below(&at, ".%s", parts[i].rule.key);
        if (parts[i].value)
            parts[i].rule.look(&check, &own, parts[i].value);
    }
}
