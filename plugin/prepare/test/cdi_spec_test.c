/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/agent_offer.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
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

/* ---- whole specifications ---- */

static void check(const json_t *spec, const char *expected)
{
    cleanup_free char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, expected);
}

static void ids_are_the_claims(void **state)
{
    char id[CDI_ID_MAX];
    (void)state;
    cdi_id("nic.drarun.dev", "u-1", "a", id, sizeof id);
    assert_string_equal(id, "nic.drarun.dev/claim=u-1-a");
    cdi_metadata_id("nic.drarun.dev", "u-1", "nic/fast", id, sizeof id);
    assert_string_equal(id, "nic.drarun.dev/claim=u-1_metadata_nic");
    cdi_metadata_id("nic.drarun.dev", "u-1", "nic", id, sizeof id);
    assert_string_equal(id, "nic.drarun.dev/claim=u-1_metadata_nic");
}

static void devices_have_their_nodes(void **state)
{
    CLEANUP(json_decrefp) json_t *spec = cdi_spec_new("nic.drarun.dev");
    CLEANUP(json_decrefp) json_t *more = json_pack("{s:[s]}", "env", "NCCL_NET=gIB");
    struct node_device a = nic("a");
    (void)state;
    a.chardevs[0] = (struct node_chardev){"/dev/one", 0, 7};
    a.chardevs[1] = (struct node_chardev){"/dev/two", 7, 0};
    a.chardev_count = 2;
    a.rdma.chardevs[0] = (struct node_chardev){"/dev/infiniband/uverbs0", 0, 0};
    a.rdma.chardev_count = 1;
    assert_true(cdi_spec_add(spec, "u-1", &a, more));
    assert_true(cdi_spec_add_take(spec, "u-1", "b", json_pack("{s:[]}", "deviceNodes")));
    assert_true(cdi_spec_add_take(spec, "u-1", "b", json_pack("{s:[s]}", "env", "X=1")));
    check(spec, "{\"cdiVersion\":\"0.6.0\",\"devices\":[{\"containerEdits\":{\"deviceNodes\":["
                "{\"major\":0,\"minor\":7,\"path\":\"/dev/one\",\"type\":\"c\"},"
                "{\"major\":7,\"minor\":0,\"path\":\"/dev/two\",\"type\":\"c\"},"
                "{\"path\":\"/dev/infiniband/uverbs0\",\"type\":\"c\"}],"
                "\"env\":[\"DRARUN_NIC_u_1_a=1\",\"NCCL_NET=gIB\"]},\"name\":\"u-1-a\"},"
                "{\"containerEdits\":{\"env\":[\"DRARUN_DEVICE=1\"]},\"name\":\"u-1-b\"}],"
                "\"kind\":\"nic.drarun.dev/claim\"}");
}

static void orders_share_one_hook(void **state)
{
    CLEANUP(json_decrefp) json_t *spec = cdi_spec_new("nic.drarun.dev");
    (void)state;
    assert_true(cdi_spec_add_order(spec, "/bin/hook", "/run/u-1.a.json"));
    assert_true(cdi_spec_add_order(spec, "/bin/hook", "/run/u-1.b.json"));
    check(spec, "{\"cdiVersion\":\"0.6.0\",\"containerEdits\":{\"hooks\":[{\"args\":["
                "\"drarun-attach\",\"attach\",\"/run/u-1.a.json\",\"/run/u-1.b.json\"],"
                "\"hookName\":\"createRuntime\",\"path\":\"/bin/hook\",\"timeout\":25}]},"
                "\"devices\":[],\"kind\":\"nic.drarun.dev/claim\"}");
    assert_true(cdi_spec_add_spares(spec, "u-1"));
    const json_t *edits = json_object_get(spec, "containerEdits");
    const json_t *nodes = json_object_get(edits, "deviceNodes");
    assert_int_equal(json_array_size(json_object_get(edits, "hooks")), 1);
    assert_int_equal(json_array_size(nodes), 32);
    check(json_array_get(nodes, 0), "{\"major\":231,\"minor\":192,\"path\":\"/dev/infiniband/"
                                    ".drarun-u-1/uverbs0\",\"type\":\"c\"}");
    check(json_array_get(nodes, 31), "{\"major\":231,\"minor\":223,\"path\":\"/dev/infiniband/"
                                     ".drarun-u-1/uverbs31\",\"type\":\"c\"}");
}

#define BIND "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"bind\"]}"

static void metadata_is_mounted(void **state)
{
    CLEANUP(json_decrefp) json_t *spec = cdi_spec_new("d");
    (void)state;
    assert_true(cdi_spec_add_metadata(spec, "u-1", "nic", "/run/m", "/etc/m"));
    check(json_object_get(spec, "devices"),
          "[{\"containerEdits\":{\"mounts\":[{\"containerPath\":\"/etc/m\",\"hostPath\":\"/run/"
          "m\"," BIND "]},\"name\":\"u-1_metadata_nic\"}]");
}

static void agent_is_mounted(void **state)
{
    static const struct {
        bool shm;
        int64_t bytes;
        const char *size;
    } rows[] = {{false, 5, NULL}, {true, 0, "size=100%"}, {true, 1, "size=1"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char id[CDI_ID_MAX], expected[1024], mount[256] = "";
        CLEANUP(json_decrefp) json_t *spec = cdi_spec_new("d");
        assert_false(cdi_agent_id(spec, "d", "u-1", id, sizeof id));
        assert_true(cdi_spec_add_metadata(spec, "u-1", "nic", "/run/m", "/etc/m"));
        assert_null(cdi_agent_file(spec, "u-1"));
        assert_true(cdi_spec_add_agent(spec, "u-1", "/lib/agent", rows[i].shm, rows[i].bytes));
        if (rows[i].size)
            snprintf(mount, sizeof mount,
                     ",{\"containerPath\":\"/dev/shm\",\"hostPath\":\"tmpfs\",\"options\":["
                     "\"nosuid\",\"nodev\",\"mode=1777\",\"%s\"],\"type\":\"tmpfs\"}",
                     rows[i].size);
        snprintf(expected, sizeof expected,
                 "{\"containerEdits\":{\"mounts\":[{\"containerPath\":\"" AGENT_OFFER_PROGRAM
                 "\",\"hostPath\":\"/lib/agent\"," BIND "%s]},\"name\":\"u-1_agent\"}",
                 mount);
        check(json_array_get(json_object_get(spec, "devices"), 1), expected);
        assert_string_equal(cdi_agent_file(spec, "u-1"), "/lib/agent");
        assert_null(cdi_agent_file(spec, "u-2"));
        assert_true(cdi_agent_id(spec, "d", "u-1", id, sizeof id));
        assert_string_equal(id, "d/claim=u-1_agent");
    }
}

/* ---- files ---- */

static void files_are_written_read_and_removed(void **state)
{
    char top[] = "/tmp/cdi_test.XXXXXX", dir[64], path[128];
    struct drarun_error err = {0};
    struct stat first, second;
    CLEANUP(strlist_done) struct strlist names = STRLIST_INIT;
    CLEANUP(json_decrefp) json_t *spec = cdi_spec_new("d");
    const struct node_device a = nic("a");
    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(dir, sizeof dir, "%s/cdi", top);
    snprintf(path, sizeof path, "%s/d-claim_u-1.json", dir);
    assert_true(cdi_spec_add(spec, "u-1", &a, NULL));
    assert_true(cdi_spec_add_metadata(spec, "u-1", "nic", "/run/m", "/etc/m"));
    assert_true(cdi_spec_add_take(spec, "u-12", "b", json_object())); /* of no claim of this UID */
    assert_int_equal(cdi_spec_devices(dir, "d", "u-1", &names, &err), 0);
    assert_int_equal(names.count, 0);
    assert_int_equal(cdi_spec_write(spec, dir, "d", "u-1", &err), 0);
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(first.st_mode & 07777, 0644);
    assert_int_equal(cdi_spec_write(spec, dir, "d", "u-1", &err), 0);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino); /* nothing was to be written */
    assert_int_equal(cdi_spec_devices(dir, "d", "u-1", &names, &err), 0);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.items[0], "a");
    json_object_set_new(spec, "devices", json_object());
    assert_int_equal(cdi_spec_write(spec, dir, "d", "u-1", &err), 0);
    assert_int_equal(cdi_spec_devices(dir, "d", "u-1", &names, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, ": it is no CDI specification of ours"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(cdi_spec_remove(dir, "d", "u-1", &err), 0);
    assert_int_equal(stat(path, &first), -1);
    tree_remove(AT_FDCWD, top);
    assert_int_equal(cdi_spec_write(spec, dir, "d", "u-1", &err), -ENOENT);
    snprintf(path, sizeof path, "make %s: No such file or directory", dir);
    assert_string_equal(err.text, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_of_two_requests_is_there_once),
        cmocka_unit_test(ids_are_the_claims),
        cmocka_unit_test(devices_have_their_nodes),
        cmocka_unit_test(orders_share_one_hook),
        cmocka_unit_test(metadata_is_mounted),
        cmocka_unit_test(agent_is_mounted),
        cmocka_unit_test(files_are_written_read_and_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
