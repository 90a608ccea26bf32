/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "plugin/prepare/agent_config.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/claimed.h"

static int read_text(const char *text, struct agent_config *config, struct drarun_error *err)
{
    json_t *value = json_loads(text, 0, NULL);
    struct reader reader;
    assert_non_null(value);
    reader_init(&reader, NULL, false);
    struct reader_node node = reader_value(&reader, value, NULL);
    agent_config_read(&node, config);
    int rc = reader_result(&reader, err);
    reader_done(&reader);
    json_decref(value);
    return rc;
}

#define HEAD "{\"apiVersion\":\"drarun.dev/v1alpha1\",\"kind\":\"WorkerAgent\""

static void good_ones_are_read(void **state)
{
    (void)state;
    struct agent_config config;
    assert_int_equal(read_text(HEAD ",\"agent\":\"v1-pmix-5.0.7\"}", &config, NULL), 0);
    assert_string_equal(config.agent, "v1-pmix-5.0.7");
    assert_false(config.shm);
    assert_int_equal(
        read_text(HEAD ",\"agent\":\"v1-pmix-5.0.7\",\"sharedMemory\":{}}", &config, NULL), 0);
    assert_true(config.shm);
    assert_int_equal(config.shm_bytes, 0);
    assert_int_equal(
        read_text(HEAD ",\"agent\":\"v1\",\"sharedMemory\":{\"size\":\"1.5Gi\"}}", &config, NULL),
        0);
    assert_int_equal(config.shm_bytes, 3LL << 29);
}

static void bad_ones_are_refused_with_their_path(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[]", "expected a mapping"},
        {"{\"kind\":\"WorkerAgent\",\"agent\":\"v1\"}", "apiVersion"},
        {"{\"apiVersion\":\"drarun.dev/v2\",\"kind\":\"WorkerAgent\",\"agent\":\"v1\"}",
         "apiVersion: expected"},
        {HEAD "}", "agent: it is missing"},
        {HEAD ",\"agent\":\"../../bin\"}", "agent: expected"},
        {HEAD ",\"agent\":\"v1/../../bin\"}", "agent: expected"},
        {HEAD ",\"agent\":\"\"}", "agent"},
        {HEAD ",\"agent\":7}", "agent"},
        {HEAD ",\"agent\":\"v1\",\"sharedMemory\":true}", "sharedMemory"},
        {HEAD ",\"agent\":\"v1\",\"sharedMemory\":{\"size\":\"much\"}}", "sharedMemory.size"},
        {HEAD ",\"agent\":\"v1\",\"sharedMemory\":{\"size\":\"0.5\"}}", "sharedMemory.size"},
        {HEAD ",\"agent\":\"v1\",\"sharedMemory\":{\"size\":-1}}", "sharedMemory.size"},
        {HEAD ",\"agent\":\"v1\",\"sharedMemory\":{\"sice\":\"1Gi\"}}", "size"},
        {HEAD ",\"agent\":\"v1\",\"path\":\"/etc\"}", "path"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct agent_config config = {0};
        struct drarun_error err = {0};
        assert_int_equal(read_text(bad[i].text, &config, &err), -EINVAL);
        if (!strstr(err.text, bad[i].says))
            fail_msg("%s: %s", bad[i].text, err.text);
    }
}

static void a_pods_memory_is_what_its_containers_may_use(void **state)
{
    (void)state;
#define LIMIT(text) "{\"resources\":{\"limits\":{\"memory\":\"" text "\"}}}"
#define SIDECAR(text)                                                                              \
    "{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{\"memory\":\"" text "\"}}}"
    static const struct {
        const char *spec;
        int64_t bytes;
    } cases[] = {
        {"{}", 0},
        {"{\"containers\":[{}]}", 0},
        {"{\"containers\":[" LIMIT("1Gi") "]}", 1 << 30},
        {"{\"containers\":[" LIMIT("1Gi") ",{}]}", 0},
        {"{\"containers\":[" LIMIT("1Ki") "," LIMIT("2Ki") "]}", 3 << 10},
        {"{\"containers\":[" LIMIT("1Ki") "],\"initContainers\":[" LIMIT("9Ki") "]}", 9 << 10},
        {"{\"containers\":[" LIMIT("1Ki") "],\"initContainers\":[{}]}", 0},
        {"{\"containers\":[" LIMIT("1Ki") "],\"initContainers\":[" SIDECAR("2Ki") "]}", 3 << 10},
        {"{\"containers\":[{}],\"resources\":{\"limits\":{\"memory\":\"5Ki\"}}}", 5 << 10},
        {"{\"containers\":[" LIMIT("9223372036854775807") "," LIMIT("1Ki") "]}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *pod = json_pack("{s:o}", "spec", json_loads(cases[i].spec, 0, NULL));
        assert_int_equal(agent_config_pod_memory(pod), cases[i].bytes);
        json_decref(pod);
    }
}

/* A claim with configurations in allocation order. */
static json_t *claim(const char *configs)
{
    return json_pack(
        "{s:{s:s, s:s, s:s}, s:{s:{s:{s:[{s:s, s:s, s:s, s:s}], s:o}}, s:[{s:s, s:s, s:s}]}}",
        "metadata", "namespace", "train", "name", "c", "uid", "u-1", "status", "allocation",
        "devices", "results", "driver", "nic.drarun.dev", "pool", "n0", "device", "a", "request",
        "nic", "config", json_loads(configs, 0, NULL), "reservedFor", "resource", "pods", "name",
        "p", "uid", "pu");
}

#define OPAQUE(driver, parameters)                                                                 \
    "\"opaque\":{\"driver\":\"" driver "\",\"parameters\":" parameters "}}"
#define ASKS HEAD ",\"agent\":\"v1\"}"

static void what_asks_for_the_agent_is_no_configuration_of_a_device(void **state)
{
    (void)state;
    struct claimed claimed = {0};
    struct drarun_error err = {0};
    json_t *c = claim("[{" OPAQUE("nic.drarun.dev", "{\"interface\":{}}") ",{" OPAQUE(
        "nic.drarun.dev", ASKS) ",{" OPAQUE("gpu.drarun.dev", ASKS) "]");
    assert_int_equal(claimed_read(c, "u-1", "nic.drarun.dev", "n0", &claimed, &err), 0);
    assert_non_null(json_object_get(claimed.devices[0].config, "interface"));
    assert_true(agent_config_is(claimed.agent));
    claimed_done(&claimed);
    json_decref(c);
    c = claim("[{" OPAQUE("gpu.drarun.dev", ASKS) "]");
    assert_int_equal(claimed_read(c, "u-1", "nic.drarun.dev", "n0", &claimed, &err), 0);
    assert_null(claimed.agent);
    claimed_done(&claimed);
    json_decref(c);
    c = claim("[{\"source\":\"FromClass\"," OPAQUE("nic.drarun.dev", ASKS) "]");
    assert_int_equal(claimed_read(c, "u-1", "nic.drarun.dev", "n0", &claimed, &err), -EINVAL);
    assert_non_null(strstr(err.text, "its class asks for WorkerAgent"));
    json_decref(c);
}

static void the_specification_brings_agent_and_memory(void **state)
{
    (void)state;
    char id[CDI_ID_MAX];
    json_t *spec = cdi_spec_new("nic.drarun.dev");
    assert_false(cdi_agent_id(spec, "nic.drarun.dev", "u-1", id, sizeof id));
    assert_true(cdi_spec_add_agent(spec, "u-1", "/host/agent", true, 4096));
    assert_true(cdi_agent_id(spec, "nic.drarun.dev", "u-1", id, sizeof id));
    assert_string_equal(id, "nic.drarun.dev/claim=u-1_agent");
    assert_string_equal(cdi_agent_file(spec, "u-1"), "/host/agent");
    char *text = json_dumps(json_object_get(spec, "devices"), JSON_COMPACT);
    assert_string_equal(
        text,
        "[{\"name\":\"u-1_agent\",\"containerEdits\":{\"mounts\":[{\"hostPath\":\"/host/agent\","
        "\"containerPath\":\"/.drarun/bin/drarun-worker\",\"options\":[\"ro\",\"nosuid\",\"nodev\","
        "\"bind\"]},{\"hostPath\":\"tmpfs\",\"containerPath\":\"/dev/shm\",\"type\":\"tmpfs\","
        "\"options\":[\"nosuid\",\"nodev\",\"mode=1777\",\"size=4096\"]}]}}]");
    free(text);
    json_decref(spec);
    spec = cdi_spec_new("nic.drarun.dev");
    assert_true(cdi_spec_add_agent(spec, "u-1", "/host/agent", false, 0));
    text = json_dumps(spec, JSON_COMPACT);
    assert_null(strstr(text, "tmpfs"));
    free(text);
    json_decref(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_are_read),
        cmocka_unit_test(bad_ones_are_refused_with_their_path),
        cmocka_unit_test(a_pods_memory_is_what_its_containers_may_use),
        cmocka_unit_test(what_asks_for_the_agent_is_no_configuration_of_a_device),
        cmocka_unit_test(the_specification_brings_agent_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
