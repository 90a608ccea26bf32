/* SPDX-License-Identifier: Apache-2.0 */
/* What drarun doctor finds in a cluster, of which each case has a few answers of its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/install.h"
#include "launcher/cluster/show/doctor.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/quoted_json.h"
#include "lib/doc/value.h"
#include "lib/kube/discover.h"

static struct {
    const char *served; /* "GROUP/VERSION/PLURAL ..." */
    json_t *objects;    /* plural, or plural/name, to an answer; a number: an errno */
    const char *denied; /* "VERB RESOURCE[/SUBRESOURCE];" ..., "*": reviews fail */
    int unreachable, unknown;
} world;

static const struct kube_served *const served = (const void *)&world;

int __wrap_kube_call_start(struct kube_client *client, const struct kube_request *request,
                           kube_call_fn fn, void *arg, struct kube_call **ret_call,
                           struct drarun_error *err);
int __wrap_kube_call_start(struct kube_client *client, const struct kube_request *request,
                           kube_call_fn fn, void *arg, struct kube_call **ret_call,
                           struct drarun_error *err)
{
    const struct kube_answer answer = {.status = 200};
    struct drarun_error why = {0};
    (void)client, (void)ret_call, (void)err;
    assert_string_equal(request->path, "/version");
    error_set(&why, world.unreachable, "no connection");
    fn(&answer, world.unreachable ? &why : NULL, arg);
    return 0;
}

int __wrap_cluster_discover(struct cluster *cluster, struct drarun_error *err);
int __wrap_cluster_discover(struct cluster *cluster, struct drarun_error *err)
{
    (void)cluster, (void)err;
    return 0;
}

int __wrap_kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                         struct kube_discovery **ret_discovery, struct drarun_error *err);
int __wrap_kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                         struct kube_discovery **ret_discovery, struct drarun_error *err)
{
    struct drarun_error why = {0};
    (void)client, (void)ret_discovery, (void)err;
    error_set(&why, world.unknown, "no answer");
    fn(served, world.unknown ? &why : NULL, arg);
    return 0;
}

bool __wrap_kube_serves(const struct kube_served *s, const char *group, const char *version,
                        const char *plural);
bool __wrap_kube_serves(const struct kube_served *s, const char *group, const char *version,
                        const char *plural)
{
    char text[128];
    assert_ptr_equal(s, served);
    snprintf(text, sizeof text, "%s/%s/%s ", group, version, plural);
    return strstr(world.served, text) != NULL;
}

const char *__wrap_kube_version_with(const struct kube_served *s, const char *group,
                                     const char *plural);
const char *__wrap_kube_version_with(const struct kube_served *s, const char *group,
                                     const char *plural)
{
    static const char *const versions[] = {"v1", "v1beta1", "v1alpha3", "v9"};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (__wrap_kube_serves(s, group, versions[i], plural))
            return versions[i];
    return NULL;
}

const char *__wrap_kube_serves_one_of(const struct kube_served *s, const char *group,
                                      const char *versions, const char *plural, size_t *ret_length);
const char *__wrap_kube_serves_one_of(const struct kube_served *s, const char *group,
                                      const char *versions, const char *plural, size_t *ret_length)
{
    const char *version = __wrap_kube_version_with(s, group, plural);
    const char *found = version ? strstr(versions, version) : NULL;
    *ret_length = found ? strlen(version) : 0;
    return found;
}

static int answer_of(const char *key, json_t **ret_body, struct drarun_error *err)
{
    json_t *value = json_object_get(world.objects, key);
    if (json_is_integer(value))
        return error_set(err, (int)json_integer_value(value), "%s cannot be read", key);
    if (!value && strchr(key, '/'))
        return error_set(err, ENOENT, "%s is not there", key);
    if (ret_body)
        *ret_body = value ? json_incref(value) : quoted_json("{'items':[]}", 0);
    return 0;
}

int __wrap_cluster_list(struct cluster *cluster, const struct kube_target *target,
                        const struct kube_select *select, json_t **ret_body,
                        struct drarun_error *err);
int __wrap_cluster_list(struct cluster *cluster, const struct kube_target *target,
                        const struct kube_select *select, json_t **ret_body,
                        struct drarun_error *err)
{
    char key[128];
    (void)cluster;
    bool of_plugin = strcmp(target->resource->plural, "pods") == 0 ||
                     strcmp(target->resource->plural, "daemonsets") == 0;
    if (of_plugin)
        assert_string_equal(select->labels, "app.kubernetes.io/name=drarun-plugin");
    snprintf(key, sizeof key, "%s%s%s", target->resource->plural, target->namespace_ ? " " : "",
             target->namespace_ ? target->namespace_ : "");
    return answer_of(key, ret_body, err);
}

int __wrap_cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                       struct drarun_error *err);
int __wrap_cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                       struct drarun_error *err)
{
    char key[128];
    (void)cluster;
    snprintf(key, sizeof key, "%s/%s", target->resource->plural, target->name);
    return answer_of(key, ret_body, err);
}

int __wrap_cluster_create(struct cluster *cluster, const struct kube_target *target,
                          const json_t *object, json_t **ret_body, struct drarun_error *err);
int __wrap_cluster_create(struct cluster *cluster, const struct kube_target *target,
                          const json_t *object, json_t **ret_body, struct drarun_error *err)
{
    char word[96];
    (void)cluster;
    assert_string_equal(target->resource->plural, "selfsubjectaccessreviews");
    if (strcmp(world.denied, "*") == 0)
        return error_set(err, EACCES, "no review");
    const json_t *asked = json_object_get(json_object_get(object, "spec"), "resourceAttributes");
    const char *verb = value_text(asked, "verb"), *resource = value_text(asked, "resource"),
               *sub = value_text(asked, "subresource"), *namespace = value_text(asked, "namespace");
    if (strcmp(resource, "resourceslices") == 0)
        assert_null(namespace);
    else
        assert_string_equal(namespace, "team");
    snprintf(word, sizeof word, "%s %s%s%s;", verb, resource, *sub ? "/" : "", sub);
    *ret_body = json_pack("{s:{s:b}}", "status", "allowed", !strstr(world.denied, word));
    return 0;
}

#define ALL                                                                                        \
    "resource.k8s.io/v1/resourceclaims resource.k8s.io/v1beta1/resourceclaims "                    \
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings "

/* The findings of one check, each as "STATE: SEEN" and a newline; what to change behind " -> ". */
static void found(const char *check, struct buf *text)
{
    struct cluster cluster = {.namespace = "team", .api = CLAIMS_API_V1};
    struct findings findings;
    struct drarun_error err = {0};
    size_t i;
    json_t *each;
    findings_init(&findings);
    assert_int_equal(doctor_look(&cluster, &findings, &err), 0);
    json_array_foreach(findings.list, i, each)
    {
        const char *change = json_string_value(json_object_get(each, "change"));
        if (strcmp(json_string_value(json_object_get(each, "check")), check) == 0)
            buf_printf(text, "%s: %s%s%s\n", json_string_value(json_object_get(each, "state")),
                       json_string_value(json_object_get(each, "seen")), change ? " -> " : "",
                       change ? change : "");
    }
    findings_done(&findings);
}

static void is_found(const char *check, const char *objects, const char *expected)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    world.objects = quoted_json(objects, 0);
    found(check, &text);
    json_decref(world.objects);
    world.objects = NULL;
    assert_string_equal(text.data ? text.data : "", expected);
}

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.served = ALL;
    world.denied = "";
    return 0;
}

#define CHANGE_CLUSTER                                                                             \
    " -> kubectl cluster-info; another cluster: --kubeconfig FILE, --context NAME\n"

static void clusters_that_do_not_answer(void **state)
{
    (void)state;
    world.unreachable = ECONNREFUSED;
    is_found("api", "{}", "failed: no connection" CHANGE_CLUSTER);
    world.unreachable = 0;
    world.unknown = EIO;
    is_found("api", "{}",
             "failed: the API server does not list the APIs that it serves" CHANGE_CLUSTER);
}

static void what_is_served(void **state)
{
    (void)state;
    is_found("api", "{}", "ok: resource.k8s.io is served as v1, v1beta1\n");
    world.served = "resource.k8s.io/v1beta2/resourceclaims ";
    is_found("api", "{}",
             "warning: resource.k8s.io is served only as v1beta2, which Kubernetes will remove -> "
             "Kubernetes 1.34 or later\n");
    world.served = "";
    is_found("api", "{}",
             "failed: resource.k8s.io is not served: there is no Dynamic Resource Allocation -> "
             "Kubernetes 1.34 or later, where it is on by default\n");
    world.served = "resource.k8s.io/v1alpha3/devicetaintrules "
                   "admissionregistration.k8s.io/v9/mutatingadmissionpolicies ";
    is_found("feature-gate", "{}",
             "ok: DRADeviceTaintRules is on: devicetaintrules v1alpha3\n"
             "warning: mutatingadmissionpolicies is served only as v9, which this drarun does not "
             "support: it works without listing claims in containers -> a newer drarun\n"
             "ok: GenericWorkload is off, which is for scheduling a job's pods together\n");
}

#define NAMED(name) "{'metadata':{'name':'" name "'}}"

static void classes_of_devices(void **state)
{
    static const char items[] = NAMED("c1") "," NAMED("c2") "," NAMED("c3") "," NAMED(
        "c4") "," NAMED("c5") "," NAMED("c6") "," NAMED("c7") "," NAMED("c8");
    char text[512];
    (void)state;
    is_found("device-classes", "{}",
             "warning: there is no DeviceClass that a claim could name -> kubectl apply -f "
             "deploy/plugin.yaml (with Helm: plugin.enabled=true), or the classes of another "
             "driver\n");
    snprintf(text, sizeof text, "{'deviceclasses':{'items':[%s]}}", items);
    is_found("device-classes", text, "ok: c1, c2, c3, c4, c5, c6, c7, c8\n");
    snprintf(text, sizeof text, "{'deviceclasses':{'items':[%s," NAMED("c9") "]}}", items);
    is_found("device-classes", text, "ok: c1, c2, c3, c4, c5, c6, c7, c8 and 1 more\n");
    snprintf(text, sizeof text, "{'deviceclasses':%d}", EACCES);
    is_found("device-classes", text,
             "unknown: deviceclasses cannot be read -> ask somebody with the rights to read it "
             "(kubectl auth can-i --list)\n");
    snprintf(text, sizeof text, "{'deviceclasses':%d}", ETIMEDOUT);
    is_found("device-classes", text, "unknown: deviceclasses cannot be read\n");
}

#define SLICE(name, driver, node, pool, count, devices)                                            \
    "{'metadata':{'name':'" name "'},'spec':{'driver':'" driver "','nodeName':'" node              \
    "','pool':{'name':'" pool "','generation':1,'resourceSliceCount':" count                       \
    "},'devices':[" devices "]}}"
#define NODES "'nodes':{'items':[" NAMED("n0") "," NAMED("n1") "]}"

static void devices_that_drivers_publish(void **state)
{
    static const char two[] = "{'resourceslices':{'items':[" SLICE(
        "a", "d.io", "n0", "p", "1",
        "{'name':'x'},{'name':"
        "'y'}") "," SLICE("b", "d.io", "n1", "q", "1",
                          "{'name':'x','taints':[{'key':'k','effect':'NoSchedule'}]}"
                          ",{'name':'z','taints':[]}") "," SLICE("c", "e.io", "n0", "p", "2",
                                                                 "{'name':'x'}") "]"
                                                                                 "}," NODES "}";
    static const char one[] = "{'resourceslices':{'items':[" SLICE("a", "d.io", "n0", "p", "1",
                                                                   "{'name':'x'}") "]}," NODES "}";
    (void)state;
    is_found("drivers", two, "ok: d.io: 4 devices on 2 nodes\nok: e.io: 1 devices on 1 nodes\n");
    is_found(
        "taints", two,
        "warning: 1 devices are taken out of use -> kubectl get resourceslices -o yaml: taints "
        "of devices say why\n");
    is_found("taints", one, "");
    is_found("pools", two,
             "warning: the scheduler ignores incomplete pools: p of e.io -> read the driver's log; "
             "it must write all slices of a pool with one generation\n");
    is_found("pools", one, "ok: all pools of 1 slices are complete\n");
    is_found("nodes", two, "ok: 2 nodes, each with devices\n");
    is_found("nodes", one,
             "warning: of 2 nodes 1 have no device: n1 -> kubectl get pods -A -o wide "
             "--field-selector spec.nodeName=NODE: does a driver run there? drarun doctor --node "
             "on it\n");
    is_found("nodes",
             "{'nodes':{'items':[{'metadata':{'name':'n0'},'spec':{'unschedulable':true}}]}}",
             "ok: 1 nodes, each with devices\n");
    is_found("drivers", "{}",
             "failed: no driver publishes a device: claims wait forever -> kubectl apply -f "
             "deploy/plugin.yaml (with Helm: plugin.enabled=true), or install the driver of your "
             "devices\n");
}

#define MORE "drarun install -n team --cluster-role | kubectl apply --server-side -f -; kubectl "
#define LESS "drarun install -n team --user-role | kubectl apply --server-side -f -; kubectl "

static void rights_of_the_caller(void **state)
{
    (void)state;
    is_found("rights", "{}", "ok: you may run jobs in namespace team and see devices\n");
    world.denied = "list resourceslices;";
    is_found("rights", "{}",
             "warning: you may not: list resourceslices (namespace team) -> " MORE
             "create clusterrolebinding NAME --clusterrole " INSTALL_ACCOUNT " --user USER\n");
    world.denied = "create pods;get pods/log;list resourceslices;";
    is_found("rights", "{}",
             "failed: you may not: create pods, get pods/log, list resourceslices (namespace team) "
             "-> " LESS "create rolebinding NAME -n team --role " INSTALL_USER_ROLE
             " --user USER\n");
    world.denied = "*";
    is_found("rights", "{}", "unknown: no review\n");
}

#define INSTALL "drarun install -n team | kubectl apply --server-side -f -\n"
#define ACCOUNT "'serviceaccounts/" INSTALL_ACCOUNT "'"
#define ROLE "'roles/" INSTALL_ACCOUNT "'"

static void account_of_launchers(void **state)
{
    char text[256];
    (void)state;
    is_found("account", "{}",
             "warning: the launcher's account " INSTALL_ACCOUNT " is not there yet -> " INSTALL);
    snprintf(text, sizeof text, "{" ACCOUNT ":%d}", EACCES);
    is_found("account", text, "unknown: serviceaccounts/" INSTALL_ACCOUNT " cannot be read\n");
    is_found("account", "{" ACCOUNT ":{}}",
             "warning: the launcher's account has no Role " INSTALL_ACCOUNT
             " in namespace team -> " INSTALL);
    is_found("account", "{" ACCOUNT ":{'imagePullSecrets':[{'name':'a'},{},{'name':'b'}]}}",
             "warning: the launcher's account has no Role " INSTALL_ACCOUNT
             " in namespace team -> drarun install -n team --image-pull-secret a "
             "--image-pull-secret b | kubectl apply --server-side -f -\n");
    snprintf(text, sizeof text, "{" ACCOUNT ":{}," ROLE ":%d}", EACCES);
    is_found("account", text,
             "ok: namespace team has the launcher's account; its Role may not be read by you\n");
    snprintf(text, sizeof text, "{" ACCOUNT ":{}," ROLE ":%d}", EIO);
    is_found("account", text,
             "unknown: the launcher's account is there; whether its Role is this version's: "
             "roles/" INSTALL_ACCOUNT " cannot be read\n");
    is_found("account",
             "{" ACCOUNT ":{}," ROLE ":{'rules':[{'apiGroups':['*'],'resources':['*'],'verbs':"
             "['*']}]}}",
             "ok: namespace team has what jobs need\n");
}

#define READY "'status':{'conditions':[{'type':'Ready','status':'True'}]}"
#define SET(there)                                                                                 \
    "'daemonsets':{'items':[{'metadata':{'name':'s','namespace':'x'},'status':{"                   \
    "'desiredNumberScheduled':3,'currentNumberScheduled':" there "}}]}"
#define DESCRIBE                                                                                   \
    " -> kubectl describe daemonset -n x s: its Events say why, such as Pod Security or a quota "  \
    "of the namespace\n"

static void plugin_of_nodes(void **state)
{
    (void)state;
    is_found("plugin", "{}", "ok: drarun-plugin is not installed\n");
    is_found("plugin", "{'pods':{'items':[{'metadata':{'name':'p'}," READY "}]}," SET("3") "}",
             "ok: drarun-plugin is ready on all its nodes\n");
    is_found("plugin",
             "{'pods':{'items':[{'metadata':{'name':'p'}," READY "}," NAMED("q") "," NAMED("r") "]}"
                                                                                                "}",
             "failed: pods of drarun-plugin that are not ready: q, r -> kubectl logs -A -l "
             "app.kubernetes.io/name=drarun-plugin; kubectl describe pods -A -l "
             "app.kubernetes.io/name=drarun-plugin\n");
    is_found("plugin", "{" SET("0") "}",
             "failed: DaemonSet s in namespace x has no pod on 3 of its 3 nodes" DESCRIBE);
    is_found("plugin", "{" SET("1") "}",
             "warning: DaemonSet s in namespace x has no pod on 2 of its 3 nodes" DESCRIBE);
    is_found("plugin", "{" SET("4") "}", "ok: drarun-plugin is not installed\n");
    is_found("admission", "{}", "");
    is_found("admission",
             "{'pods':{'items':[{'metadata':{'name':'p'}," READY "}]},"
             "'validatingadmissionpolicybindings/drarun-plugin-configuration':{}}",
             "warning: drarun-plugin-claims is not bound: pods whose claims no container lists are "
             "refused by the plugin -> kubectl apply -f deploy/admission.yaml (with Helm: "
             "plugin.admission)\nok: drarun-plugin-configuration is bound\n");
    is_found("admission",
             "{'pods':{'items':[{'metadata':{'name':'p'}," READY "}]},"
             "'mutatingadmissionpolicybindings/drarun-plugin-claims':5}",
             "unknown: mutatingadmissionpolicybindings/drarun-plugin-claims cannot be read\n"
             "warning: drarun-plugin-configuration is not bound: a wrong configuration of a NIC is "
             "found only when its pod starts -> Kubernetes 1.36 or later, then kubectl apply -f "
             "deploy/admission.yaml (with Helm: plugin.admission)\n");
}

#define PEERS(namespace) "'peerauthentications " namespace "':{'items':["
#define PEER(namespace, mode, more)                                                                \
    "{'metadata':{'name':'default','namespace':'" namespace "'},'spec':{'mtls':{'mode':'" mode     \
                                                            "'}" more "}}]}"
#define LABELLED(labels) ",'namespaces/team':{'metadata':{'labels':{" labels "}}}}"
#define SIDECARS LABELLED("'istio-injection':'enabled'")

static void meshes_that_refuse_connections(void **state)
{
    static const struct {
        const char *objects, *of; /* NULL: nothing is said */
    } rows[] = {
        {"{}", NULL},
        {"{" PEERS("team") PEER("team", "STRICT", "") SIDECARS, "team"},
        {"{" PEERS("istio-system") PEER("istio-system", "STRICT", "") SIDECARS, "istio-system"},
        {"{" PEERS("team") PEER("team", "PERMISSIVE", "") "," PEERS("istio-system")
             PEER("istio-system", "STRICT", "") SIDECARS,
         NULL},
        {"{" PEERS("team") PEER("team", "UNSET", "") "," PEERS("istio-system")
             PEER("istio-system", "STRICT", "") SIDECARS,
         "istio-system"},
        {"{" PEERS("team") PEER("team", "STRICT", ",'selector':{'matchLabels':{'a':'b'}}") SIDECARS,
         NULL},
        {"{" PEERS("team") PEER("team", "STRICT", "") LABELLED(""), NULL},
        {"{" PEERS("team") PEER("team", "STRICT", "") LABELLED("'istio.io/rev':'x'"), "team"},
        {"{" PEERS("team") PEER("team", "STRICT", "")
             LABELLED("'istio-injection':'disabled','istio.io/rev':'x'"),
         NULL},
        {"{" PEERS("team") PEER("team", "STRICT", "") "}", "team"}, /* nobody knows */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char expected[640] = "";
        world.served = ALL "security.istio.io/v1/peerauthentications ";
        if (rows[i].of)
            snprintf(expected, sizeof expected,
                     "warning: Istio's sidecars in namespace team take only its own mutual TLS "
                     "(PeerAuthentication default in namespace %s is STRICT): launchers and ranks "
                     "dial the addresses of pods, which these refuse -> workers without sidecar: "
                     "spec.template.metadata.labels: {sidecar.istio.io/inject: \"false\"}; or a "
                     "PeerAuthentication of the namespace with mode PERMISSIVE\n",
                     rows[i].of);
        is_found("mesh", rows[i].objects, expected);
        world.served = ALL; /* which has no mesh */
        is_found("mesh", rows[i].objects, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(clusters_that_do_not_answer, begin),
        cmocka_unit_test_setup(what_is_served, begin),
        cmocka_unit_test_setup(classes_of_devices, begin),
        cmocka_unit_test_setup(devices_that_drivers_publish, begin),
        cmocka_unit_test_setup(rights_of_the_caller, begin),
        cmocka_unit_test_setup(account_of_launchers, begin),
        cmocka_unit_test_setup(plugin_of_nodes, begin),
        cmocka_unit_test_setup(meshes_that_refuse_connections, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
