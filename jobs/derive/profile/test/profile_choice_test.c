/* SPDX-License-Identifier: Apache-2.0 */
/* Which profile a worker's machine has, and by which of its facts (rule D2 of
 * docs/design/017-derivation-rules.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/profile/profile_choice.h"
#include "lib/base/cleanup.h"

struct row {
    const char *says;
    const char *wanted;     /* the profile that is asked for; NULL */
    const char *type;       /* the node's label; NULL */
    const char *machine;    /* attribute gce.dra.net/machineType of a NIC of the node; NULL */
    const char *link_layer; /* of the worker's NIC; NULL: it has none */
    bool tcp;               /* which does no RDMA */
    const char *profile, *fact;
};

static const struct row table[] = {
    {"asked for", "generic-ib", "a4-highgpu-8g", NULL, "Ethernet", false, "generic-ib",
     "asked for"},
    {"by the instance type", NULL, "a4-highgpu-8g", NULL, "Ethernet", false, "gke-a4",
     "node label node.kubernetes.io/instance-type=a4-highgpu-8g"},
    {"auto is not a name", "auto", "a4-highgpu-8g", NULL, "Ethernet", false, "gke-a4",
     "node label node.kubernetes.io/instance-type=a4-highgpu-8g"},
    {"by an attribute of the node's NICs", NULL, NULL, "a4-highgpu-8g", "Ethernet", false, "gke-a4",
     "attribute gce.dra.net/machineType of the node's NICs"},
    {"an empty attribute says nothing", NULL, NULL, "", "InfiniBand", false, "generic-ib",
     "link layer InfiniBand"},
    {"by what the pod shows", NULL, NULL, NULL, "InfiniBand", false, "generic-ib",
     "link layer InfiniBand"},
    {"a profile without its NICs", NULL, "a4-highgpu-8g", NULL, NULL, false, "socket",
     "no RDMA NIC"},
    {"a NIC without RDMA", "generic-ib", NULL, NULL, "Ethernet", true, "socket", "no RDMA NIC"},
    {"a profile of plain interfaces", NULL, "a3-megagpu-8g", NULL, "Ethernet", true, "gke-tcpxo",
     "node label node.kubernetes.io/instance-type=a3-megagpu-8g"},
};

static void check(const struct row *row, const struct profiles *profiles)
{
    json_t *labels =
        row->type ? json_pack("{s:{s:s}}", "n", "node.kubernetes.io/instance-type", row->type)
                  : json_object();
    json_t *attributes =
        row->machine ? json_pack("{s:{s:s}}", "gce.dra.net/machineType", "string", row->machine)
                     : json_object();
    struct slice_device slice = {.attributes = attributes};
    struct device node_device = {.kind = DEVICE_NIC, .slice = &slice};
    struct inventory_nic nic = {.device = {.kind = DEVICE_NIC, .rdma = !row->tcp},
                                .ibdev = row->tcp ? NULL : "mlx5_0",
                                .link_layer = row->link_layer};
    const struct inventory inventory = {.node = "n",
                                        .nics = &nic,
                                        .nic_count = row->link_layer != NULL,
                                        .node_devices = &node_device,
                                        .node_device_count = 1};
    const struct plan_input input = {
        .profile = row->wanted, .node_labels = labels, .profiles = profiles};
    struct plan_notes notes = {0};
    struct profile_choice choice;
    struct drarun_error err = {0};
    if (profile_choose(&input, &inventory, &notes, &choice, &err) < 0)
        fail_msg("%s: %s", row->says, err.text);
    if (strcmp(choice.profile->name, row->profile) != 0 || strcmp(choice.fact, row->fact) != 0)
        fail_msg("%s: %s by %s, expected %s by %s", row->says, choice.profile->name, choice.fact,
                 row->profile, row->fact);
    plan_notes_done(&notes);
    json_decref(labels);
    json_decref(attributes);
}

static void rows(void **state)
{
    struct profiles profiles;
    (void)state;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        check(&table[i], &profiles);
    profiles_done(&profiles);
}

static void a_name_that_is_none(void **state)
{
    struct profiles profiles;
    struct plan_notes notes = {0};
    struct profile_choice choice;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    const struct inventory inventory = {.node = "n"};
    const struct plan_input input = {.profile = "gke-a9", .profiles = &profiles};
    assert_int_equal(profile_choose(&input, &inventory, &notes, &choice, &err), -ENOENT);
    assert_string_equal(err.text, "no profile \"gke-a9\"");
    plan_notes_done(&notes);
    profiles_done(&profiles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(a_name_that_is_none),
    };
    return cmocka_run_group_tests_name("profile_choice", tests, NULL, NULL);
}
