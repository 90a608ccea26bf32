/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/show/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/install.h"
#include "jobs/manifests/render.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/strlist.h"
#include "lib/doc/value.h"
#include "lib/dra/slices.h"
#include "lib/kube/discover.h"

#define NAMED_MAX 8u  /* of many nodes or devices so many are named */
#define REACH_MS 5000 /* who asks a doctor does not wait long */
#define PLUGIN_LABEL "app.kubernetes.io/name=drarun-plugin"
#define INSTALL_PLUGIN "kubectl apply -f deploy/plugin.yaml (with Helm: plugin.enabled=true)"
#define INSTALL_POLICIES "kubectl apply -f deploy/admission.yaml (with Helm: plugin.admission)"
#define ADMISSION_GROUP "admissionregistration.k8s.io"
#define ISTIO_GROUP "security.istio.io"
#define ISTIO_NAMESPACE "istio-system" /* of policies for the whole mesh */

struct look {
    struct cluster *cluster;
    struct findings *findings;
    const struct kube_served *served; /* borrowed from the client */
    bool answered;
    struct drarun_error reached; /* code 0: it was */
};

/* ---- helpers ---- */

static const json_t *at(const json_t *object, const char *key)
{
    return json_object_get(object, key);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(at(object, key));
    return value ? value : "";
}

/* Adds one more to a list for people: "a, b, c and 4 more" (list_end). */
static void list_add(struct buf *list, size_t index, const char *word)
{
    if (index < NAMED_MAX)
        buf_printf(list, "%s%s", index ? ", " : "", word);
}

static const char *list_end(struct buf *list, size_t count)
{
    if (count > NAMED_MAX)
        buf_printf(list, " and %zu more", count - NAMED_MAX);
    return list->data ? list->data : "";
}

/* The items of a collection; NULL with a finding that says why it cannot be read. */
static json_t *items_of(struct look *l, const char *check, const struct kube_target *target,
                        const struct kube_select *select)
{
    struct drarun_error err = {0};
    json_t *list = NULL;
    if (cluster_list(l->cluster, target, select, &list, &err) < 0) {
        findings_add(l->findings, check, FINDING_UNKNOWN,
                     err.code == EACCES
                         ? "ask somebody with the rights to read it (kubectl auth can-i --list)"
                         : NULL,
                     "%s", err.text);
        return NULL;
    }
    json_t *items = json_incref(json_object_get(list, "items"));
    json_decref(list);
    return items;
}

/* ---- what is served ---- */

static void on_version(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct look *l = arg;
    (void)answer;
    l->answered = true;
    if (err)
        l->reached = *err;
}

static int reach(struct look *l, struct drarun_error *err)
{
    static const struct kube_request request = {
        .method = "GET", .path = "/version", .timeout_ms = REACH_MS};
    int rc = kube_call_start(l->cluster->client, &request, on_version, l, NULL, err);
    while (rc == 0 && !l->answered)
        cluster_turn(l->cluster, REACH_MS);
    l->answered = false;
    return rc < 0            ? rc
           : l->reached.code ? error_set(err, l->reached.code, "%s", l->reached.text)
                             : 0;
}

static void on_served(const struct kube_served *served, const struct drarun_error *err, void *arg)
{
    struct look *l = arg;
    l->answered = true;
    l->served = err ? NULL : served;
}

static int ask_served(struct look *l, struct drarun_error *err)
{
    int rc = cluster_discover(l->cluster, err);
    if (rc == 0)
        rc = kube_discover(l->cluster->client, on_served, l, NULL, err);
    while (rc == 0 && !l->answered)
        cluster_turn(l->cluster, KUBE_CALL_MS);
    return rc < 0 ? rc
           : l->served
               ? 0
               : error_set(err, EIO, "the API server does not list the APIs that it serves");
}

static void check_api(struct look *l)
{
    static const char *const versions[] = {"v1", "v1beta2", "v1beta1"};
    struct buf served = BUF_INIT;
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (kube_serves(l->served, "resource.k8s.io", versions[i], "resourceclaims"))
            list_add(&served, count++, versions[i]);
    if (count == 0)
        findings_add(l->findings, "api", FINDING_FAILED,
                     "Kubernetes 1.34 or later, where it is on by default",
                     "resource.k8s.io is not served: there is no Dynamic Resource Allocation");
    else if (!kube_serves(l->served, "resource.k8s.io", "v1", "resourceclaims"))
        findings_add(l->findings, "api", FINDING_WARNING, "Kubernetes 1.34 or later",
                     "resource.k8s.io is served only as %s, which Kubernetes will remove",
                     served.data);
    else
        findings_add(l->findings, "api", FINDING_OK, NULL, "resource.k8s.io is served as %s",
                     served.data);
    buf_done(&served);
}

/* A gate shows where it brings a resource. */
static const struct gate {
    const char *name, *group, *versions, *plural, *for_what;
} gates[] = {
    {"DRADeviceTaintRules", "resource.k8s.io", "v1 v1beta2 v1beta1 v1alpha3", "devicetaintrules",
     "taking devices out of use by hand"},
    {"MutatingAdmissionPolicy", ADMISSION_GROUP, "v1 v1beta1", "mutatingadmissionpolicies",
     "listing claims in containers"},
    {"GenericWorkload", "scheduling.k8s.io", POD_GROUPS_VERSIONS, "podgroups",
     "scheduling a job's pods together"},
};

static void check_gates(struct look *l)
{
    for (size_t i = 0; i < ARRAY_LEN(gates); i++) {
        const struct gate *gate = &gates[i];
        size_t length = 0;
        const char *any = kube_version_with(l->served, gate->group, gate->plural);
        const char *version =
            any ? kube_serves_one_of(l->served, gate->group, gate->versions, gate->plural, &length)
                : NULL;
        if (any && !version)
            findings_add(
                l->findings, "feature-gate", FINDING_WARNING, "a newer drarun",
                "%s is served only as %s, which this drarun does not support: it works without %s",
                gate->plural, any, gate->for_what);
        else if (version)
            findings_add(l->findings, "feature-gate", FINDING_OK, NULL, "%s is on: %s %.*s",
                         gate->name, gate->plural, (int)length, version);
        else
            findings_add(l->findings, "feature-gate", FINDING_OK, NULL,
                         "%s is off, which is for %s", gate->name, gate->for_what);
    }
}

/* ---- devices ---- */

static void check_classes(struct look *l)
{
    struct kube_resource resource = kube_device_classes;
    resource.version = cluster_claims_version(l->cluster);
    const struct kube_target target = {.resource = &resource};
    CLEANUP(json_decrefp) json_t *items = items_of(l, "device-classes", &target, NULL);
    struct buf names = BUF_INIT;
    size_t i;
    json_t *item;
    if (!items)
        return;
    json_array_foreach(items, i, item) list_add(&names, i, kube_name(item));
    if (json_array_size(items) == 0)
        findings_add(l->findings, "device-classes", FINDING_WARNING,
                     INSTALL_PLUGIN ", or the classes of another driver",
                     "there is no DeviceClass that a claim could name");
    else
        findings_add(l->findings, "device-classes", FINDING_OK, NULL, "%s",
                     list_end(&names, json_array_size(items)));
    buf_done(&names);
}

/* {driver: {node: devices}}, of the slices that a node has. */
static json_t *count_devices(const json_t *slices, size_t *ret_tainted)
{
    json_t *drivers = json_object(), *slice, *device;
    size_t i, k;
    json_array_foreach(slices, i, slice)
    {
        const json_t *spec = at(slice, "spec");
        const char *driver = text(spec, "driver"), *node = text(spec, "nodeName");
        if (!at(drivers, driver))
            json_object_set_new(drivers, driver, json_object());
        json_t *nodes = json_object_get(drivers, driver);
        json_int_t before = json_integer_value(at(nodes, node));
        json_object_set_new(
            nodes, node, json_integer(before + (json_int_t)json_array_size(at(spec, "devices"))));
        json_array_foreach(at(spec, "devices"), k, device)
        {
            const json_t *basic = at(device, "basic");
            *ret_tainted += json_array_size(at(basic ? basic : device, "taints")) > 0;
        }
    }
    return drivers;
}

/* As the scheduler takes them: of the newest generation alone, and all slices that this has. */
static void check_pools(struct look *l, json_t *list)
{
    struct buf names = BUF_INIT;
    struct slices slices;
    struct drarun_error err = {0};
    size_t count = 0;
    if (slices_read(list, &slices, &err) < 0) {
        findings_add(l->findings, "pools", FINDING_UNKNOWN, NULL, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < slices.pool_count; i++) {
        const struct slice_pool *pool = &slices.pools[i];
        char name[600];
        if (pool->seen == pool->expected)
            continue;
        snprintf(name, sizeof name, "%.300s of %.280s", pool->name, pool->driver);
        list_add(&names, count++, name);
    }
    if (count)
        findings_add(l->findings, "pools", FINDING_WARNING,
                     "read the driver's log; it must write all slices of a pool with one "
                     "generation",
                     "the scheduler ignores incomplete pools: %s", list_end(&names, count));
    else
        findings_add(l->findings, "pools", FINDING_OK, NULL, "all pools of %zu slices are complete",
                     json_array_size(list));
    buf_done(&names);
    slices_done(&slices);
}

/* Nodes that may run pods, and on which nobody publishes a device. */
static void check_nodes(struct look *l, const json_t *drivers)
{
    const struct kube_target target = {.resource = &kube_nodes};
    CLEANUP(json_decrefp) json_t *nodes = items_of(l, "nodes", &target, NULL);
    struct buf names = BUF_INIT;
    size_t i, without = 0;
    json_t *node, *of_driver;
    const char *driver;
    if (!nodes)
        return;
    json_array_foreach(nodes, i, node)
    {
        bool has = false;
        value_foreach(drivers, driver, of_driver) has |=
            json_integer_value(at(of_driver, kube_name(node))) > 0;
        if (!has && !json_is_true(at(at(node, "spec"), "unschedulable")))
            list_add(&names, without++, kube_name(node));
    }
    if (without)
        findings_add(l->findings, "nodes", FINDING_WARNING,
                     "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE: does a "
                     "driver run there? drarun doctor --node on it",
                     "of %zu nodes %zu have no device: %s", json_array_size(nodes), without,
                     list_end(&names, without));
    else
        findings_add(l->findings, "nodes", FINDING_OK, NULL, "%zu nodes, each with devices",
                     json_array_size(nodes));
    buf_done(&names);
}

static void check_drivers(struct look *l)
{
    struct kube_resource resource = kube_resource_slices;
    resource.version = cluster_claims_version(l->cluster);
    const struct kube_target target = {.resource = &resource};
    CLEANUP(json_decrefp) json_t *slices = items_of(l, "drivers", &target, NULL);
    size_t tainted = 0;
    const char *driver, *node;
    json_t *nodes, *devices;
    if (!slices)
        return;
    CLEANUP(json_decrefp) json_t *drivers = count_devices(slices, &tainted);
    json_object_foreach(drivers, driver, nodes)
    {
        json_int_t sum = 0;
        json_object_foreach(nodes, node, devices) sum += json_integer_value(devices);
        findings_add(l->findings, "drivers", FINDING_OK, NULL, "%s: %d devices on %zu nodes",
                     driver, (int)sum, json_object_size(nodes));
    }
    if (json_object_size(drivers) == 0)
        findings_add(l->findings, "drivers", FINDING_FAILED,
                     INSTALL_PLUGIN ", or install the driver of your devices",
                     "no driver publishes a device: claims wait forever");
    if (tainted)
        findings_add(l->findings, "taints", FINDING_WARNING,
                     "kubectl get resourceslices -o yaml: taints of devices say why",
                     "%zu devices are taken out of use", tainted);
    check_pools(l, slices);
    check_nodes(l, drivers);
}

/* ---- what the caller may do ---- */

static const struct right {
    const char *group, *resource, *subresource, *verb;
    bool cluster; /* of the cluster, and only to say more */
} rights[] = {
    {"batch", "jobs", "", "create", false},
    {"", "configmaps", "", "create", false},
    {"", "secrets", "", "create", false},
    {"", "pods", "", "create", false},
    {"resource.k8s.io", "resourceclaims", "", "create", false},
    {"", "configmaps", "", "list", false},
    {"", "pods", "", "list", false},
    {"", "pods", "log", "get", false},
    {"resource.k8s.io", "resourceclaims", "", "list", false},
    {"resource.k8s.io", "resourceslices", "", "list", true},
};

static int may(struct look *l, const struct right *right, bool *ret_may, struct drarun_error *err)
{
    static const struct kube_resource reviews = {.group = "authorization.k8s.io",
                                                 .version = "v1",
                                                 .plural = "selfsubjectaccessreviews",
                                                 .kind = "SelfSubjectAccessReview"};
    const struct kube_target target = {.resource = &reviews};
    CLEANUP(json_decrefp) json_t *answer = NULL;
    CLEANUP(json_decrefp)
    json_t *review = json_pack(
        "{s:s, s:s, s:{s:{s:s*, s:s, s:s, s:s, s:s}}}", "apiVersion", "authorization.k8s.io/v1",
        "kind", reviews.kind, "spec", "resourceAttributes", "namespace",
        right->cluster ? NULL : l->cluster->namespace, "group", right->group, "resource",
        right->resource, "subresource", right->subresource, "verb", right->verb);
    int rc = review ? cluster_create(l->cluster, &target, review, &answer, err)
                    : error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_may = json_is_true(at(at(answer, "status"), "allowed"));
    return rc;
}

static void check_rights(struct look *l)
{
    struct buf lacking = BUF_INIT, change = BUF_INIT;
    struct drarun_error err = {0};
    size_t count = 0;
    bool only_more = true;
    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        const struct right *right = &rights[i];
        char word[96];
        bool allowed = false;
        if (may(l, right, &allowed, &err) < 0) {
            findings_add(l->findings, "rights", FINDING_UNKNOWN, NULL, "%s", err.text);
            return;
        }
        snprintf(word, sizeof word, "%s %s%s%s", right->verb, right->resource,
                 *right->subresource ? "/" : "", right->subresource);
        if (!allowed)
            list_add(&lacking, count++, word);
        only_more &= allowed || right->cluster;
    }
    buf_printf(&change, "drarun install -n %s --%s | kubectl apply --server-side -f -; ",
               l->cluster->namespace, only_more ? "cluster-role" : "user-role");
    if (only_more)
        buf_add_str(&change, "kubectl create clusterrolebinding NAME --clusterrole " INSTALL_ACCOUNT
                             " --user USER");
    else
        buf_printf(&change,
                   "kubectl create rolebinding NAME -n %s --role " INSTALL_USER_ROLE " --user USER",
                   l->cluster->namespace);
    if (count)
        findings_add(l->findings, "rights", only_more ? FINDING_WARNING : FINDING_FAILED,
                     change.data, "you may not: %s (namespace %s)", list_end(&lacking, count),
                     l->cluster->namespace);
    else
        findings_add(l->findings, "rights", FINDING_OK, NULL,
                     "you may run jobs in namespace %s and see devices", l->cluster->namespace);
    buf_done(&lacking);
    buf_done(&change);
}

/* The Role of an older version stays when programs and images are replaced. */
static void check_role(struct look *l, const char *change)
{
    const struct kube_target target = {
        .resource = &kube_roles, .namespace_ = l->cluster->namespace, .name = INSTALL_ACCOUNT};
    const char *namespace = l->cluster->namespace;
    struct drarun_error err = {0};
    struct strlist lacking = STRLIST_INIT;
    struct buf words = BUF_INIT;
    CLEANUP(json_decrefp) json_t *role = NULL;
    int rc = cluster_get(l->cluster, &target, &role, &err);
    if (rc == 0)
        rc = install_role_lacks(role, &lacking);
    for (size_t i = 0; i < lacking.count; i++)
        list_add(&words, i, lacking.items[i]);
    if (rc == -ENOENT)
        findings_add(l->findings, "account", FINDING_WARNING, change,
                     "the launcher's account has no Role " INSTALL_ACCOUNT " in namespace %s",
                     namespace);
    else if (rc == -EACCES)
        findings_add(l->findings, "account", FINDING_OK, NULL,
                     "namespace %s has the launcher's account; its Role may not be read by you",
                     namespace);
    else if (rc < 0)
        findings_add(l->findings, "account", FINDING_UNKNOWN, NULL,
                     "the launcher's account is there; whether its Role is this version's: %s",
                     rc == -ENOMEM ? "out of memory" : err.text);
    else if (lacking.count)
        findings_add(l->findings, "account", FINDING_WARNING, change,
                     "Role " INSTALL_ACCOUNT " in namespace %s is not this version's, launchers "
                     "may not: %s",
                     namespace, list_end(&words, lacking.count));
    else
        findings_add(l->findings, "account", FINDING_OK, NULL, "namespace %s has what jobs need",
                     namespace);
    strlist_done(&lacking);
    buf_done(&words);
}

static void add_pull_secrets(const json_t *account, struct buf *command)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(account, "imagePullSecrets"), i, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));
        if (name)
            buf_printf(command, " --image-pull-secret %s", name);
    }
}

static void check_account(struct look *l)
{
    const struct kube_target target = {.resource = &kube_service_accounts,
                                       .namespace_ = l->cluster->namespace,
                                       .name = INSTALL_ACCOUNT};
    struct drarun_error err = {0};
    struct buf change = BUF_INIT;
    CLEANUP(json_decrefp) json_t *account = NULL;
    int rc = cluster_get(l->cluster, &target, &account, &err);
    buf_printf(&change, "drarun install -n %s", l->cluster->namespace);
    add_pull_secrets(account, &change); /* which applying without them would take away */
    buf_add_str(&change, " | kubectl apply --server-side -f -");
    if (rc == 0)
        check_role(l, change.data);
    else
        findings_add(l->findings, "account", rc == -ENOENT ? FINDING_WARNING : FINDING_UNKNOWN,
                     rc == -ENOENT ? change.data : NULL, "%s",
                     rc == -ENOENT ? "the launcher's account " INSTALL_ACCOUNT " is not there yet"
                                   : err.text);
    buf_done(&change);
}

/* ---- the node plugin ---- */

static void add_lack(struct look *l, const json_t *set)
{
    struct buf change = BUF_INIT;
    const json_t *status = at(set, "status");
    json_int_t wanted = json_integer_value(at(status, "desiredNumberScheduled"));
    json_int_t there = json_integer_value(at(status, "currentNumberScheduled"));
    buf_printf(&change,
               "kubectl describe daemonset -n %s %s: its Events say why, such as Pod Security or a "
               "quota of the namespace",
               kube_namespace(set), kube_name(set));
    /* some: perhaps for the moment in which a node joins or a pod is replaced */
    findings_add(l->findings, "plugin", there > 0 ? FINDING_WARNING : FINDING_FAILED, change.data,
                 "DaemonSet %s in namespace %s has no pod on %" JSON_INTEGER_FORMAT
                 " of its %" JSON_INTEGER_FORMAT " nodes",
                 kube_name(set), kube_namespace(set), wanted - there, wanted);
    l->findings->failed |= change.failed;
    buf_done(&change);
}

/* How many of the plugin's DaemonSets cannot make all their pods, which no list of pods shows. */
static size_t check_daemon_sets(struct look *l)
{
    static const struct kube_resource sets = {.group = "apps",
                                              .version = "v1",
                                              .plural = "daemonsets",
                                              .kind = "DaemonSet",
                                              .namespaced = true};
    const struct kube_target target = {.resource = &sets};
    const struct kube_select select = {.labels = PLUGIN_LABEL};
    CLEANUP(json_decrefp) json_t *list = NULL;
    struct drarun_error err = {0};
    size_t i, lacking = 0;
    json_t *set;
    if (cluster_list(l->cluster, &target, &select, &list, &err) < 0)
        return 0; /* the pods tell what they can */
    json_array_foreach(at(list, "items"), i, set)
    {
        const json_t *status = at(set, "status");
        if (json_integer_value(at(status, "currentNumberScheduled")) >=
            json_integer_value(at(status, "desiredNumberScheduled")))
            continue;
        add_lack(l, set);
        lacking++;
    }
    return lacking;
}

/* How many pods of the plugin there are; -1: that cannot be read. */
static ssize_t check_plugin(struct look *l)
{
    const struct kube_target target = {.resource = &kube_pods};
    const struct kube_select select = {.labels = PLUGIN_LABEL};
    CLEANUP(json_decrefp) json_t *pods = items_of(l, "plugin", &target, &select);
    struct buf names = BUF_INIT;
    size_t i, failing = 0;
    json_t *pod;
    if (!pods)
        return -1;
    size_t lacking = check_daemon_sets(l);
    json_array_foreach(pods, i, pod) if (!kube_has_condition(pod, "Ready"))
        list_add(&names, failing++, kube_name(pod));
    if (failing)
        findings_add(l->findings, "plugin", FINDING_FAILED,
                     "kubectl logs -A -l " PLUGIN_LABEL
                     "; kubectl describe pods -A -l " PLUGIN_LABEL,
                     "pods of drarun-plugin that are not ready: %s", list_end(&names, failing));
    else if (!lacking)
        findings_add(l->findings, "plugin", FINDING_OK, NULL, "%s",
                     json_array_size(pods) ? "drarun-plugin is ready on all its nodes"
                                           : "drarun-plugin is not installed");
    buf_done(&names);
    return (ssize_t)json_array_size(pods);
}

static const struct policy {
    const char *plural, *kind, *name, *for_what;
} policies[] = {
    {"mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "drarun-plugin-claims",
     "pods whose claims no container lists are refused by the plugin"},
    {"validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
     "drarun-plugin-configuration",
     "a wrong configuration of a NIC is found only when its pod starts"},
};

static void check_policies(struct look *l)
{
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        const struct policy *policy = &policies[i];
        const struct kube_resource resource = {.group = ADMISSION_GROUP,
                                               .version = "v1",
                                               .plural = policy->plural,
                                               .kind = policy->kind};
        const struct kube_target target = {.resource = &resource, .name = policy->name};
        struct drarun_error err = {0};
        int rc = cluster_get(l->cluster, &target, NULL, &err);
        if (rc == 0)
            findings_add(l->findings, "admission", FINDING_OK, NULL, "%s is bound", policy->name);
        else if (rc == -ENOENT)
            findings_add(l->findings, "admission", FINDING_WARNING,
                         kube_serves(l->served, ADMISSION_GROUP, "v1", policy->plural)
                             ? INSTALL_POLICIES
                             : "Kubernetes 1.36 or later, then " INSTALL_POLICIES,
                         "%s is not bound: %s", policy->name, policy->for_what);
        else
            findings_add(l->findings, "admission", FINDING_UNKNOWN, NULL, "%s", err.text);
    }
}

/* ---- a service mesh ---- */

/* The policy of a whole namespace that says how its sidecars take connections; NULL: none does, or
 * it cannot be read. */
static const json_t *find_peer_policy(const json_t *list)
{
    size_t i;
    json_t *each;
    json_array_foreach(at(list, "items"), i, each)
    {
        const json_t *spec = at(each, "spec");
        const char *mode = text(at(spec, "mtls"), "mode");
        if (json_object_size(at(spec, "selector")) == 0 && *mode && strcmp(mode, "UNSET") != 0)
            return each;
    }
    return NULL;
}

/* Where that cannot be read, they may be. */
static bool has_sidecars(struct look *l)
{
    const struct kube_target target = {.resource = &kube_namespaces, .name = l->cluster->namespace};
    CLEANUP(json_decrefp) json_t *namespace = NULL;
    struct drarun_error err = {0};
    if (cluster_get(l->cluster, &target, &namespace, &err) < 0)
        return true;
    const json_t *labels = at(at(namespace, "metadata"), "labels");
    const char *injection = text(labels, "istio-injection");
    return strcmp(injection, "enabled") == 0 || (!*injection && at(labels, "istio.io/rev"));
}

static void tell_strict(struct look *l, const json_t *policy)
{
    findings_add(
        l->findings, "mesh", FINDING_WARNING,
        "workers without sidecar: spec.template.metadata.labels: "
        "{sidecar.istio.io/inject: \"false\"}; or a PeerAuthentication of the namespace "
        "with mode PERMISSIVE",
        "Istio's sidecars in namespace %s take only its own mutual TLS (PeerAuthentication "
        "%s in namespace %s is STRICT): launchers and ranks dial the addresses of pods, "
        "which these refuse",
        l->cluster->namespace, kube_name(policy), kube_namespace(policy));
}

/* The namespace's policy counts before that of the whole mesh. */
static void check_mesh(struct look *l)
{
    const char *version = kube_version_with(l->served, ISTIO_GROUP, "peerauthentications");
    const char *const namespaces[] = {l->cluster->namespace, ISTIO_NAMESPACE};
    const struct kube_resource resource = {.group = ISTIO_GROUP,
                                           .version = version,
                                           .plural = "peerauthentications",
                                           .kind = "PeerAuthentication",
                                           .namespaced = true};
    for (size_t i = 0; version && i < ARRAY_LEN(namespaces); i++) {
        const struct kube_target target = {.resource = &resource, .namespace_ = namespaces[i]};
        CLEANUP(json_decrefp) json_t *list = NULL;
        struct drarun_error err = {0};
        cluster_list(l->cluster, &target, NULL, &list, &err);
        const json_t *policy = find_peer_policy(list);
        if (!policy)
            continue;
        if (strcmp(text(at(at(policy, "spec"), "mtls"), "mode"), "STRICT") == 0 && has_sidecars(l))
            tell_strict(l, policy);
        return;
    }
}

int doctor_look(struct cluster *cluster, struct findings *findings, struct drarun_error *err)
{
    struct look l = {.cluster = cluster, .findings = findings};
    struct drarun_error why = {0};
    if (reach(&l, &why) < 0 || ask_served(&l, &why) < 0) {
        findings_add(findings, "api", FINDING_FAILED,
                     "kubectl cluster-info; another cluster: --kubeconfig FILE, --context NAME",
                     "%s", why.text);
        return 0;
    }
    check_api(&l);
    check_gates(&l);
    if (cluster->api) {
        check_classes(&l);
        check_drivers(&l);
    }
    check_rights(&l);
    check_account(&l);
    check_mesh(&l);
    if (check_plugin(&l) > 0)
        check_policies(&l);
    return findings->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}
