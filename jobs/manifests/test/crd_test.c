/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/crd.h"
#include "jobs/spec/spec_fields.h"
#include "lib/base/cleanup.h"

static json_t *crd;

static json_t *versions_schema(json_t *of)
{
    json_t *version = json_array_get(json_object_get(json_object_get(of, "spec"), "versions"), 0);
    return json_object_get(json_object_get(version, "schema"), "openAPIV3Schema");
}

/* "spec.devices.gpus" */
static json_t *at(json_t *of, const char *path)
{
    json_t *node = versions_schema(of);
    char *copy = strdup(path), *rest = copy;
    for (char *key; node && (key = strsep(&rest, "."));)
        node = json_object_get(json_object_get(node, "properties"), key);
    free(copy);
    return node;
}

static void assert_text(const json_t *node, const char *key, const char *text)
{
    assert_non_null(node);
    assert_string_equal(json_string_value(json_object_get(node, key)), text);
}

static void test_values(void **state)
{
    (void)state;
    assert_text(at(crd, "spec.workers"), "type", "integer");
    assert_int_equal(json_integer_value(json_object_get(at(crd, "spec.workers"), "default")), 1);
    assert_text(at(crd, "spec.launch"), "type", "string");
    assert_text(at(crd, "spec.launch"), "description", "how ranks find one another; default: pmix");
    assert_null(json_object_get(at(crd, "spec.launch"), "default"));
    assert_text(at(crd, "spec.devices.gpus.count"), "pattern", "^all$");
    const json_t *queue = at(crd, "spec.timeouts.queue");
    assert_true(json_is_true(json_object_get(queue, "x-kubernetes-int-or-string")));
    assert_true(json_is_true(json_object_get(at(crd, "spec.devices.nics.selector"),
                                             "x-kubernetes-preserve-unknown-fields")));
    assert_null(
        json_object_get(at(crd, "spec.devices.gpus"), "x-kubernetes-preserve-unknown-fields"));
}

/* Alternatives may say what is required, and nothing of types. */
static void check_alternatives(const json_t *list)
{
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each)
    {
        assert_int_equal(json_object_size(each), 1);
        assert_non_null(json_object_get(each, "required"));
    }
}

/* Without what the two do not share: words, defaults, bounds that keep rules cheap. */
static json_t *types_of(const json_t *schema)
{
    json_t *copy = json_deep_copy(schema);
    json_object_del(copy, "description");
    json_object_del(copy, "default");
    json_object_del(copy, "maxProperties");
    json_object_del(json_object_get(json_object_get(copy, "properties"), "env"), "maxProperties");
    return copy;
}

/* A role's keys are the spec's, with types and rules, but for the claims' form, which is of the
 * whole job. */
static void test_roles_are_as_strict_as_the_spec(void **state)
{
    const json_t *role = json_object_get(at(crd, "spec.roles"), "items");
    json_t *own = json_object_get(role, "properties"), *value;
    const char *key;
    (void)state;
    assert_null(json_object_get(role, "x-kubernetes-preserve-unknown-fields"));
    assert_int_equal(json_object_size(own), spec_role_fields.count);
    json_object_foreach(own, key, value)
    {
        const json_t *above = json_object_get(json_object_get(at(crd, "spec"), "properties"), key);
        if (strcmp(key, "name") == 0)
            continue;
        json_t *a = types_of(value), *b = types_of(above);
        if (strcmp(key, "devices") == 0)
            json_object_del(json_object_get(b, "properties"), "claims");
        assert_true(json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    value = json_object_get(json_object_get(own, "labels"), "x-kubernetes-validations");
    assert_int_equal(json_array_size(value), 2);
}

/* Nothing that a structural schema forbids. */
static void check_structural(const json_t *node)
{
    static const char *const none[] = {
        "$ref", "if", "then", "const", "propertyNames", "prefixItems", "dependentRequired", NULL};
    const char *key;
    json_t *below;
    for (const char *const *word = none; *word; word++)
        assert_null(json_object_get(node, *word));
    check_alternatives(json_object_get(node, "oneOf"));
    check_alternatives(json_object_get(node, "anyOf"));
    assert_true(json_object_get(node, "type") ||
                json_object_get(node, "x-kubernetes-int-or-string") ||
                json_object_get(node, "x-kubernetes-preserve-unknown-fields"));
    json_object_foreach(json_object_get(node, "properties"), key, below) check_structural(below);
    if (json_is_object(json_object_get(node, "items")))
        check_structural(json_object_get(node, "items"));
    if (json_is_object(json_object_get(node, "additionalProperties")))
        check_structural(json_object_get(node, "additionalProperties"));
}

static void test_is_structural(void **state)
{
    (void)state;
    check_structural(versions_schema(crd));
}

/* Every key of the spec but suspend has a rule that keeps it, and env, of which rules see nothing.
 */
static void test_fixed(void **state)
{
    const json_t *rules = json_object_get(versions_schema(crd), "x-kubernetes-validations");
    const json_t *spec = json_object_get(at(crd, "spec"), "properties");
    size_t i, fixed = 0;
    const json_t *rule;
    (void)state;
    json_array_foreach(rules, i, rule)
    {
        const char *path = json_string_value(json_object_get(rule, "fieldPath"));
        fixed += path && strncmp(path, ".spec.", 6) == 0;
        assert_true(!path || strcmp(path, ".spec.suspend") != 0);
        assert_true(!path || strcmp(path, ".spec.env") != 0);
        assert_true(!path || strcmp(path, ".spec.imagePullSecrets") != 0);
    }
    assert_int_equal(fixed, json_object_size(spec) - 3);
}

static const char *rule_of(const char *path)
{
    const json_t *rules = json_object_get(versions_schema(crd), "x-kubernetes-validations");
    size_t i;
    const json_t *rule;
    json_array_foreach(rules, i, rule)
    {
        const char *at = json_string_value(json_object_get(rule, "fieldPath"));
        if (at && strcmp(at, path) == 0)
            return json_string_value(json_object_get(rule, "rule"));
    }
    fail_msg("there is no rule of %s", path);
    return "";
}

/* The manager is fixed from the creation; what it manages, once it is accepted. */
static void test_fixed_from_the_creation(void **state)
{
    (void)state;
    assert_null(strstr(rule_of(".spec.managedBy"), "status"));
    assert_non_null(strstr(rule_of(".spec.managedBy"), "!has(oldSelf.spec.managedBy)"));
    assert_non_null(strstr(rule_of(".spec.workers"), "!has(oldSelf.status)"));
}

static json_t *made_of(const char *spec, int *ret_rc, struct drarun_error *err)
{
    json_t *schema = json_pack("{s:{s:o}}", "$defs", "spec", json_loads(spec, 0, NULL));
    json_t *additions = json_loads(
        "{\"rules\": [], \"changes\": [], \"crd\": {\"spec\": {\"versions\": [{\"schema\": "
        "{\"openAPIV3Schema\": {\"type\": \"object\", \"properties\": {}}}}]}}}",
        0, NULL);
    json_t *made = NULL;
    *ret_rc = crd_make(schema, additions, &made, err);
    json_decref(schema);
    json_decref(additions);
    return made;
}

#define OBJECT                                                                                     \
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"workers\": "       \
    "{\"type\": \"integer\", \"default\": 1}"

static void test_what_is_lost_is_told(void **state)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {OBJECT "}}", NULL},
        {OBJECT "}, \"if\": {\"required\": [\"workers\"]}}", "spec: if"},
        {OBJECT ", \"x\": {\"type\": \"object\", \"properties\": {}, \"not\": {}}}}",
         "spec.x: not"},
        {OBJECT ", \"x\": {\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"object\"}]}}}",
         "spec.x: alternatives of these types"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct drarun_error err = {0};
        int rc;
        json_t *made = made_of(cases[i].spec, &rc, &err);
        assert_int_equal(rc < 0, cases[i].says != NULL);
        assert_true(!cases[i].says || strstr(err.text, cases[i].says));
        json_decref(made);
    }
}

static int set_up(void **state)
{
    (void)state;
    return crd_manifest(&crd, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(crd);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_roles_are_as_strict_as_the_spec),
        cmocka_unit_test(test_is_structural),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_fixed_from_the_creation),
        cmocka_unit_test(test_what_is_lost_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
