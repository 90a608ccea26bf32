/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/checkpoint.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/checkpoint-test-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, dir);
}

static json_t *document(void)
{
    json_t *d = checkpoint_document("nic.drarun.dev", "train", "job-w-0", "u-1", "pu");
    json_t *cdi = cdi_spec_new("nic.drarun.dev");
    assert_true(
        checkpoint_add_take(d, "nic", "n0", "a", false, json_pack("{s:i}", "version", 1), NULL));
    assert_true(checkpoint_add_take(d, "nic", "n0", "b", true, NULL, NULL));
    assert_true(checkpoint_set_cdi(d, cdi));
    json_decref(cdi);
    return d;
}

static void what_is_saved_is_loaded(void **state)
{
    (void)state;
    struct checkpoint *c = NULL;
    json_t *d = document();
    struct strlist uids = STRLIST_INIT;
    assert_int_equal(checkpoint_load(dir, "u-1", &c, NULL), -ENOENT);
    assert_int_equal(checkpoint_save(d, dir, "u-1", NULL), 0);
    assert_int_equal(checkpoint_load(dir, "u-1", &c, NULL), 0);
    assert_string_equal(c->driver, "nic.drarun.dev");
    assert_string_equal(c->namespace_, "train");
    assert_string_equal(c->uid, "u-1");
    assert_int_equal(c->count, 2);
    assert_string_equal(c->devices[0].device, "a");
    assert_non_null(c->devices[0].order);
    assert_true(c->devices[1].admin);
    assert_null(c->devices[1].order);
    checkpoint_free(c);
    assert_int_equal(checkpoint_list(dir, &uids, NULL), 0);
    assert_int_equal(uids.count, 1);
    assert_string_equal(uids.items[0], "u-1");
    strlist_done(&uids);
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    json_decref(d);
}

static void no_part_of_one_is_taken_for_one(void **state)
{
    (void)state;
    json_t *d = document();
    char *text = json_dumps(d, JSON_COMPACT);
    for (size_t n = 0; n < strlen(text); n++) {
        struct checkpoint *c = NULL;
        struct drarun_error err = {0};
        assert_int_equal(checkpoint_parse("u-1.json", text, n, &c, &err), -EINVAL);
        assert_null(c);
        assert_non_null(strstr(err.text, "u-1.json"));
    }
    free(text);
    json_decref(d);
}

/* What the file has, for the caller to free. */
static char *saved(size_t *ret_length)
{
    json_t *d = document();
    char *text;
    assert_int_equal(checkpoint_save(d, dir, "u-1", NULL), 0);
    assert_non_null(text = checkpoint_text(dir, "u-1"));
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    json_decref(d);
    *ret_length = strlen(text);
    return text;
}

/* In a key's name of its own at most: {"sun":"..",..} says what {"sum":"..",..} says. */
static void a_flipped_bit_is_seen(void **state)
{
    (void)state;
    size_t length, taken = 0;
    char *text = saved(&length);
    json_t *before = json_loadb(text, length, 0, NULL);
    json_object_del(before, "sum");
    for (size_t bit = 0; bit < 8 * length; bit++) {
        struct checkpoint *c = NULL;
        struct drarun_error err = {0};
        text[bit / 8] ^= (char)(1 << bit % 8);
        int rc = checkpoint_parse("u-1.json", text, length, &c, &err);
        if (rc == 0) {
            taken++;
            json_object_del(c->document, json_object_iter_key(json_object_iter(c->document)));
            assert_true(json_equal(c->document, before));
        } else {
            assert_int_equal(rc, -EINVAL);
        }
        checkpoint_free(c);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_in_range(taken, 1, 8 * strlen("sum"));
    json_decref(before);
    free(text);
}

static void a_changed_value_is_named(void **state)
{
    (void)state;
    size_t length;
    char *text = saved(&length);
    struct checkpoint *c = NULL;
    struct drarun_error err = {0};
    char *device = strstr(text, "\"device\":\"a\"");
    assert_non_null(device);
    device[strlen("\"device\":\"")] = 'c';
    assert_int_equal(checkpoint_parse("u-1.json", text, length, &c, &err), -EINVAL);
    assert_non_null(strstr(err.text, "u-1.json: it is not as it was written: expected the sum "));
    free(text);
}

static void one_without_a_sum_is_read(void **state)
{
    (void)state;
    struct checkpoint *c = NULL;
    json_t *d = document();
    char *text = json_dumps(d, JSON_COMPACT);
    assert_int_equal(checkpoint_parse("x", text, strlen(text), &c, NULL), 0);
    checkpoint_free(c);
    free(text);
    json_decref(d);
}

static void newer_ones_are_undone_if_they_say_so(void **state)
{
    (void)state;
    struct checkpoint *c = NULL;
    struct drarun_error err = {0};
    json_t *d = document();
    json_object_set_new(d, "version", json_integer(7));
    json_object_set_new(d, "new", json_true());
    char *text = json_dumps(d, 0);
    assert_int_equal(checkpoint_parse("x", text, strlen(text), &c, &err), 0);
    checkpoint_free(c);
    free(text);
    json_object_set_new(d, "readable", json_integer(7));
    text = json_dumps(d, 0);
    assert_int_equal(checkpoint_parse("x", text, strlen(text), &c, &err), -EPROTO);
    assert_non_null(strstr(err.text, "x: a newer plugin wrote this"));
    assert_non_null(strstr(err.text, "only version 7 or later can undo it"));
    free(text);
    json_decref(d);
}

static void what_is_being_written_is_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"u-1.json.aB3xYz", "u-1.json", "other", "u-1.json.longer7"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(file_write_atomic(path, "x", 1, 0600, NULL), 0);
    }
    checkpoint_clean(dir); /* it may be another instance's, which is at it */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(access(path, F_OK), 0);
        unlink(path);
    }
}

static void one_of_an_earlier_boot_is_told(void **state)
{
    (void)state;
    struct checkpoint *c = NULL;
    json_t *d = document();
    char *text = json_dumps(d, 0);
    assert_int_equal(checkpoint_parse("x", text, strlen(text), &c, NULL), 0);
    assert_true(checkpoint_of_boot(c, "b-1")); /* of a plugin that did not say */
    checkpoint_free(c);
    free(text);
    assert_true(checkpoint_set_boot(d, "b-1"));
    text = json_dumps(d, 0);
    assert_int_equal(checkpoint_parse("x", text, strlen(text), &c, NULL), 0);
    assert_true(checkpoint_of_boot(c, "b-1"));
    assert_false(checkpoint_of_boot(c, "b-2"));
    checkpoint_free(c);
    free(text);
    json_decref(d);
}

static void uids_are_no_paths(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "..", "a/b", "../x", "a.b", "a b", "\n"};
    assert_true(checkpoint_uid_valid("0e1c6a3e-8d0a-4c55-9a3e-1f0b7f1f2c3d"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(checkpoint_uid_valid(bad[i]));
}

/* Neither what somebody put in the place of a file of ours, nor what it leads to, is read or
 * written. */
static void links_are_not_followed(void **state)
{
    (void)state;
    char path[128], target[128], spec_path[128];
    struct checkpoint *c = NULL;
    struct drarun_error err = {0};
    struct stat st;
    json_t *d = document(), *spec = cdi_spec_new("nic.drarun.dev");
    snprintf(target, sizeof target, "%s/precious", dir);
    snprintf(path, sizeof path, "%s/u-1.json", dir);
    snprintf(spec_path, sizeof spec_path, "%s/nic.drarun.dev-claim_u-1.json", dir);
    assert_int_equal(file_write_atomic(target, "mine", 4, 0644, NULL), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(symlink(target, spec_path), 0);
    assert_int_equal(checkpoint_load(dir, "u-1", &c, &err), -ELOOP);
    assert_int_equal(checkpoint_save(d, dir, "u-1", NULL), 0);
    assert_int_equal(cdi_spec_write(spec, dir, "nic.drarun.dev", "u-1", NULL), 0);
    assert_true(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
    assert_true(lstat(spec_path, &st) == 0 && S_ISREG(st.st_mode));
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    assert_int_equal(cdi_spec_remove(dir, "nic.drarun.dev", "u-1", NULL), 0);
    assert_true(lstat(target, &st) == 0 && st.st_size == 4);
    assert_int_equal(unlink(target), 0);
    json_decref(spec);
    json_decref(d);
}

static void directories_of_others_are_refused(void **state)
{
    (void)state;
    char path[128], link_path[128];
    struct drarun_error err = {0};
    snprintf(path, sizeof path, "%s/orders", dir);
    snprintf(link_path, sizeof link_path, "%s/link", dir);
    assert_int_equal(dirs_make(path, 0700, NULL), 0);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(dir_check_own(path, NULL), 0);
    assert_int_equal(dir_check_own(link_path, &err), -EPERM);
    assert_non_null(strstr(err.text, "that is not a link"));
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(dir_check_own(path, &err), -EPERM);
    assert_non_null(strstr(err.text, "others may write it (mode 777)"));
    if (geteuid() == 0 && chmod(path, 0700) == 0 && chown(path, 1234, 1234) == 0) {
        assert_int_equal(dir_check_own(path, &err), -EPERM);
        assert_non_null(strstr(err.text, "belongs to user 1234"));
    }
    assert_int_equal(unlink(link_path), 0);
    assert_int_equal(rmdir(path), 0);
}

/* ---- CDI ---- */

static void a_specification_has_nodes_and_hook(void **state)
{
    (void)state;
    struct node_device device = {.kind = NODE_DEVICE_NIC, .name = "a"};
    device.rdma.chardevs[0] = (struct node_chardev){"/dev/infiniband/uverbs0", 231, 192};
    device.rdma.chardev_count = 1;
    json_t *spec = cdi_spec_new("nic.drarun.dev");
    assert_true(cdi_spec_add(spec, "u-1", &device, NULL));
    assert_true(cdi_spec_add_order(spec, "/hook", "/order-a"));
    assert_true(cdi_spec_add_order(spec, "/hook", "/order-b"));
    char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(
        text,
        "{\"cdiVersion\":\"0.6.0\",\"containerEdits\":{\"hooks\":[{\"args\":[\"drarun-attach\","
        "\"attach\",\"/order-a\",\"/order-b\"],\"hookName\":\"createRuntime\",\"path\":\"/hook\","
        "\"timeout\":25}]},\"devices\":[{\"containerEdits\":{\"deviceNodes\":[{\"major\":231,"
        "\"minor\":192,\"path\":\"/dev/infiniband/uverbs0\",\"type\":\"c\"}],\"env\":["
        "\"DRARUN_NIC_u_1_a=1\"]},\"name\":\"u-1-a\"}],\"kind\":\"nic.drarun.dev/claim\"}");
    free(text);
    json_decref(spec);
}

static void spare_nodes_are_of_every_number(void **state)
{
    (void)state;
    const json_t *nodes, *node = NULL;
    const char *path = NULL;
    int major = 0, minor = 0;
    json_t *spec = cdi_spec_new("nic.drarun.dev");
    assert_true(cdi_spec_add_spares(spec, "u-1"));
    nodes = json_object_get(json_object_get(spec, "containerEdits"), "deviceNodes");
    assert_int_equal(json_array_size(nodes), 32);
    node = json_array_get(nodes, 31);
    assert_int_equal(json_unpack(unconst(node), "{s:s, s:i, s:i}", "path", &path, "major", &major,
                                 "minor", &minor),
                     0);
    assert_string_equal(path, "/dev/infiniband/.drarun-u-1/uverbs31");
    assert_int_equal(major, 231);
    assert_int_equal(minor, 223);
    json_decref(spec);
}

static void a_device_without_anything_has_edits_all_the_same(void **state)
{
    (void)state;
    const struct node_device device = {.kind = NODE_DEVICE_GPU, .name = "a"};
    json_t *spec = cdi_spec_new("gpu.drarun.dev");
    assert_true(cdi_spec_add_take(spec, "u-1", device.name, json_object()));
    const json_t *edits =
        json_object_get(json_array_get(json_object_get(spec, "devices"), 0), "containerEdits");
    assert_int_equal(json_object_size(edits), 1);
    json_decref(spec);
}

static void a_specification_is_written_on_change_alone(void **state)
{
    (void)state;
    char id[CDI_ID_MAX], path[256];
    struct stat first, second;
    json_t *spec = cdi_spec_new("nic.drarun.dev");
    snprintf(path, sizeof path, "%s/nic.drarun.dev-claim_u-1.json", dir);
    assert_int_equal(cdi_spec_write(spec, dir, "nic.drarun.dev", "u-1", NULL), 0);
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(cdi_spec_write(spec, dir, "nic.drarun.dev", "u-1", NULL), 0);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_int_equal(cdi_spec_remove(dir, "nic.drarun.dev", "u-1", NULL), 0);
    assert_int_equal(cdi_spec_remove(dir, "nic.drarun.dev", "u-1", NULL), 0);
    assert_int_equal(stat(path, &second), -1);
    cdi_id("nic.drarun.dev", "u-1", "a", id, sizeof id);
    assert_string_equal(id, "nic.drarun.dev/claim=u-1-a");
    json_decref(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(no_part_of_one_is_taken_for_one),
        cmocka_unit_test(a_flipped_bit_is_seen),
        cmocka_unit_test(a_changed_value_is_named),
        cmocka_unit_test(one_without_a_sum_is_read),
        cmocka_unit_test(newer_ones_are_undone_if_they_say_so),
        cmocka_unit_test(what_is_being_written_is_left_alone),
        cmocka_unit_test(one_of_an_earlier_boot_is_told),
        cmocka_unit_test(uids_are_no_paths),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(directories_of_others_are_refused),
        cmocka_unit_test(a_specification_has_nodes_and_hook),
        cmocka_unit_test(spare_nodes_are_of_every_number),
        cmocka_unit_test(a_device_without_anything_has_edits_all_the_same),
        cmocka_unit_test(a_specification_is_written_on_change_alone),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
