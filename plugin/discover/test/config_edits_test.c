/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/base/cleanup.h"
#include "plugin/discover/config.h"
#include "plugin/discover/config_edits.h"

static int read_config(const char *edits, struct discover_config *config, struct drarun_error *err)
{
    char text[2048];
    CLEANUP(doc_freep) struct doc *doc = NULL;
    snprintf(text, sizeof text, "kind: PluginConfig\nnics:\n  edits: %s\n", edits);
    int rc = doc_parse("plugin.yaml", text, strlen(text), DOC_FORMAT_YAML, &doc_limits_default,
                       &doc, err);
    return rc < 0 ? rc : discover_config_read(doc, config, err);
}

static void they_are_added_to_what_is_there(void **state)
{
    struct discover_config config;
    struct drarun_error err = {0};
    json_t *edits = json_pack("{s:[{s:s}]}", "deviceNodes", "path", "/dev/infiniband/uverbs0");
    json_t *expected = json_loads(
        "{\"env\": [\"NCCL_NET=gIB\"], \"mounts\": [{\"hostPath\": \"/opt/gib\", "
        "\"containerPath\": "
        "\"/usr/local/gib\", \"type\": \"bind\", \"options\": [\"ro\", \"nosuid\", \"nodev\", "
        "\"rbind\"]}, {\"hostPath\": \"/a\", \"containerPath\": \"/b\", \"type\": \"bind\", "
        "\"options\": [\"rw\", \"bind\"]}], \"deviceNodes\": [{\"path\": "
        "\"/dev/infiniband/uverbs0\"}, {\"path\": \"/dev/gdrdrv\", \"hostPath\": \"/dev/gdrdrv\", "
        "\"permissions\": \"rw\"}, {\"path\": \"/dev/x\", \"hostPath\": \"/dev/y\", "
        "\"permissions\": \"r\"}]}",
        0, NULL);
    (void)state;
    assert_int_equal(
        read_config("{env: {NCCL_NET: gIB}, mounts: [{hostPath: /opt/gib, containerPath: "
                    "/usr/local/gib}, {hostPath: /a, containerPath: /b, options: [rw, bind]}], "
                    "deviceNodes: [{path: /dev/gdrdrv}, {path: /dev/x, hostPath: /dev/y, "
                    "permissions: r}]}",
                    &config, &err),
        0);
    assert_true(config_edits_add(config.nic_edits, edits));
    assert_true(json_equal(edits, expected));
    assert_null(config.gpu_edits);
    assert_true(config_edits_add(config.gpu_edits, edits));
    assert_true(json_equal(edits, expected));
    json_decref(edits);
    json_decref(expected);
    discover_config_done(&config);
}

static void nothing_gives_no_empty_lists(void **state)
{
    struct discover_config config;
    struct drarun_error err = {0};
    json_t *edits = json_object();
    (void)state;
    assert_int_equal(read_config("{mounts: [], env: {}}", &config, &err), 0);
    assert_true(config_edits_add(config.nic_edits, edits));
    assert_int_equal(json_object_size(edits), 0);
    json_decref(edits);
    discover_config_done(&config);
}

static void what_is_wrong_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"{mount: []}", "mount"},
        {"{mounts: [{containerPath: /b}]}", "expected a member hostPath"},
        {"{mounts: [{hostPath: a, containerPath: /b}]}", "nics.edits.mounts[0].hostPath"},
        {"{mounts: [{hostPath: /a/../b, containerPath: /b}]}", "nics.edits.mounts[0].hostPath"},
        {"{mounts: [{hostPath: /a, containerPath: /b/..}]}", "nics.edits.mounts[0].containerPath"},
        {"{mounts: [{hostPath: /a, containerPath: /}]}", "nics.edits.mounts[0].containerPath"},
        {"{mounts: [{hostPath: /a, containerPath: /b, options: [\"r o\"]}]}",
         "nics.edits.mounts[0].options[0]"},
        {"{mounts: [{hostPath: /a, containerPath: /b, options: []}]}",
         "nics.edits.mounts[0].options"},
        {"{env: {1A: x}}", "nics.edits.env"},
        {"{env: [A]}", "nics.edits.env"},
        {"{deviceNodes: [{hostPath: /dev/x}]}", "expected a member path"},
        {"{deviceNodes: [{path: /dev/x, permissions: all}]}",
         "nics.edits.deviceNodes[0].permissions"},
        {"[]", "nics.edits"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct discover_config config;
        struct drarun_error err = {0};
        assert_true(read_config(cases[i][0], &config, &err) < 0);
        if (!strstr(err.text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_added_to_what_is_there),
        cmocka_unit_test(nothing_gives_no_empty_lists),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
