/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs get a node for each worker, and what their pods say of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/node_spread.h"
#include "lib/base/cleanup.h"

#define NICS "devices: {nics: {count: 1, class: dranet}}"
#define PODS(more)                                                                                 \
    "template: {metadata: {labels: {app: x}}, spec: {containers: [{image: i, command: [c]}], "     \
    "affinity: {" more "}}}"
#define HARD "requiredDuringSchedulingIgnoredDuringExecution: "
#define SOFT "preferredDuringSchedulingIgnoredDuringExecution: "
#define TERM(selector) "{topologyKey: kubernetes.io/hostname, labelSelector: {" selector "}}"
#define WORKERS "matchExpressions: [{key: drarun.dev/worker, operator: Exists}]"
#define SHORT "image: i\ncommand: [c]\n"

static struct job_spec read_spec(const char *text)
{
    struct job_spec spec = {0};
    struct drarun_error err = {0};
    if (spec_parse("job.yaml", text, strlen(text), &spec, &err) < 0)
        fail_msg("%s\n%s", text, err.text);
    return spec;
}

static void expect(const char *text, int expected)
{
    struct job_spec spec = read_spec(text);
    int found = node_spread_of(&spec, &spec.roles[0], false, NULL);
    if (found != expected)
        fail_msg("expected %d, got %d:\n%s", expected, found, text);
    job_spec_done(&spec);
}

static void test_left_out(void **state)
{
    (void)state;
    expect(SHORT "workers: 2\n" NICS, NODE_SPREAD_BY_SPEC);
    expect(SHORT "workers: 1\n" NICS, NODE_SPREAD_NONE);
    expect(SHORT NICS, NODE_SPREAD_NONE);
    expect(SHORT "workers: 2", NODE_SPREAD_NONE);
    expect(SHORT "workers: 2\ndevices: {nics: {count: 1, resource: rdma/hca}}",
           NODE_SPREAD_BY_SPEC);
    expect(SHORT "workers: 2\ndevices: {nics: {count: all, class: dranet}}", NODE_SPREAD_BY_SPEC);
    expect(SHORT "workers: 2\ndevices: {gpus: {count: 4}}", NODE_SPREAD_NONE);
    expect(SHORT "workers: 2\ndevices: {gpus: {count: 8}}", NODE_SPREAD_NONE); /* of how many? */
    expect(SHORT "workers: 2\ndevices: {gpus: {count: all}}", NODE_SPREAD_BY_SPEC);
    expect(SHORT "workers: 2\ndevices: {gpus: {count: 8}}\nnccl: {profile: gke-a4}",
           NODE_SPREAD_BY_SPEC);
    expect(SHORT "workers: 2\ndevices: {gpus: {count: 7}}\nnccl: {profile: gke-a4}",
           NODE_SPREAD_NONE);
    expect(SHORT "workers: 2\ndevices: {nics: {count: 1, class: dranet}, shared: [{claim: a}]}",
           NODE_SPREAD_NONE); /* what a claim holds is of one node mostly */
}

static void test_given(void **state)
{
    (void)state;
    expect(SHORT "workers: 2\nplacement: {spread: node}", NODE_SPREAD_BY_SPEC);
    expect(SHORT "workers: 1\nplacement: {spread: node}", NODE_SPREAD_NONE);
    expect(SHORT "workers: 2\nplacement: {spread: none}\n" NICS, NODE_SPREAD_NONE);
    expect(SHORT "workers: 2\nplacement: {}\n" NICS, NODE_SPREAD_BY_SPEC);
}

/* What the template says of the workers by node stands in place of the default. */
static void test_template(void **state)
{
    static const struct row {
        const char *affinity;
        int expected;
    } rows[] = {
        {"podAntiAffinity: {" HARD "[" TERM(WORKERS) "]}", NODE_SPREAD_BY_TEMPLATE},
        {"podAntiAffinity: {" HARD "[" TERM("matchLabels: {app: x}") "]}", NODE_SPREAD_BY_TEMPLATE},
        {"podAntiAffinity: {" HARD "[" TERM("") "]}", NODE_SPREAD_BY_TEMPLATE},
        {"podAntiAffinity: {" HARD "[" TERM("matchLabels: {app: x, drarun.dev/job: job}") "]}",
         NODE_SPREAD_BY_TEMPLATE},
        {"podAntiAffinity: {" SOFT "[{weight: 1, podAffinityTerm: " TERM(WORKERS) "}]}",
         NODE_SPREAD_NONE},
        {"podAffinity: {" SOFT "[{weight: 1, podAffinityTerm: " TERM(WORKERS) "}]}",
         NODE_SPREAD_NONE},
        {"podAffinity: {" HARD "[" TERM(WORKERS) "]}", NODE_SPREAD_NONE},
        /* of other pods, or of racks and zones */
        {"podAntiAffinity: {" HARD "[" TERM("matchLabels: {app: z}") "]}", NODE_SPREAD_BY_SPEC},
        {"podAntiAffinity: {" HARD "[" TERM("matchExpressions: [{key: app, operator: NotIn, "
                                            "values: [x]}]") "]}",
         NODE_SPREAD_BY_SPEC},
        {"podAffinity: {" HARD "[{topologyKey: rack, labelSelector: {" WORKERS "}}]}",
         NODE_SPREAD_BY_SPEC},
        {"podAntiAffinity: {" HARD "[{topologyKey: kubernetes.io/hostname}]}", NODE_SPREAD_BY_SPEC},
        {"podAntiAffinity: {" HARD "[{topologyKey: kubernetes.io/hostname, namespaces: [b], "
         "labelSelector: {}}]}",
         NODE_SPREAD_BY_SPEC},
        {"podAntiAffinity: {" HARD "[{topologyKey: kubernetes.io/hostname, mismatchLabelKeys: "
         "[drarun.dev/job], labelSelector: {}}]}",
         NODE_SPREAD_BY_SPEC},
        {"nodeAffinity: {}", NODE_SPREAD_BY_SPEC},
    };
    char text[1000];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(text, sizeof text, "workers: 2\n" NICS "\n" PODS("%s"), rows[i].affinity);
        expect(text, rows[i].expected);
    }
    expect("workers: 2\n" NICS "\ntemplate: {spec: {containers: [{image: i, command: [c]}], "
           "topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, "
           "whenUnsatisfiable: DoNotSchedule, "
           "labelSelector: {" WORKERS "}}]}}",
           NODE_SPREAD_NONE);
    expect("workers: 2\n" NICS
           "\nplacement: {spread: none}\n" PODS("podAntiAffinity: {" HARD "[" TERM(WORKERS) "]}"),
           NODE_SPREAD_BY_TEMPLATE);
    expect("workers: 2\n" NICS "\nplacement: {spread: node}\n" PODS(
               "podAntiAffinity: {" SOFT "[{weight: 1, podAffinityTerm: " TERM(WORKERS) "}]}"),
           NODE_SPREAD_BY_SPEC);
}

/* Pods of an Indexed Job, and of other systems, do not have our workers' label. */
static void test_labels_of_other_pods(void **state)
{
    static const char text[] =
        "workers: 2\nqueue: q\n" NICS "\n" PODS("podAntiAffinity: {" HARD "[" TERM(WORKERS) "]}");
    struct job_spec spec;
    (void)state;
    expect(text, NODE_SPREAD_BY_SPEC);
    spec =
        read_spec("workers: 2\n" NICS "\n" PODS("podAntiAffinity: {" HARD "[" TERM(WORKERS) "]}"));
    assert_int_equal(node_spread_of(&spec, &spec.roles[0], false, NULL), NODE_SPREAD_BY_TEMPLATE);
    assert_int_equal(node_spread_of(&spec, &spec.roles[0], true, NULL), NODE_SPREAD_BY_SPEC);
    job_spec_done(&spec);
}

static json_t *json_of(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

#define OURS                                                                                       \
    "{\"labelSelector\": {\"matchLabels\": {\"drarun.dev/job\": \"j\", \"drarun.dev/attempt\": "   \
    "\"2\", \"drarun.dev/spread\": \"node\"}}, \"topologyKey\": \"kubernetes.io/hostname\"}"

static void expect_added(const char *pod, const char *expected)
{
    CLEANUP(json_decrefp)
    json_t *labels = json_of("{\"drarun.dev/job\": \"j\", \"drarun.dev/attempt\": \"2\"}");
    CLEANUP(json_decrefp) json_t *spec = json_of(pod);
    CLEANUP(json_decrefp) json_t *wanted = json_of(expected);
    assert_int_equal(node_spread_add(spec, labels, NULL), 0);
    assert_true(json_equal(spec, wanted));
}

static void test_added(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    expect_added("{}", "{\"affinity\": {\"podAntiAffinity\": "
                       "{\"requiredDuringSchedulingIgnoredDuringExecution\": [" OURS "]}}}");
    expect_added("{\"affinity\": {\"nodeAffinity\": {\"a\": 1}, \"podAntiAffinity\": {\"b\": 2, "
                 "\"requiredDuringSchedulingIgnoredDuringExecution\": [{\"c\": 3}]}}}",
                 "{\"affinity\": {\"nodeAffinity\": {\"a\": 1}, \"podAntiAffinity\": {\"b\": 2, "
                 "\"requiredDuringSchedulingIgnoredDuringExecution\": [{\"c\": 3}, " OURS "]}}}");
    CLEANUP(json_decrefp) json_t *odd = json_of("{\"affinity\": {\"podAntiAffinity\": []}}");
    CLEANUP(json_decrefp) json_t *labels = json_of("{\"drarun.dev/job\": \"j\"}");
    assert_int_equal(node_spread_add(odd, labels, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_string_equal(err.text,
                        "spec.template.spec.affinity.podAntiAffinity: expected an object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_left_out), cmocka_unit_test(test_given),
        cmocka_unit_test(test_template), cmocka_unit_test(test_labels_of_other_pods),
        cmocka_unit_test(test_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
