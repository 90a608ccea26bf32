/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/network_policy.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

static void spec_of(const char *roles, struct job_spec *ret_spec)
{
    struct drarun_error err = {0};
    char text[2048];
    snprintf(text, sizeof text,
             "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: train}\nspec:\n%s",
             roles);
    int rc = spec_parse("s", text, strlen(text), ret_spec, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
}

/* The agent's port and those that containers declare, each once; those of a protocol apart. */
static void test_ports_for_everybody(void **state)
{
    static const struct {
        const char *spec, *ports; /* behind the agent's */
    } rows[] = {
        {"  template: {spec: {containers: [{image: i, command: [a]}]}}\n", ""},
        {"  template: {spec: {containers: [{image: i, command: [a], ports: [{containerPort: "
         "8080}]}]}}\n",
         ",{'protocol':'TCP','port':8080}"},
        {"  template: {spec: {containers: [{image: i, command: [a], ports: [{containerPort: 8080, "
         "protocol: TCP}, {containerPort: 8080}, {containerPort: 8080, protocol: UDP}, "
         "{containerPort: 9}]}]}}\n",
         ",{'protocol':'TCP','port':8080},{'protocol':'UDP','port':8080},{'protocol':'TCP','port':"
         "9}"},
        {"  template: {spec: {initContainers: [{name: x, image: i, ports: [{containerPort: 7}]}], "
         "containers: [{image: i, command: [a], ports: [{containerPort: 8}]}]}}\n",
         ",{'protocol':'TCP','port':7},{'protocol':'TCP','port':8}"},
        {"  roles:\n"
         "  - {name: a, template: {spec: {containers: [{image: i, command: [a], ports: "
         "[{containerPort: 5}]}]}}}\n"
         "  - {name: b, template: {spec: {initContainers: [{name: x, image: i, ports: "
         "[{containerPort: 4}]}], containers: [{image: i, command: [b], ports: [{containerPort: "
         "5}, {containerPort: 6}]}]}}}\n",
         ",{'protocol':'TCP','port':5},{'protocol':'TCP','port':4},{'protocol':'TCP','port':6}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct render_options options = {.namespace = "team"};
        struct job_spec spec;
        char text[1024];
        spec_of(rows[i].spec, &spec);
        snprintf(text, sizeof text,
                 "{'podSelector':{'matchLabels':{'drarun.dev/job':'train'},'matchExpressions':[{"
                 "'key':'drarun.dev/worker','operator':'Exists'}]},'policyTypes':['Ingress'],"
                 "'ingress':[{'from':[{'podSelector':{'matchLabels':{'drarun.dev/job':'train'},"
                 "'matchExpressions':[{'key':'drarun.dev/worker','operator':'Exists'}]}}]},"
                 "{'ports':[{'protocol':'TCP','port':%d}%s]}]}",
                 RENDER_AGENT_PORT, rows[i].ports);
        CLEANUP(json_decrefp) json_t *expected = quoted_json(text, 0);
        CLEANUP(json_decrefp) json_t *policy = network_policy_of_job(&spec, &options);
        const json_t *metadata = json_object_get(policy, "metadata");
        assert_string_equal(json_string_value(json_object_get(metadata, "name")), "train-w");
        assert_string_equal(json_string_value(json_object_get(metadata, "namespace")), "team");
        cleanup_free char *got = json_dumps(json_object_get(policy, "spec"), 0);
        if (!json_equal(json_object_get(policy, "spec"), expected))
            fail_msg("row %zu: %s", i, got);
        job_spec_done(&spec);
    }
}

/* Pods of an Indexed Job are found by the policy's own label. */
static void test_workers_of_an_indexed_job(void **state)
{
    const struct render_options options = {.namespace = "team"};
    struct job_spec spec;
    (void)state;
    spec_of("  template: {spec: {containers: [{image: i, command: [a]}]}}\n", &spec);
    spec.claims = SPEC_CLAIMS_TEMPLATE;
    CLEANUP(json_decrefp) json_t *policy = network_policy_of_job(&spec, &options);
    CLEANUP(json_decrefp)
    json_t *expected = quoted_json("{'matchLabels':{'drarun.dev/job':'train',"
                                   "'drarun.dev/network-policy':'job'}}",
                                   0);
    const json_t *of = json_object_get(policy, "spec");
    assert_true(json_equal(json_object_get(of, "podSelector"), expected));
    const json_t *first = json_array_get(json_object_get(of, "ingress"), 0);
    const json_t *from = json_array_get(json_object_get(first, "from"), 0);
    assert_true(json_equal(json_object_get(from, "podSelector"), expected));
    job_spec_done(&spec);
}

/* For pods of jobs without a policy of their own. */
static void test_policy_of_a_namespace(void **state)
{
    char text[1024];
    (void)state;
    snprintf(text, sizeof text,
             "{'apiVersion':'networking.k8s.io/v1','kind':'NetworkPolicy','metadata':{'name':"
             "'drarun','namespace':'team','labels':{'app.kubernetes.io/name':'drarun'}},'spec':{"
             "'podSelector':{'matchExpressions':[{'key':'drarun.dev/worker','operator':'Exists'},{"
             "'key':'drarun.dev/network-policy','operator':'DoesNotExist'}]},'policyTypes':["
             "'Ingress'],'ingress':[{'from':[{'podSelector':{'matchExpressions':[{'key':"
             "'drarun.dev/worker','operator':'Exists'}]}}]},{'ports':[{'protocol':'TCP','port':%d}]"
             "}]}}",
             RENDER_AGENT_PORT);
    CLEANUP(json_decrefp) json_t *expected = quoted_json(text, 0);
    CLEANUP(json_decrefp) json_t *policy = network_policy_of_namespace("drarun", "team");
    assert_true(json_equal(policy, expected));
    CLEANUP(json_decrefp) json_t *nowhere = network_policy_of_namespace("drarun", NULL);
    assert_null(json_object_get(json_object_get(nowhere, "metadata"), "namespace"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ports_for_everybody),
                                       cmocka_unit_test(test_workers_of_an_indexed_job),
                                       cmocka_unit_test(test_policy_of_a_namespace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
