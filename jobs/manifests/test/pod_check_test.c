/* SPDX-License-Identifier: Apache-2.0 */
/* The rules themselves are compared with an API server's (tests/support/pod_rules.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/pod_check.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

#define ALL "the API server would reject it: "

static void add(void *arg, const char *path, const char *message)
{
    assert_int_equal(strncmp(message, ALL, strlen(ALL)), 0);
    buf_printf(arg, "%s: %s\n", path, message + strlen(ALL));
}

static void expect(const char *text, const char *expected)
{
    struct buf said = BUF_INIT;
    CLEANUP(json_decrefp) json_t *pod = json_loads(text, 0, NULL);
    assert_non_null(pod);
    pod_check(pod, add, &said);
    assert_string_equal(said.data ? said.data : "", expected);
    buf_done(&said);
}

static void test_places(void **state)
{
    (void)state;
    expect("{}", "");
    expect(
        "{\"containers\": [{\"name\": \"w\", \"env\": [{\"name\": \"A\", \"valueFrom\": {}}],"
        " \"volumeMounts\": [{\"name\": \"v\", \"mountPath\": \"/v\"}],"
        " \"resources\": {\"requests\": {\"a.b/c\": 1}}}],"
        " \"initContainers\": [{\"name\": \"w\"}, {\"name\": \"X\", \"ports\": [{\"name\": "
        "\"1\"}]}],"
        " \"tolerations\": [{\"operator\": \"Exists\"}, {}], \"hostname\": \"a.b\"}",
        "spec.template.spec.containers[\"w\"].volumeMounts[\"/v\"]: no volume is called \"v\": add "
        "one to volumes\n"
        "spec.template.spec.containers[\"w\"].resources.requests[\"a.b/c\"]: a.b/c needs a limit "
        "equal to the request: give limits alone, which is both\n"
        "spec.template.spec.containers[\"w\"].env[\"A\"]: valueFrom has one source, and this one "
        "has 0\n"
        "spec.template.spec.initContainers[\"X\"].name: a name has at most 63 lower case letters, "
        "digits and inner \"-\"\n"
        "spec.template.spec.initContainers[\"X\"].ports[0]: a port's name has at most 15 lower "
        "case letters, digits and single inner \"-\", with a letter among them\n"
        "spec.template.spec.initContainers[\"w\"]: a container of the pod has this name, too\n"
        "spec.template.spec.tolerations[1]: key is missing; operator: Exists without a key is for "
        "all taints\n"
        "spec.template.spec.hostname: a name has at most 63 lower case letters, digits and inner "
        "\"-\"\n");
}

/* Only a request of its own adds one, to a pod that runs. */
static void test_ephemeral_containers(void **state)
{
    (void)state;
    expect("{\"ephemeralContainers\": []}", "");
    expect("{\"ephemeralContainers\": [{\"name\": \"debug\"}]}",
           "spec.template.spec.ephemeralContainers[\"debug\"]: ephemeral containers are added to a "
           "pod that runs (kubectl debug): drop it, or make it one of initContainers with "
           "restartPolicy: Always\n");
}

/* Amounts in several notations, which are compared as the API server does. */
static void test_amounts(void **state)
{
    static const struct {
        const char *name, *request, *limit, *expected;
    } rows[] = {
        {"cpu", "1.5", "\"1500m\"", NULL},
        {"cpu", "1.5", "\"1499m\"", "above the limit"},
        {"cpu", "\"0.1\"", "0.1", NULL},
        {"memory", "\"1Gi\"", "\"1.0Gi\"", NULL},
        {"memory", "\"1Gi\"", "\"1G\"", "above the limit"},
        {"memory", "0", "\"1e3\"", NULL},
        {"a.b/c", "\"2000m\"", "2", NULL},
        {"a.b/c", "2", "3", "must be equal"},
        {"a.b/c", "\"0.5Ki\"", "512", NULL},
        {"a.b/c", "\"2500m\"", "\"2500m\"", "whole numbers"},
        {"a.kubernetes.io/c", "\"500m\"", "1", NULL},
        {"hugepages-2Mi", "\"2Mi\"", "\"4Mi\"", "must be equal"},
        {"pods", "1", "1", "no resource of a container"},
        {"a b/c", "1", "1", "no resource of a container"},
        {"ephemeral-storage", "-1", "1", "not negative"},
        {"ephemeral-storage", "\"many\"", "1", NULL}, /* pod_schema_check says it */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_INIT, said = BUF_INIT;
        buf_printf(
            &text,
            "{\"containers\": [{\"name\": \"w\", \"resources\": {\"requests\": {\"%s\": %s}, "
            "\"limits\": {\"%s\": %s}}}]}",
            rows[i].name, rows[i].request, rows[i].name, rows[i].limit);
        CLEANUP(json_decrefp) json_t *pod = json_loads(text.data, 0, NULL);
        assert_non_null(pod);
        pod_check(pod, add, &said);
        if (rows[i].expected ? !said.data || !strstr(said.data, rows[i].expected) : said.len > 0)
            fail_msg("row %zu: %s", i, said.data ? said.data : "nothing");
        buf_done(&said);
        buf_done(&text);
    }
}

/* What drarun puts into a pod for itself has the amounts of the worker: one finding is enough. */
static void test_of_our_own(void **state)
{
    (void)state;
    expect("{\"initContainers\": [{\"name\": \"drarun-agent\", \"resources\": {\"requests\": "
           "{\"cpu\": -1}}}]}",
           "");
}

static void test_launcher(void **state)
{
    struct buf said = BUF_INIT;
    CLEANUP(json_decrefp) json_t *resources = json_loads("{\"limits\": {\"gpu\": 1}}", 0, NULL);
    struct spec_launcher launcher = {.resources = resources};
    (void)state;
    pod_check_launcher(&launcher, add, &said);
    assert_string_equal(said.data, "spec.launcher.resources.limits[\"gpu\"]: no resource of a "
                                   "container: expected cpu, memory, ephemeral-storage, "
                                   "hugepages-SIZE or a device plugin's, as nvidia.com/gpu\n");
    buf_done(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),   cmocka_unit_test(test_ephemeral_containers),
        cmocka_unit_test(test_amounts),  cmocka_unit_test(test_of_our_own),
        cmocka_unit_test(test_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
