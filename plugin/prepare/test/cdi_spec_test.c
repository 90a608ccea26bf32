/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "plugin/prepare/cdi_spec.h"

static struct node_device nic(const char *name)
{
    struct node_device device = {.kind = NODE_DEVICE_NIC, .rail = -1};
    snprintf(device.name, sizeof device.name, "%s", name);
    return device;
}

static const char *name_at(const json_t *spec, size_t index)
{
    const json_t *device = json_array_get(json_object_get(spec, "devices"), index);
    return json_string_value(json_object_get(device, "name"));
}

/* A claim that asks for a NIC, and with adminAccess for all: runtimes refuse a specification that
 * has two devices of one name, and with it all containers of the claim. */
static void a_device_of_two_requests_is_there_once(void **state)
{
    (void)state;
    json_t *spec = cdi_spec_new("nic.drarun.dev");
    const struct node_device a = nic("a"), b = nic("b");
    assert_true(cdi_spec_add(spec, "u-1", &a, NULL));
    assert_true(cdi_spec_add(spec, "u-1", &a, NULL));
    assert_true(cdi_spec_add(spec, "u-1", &b, NULL));
    assert_int_equal(json_array_size(json_object_get(spec, "devices")), 2);
    assert_string_equal(name_at(spec, 0), "u-1-a");
    assert_string_equal(name_at(spec, 1), "u-1-b");
    json_decref(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_of_two_requests_is_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
