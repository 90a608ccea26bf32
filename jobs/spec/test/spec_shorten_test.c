/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/spec_short.h"
#include "jobs/spec/spec_shorten.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

/* ---- the same pod ---- */

static bool has_item(const json_t *list, const json_t *item)
{
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each)
    {
        if (json_equal(each, item))
            return true;
    }
    return false;
}

/* In any order; then it is gone from both. */
static void take_list(json_t *a, json_t *b, const char *key)
{
    const json_t *one = json_object_get(a, key), *two = json_object_get(b, key), *each;
    size_t i;
    assert_int_equal(json_array_size(one), json_array_size(two));
    json_array_foreach(one, i, each) assert_true(has_item(two, each));
    json_object_del(a, key);
    json_object_del(b, key);
}

static json_t *first_container(const json_t *template)
{
    const json_t *pod = json_object_get(template, "spec");
    return json_array_get(json_object_get(pod, "containers"), 0);
}

static void assert_same_pod(const json_t *before, const json_t *after)
{
    json_t *a = json_deep_copy(before), *b = json_deep_copy(after);
    take_list(json_object_get(a, "spec"), json_object_get(b, "spec"), "volumes");
    take_list(first_container(a), first_container(b), "volumeMounts");
    json_object_del(first_container(a), "name");
    json_object_del(first_container(b), "name");
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

/* ---- cases ---- */

/* A template of one container called m, and what the short form of it begins with. */
#define TEMPLATE(container, pod)                                                                   \
    "{'spec': {'containers': [{'name': 'm', 'image': 'i', 'command': ['c']" container "}]" pod "}" \
    "}"
#define SHORT "'image': 'i', 'command': ['c']"
#define MOUNTED(mount, source)                                                                     \
    TEMPLATE(", 'volumeMounts': [{'name': 'v', " mount "}]",                                       \
             ", 'volumes': [{'name': 'v', " source "}]")

static const struct {
    const char *name, *template, *spec; /* spec: NULL: all stays in the template */
} cases[] = {
    {"a container",
     TEMPLATE(", 'args': ['a', ''], 'workingDir': '/w', 'envFrom': [{'secretRef': {'name': 's'}}], "
              "'resources': {'limits': {'cpu': 4}}",
              ""),
     "{" SHORT ", 'args': ['a', ''], 'workingDir': '/w', 'envFrom': [{'secretRef': {'name': "
     "'s'}}], 'resources': {'limits': {'cpu': 4}}}"},
    {"a pod",
     "{'metadata': {'labels': {'a': 'b'}, 'annotations': {'x.y/z': 'any thing'}}, 'spec': "
     "{'tolerations': [{'operator': 'Exists'}], 'nodeSelector': {'a': 'b'}, 'priorityClassName': "
     "'p', 'serviceAccountName': 's', 'schedulerName': 'k', 'imagePullSecrets': [{'name': 'q'}], "
     "'containers': [{'name': 'worker', 'image': 'i', 'command': ['c']}]}}",
     "{" SHORT ", 'tolerations': [{'operator': 'Exists'}], 'nodeSelector': {'a': 'b'}, "
     "'priorityClassName': 'p', 'serviceAccountName': 's', 'schedulerName': 'k', "
     "'imagePullSecrets': ['q'], 'labels': {'a': 'b'}, 'annotations': {'x.y/z': 'any thing'}}"},
    {"what has no short form",
     TEMPLATE(", 'tty': true}, {'name': 'side', 'image': 'k'", ", 'hostIPC': true"),
     "{" SHORT ", 'template': {'spec': {'containers': [{'name': 'worker', 'tty': true}, {'name': "
     "'side', 'image': 'k'}], 'hostIPC': true}}}"},
    {"a container beside it", TEMPLATE("}, {'name': 'side', 'image': 'k'", ""),
     "{" SHORT ", 'template': {'spec': {'containers': [{'name': 'side', 'image': 'k'}]}}}"},
    {"no name", "{'spec': {'containers': [{'image': 'i', 'command': ['c'], 'tty': true}]}}",
     "{" SHORT ", 'template': {'spec': {'containers': [{'tty': true}]}}}"},
    {"no image", "{'spec': {'containers': [{'name': 'm', 'command': ['c']}]}}", NULL},
    {"values of other types",
     "{'metadata': {'labels': []}, 'spec': {'containers': [{'image': 'i', 'command': 'c', 'args': "
     "[1], 'env': {}, 'workingDir': ''}], 'tolerations': {}, 'imagePullSecrets': ['q']}}",
     "{'image': 'i', 'template': {'metadata': {'labels': []}, 'spec': {'containers': [{'command': "
     "'c', 'args': [1], 'env': {}, 'workingDir': ''}], 'tolerations': {}, 'imagePullSecrets': "
     "['q']}}}"},

    {"the name is another's", TEMPLATE("}, {'name': 'worker', 'image': 'k'", ""), NULL},
    {"the name is an init container's",
     TEMPLATE("", ", 'initContainers': [{'name': 'worker', 'image': 'k'}]"), NULL},
    {"the name in a field's source",
     TEMPLATE(", 'env': [{'name': 'A', 'valueFrom': {'resourceFieldRef': {'containerName': 'm'}}}]",
              ""),
     NULL},
    {"the name in a key",
     "{'metadata': {'annotations': {'container.apparmor.security.beta.kubernetes.io/m': 'x y', "
     "'drarun.dev/x': 'y'}}, 'spec': {'containers': [{'name': 'm', 'image': 'i'}]}}",
     NULL},
    {"the name as a value",
     "{'metadata': {'annotations': {'kubectl.kubernetes.io/default-container': 'm', "
     "'drarun.dev/x': 'y'}}, 'spec': {'containers': [{'name': 'm', 'image': 'i'}]}}",
     NULL},

    {"variables",
     TEMPLATE(", 'env': [{'name': 'B', 'value': '2'}, {'name': 'A', 'valueFrom': {'fieldRef': "
              "{'fieldPath': 'x'}}}]",
              ""),
     "{" SHORT ", 'env': {'B': '2', 'A': {'fieldRef': {'fieldPath': 'x'}}}}"},
    {"a variable of others",
     TEMPLATE(", 'env': [{'name': 'B', 'value': '2'}, {'name': 'A', 'value': '$(B)'}]", ""),
     "{" SHORT ", 'env': [{'name': 'B', 'value': '2'}, {'name': 'A', 'value': '$(B)'}]}"},
    {"a variable twice",
     TEMPLATE(", 'env': [{'name': 'B', 'value': '2'}, {'name': 'B', 'value': '3'}]", ""),
     "{" SHORT ", 'env': [{'name': 'B', 'value': '2'}, {'name': 'B', 'value': '3'}]}"},
    {"a variable without a value", TEMPLATE(", 'env': [{'name': 'B'}]", ""),
     "{" SHORT ", 'env': [{'name': 'B'}]}"},
    {"a variable that shells cannot set", TEMPLATE(", 'env': [{'name': 'a.b', 'value': '1'}]", ""),
     "{" SHORT ", 'env': [{'name': 'a.b', 'value': '1'}]}"},

    {"a claim",
     MOUNTED("'mountPath': '/d', 'readOnly': true", "'persistentVolumeClaim': {'claimName': 'p'}"),
     "{" SHORT ", 'volumes': [{'name': 'v', 'persistentVolumeClaim': 'p', 'mountPath': '/d', "
     "'readOnly': true}]}"},
    {"a path of the node",
     MOUNTED("'mountPath': '/d', 'subPath': 's'", "'hostPath': {'path': '/h', 'type': ''}"),
     "{" SHORT ", 'volumes': [{'name': 'v', 'hostPath': {'path': '/h', 'type': ''}, 'mountPath': "
     "'/d', 'subPath': 's'}]}"},
    {"an empty directory", MOUNTED("'mountPath': '/d'", "'emptyDir': {}"),
     "{" SHORT ", 'volumes': [{'name': 'v', 'emptyDir': {}, 'mountPath': '/d'}]}"},
    {"a size", MOUNTED("'mountPath': '/d'", "'emptyDir': {'sizeLimit': 5}"),
     "{" SHORT ", 'volumes': [{'name': 'v', 'emptyDir': 5, 'mountPath': '/d'}]}"},
    {"shared memory",
     MOUNTED("'mountPath': '/dev/shm'", "'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Gi'}"),
     "{" SHORT ", 'volumes': [{'name': 'v', 'shm': '1Gi'}]}"},
    {"shared memory without a limit",
     MOUNTED("'mountPath': '/dev/shm'", "'emptyDir': {'medium': 'Memory'}"),
     "{" SHORT ", 'volumes': [{'name': 'v', 'emptyDir': {'medium': 'Memory'}, 'mountPath': "
     "'/dev/shm'}]}"},
    {"a source without a short form", MOUNTED("'mountPath': '/d'", "'iscsi': {'lun': 0}"),
     "{" SHORT
     ", 'template': {'spec': {'containers': [{'name': 'worker', 'volumeMounts': [{'name': "
     "'v', 'mountPath': '/d'}]}], 'volumes': [{'name': 'v', 'iscsi': {'lun': 0}}]}}}"},
    {"a mount without a short form",
     MOUNTED("'mountPath': '/d', 'mountPropagation': 'None'", "'emptyDir': {}"),
     "{" SHORT
     ", 'template': {'spec': {'containers': [{'name': 'worker', 'volumeMounts': [{'name': "
     "'v', 'mountPath': '/d', 'mountPropagation': 'None'}]}], 'volumes': [{'name': 'v', "
     "'emptyDir': {}}]}}}"},
    {"two mounts, none, and one",
     TEMPLATE(", 'volumeMounts': [{'name': 'v', 'mountPath': '/a'}, {'name': 'x', 'mountPath': "
              "'/x'}, {'name': 'v', 'mountPath': '/b'}]",
              ", 'volumes': [{'name': 'v', 'configMap': {'name': 'c'}}, {'name': 'u', 'secret': "
              "{'secretName': 's'}}, {'name': 'x', 'secret': {'secretName': 's'}}]"),
     "{" SHORT ", 'volumes': [{'name': 'x', 'secret': 's', 'mountPath': '/x'}], 'template': "
     "{'spec': {'containers': [{'name': 'worker', 'volumeMounts': [{'name': 'v', 'mountPath': "
     "'/a'}, {'name': 'v', 'mountPath': '/b'}]}], 'volumes': [{'name': 'v', 'configMap': {'name': "
     "'c'}}, {'name': 'u', 'secret': {'secretName': 's'}}]}}}"},
    {"two at /dev/shm",
     TEMPLATE(
         ", 'volumeMounts': [{'name': 'shm', 'mountPath': '/dev/shm'}, {'name': 'x', "
         "'mountPath': '/dev/shm/x'}]",
         ", 'volumes': [{'name': 'shm', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Gi'}}, "
         "{'name': 'x', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Gi'}}]"),
     "{" SHORT ", 'volumes': [{'shm': '1Gi'}, {'name': 'x', 'emptyDir': {'medium': 'Memory', "
     "'sizeLimit': '1Gi'}, 'mountPath': '/dev/shm/x'}]}"},

    {"a place to be filled in",
     "{'metadata': {'labels': {'a': '${A}'}, 'annotations': {'drarun.dev/a': 'b'}}, 'spec': "
     "{'containers': [{'image': 'i', 'command': ['c']}]}}",
     "{" SHORT ", 'template': {'metadata': {'labels': {'a': '${A}'}, 'annotations': "
     "{'drarun.dev/a': 'b'}}}}"},
};

static void check(const char *name, const char *text, const char *expected)
{
    json_t *template = quoted_json(text, 0), *spec = json_pack("{s:O}", "template", template);
    json_t *before = json_deep_copy(template);
    json_t *wanted = expected ? quoted_json(expected, 0) : json_pack("{s:O}", "template", before);
    assert_int_equal(spec_shorten(spec), 0);
    char *got = json_dumps(spec, JSON_COMPACT);
    if (!json_equal(spec, wanted))
        fail_msg("%s: %s", name, got);
    json_t *after = spec_short_template(spec);
    assert_same_pod(before, after);
    free(got);
    json_decref(after);
    json_decref(wanted);
    json_decref(before);
    json_decref(spec);
    json_decref(template);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(cases[i].name, cases[i].template, cases[i].spec);
}

static void test_no_template(void **state)
{
    static const char *const texts[] = {"{}", "{'template': 3}", "{'template': {'spec': []}}",
                                        "{'template': {'metadata': {'labels': {'a': 'b'}}}}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_t *spec = quoted_json(texts[i], 0), *before = json_deep_copy(spec);
        assert_int_equal(spec_shorten(spec), 0);
        assert_true(json_equal(spec, before));
        json_decref(spec);
        json_decref(before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_no_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
