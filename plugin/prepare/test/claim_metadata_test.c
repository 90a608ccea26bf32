/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/inventory/metadata.h"
#include "plugin/prepare/claim_metadata.h"

static struct node_device nic(const char *name)
{
    struct node_device device = {.kind = NODE_DEVICE_NIC, .rail = -1};
    snprintf(device.name, sizeof device.name, "%s", name);
    snprintf(device.netdev.name, sizeof device.netdev.name, "eth-%s", name);
    return device;
}

static json_t *list_of(const struct claimed *claimed)
{
    static const char *const requests[] = {"nic/fast", "nic/fast", "other"};
    static const char *const names[] = {"a", "b", "c"};
    json_t *list = json_array();
    json_t *order = json_pack("{s:{s:{s:s, s:[s]}}}", "config", "interface", "name", "net1",
                              "addresses", "10.0.0.1/24");
    for (size_t i = 0; i < 3; i++) {
        const struct node_device device = nic(names[i]);
        const struct claimed_device wanted = {
            .request = requests[i], .pool = "n0", .device = names[i]};
        assert_true(claim_metadata_add(list, claimed, &wanted, "nic.drarun.dev", &device, order));
    }
    json_decref(order);
    return list;
}

/* By the reader that agents have. */
static void what_is_written_is_read(void **state)
{
    (void)state;
    const struct claimed claimed = {
        .namespace_ = "train", .name = "job-w-0", .uid = "u", .entry = "devices"};
    json_t *list = list_of(&claimed), *document = NULL, *documents = json_array();
    struct buf text = BUF_INIT;
    struct metadata metadata = {0};
    struct drarun_error err = {0};
    assert_int_equal(json_array_size(list), 2);
    claim_metadata_text(claim_metadata_find(list, "nic/any"), &text);
    assert_non_null(strstr(text.data, "metadata.resource.k8s.io/v1beta1"));
    assert_non_null(strstr(text.data, "metadata.resource.k8s.io/v1alpha1"));
    assert_int_equal(metadata_decode("x", text.data, text.len, &document, &err), 0);
    json_array_append_new(documents, document);
    assert_int_equal(metadata_read(documents, &metadata, &err), 0);
    assert_int_equal(metadata.count, 2);
    const struct metadata_device *b = metadata_find(&metadata, "nic.drarun.dev", "n0", "b");
    assert_non_null(b);
    assert_string_equal(b->claim, "job-w-0");
    assert_string_equal(b->request, "nic/fast"); /* as in the claim's allocation */
    assert_string_equal(b->pod_name, "net1");
    metadata_done(&metadata);
    json_decref(documents);
    json_decref(list);
    buf_done(&text);
}

static const char *path_of(const json_t *list)
{
    return json_string_value(json_object_get(json_array_get(list, 0), "container"));
}

static void paths_are_where_agents_look(void **state)
{
    (void)state;
    struct claimed claimed = {
        .namespace_ = "train", .name = "job-w-0", .uid = "u", .entry = "devices"};
    json_t *list = list_of(&claimed);
    assert_string_equal(path_of(list), "/" METADATA_FOLDER
                                       "/resourceclaims/job-w-0/nic/nic.drarun.dev-metadata.json");
    json_decref(list);
    claimed.from_template = true;
    list = list_of(&claimed);
    assert_string_equal(path_of(list),
                        "/" METADATA_FOLDER
                        "/resourceclaimtemplates/devices/nic/nic.drarun.dev-metadata.json");
    json_decref(list);
    claimed.entry[0] = '\0';
    list = list_of(&claimed);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(paths_are_where_agents_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
