/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata files: which document counts, what is wrong with the others, where they are. */
#include "jobs/derive/inventory/metadata.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/buf.h"

#define HEAD "{\"kind\": \"DeviceMetadata\", \"apiVersion\": \"metadata.resource.k8s.io/"
#define DEVICE(name) "{\"driver\": \"d\", \"pool\": \"p\", \"name\": \"" name "\"}"
#define FILE_OF(version, name)                                                                     \
    HEAD version "\", \"metadata\": {\"name\": \"claim\"}, \"requests\": [{\"name\": \"r\", "      \
                 "\"devices\": [" DEVICE(name) "]}]}"

static json_t *decoded(const char *text)
{
    struct drarun_error err = {0};
    json_t *document = NULL;
    if (metadata_decode("f", text, strlen(text), &document, &err) < 0)
        fail_msg("%s", err.text);
    return json_pack("[o]", document);
}

static void the_first_known_version(void **unused)
{
    static const char *const table[][2] = {
        {FILE_OF("v1beta1", "a") "\n" FILE_OF("v1alpha1", "b"), "a"},
        {FILE_OF("v1alpha1", "b"), "b"},
        {FILE_OF("v2", "x") FILE_OF("v1alpha1", "b"), "b"},
        {"{\"kind\": \"Other\", \"apiVersion\": 3} [] 1 " FILE_OF("v1beta1", "a"), "a"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct metadata m;
        json_t *documents = decoded(table[i][0]);
        assert_int_equal(metadata_read(documents, &m, NULL), 0);
        assert_int_equal(m.count, 1);
        assert_string_equal(m.list[0].slice.name, table[i][1]);
        assert_string_equal(m.list[0].claim, "claim");
        assert_string_equal(m.list[0].request, "r");
        assert_non_null(metadata_find(&m, "d", "p", table[i][1]));
        assert_null(metadata_find(&m, "d", "other", table[i][1]));
        metadata_done(&m);
        json_decref(documents);
    }
}

static void nothing_yet_is_legal(void **unused)
{
    static const char *const table[] = {
        HEAD "v1beta1\"}",
        HEAD "v1beta1\", \"requests\": [{\"name\": \"r\"}]}",
        HEAD "v1beta1\", \"requests\": [{\"name\": \"r\", \"devices\": []}]}",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct metadata m;
        json_t *documents = decoded(table[i]);
        assert_int_equal(metadata_read(documents, &m, NULL), 0);
        assert_int_equal(m.count, 0);
        metadata_done(&m);
        json_decref(documents);
    }
    struct metadata m;
    assert_int_equal(metadata_read(NULL, &m, NULL), 0);
    metadata_done(&m);
}

static void what_is_wrong(void **unused)
{
    static const char *const table[][2] = {
        {"", "is empty"},
        {"  \n", "is empty"},
        {"{", "f:1:"},
        {FILE_OF("v1beta1", "a") "}", "f:1:"},
        {"{\"a\": 1, \"a\": 2}", "a"},
        {FILE_OF("v9", "a"), "got metadata.resource.k8s.io/v9"},
        {"[1]", "got no apiVersion"},
        {HEAD "v1beta1\", \"requests\": {}}", "requests: expected an array"},
        {HEAD "v1beta1\", \"requests\": [7]}", "requests[0]: expected a name"},
        {HEAD "v1beta1\", \"requests\": [{\"name\": \"r\", \"devices\": {}}]}", "requests[0]"},
        {HEAD "v1beta1\", \"requests\": [{\"name\": \"r\", \"devices\": [{\"driver\": \"d\", "
              "\"pool\": \"p\"}]}]}",
         "requests[0].devices[0]: expected driver, pool and name"},
        {HEAD "v1beta1\", \"requests\": [{\"name\": \"r\", \"devices\": [{\"driver\": \"d\", "
              "\"pool\": \"p\", \"name\": \"n\", \"attributes\": {\"a\": 1}}]}]}",
         "expected an object for each attribute"},
        {HEAD "v1beta1\", \"requests\": [{\"name\": \"r\", \"devices\": [{\"driver\": \"d\", "
              "\"pool\": \"p\", \"name\": \"n\", \"networkData\": []}]}]}",
         "expected networkData"},
        {"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "16"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct drarun_error err = {0};
        json_t *document = NULL;
        assert_true(metadata_decode("f", table[i][0], strlen(table[i][0]), &document, &err) < 0);
        assert_null(document);
        if (!strstr(err.text, table[i][1]) || err.text[0] != 'f')
            fail_msg("\"%s\" does not say \"%s\"", err.text, table[i][1]);
    }
}

static void a_device_counts_once(void **unused)
{
    struct metadata m;
    (void)unused;
    json_t *one = decoded(FILE_OF("v1beta1", "a")),
           *two = json_pack("[OO]", json_array_get(one, 0), json_array_get(one, 0));
    assert_int_equal(metadata_read(two, &m, NULL), 0);
    assert_int_equal(m.count, 1);
    metadata_done(&m);
    json_decref(two);
    json_decref(one);
}

static void files_of_a_probe(void **unused)
{
    (void)unused;
    struct drarun_error err = {0};
    json_t *probe =
        json_pack("{s:{s:s, s:s, s:i}, s:[s]}", "metadataFiles", "a/f", FILE_OF("v1beta1", "x"),
                  "b/f", "[", "c/f", 3, "metadataErrors", "one");
    assert_int_equal(metadata_decode_files(probe, &err), 0);
    assert_null(json_object_get(probe, "metadataFiles"));
    assert_int_equal(json_array_size(json_object_get(probe, "metadata")), 1);
    const json_t *errors = json_object_get(probe, "metadataErrors");
    assert_int_equal(json_array_size(errors), 3);
    assert_string_equal(json_string_value(json_array_get(errors, 0)), "one");
    assert_non_null(strstr(json_string_value(json_array_get(errors, 1)), METADATA_FOLDER "/b/f: "));
    assert_string_equal(json_string_value(json_array_get(errors, 2)),
                        "/" METADATA_FOLDER "/c/f: expected a text");
    json_decref(probe);
    probe = json_object();
    assert_int_equal(metadata_decode_files(probe, &err), 0);
    assert_int_equal(json_object_size(probe), 0);
    json_decref(probe);
}

static void too_many(void **unused)
{
    struct metadata m;
    (void)unused;
    json_t *devices = json_array();
    for (size_t i = 0; i <= METADATA_DEVICES_MAX; i++)
        json_array_append_new(
            devices, json_pack("{s:s, s:s, s:s}", "driver", "d", "pool", "p", "name", "n"));
    json_t *documents =
        json_pack("[{s:s, s:s, s:[{s:s, s:o}]}]", "kind", "DeviceMetadata", "apiVersion",
                  "metadata.resource.k8s.io/v1beta1", "requests", "name", "r", "devices", devices);
    assert_int_equal(metadata_read(documents, &m, NULL), -E2BIG);
    json_decref(documents);
}

#define CLAIM(annotations, results)                                                                \
    "{\"metadata\": {\"name\": \"c-x7k\"" annotations "}, \"status\": {\"allocation\": "           \
    "{\"devices\": {\"results\": [" results "]}}}}"
#define RESULT(request, driver)                                                                    \
    "{\"request\": \"" request "\", \"driver\": \"" driver "\", \"pool\": \"p\"}"
#define OF_POD ", \"annotations\": {\"resource.kubernetes.io/pod-claim-name\": \"nics\"}"

static void where_they_are(void **unused)
{
    static const char *const table[][2] = {
        {CLAIM("", RESULT("nic/fast", "dra.net")),
         "resourceclaims/c-x7k/nic/dra.net-metadata.json\n"},
        {CLAIM(OF_POD, RESULT("nic", "dra.net") "," RESULT("nic", "dra.net") "," RESULT(
                           "gpu", "gpu.nvidia.com")),
         "resourceclaimtemplates/nics/nic/dra.net-metadata.json\n"
         "resourceclaimtemplates/nics/gpu/gpu.nvidia.com-metadata.json\n"},
        {CLAIM("", ""), ""},
        {"{}", ""},
        /* no way out of the folder */
        {CLAIM("", RESULT("..", "d") "," RESULT("a", "../../d") "," RESULT("", "d")), ""},
        {"{\"metadata\": {\"name\": \"../x\"}, \"status\": {\"allocation\": {\"devices\": "
         "{\"results\": [" RESULT("a", "d") "]}}}}",
         ""},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct strlist paths = STRLIST_INIT;
        struct buf text = BUF_INIT;
        json_t *claim = json_loads(table[i][0], 0, NULL);
        assert_non_null(claim);
        metadata_paths(claim, &paths);
        for (size_t k = 0; k < paths.count; k++)
            buf_printf(&text, "%s\n", paths.items[k]);
        assert_string_equal(text.data ? text.data : "", table[i][1]);
        buf_done(&text);
        strlist_done(&paths);
        json_decref(claim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_known_version), cmocka_unit_test(nothing_yet_is_legal),
        cmocka_unit_test(what_is_wrong),           cmocka_unit_test(a_device_counts_once),
        cmocka_unit_test(files_of_a_probe),        cmocka_unit_test(too_many),
        cmocka_unit_test(where_they_are),
    };
    return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
