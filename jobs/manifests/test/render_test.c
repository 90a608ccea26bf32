/* SPDX-License-Identifier: Apache-2.0 */
/* What the goldens of tests/test_render.py cannot show: merging, refusals, running out of memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_merge.h"
#include "jobs/manifests/pods.h"
#include "jobs/manifests/render.h"
#include "lib/base/cleanup.h"

static const struct render_options options = {.api = CLAIMS_API_V1, .attempt = 1};

static struct job_spec job(const char *template)
{
    struct spec_role *role = calloc(1, sizeof *role);
    assert_non_null(role);
    *role = (struct spec_role){
        .workers = 2,
        .gpus = {.count = 2, .class = "gpu.nvidia.com"},
        .nics = {.count = 2, .class = "dranet"},
        .align = SPEC_ALIGN_PREFERRED,
        .nccl_profile = "auto",
        .template = json_loads(template, 0, NULL),
    };
    assert_non_null(role->template);
    return (struct job_spec){
        .name = "job",
        .workers = 2,
        .roles = role,
        .role_count = 1,
        .claims = SPEC_CLAIMS_DIRECT,
        .gang_scheduling = SPEC_GANG_AUTO,
        .document = json_object(),
        .ttl_after_finished = -1,
    };
}

static void done(struct job_spec *spec)
{
    json_decref(spec->roles[0].template);
    free(spec->roles);
    json_decref(spec->document);
    json_decref(spec->compute_domain);
}

/* The value at a path as "spec.containers.0.env"; NULL when something is missing. */
static json_t *at(json_t *value, const char *path)
{
    cleanup_free char *copy = strdup(path);
    char *rest = copy;
    for (char *part = strsep(&rest, "."); part && value; part = strsep(&rest, "."))
        value = json_is_array(value) ? json_array_get(value, strtoul(part, NULL, 10))
                                     : json_object_get(value, part);
    return value;
}

static void expect_json(json_t *value, const char *path, const char *expected)
{
    json_t *found = at(value, path);
    cleanup_free char *text = found ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    assert_string_equal(text ? text : "(missing)", expected);
}

static json_t *pod_of(const struct job_spec *spec, uint32_t worker)
{
    json_t *pod = NULL;
    struct drarun_error err = {0};
    int rc = pods_worker(spec, &options, worker, &pod, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    return pod;
}

/* A pod keeps its class of service: the kubelet looks at initial containers, too. */
static void test_agent_asks_for_what_its_pod_has(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\", \"resources\": {"
            " \"requests\": {\"cpu\": 4, \"memory\": \"8Gi\", \"ephemeral-storage\": \"1Gi\"},"
            " \"limits\": {\"cpu\": 4, \"memory\": \"8Gi\", \"nvidia.com/gpu\": 1}}}]}}");
    struct job_spec none =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\", \"resources\": {"
            " \"limits\": {\"nvidia.com/gpu\": 1}}}]}}");
    (void)state;
    json_t *pod = pod_of(&spec, 0);
    expect_json(pod, "spec.initContainers.0.name", "\"drarun-agent\"");
    expect_json(pod, "spec.initContainers.0.resources",
                "{\"requests\":{\"cpu\":4,\"memory\":\"8Gi\"},"
                "\"limits\":{\"cpu\":4,\"memory\":\"8Gi\"}}");
    json_decref(pod);
    pod = pod_of(&none, 0);
    expect_json(pod, "spec.initContainers.0.resources", "(missing)");
    json_decref(pod);
    job_spec_done(&spec);
    job_spec_done(&none);
}

/* Also the CPUs that its claim brings, which the template need not name. */
static void test_agent_asks_for_claimed_cpus(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\", \"resources\": {"
            " \"requests\": {\"memory\": \"8Gi\"}, \"limits\": {\"memory\": \"8Gi\"}}}]}}");
    (void)state;
    spec.roles[0].cpus = (struct spec_devices){.count = 1, .class = "dra.cpu"};
    spec.roles[0].cpu_count = 16;
    json_t *pod = pod_of(&spec, 0);
    expect_json(pod, "spec.containers.0.resources.requests", "{\"memory\":\"8Gi\",\"cpu\":\"16\"}");
    expect_json(pod, "spec.initContainers.0.resources",
                "{\"requests\":{\"cpu\":\"16\",\"memory\":\"8Gi\"},"
                "\"limits\":{\"cpu\":\"16\",\"memory\":\"8Gi\"}}");
    json_decref(pod);
    done(&spec);
}

/* Unless the template or the job says that it may; pods of other controllers are the user's. */
static void test_no_autoscaler_moves_a_worker(void **state)
{
    struct job_spec spec = job(
        "{\"metadata\": {\"annotations\": {\"karpenter.sh/do-not-disrupt\": \"12h\"}}, \"spec\": "
        "{\"containers\": [{\"name\": \"main\", \"image\": \"i\", \"command\": [\"c\"]}]}}");
    json_t *foreign = NULL;
    (void)state;
    json_t *pod = pod_of(&spec, 0);
    expect_json(pod, "metadata.annotations",
                "{\"karpenter.sh/do-not-disrupt\":\"12h\","
                "\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"false\"}");
    json_decref(pod);
    spec.annotations = json_pack("{s:s}", "cluster-autoscaler.kubernetes.io/safe-to-evict", "true");
    pod = pod_of(&spec, 0);
    expect_json(pod, "metadata.annotations",
                "{\"karpenter.sh/do-not-disrupt\":\"12h\","
                "\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\"}");
    json_decref(pod);
    json_decref(TAKE_PTR(spec.annotations));
    assert_int_equal(pod_merge(&spec, &options, POD_MERGE_FOREIGN, &foreign, NULL), 0);
    expect_json(foreign, "metadata.annotations", "{\"karpenter.sh/do-not-disrupt\":\"12h\"}");
    json_decref(foreign);
    done(&spec);
}

static void test_user_fields_stay(void **state)
{
    struct job_spec spec = job(
        "{\"metadata\": {\"labels\": {\"team\": \"a\"}}, \"spec\": {\"priorityClassName\": \"low\","
        " \"nodeSelector\": {\"zone\": \"b\"},"
        " \"initContainers\": [{\"name\": \"load\", \"image\": \"l\"}],"
        " \"volumes\": [{\"name\": \"big\", \"emptyDir\": {\"medium\": \"Memory\"}}],"
        " \"containers\": [{\"name\": \"main\", \"image\": \"i\", \"command\": [\"a\"],"
        "   \"args\": [\"b\"], \"env\": [{\"name\": \"X\", \"value\": \"1\"}],"
        "   \"volumeMounts\": [{\"name\": \"big\", \"mountPath\": \"/dev/shm\"}],"
        "   \"securityContext\": {\"capabilities\": {\"add\": [\"IPC_LOCK\", \"SYS_NICE\"]}}},"
        "  {\"name\": \"side\", \"image\": \"s\","
        "   \"resources\": {\"claims\": [{\"name\": \"devices\", \"request\": \"nic-0\"}]}}]}}");
    (void)state;
    json_t *pod = pod_of(&spec, 1);
    expect_json(pod, "metadata.name", "\"job-w-1\"");
    expect_json(pod, "metadata.labels",
                "{\"team\":\"a\",\"drarun.dev/job\":\"job\",\"drarun.dev/attempt\":\"1\","
                "\"drarun.dev/worker\":\"1\",\"drarun.dev/network-policy\":\"job\","
                "\"drarun.dev/spread\":\"node\"}");
    expect_json(pod, "spec.priorityClassName", "\"low\"");
    expect_json(pod, "spec.initContainers.0.name", "\"drarun-agent\"");
    expect_json(pod, "spec.initContainers.1.name", "\"load\"");
    expect_json(pod, "spec.volumes.1", "{\"name\":\"drarun\",\"emptyDir\":{}}");
    expect_json(pod, "spec.volumes.2", "(missing)"); /* /dev/shm was there */
    expect_json(pod, "spec.containers.0.command",
                "[\"/.drarun/bin/drarun-worker\",\"--listen\",\":7173\",\"--pod\",\"--once\"]");
    expect_json(pod, "spec.containers.0.args", "(missing)");
    expect_json(pod, "spec.containers.0.env.0.name", "\"X\"");
    expect_json(pod, "spec.containers.0.securityContext.capabilities.add",
                "[\"IPC_LOCK\",\"SYS_NICE\"]");
    expect_json(pod, "spec.containers.0.resources.claims", "[{\"name\":\"devices\"}]");
    expect_json(pod, "spec.containers.1.resources.claims",
                "[{\"name\":\"devices\",\"request\":\"nic-0\"}]");
    expect_json(pod, "spec.resourceClaims",
                "[{\"name\":\"devices\",\"resourceClaimName\":\"job-w-1\"}]");
    json_decref(pod);
    /* the template itself is the user's */
    expect_json(spec.roles[0].template, "spec.containers.0.command", "[\"a\"]");
    done(&spec);
}

#define OWN_TERM(attempt)                                                                          \
    "{\"labelSelector\":{\"matchLabels\":{\"drarun.dev/job\":\"job\"," attempt                     \
    "\"drarun.dev/spread\":\"node\"}},\"topologyKey\":\"kubernetes.io/hostname\"}"
#define TERMS "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"

/* One worker per node: behind the user's terms, whose pods it is that they keep away. */
static void test_workers_keep_apart(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"affinity\": {\"nodeAffinity\": {\"a\": 1}, \"podAntiAffinity\": {"
            "\"requiredDuringSchedulingIgnoredDuringExecution\": [{\"labelSelector\": {"
            "\"matchLabels\": {\"app\": \"noisy\"}}, \"topologyKey\": \"kubernetes.io/hostname\"}]"
            "}}, \"containers\": [{\"name\": \"m\", \"image\": \"i\", \"command\": [\"c\"]}]}}");
    const char *const gone[] = {"n0"};
    struct render_options second = options;
    json_t *pod = NULL, *indexed = NULL, *foreign = NULL;
    (void)state;
    second.attempt = 2;
    second.avoid = gone;
    second.avoid_count = 1;
    assert_int_equal(pods_worker(&spec, &second, 0, &pod, NULL), 0);
    expect_json(pod, "spec.affinity." TERMS ".0.labelSelector",
                "{\"matchLabels\":{\"app\":\"noisy\"}}");
    expect_json(pod, "spec.affinity." TERMS ".1", OWN_TERM("\"drarun.dev/attempt\":\"2\","));
    expect_json(pod, "spec.affinity." TERMS ".2", "(missing)");
    expect_json(pod, "spec.affinity.nodeAffinity.a", "1"); /* and the node to avoid beside it */
    assert_int_equal(pods_indexed_job(&spec, &options, &indexed, NULL), 0);
    expect_json(indexed, "spec.template.spec.affinity." TERMS ".1",
                OWN_TERM("\"drarun.dev/attempt\":\"1\","));
    second = (struct render_options){.api = CLAIMS_API_V1};
    assert_int_equal(pod_merge(&spec, &second, POD_MERGE_FOREIGN, &foreign, NULL), 0);
    expect_json(foreign, "spec.affinity." TERMS ".1", OWN_TERM(""));
    expect_json(foreign, "metadata.labels",
                "{\"drarun.dev/job\":\"job\",\"drarun.dev/spread\":\"node\"}");
    json_decref(pod);
    json_decref(indexed);
    json_decref(foreign);
    spec.spread = SPEC_SPREAD_NONE;
    pod = pod_of(&spec, 0);
    expect_json(pod, "spec.affinity." TERMS ".1", "(missing)");
    json_decref(pod);
    done(&spec);
}

/* A command that names drarun-bench of the agent's image has it copied beside the agent. */
static void test_bench_comes_with_the_agent(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\", "
            "\"command\": [\"" SPEC_BENCH "\", \"all_reduce\"]}]}}");
    struct job_spec other =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\", "
            "\"command\": [\"drarun-bench\", \"all_reduce\"]}]}}");
    json_t *pod = pod_of(&spec, 0), *plain = pod_of(&other, 0);
    (void)state;
    expect_json(pod, "spec.initContainers.0.command",
                "[\"/bin/drarun-worker\",\"--install-bench\",\"/.drarun/bin\"]");
    expect_json(plain, "spec.initContainers.0.command",
                "[\"/bin/drarun-worker\",\"--install\",\"/.drarun/bin\"]");
    json_decref(pod);
    json_decref(plain);
    const struct agent_claim claim = {"nic.drarun.dev", "v1-pmix-5.0.7"};
    struct render_options by_claim = options;
    struct drarun_error err = {0};
    by_claim.agent = &claim;
    assert_int_equal(pods_worker(&spec, &by_claim, 0, &pod, &err), -EINVAL);
    assert_non_null(strstr(err.text, "a claim brings the agent without drarun-bench"));
    done(&spec);
    done(&other);
}

/* A claim of the user's that no container lists would never reach a container. */
static void test_forgotten_claim_is_listed(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"resourceClaims\": [{\"name\": \"extra\", \"resourceClaimName\": \"e\"}],"
            " \"containers\": [{\"name\": \"main\", \"image\": \"i\"}]}}");
    (void)state;
    json_t *pod = pod_of(&spec, 0);
    expect_json(pod, "spec.containers.0.resources.claims",
                "[{\"name\":\"devices\"},{\"name\":\"extra\"}]");
    json_decref(pod);
    done(&spec);
}

static void test_host_network(void **state)
{
    struct job_spec spec = job("{\"spec\": {\"hostNetwork\": true,"
                               " \"containers\": [{\"name\": \"main\", \"image\": \"i\"}]}}");
    (void)state;
    spec.roles[0].nics = (struct spec_devices){0};
    json_t *pod = pod_of(&spec, 1);
    expect_json(pod, "spec.containers.0.command.2", "\":7174\"");
    expect_json(pod, "spec.containers.0.ports.0.containerPort", "7174");
    json_decref(pod);
    done(&spec);
}

/* Its pods have one port: each is to have a node of its own. */
static void test_host_network_of_an_indexed_job(void **state)
{
    struct job_spec spec = job("{\"spec\": {\"hostNetwork\": true,"
                               " \"containers\": [{\"name\": \"main\", \"image\": \"i\"}]}}");
    struct drarun_error err = {0};
    json_t *indexed = NULL;
    (void)state;
    spec.roles[0].nics = (struct spec_devices){0};
    assert_int_equal(pod_merge_agent_port(&spec, 1), RENDER_AGENT_PORT + 1);
    spec.claims = SPEC_CLAIMS_TEMPLATE;
    assert_int_equal(pod_merge_agent_port(&spec, 1), RENDER_AGENT_PORT);
    assert_int_equal(pods_indexed_job(&spec, &options, &indexed, &err), -EINVAL);
    assert_non_null(strstr(err.text, "set placement.spread: node; or drop hostNetwork, or set "
                                     "spec.devices.claims: direct"));
    spec.spread = SPEC_SPREAD_NODE;
    assert_int_equal(pods_indexed_job(&spec, &options, &indexed, NULL), 0);
    expect_json(indexed, "spec.template.spec.containers.0.command.2", "\":7173\"");
    expect_json(indexed, "spec.template.spec.containers.0.ports.0.containerPort", "7173");
    json_decref(indexed);
    spec.spread = SPEC_SPREAD_NONE;
    spec.workers = spec.roles[0].workers = 1;
    assert_int_equal(pods_indexed_job(&spec, &options, &indexed, NULL), 0);
    json_decref(indexed);
    done(&spec);
}

static void test_plugin_gpus(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\"}]}}");
    (void)state;
    spec.roles[0].gpus.class = NULL;
    spec.roles[0].gpus.resource = "nvidia.com/gpu";
    json_t *pod = pod_of(&spec, 0);
    expect_json(pod, "spec.containers.0.resources.limits", "{\"nvidia.com/gpu\":\"2\"}");
    json_decref(pod);
    done(&spec);
}

#define CONTAINER "\"containers\": [{\"name\": \"main\", \"image\": \"i\"}]"
#define FIRST(fields) "{\"spec\": {\"containers\": [{\"name\": \"m\", " fields "}]}}"

static void test_refusals(void **state)
{
    static const struct {
        const char *template, *error;
    } cases[] = {
        {"[]", "spec.template: expected an object"},
        {"{}", "spec.template.spec.containers: expected a list of at least one"},
        {"{\"spec\": {\"containers\": [7]}}", "spec.template.spec.containers: expected"},
        {"{\"spec\": {\"restartPolicy\": \"Always\", " CONTAINER "}}", "restartPolicy: expected"},
        {"{\"metadata\": {\"name\": \"x\"}, \"spec\": {" CONTAINER "}}", "drop name and namespace"},
        {"{\"metadata\": {\"labels\": {\"drarun.dev/job\": \"x\"}}, \"spec\": {" CONTAINER "}}",
         "spec.template.metadata.labels[\"drarun.dev/job\"]"},
        {"{\"spec\": {\"volumes\": [{\"name\": \"drarun\"}], " CONTAINER "}}",
         "spec.template.spec.volumes: drarun adds an entry with name \"drarun\""},
        {"{\"spec\": {\"volumes\": \"none\", " CONTAINER "}}", "volumes: expected a list"},
        {"{\"spec\": {\"initContainers\": [{\"name\": \"drarun-agent\"}], " CONTAINER "}}",
         "initContainers: drarun adds"},
        {"{\"spec\": {\"resourceClaims\": [{\"name\": \"devices\"}], " CONTAINER "}}",
         "resourceClaims: drarun adds an entry with name \"devices\""},
        {"{\"spec\": {\"hostNetwork\": true, " CONTAINER "}}", "hostNetwork: a claimed NIC"},
        {"{\"spec\": {\"nodeName\": \"n7\", " CONTAINER "}}",
         "spec.template.spec.nodeName: the scheduler never sees"},
        {FIRST("\"env\": [{\"name\": \"DRARUN_KEY\"}]"), "containers[0].env: drarun adds"},
        {FIRST("\"volumeMounts\": [{\"mountPath\": \"/.drarun\"}]"), "volumeMounts: drarun adds"},
        {FIRST("\"resources\": []"), "containers[0].resources: expected an object"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_spec spec = job(cases[i].template);
        struct drarun_error err = {0};
        json_t *pod = NULL;
        assert_true(pods_worker(&spec, &options, 0, &pod, &err) < 0);
        assert_int_equal(err.kind, DRARUN_ERR_SPEC);
        if (!strstr(err.text, cases[i].error))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].template, err.text, cases[i].error);
        assert_null(pod);
        done(&spec);
    }
}

#define SECURED(pod, container)                                                                    \
    "{\"spec\": {\"securityContext\": {" pod "}, \"containers\": [{\"name\": \"m\", "              \
    "\"image\": \"i\", \"securityContext\": {" container "}}]}}"
#define ADDED "[\"IPC_LOCK\"]"
#define NO_MORE "\"allowPrivilegeEscalation\": false"

/* RDMA's capability is added where it reaches somebody, unless the user drops it by its name. */
static void test_who_gets_ipc_lock(void **state)
{
    static const struct {
        const char *template, *added;
    } cases[] = {
        {SECURED("", ""), ADDED},
        {SECURED("", "\"privileged\": true"), "(missing)"},
        {SECURED("", "\"capabilities\": {\"drop\": [\"ALL\"]}"), ADDED},
        {SECURED("", "\"capabilities\": {\"drop\": [\"ALL\", \"IPC_LOCK\"]}"), "(missing)"},
        {SECURED("", "\"capabilities\": {\"add\": [\"ALL\"]}"), "[\"ALL\"]"},
        {SECURED("", NO_MORE), ADDED}, /* the image's user may be root */
        {SECURED("", NO_MORE ", \"runAsUser\": 0"), ADDED},
        {SECURED("\"runAsUser\": 7", NO_MORE ", \"runAsUser\": 0"), ADDED},
        {SECURED("", "\"runAsUser\": 7"), ADDED}, /* a program may have it of its own */
        {SECURED("", NO_MORE ", \"runAsUser\": 7"), "(missing)"},
        {SECURED("\"runAsUser\": 7", NO_MORE), "(missing)"},
        {SECURED("\"runAsNonRoot\": true", NO_MORE), "(missing)"},
        {SECURED("\"runAsNonRoot\": true", NO_MORE ", \"runAsNonRoot\": false"), ADDED},
        {SECURED("", NO_MORE ", \"runAsNonRoot\": true"), "(missing)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_spec spec = job(cases[i].template);
        json_t *pod = pod_of(&spec, 0);
        expect_json(pod, "spec.containers.0.securityContext.capabilities.add", cases[i].added);
        json_decref(pod);
        done(&spec);
    }
}

#define OWN_SECURITY(user)                                                                         \
    "{\"allowPrivilegeEscalation\":false,\"readOnlyRootFilesystem\":true,"                         \
    "\"runAsNonRoot\":true," user "\"capabilities\":{\"drop\":[\"ALL\"]},"                         \
    "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"

/* What brings the agent is never root, and complies with Pod Security "restricted". */
static void test_who_brings_the_agent(void **state)
{
    static const struct {
        const char *template, *security;
    } cases[] = {
        {SECURED("", ""), OWN_SECURITY("")}, /* the image's, or the platform's */
        {SECURED("", "\"runAsUser\": 0"), OWN_SECURITY("")},
        {SECURED("\"runAsUser\": 0, \"runAsNonRoot\": false", "\"privileged\": true"),
         OWN_SECURITY("\"runAsUser\":65532,")}, /* else it would have the pod's */
        {SECURED("\"runAsUser\": 7", ""), OWN_SECURITY("")},
        {SECURED("\"runAsUser\": 7", "\"runAsUser\": 0"), OWN_SECURITY("")},
        {SECURED("\"runAsUser\": 7", "\"runAsUser\": 4711"), OWN_SECURITY("\"runAsUser\":4711,")},
        {SECURED("\"runAsUser\": 0", "\"runAsUser\": 4711"), OWN_SECURITY("\"runAsUser\":4711,")},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_spec spec = job(cases[i].template);
        json_t *pod = pod_of(&spec, 0);
        expect_json(pod, "spec.initContainers.0.securityContext", cases[i].security);
        json_decref(pod);
        done(&spec);
    }
}

/* Kinds in the order of creation: the owner first, claims before the pods that name them. */
static void test_order(void **state)
{
    static const char direct[] =
        "Job ConfigMap Secret NetworkPolicy ComputeDomain ResourceClaim ResourceClaim Pod Pod ";
    static const char indexed[] =
        "Job ConfigMap Secret NetworkPolicy ComputeDomain ResourceClaimTemplate Job ";
    struct job_spec spec = job("{\"spec\": {" CONTAINER "}}");
    (void)state;
    spec.compute_domain = json_object();
    for (int template = 0; template <2; template ++) {
        json_t *list = NULL, *item;
        size_t i;
        char kinds[400] = "";
        spec.claims = template ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT;
        assert_int_equal(render_job(&spec, &options, &list, NULL), 0);
        json_array_foreach(list, i, item)
        {
            strncat(kinds, json_string_value(json_object_get(item, "kind")), 40);
            strncat(kinds, " ", 2);
        }
        assert_string_equal(kinds, template ? indexed : direct);
        json_decref(list);
    }
    done(&spec);
}

/* PodGroups that the manifests hold, each of which must come before the pods that name it. */
static size_t count_groups(const struct job_spec *spec, const struct render_options *wanted)
{
    json_t *list = NULL, *item;
    size_t i, count = 0;
    assert_int_equal(render_job(spec, wanted, &list, NULL), 0);
    json_array_foreach(list, i, item)
    {
        const char *kind = json_string_value(json_object_get(item, "kind"));
        bool indexed = at(item, "spec.completionMode");
        json_t *pod = indexed                    ? at(item, "spec.template.spec")
                      : strcmp(kind, "Pod") == 0 ? at(item, "spec")
                                                 : NULL;
        if (strcmp(kind, "PodGroup") == 0) {
            expect_json(item, "apiVersion", "\"scheduling.k8s.io/v1alpha2\"");
            expect_json(item, "metadata.name", "\"job-w\"");
            expect_json(item, "spec",
                        "{\"schedulingPolicy\":{\"gang\":{\"minCount\":2}},"
                        "\"disruptionMode\":\"PodGroup\"}");
            count++;
        }
        const char *named = json_string_value(at(pod, "schedulingGroup.podGroupName"));
        if (pod && count > 0)
            assert_string_equal(named, "job-w");
        else if (pod && named)
            assert_string_equal(named, "users");
    }
    json_decref(list);
    return count;
}

static void test_gang(void **state)
{
    struct render_options served = options;
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct job_spec spec = job("{\"spec\": {" CONTAINER "}}");
        struct job_spec other =
            job("{\"spec\": {\"schedulingGroup\": {\"podGroupName\": \"users\"}, " CONTAINER "}}");
        spec.claims = other.claims = i ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT;
        served.pod_groups = NULL;
        assert_int_equal(count_groups(&spec, &served), 0);
        served.pod_groups = pod_groups_version("v1alpha2");
        assert_int_equal(count_groups(&spec, &served), 1);
        assert_int_equal(count_groups(&other, &served), 0);
        spec.gang_scheduling = SPEC_GANG_NEVER;
        assert_int_equal(count_groups(&spec, &served), 0);
        spec.gang_scheduling = SPEC_GANG_AUTO;
        spec.workers = 1;
        assert_int_equal(count_groups(&spec, &served), 0);
        done(&spec);
        done(&other);
    }
    assert_null(pod_groups_version("v1alpha1"));
}

/* From 1.37 on the group has the priority of its pods, which are refused otherwise, and says in
 * another way that preemption takes all of them. */
static void test_gang_priority(void **state)
{
    (void)state;
    static const char *const versions[] = {"v1", "v1beta1", "v1alpha3", "v1alpha2"};
    char all[64] = "";
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", versions[i]);
    assert_string_equal(all, POD_GROUPS_VERSIONS);
    for (size_t i = 0; i + 1 < ARRAY_LEN(versions); i++) {
        struct job_spec spec =
            job("{\"spec\": {\"priorityClassName\": \"urgent\", " CONTAINER "}}");
        struct render_options served = options;
        served.pod_groups = pod_groups_version(versions[i]);
        assert_non_null(served.pod_groups);
        json_t *group = object_pod_group(&spec, &served);
        expect_json(group, "spec",
                    "{\"schedulingPolicy\":{\"gang\":{\"minCount\":2}},"
                    "\"disruptionMode\":{\"all\":{}},\"priorityClassName\":\"urgent\"}");
        json_decref(group);
        done(&spec);
    }
}

/* What the spec says of the launcher's pod, and what stands in it otherwise. */
static void test_launcher(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"priorityClassName\": \"of-workers\", \"containers\": [{\"name\": \"w\", "
            "\"image\": \"i\", \"command\": [\"c\"]}]}}");
    (void)state;
    json_t *launcher = object_launcher(&spec, &options);
    expect_json(launcher, "spec.template.spec.containers.0.resources",
                "{\"requests\":{\"cpu\":\"500m\",\"memory\":\"514Mi\"},"
                "\"limits\":{\"cpu\":\"500m\",\"memory\":\"514Mi\"}}");
    expect_json(launcher, "spec.template.spec.priorityClassName", "\"of-workers\"");
    expect_json(launcher, "spec.template.spec.tolerations.1",
                "{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\","
                "\"effect\":\"NoExecute\",\"tolerationSeconds\":20}");
    expect_json(launcher, "spec.template.spec.nodeSelector", "(missing)");
    expect_json(launcher, "spec.template.spec.imagePullSecrets", "(missing)");
    json_decref(launcher);
    spec.launcher = (struct spec_launcher){
        .resources = json_pack("{s:{s:s}}", "limits", "memory", "1Gi"),
        .tolerations = json_pack("[{s:s}]", "operator", "Exists"),
        .node_selector = json_pack("{s:s}", "pool", "cpu"),
        .annotations = json_pack("{s:s}", "karpenter.sh/do-not-disrupt", "false"),
        .priority_class = "own",
    };
    json_object_set_new(json_object_get(spec.roles[0].template, "spec"), "imagePullSecrets",
                        json_pack("[{s:s}]", "name", "registry"));
    launcher = object_launcher(&spec, &options);
    expect_json(launcher, "spec.template.spec.imagePullSecrets", "[{\"name\":\"registry\"}]");
    expect_json(launcher, "spec.template.spec.containers.0.resources",
                "{\"limits\":{\"memory\":\"1Gi\"}}");
    expect_json(launcher, "spec.template.spec.priorityClassName", "\"own\"");
    expect_json(launcher, "spec.template.spec.tolerations", "[{\"operator\":\"Exists\"}]");
    expect_json(launcher, "spec.template.spec.nodeSelector", "{\"pool\":\"cpu\"}");
    expect_json(launcher, "spec.template.metadata.annotations",
                "{\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"false\","
                "\"karpenter.sh/do-not-disrupt\":\"false\"}");
    json_decref(launcher);
    /* the workers' Secrets are of their own image alone, and would replace the account's */
    const struct agent_claim agent = {.driver = "nic.drarun.dev", .agent = "v1"};
    struct render_options by_claim = options;
    by_claim.agent = &agent;
    launcher = object_launcher(&spec, &by_claim);
    expect_json(launcher, "spec.template.spec.imagePullSecrets", "(missing)");
    json_decref(launcher);
    job_spec_done(&spec);
}

/* The policy of the rendered job; a reference, or NULL. */
static json_t *policy_of(const struct job_spec *spec, const struct render_options *wanted)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    json_t *item;
    size_t i;
    assert_int_equal(render_job(spec, wanted, &list, NULL), 0);
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "kind")), "NetworkPolicy") == 0)
            return json_incref(item);
    }
    return NULL;
}

#define OWN_WORKERS                                                                                \
    "{\"matchLabels\":{\"drarun.dev/job\":\"job\"},\"matchExpressions\":[{\"key\":\"drarun.dev/"   \
    "worker\",\"operator\":\"Exists\"}]}"
#define OWN_PODS                                                                                   \
    "{\"matchLabels\":{\"drarun.dev/job\":\"job\",\"drarun.dev/network-policy\":\"job\"}}"

static void test_network_policy(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"i\", \"ports\": ["
            "   {\"containerPort\": 6006}, {\"containerPort\": 9, \"protocol\": \"UDP\"}]},"
            "  {\"name\": \"side\", \"image\": \"s\", \"ports\": [{\"containerPort\": 6006}]}]}}");
    struct render_options shared = options;
    (void)state;
    json_t *policy = policy_of(&spec, &options);
    expect_json(policy, "metadata.name", "\"job-w\"");
    expect_json(policy, "spec.podSelector", OWN_WORKERS);
    expect_json(policy, "spec.policyTypes", "[\"Ingress\"]");
    expect_json(policy, "spec.ingress.0", "{\"from\":[{\"podSelector\":" OWN_WORKERS "}]}");
    expect_json(policy, "spec.ingress.1",
                "{\"ports\":[{\"protocol\":\"TCP\",\"port\":7173},{\"protocol\":\"TCP\","
                "\"port\":6006},{\"protocol\":\"UDP\",\"port\":9}]}");
    json_decref(policy);
    spec.claims = SPEC_CLAIMS_TEMPLATE; /* an Indexed Job's pods do not tell their worker */
    policy = policy_of(&spec, &options);
    expect_json(policy, "spec.podSelector", OWN_PODS);
    expect_json(policy, "spec.ingress.0.from.0.podSelector", OWN_PODS);
    json_decref(policy);
    spec.claims = SPEC_CLAIMS_DIRECT;
    shared.shared_policy = true;
    assert_null(policy_of(&spec, &shared));
    done(&spec);
}

static void test_owner(void **state)
{
    struct job_spec spec = job("{\"spec\": {" CONTAINER "}}");
    struct render_options owned = options;
    json_t *list = NULL, *item;
    size_t i;
    (void)state;
    owned.owner_uid = "u-1";
    assert_int_equal(render_job(&spec, &owned, &list, NULL), 0);
    json_array_foreach(list, i, item)
    {
        json_t *uid = at(item, "metadata.ownerReferences.0.uid");
        assert_int_equal(uid == NULL, i == 0); /* the first is the owner */
        if (uid)
            assert_string_equal(json_string_value(uid), "u-1");
        assert_null(at(item, "metadata.ownerReferences.0.controller"));
    }
    json_decref(list);
    owned.step = 3;
    struct drarun_error err = {0};
    assert_true(render_job(&spec, &owned, &list, &err) < 0);
    assert_non_null(strstr(err.text, "step 4: the job's ladder has 3"));
    done(&spec);
}

/* ---- each allocation of jansson fails in turn ---- */

static size_t allocations_left;

static void *failing_malloc(size_t size)
{
    if (allocations_left == 0)
        return NULL;
    allocations_left--;
    return malloc(size);
}

static void test_out_of_memory(void **state)
{
    struct job_spec spec =
        job("{\"spec\": {\"resourceClaims\": [{\"name\": \"e\"}], " CONTAINER "}}");
    struct render_options grouped = options;
    size_t tries = 0;
    (void)state;
    grouped.pod_groups = "v1alpha2";
    spec.compute_domain = json_object();
    spec.labels = json_pack("{s:s}", "team", "a");
    spec.annotations = json_pack("{s:s}", "note", "b");
    spec.roles[0].nics.config = json_pack("{s:i}", "x", 1);
    spec.roles[0].nics.config_driver = "dra.net";
    strlist_add(&spec.roles[0].nics.selectors, "true");
    strlist_add(&spec.roles[0].gpus.match, "a.b/c");
    for (int template = 0; template <2; template ++) {
        spec.claims = template ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT;
        for (size_t limit = 0;; limit++, tries++) {
            json_t *list = NULL;
            struct drarun_error err = {0};
            allocations_left = limit;
            json_set_alloc_funcs(failing_malloc, free);
            int rc = render_job(&spec, &grouped, &list, &err);
            json_set_alloc_funcs(malloc, free);
            if (rc == 0) {
                json_decref(list);
                break;
            }
            assert_null(list);
            assert_int_equal(err.code, ENOMEM);
        }
    }
    assert_true(tries > 1000);
    json_decref(spec.labels);
    json_decref(spec.annotations);
    json_decref(spec.roles[0].nics.config);
    strlist_done(&spec.roles[0].nics.selectors);
    strlist_done(&spec.roles[0].gpus.match);
    done(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_asks_for_what_its_pod_has),
        cmocka_unit_test(test_agent_asks_for_claimed_cpus),
        cmocka_unit_test(test_no_autoscaler_moves_a_worker),
        cmocka_unit_test(test_user_fields_stay),
        cmocka_unit_test(test_workers_keep_apart),
        cmocka_unit_test(test_bench_comes_with_the_agent),
        cmocka_unit_test(test_forgotten_claim_is_listed),
        cmocka_unit_test(test_host_network),
        cmocka_unit_test(test_host_network_of_an_indexed_job),
        cmocka_unit_test(test_plugin_gpus),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_who_gets_ipc_lock),
        cmocka_unit_test(test_who_brings_the_agent),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_gang),
        cmocka_unit_test(test_gang_priority),
        cmocka_unit_test(test_launcher),
        cmocka_unit_test(test_network_policy),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
