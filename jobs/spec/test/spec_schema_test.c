/* SPDX-License-Identifier: Apache-2.0 */
/* The published schema has the parser's keys, ranges, words and defaults, and no others. argv[1]:
 * the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/spec.h"
#include "lib/base/nearest.h"

static json_t *schema;

/* What a "#/$defs/NAME" stands for. */
static json_t *resolve(json_t *node)
{
    const char *ref = json_string_value(json_object_get(node, "$ref"));
    if (!ref)
        return node;
    const char *name = strrchr(ref, '/') + 1;
    json_t *found = json_object_get(json_object_get(schema, "$defs"), name);
    assert_non_null(found);
    return found;
}

static void check_words(const struct field *f, json_t *node)
{
    json_t *words = json_object_get(node, "enum"), *word = NULL;
    const char *at = f->choices;
    size_t count = 0, length = 0, i = 0;
    while (words_next(&at, &length))
        count++;
    assert_int_equal(json_array_size(words), count);
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        assert_int_equal(words_index(f->choices, text, strlen(text)), i);
    }
}

static void check_default(const struct field *f, json_t *node)
{
    json_t *fallback = json_object_get(node, "default");
    if (f->kind == FIELD_GROUP)
        return;
    if (!fallback || !f->fallback) {
        if (fallback || f->fallback)
            fail_msg("%s: a default in one of parser and schema", f->key);
        return;
    }
    char *text = json_is_string(fallback) ? strdup(json_string_value(fallback))
                                          : json_dumps(fallback, JSON_ENCODE_ANY);
    assert_string_equal(text, f->fallback);
    free(text);
}

static void check_range(const struct field *f, json_t *node)
{
    assert_int_equal(json_integer_value(json_object_get(node, "minimum")), f->min);
    assert_int_equal(json_integer_value(json_object_get(node, "maximum")), f->max);
}

static size_t check_table(const struct field_table *table, json_t *node, const char *path)
{
    json_t *properties = json_object_get(node, "properties");
    size_t keys = table->count;
    if (json_object_size(properties) != table->count)
        fail_msg("%s: %zu keys in the schema, %zu in the parser", path,
                 json_object_size(properties), table->count);
    assert_true(json_is_false(json_object_get(node, "additionalProperties")));
    for (size_t i = 0; i < table->count; i++) {
        const struct field *f = &table->list[i];
        char below[200];
        json_t *given = json_object_get(properties, f->key);
        snprintf(below, sizeof below, "%s.%s", path, f->key);
        if (!given)
            fail_msg("%s is not in the schema", below);
        check_default(f, given);
        json_t *shape = resolve(given);
        if (f->kind == FIELD_CHOICE)
            check_words(f, shape);
        if (f->kind == FIELD_COUNT || f->kind == FIELD_INTEGER)
            check_range(f, shape);
        if (f->kind == FIELD_DURATION)
            assert_string_equal(json_string_value(json_object_get(given, "$ref")),
                                "#/$defs/duration");
        if (f->kind == FIELD_GROUP)
            keys += check_table(f->group, shape, below);
    }
    return keys;
}

static void test_schema_has_the_parsers_keys(void **state)
{
    json_t *document = json_object_get(json_object_get(schema, "$defs"), "document");
    (void)state;
    assert_true(check_table(&spec_document_fields, document, "") > 50);
}

/* A role's keys mean what they mean at the top. */
static void test_roles_have_the_keys_of_workers(void **state)
{
    json_t *defs = json_object_get(schema, "$defs");
    json_t *of_role = json_object_get(json_object_get(defs, "role"), "properties");
    json_t *of_spec = json_object_get(json_object_get(defs, "spec"), "properties");
    (void)state;
    assert_int_equal(json_object_size(of_role), spec_role_fields.count);
    for (size_t i = 0; i < spec_role_fields.count; i++) {
        const char *key = spec_role_fields.list[i].key;
        json_t *own = json_object_get(of_role, key), *above = json_object_get(of_spec, key);
        if (!own)
            fail_msg("%s is not in the schema of roles", key);
        if (strcmp(key, "devices") == 0) { /* claims are of the whole job */
            above = json_deep_copy(above);
            json_object_del(json_object_get(above, "properties"), "claims");
            assert_true(json_equal(own, above));
            json_decref(above);
        } else if (strcmp(key, "name") != 0 && !json_equal(own, above)) {
            fail_msg("%s of a role is not that of the spec", key);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schema_has_the_parsers_keys),
                                       cmocka_unit_test(test_roles_have_the_keys_of_workers)};
    json_error_t why;
    schema = argc == 2 ? json_load_file(argv[1], 0, &why) : NULL;
    if (!schema) {
        fprintf(stderr, "usage: spec_schema_test SCHEMA.json\n");
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(schema);
    return failed;
}
