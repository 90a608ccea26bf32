/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/claim_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/base/test/quoted_json.h"

static void test_network_of_an_order(void **state)
{
    static const struct {
        const char *order, *network; /* NULL: none */
    } rows[] = {
        {"{}", NULL},
        {"{'rdma': 'mlx5_0', 'config': {}}", NULL},
        {"{'config': {'interface': {'mtu': 9000}}, 'mac': '02:00:00:00:00:01'}", NULL},
        {"{'config': {'interface': {'name': 'net1'}}}", "{'interfaceName': 'net1'}"},
        {"{'config': {'interface': {'name': 'net1', 'addresses': []}}, 'mac': ''}",
         "{'interfaceName': 'net1'}"},
        {"{'config': {'interface': {'name': 'net1', 'addresses': ['10.0.0.2/24', 'fd00::2/64']}}, "
         "'mac': '02:00:00:00:00:01'}",
         "{'interfaceName': 'net1', 'ips': ['10.0.0.2/24', 'fd00::2/64'], 'hardwareAddress': "
         "'02:00:00:00:00:01'}"},
        /* the address that it gets */
        {"{'config': {'interface': {'name': 'net1', 'hardwareAddr': '02:00:00:00:00:05'}}, 'mac': "
         "'02:00:00:00:00:01'}",
         "{'interfaceName': 'net1', 'hardwareAddress': '02:00:00:00:00:05'}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *order = quoted_json(rows[i].order, 0);
        CLEANUP(json_decrefp) json_t *network = claim_status_network(order);
        CLEANUP(json_decrefp)
        json_t *expected = rows[i].network ? quoted_json(rows[i].network, 0) : NULL;
        if (expected ? !json_equal(network, expected) : network != NULL)
            fail_msg("%s: %s", rows[i].order, json_dumps(network, JSON_ENCODE_ANY));
    }
}

static struct {
    json_t *object;
    char place[128]; /* NAMESPACE/NAME/SUBRESOURCE */
    char manager[32];
    bool force;
} applied;

int __wrap_kube_apply(struct kube_client *client, const struct kube_target *target,
                      const json_t *object, const struct kube_write *options, kube_call_fn fn,
                      void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_apply(struct kube_client *client, const struct kube_target *target,
                      const json_t *object, const struct kube_write *options, kube_call_fn fn,
                      void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)fn, (void)arg, (void)ret_call, (void)err;
    applied.object = json_deep_copy(object);
    snprintf(applied.place, sizeof applied.place, "%s/%s/%s", target->namespace_, target->name,
             target->subresource);
    snprintf(applied.manager, sizeof applied.manager, "%s", options->manager);
    applied.force = options->force;
    return 0;
}

/* A NIC with its interface, one without, a GPU, and the first one for an administrator again. */
static void test_status_of_the_devices(void **state)
{
    static const char expected_text[] =
        "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'namespace': "
        "'train', 'name': 'pair', 'uid': 'u'}, 'status': {'devices': ["
        "{'driver': 'nic.drarun.dev', 'pool': 'n', 'device': 'eth1', 'networkData': "
        "{'interfaceName': 'net1'}, 'data': {'rdmaDevice': 'mlx5_0'}},"
        "{'driver': 'nic.drarun.dev', 'pool': 'n', 'device': 'ib0', 'data': {'rdmaDevice': "
        "'mlx5_1'}},"
        "{'driver': 'nic.drarun.dev', 'pool': 'n', 'device': 'gpu-0'},"
        "{'driver': 'nic.drarun.dev', 'pool': 'other', 'device': 'eth1'}]}}";
    static const char *const messages[] = {"it is attached when a container starts",
                                           "it is attached when a container starts", "", ""};
    CLEANUP(json_decrefp)
    json_t *eth = quoted_json("{'rdma': 'mlx5_0', 'config': {'interface': {'name': 'net1'}}}", 0);
    CLEANUP(json_decrefp) json_t *ib = quoted_json("{'rdma': 'mlx5_1', 'config': {}}", 0);
    CLEANUP(json_decrefp) json_t *expected = quoted_json(expected_text, 0);
    struct checkpoint_device devices[] = {{.pool = "n", .device = "eth1", .order = eth},
                                          {.pool = "n", .device = "ib0", .order = ib},
                                          {.pool = "n", .device = "gpu-0"},
                                          {.pool = "n", .device = "eth1", .admin = true},
                                          {.pool = "other", .device = "eth1"}};
    const struct checkpoint checkpoint = {.driver = "nic.drarun.dev",
                                          .namespace_ = "train",
                                          .name = "pair",
                                          .uid = "u",
                                          .devices = devices,
                                          .count = ARRAY_LEN(devices)};
    size_t i;
    json_t *device;
    (void)state;
    assert_int_equal(
        claim_status_write(NULL, &kube_resource_claims, &checkpoint, NULL, NULL, NULL, NULL), 0);
    assert_string_equal(applied.place, "train/pair/status");
    assert_string_equal(applied.manager, "nic.drarun.dev");
    assert_true(applied.force);
    json_array_foreach(json_object_get(json_object_get(applied.object, "status"), "devices"), i,
                       device)
    {
        const char *type, *is, *message, *since;
        assert_int_equal(json_unpack(device, "{s:[{s:s, s:s, s:s, s:s}]}", "conditions", "type",
                                     &type, "status", &is, "message", &message,
                                     "lastTransitionTime", &since),
                         0);
        assert_string_equal(type, "Prepared");
        assert_string_equal(is, "True");
        assert_string_equal(message, messages[i]);
        assert_true(timestamp_parse(since, &(int64_t){0}));
        json_object_del(device, "conditions");
    }
    if (!json_equal(applied.object, expected))
        fail_msg("%s", json_dumps(applied.object, 0));
    json_decref(applied.object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_network_of_an_order),
                                       cmocka_unit_test(test_status_of_the_devices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
