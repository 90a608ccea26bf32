/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that starts with a damaged checkpoint: nobody is given what its container may have. */
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
#include "lib/base/log.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/checkpoint.h"
#include "plugin/prepare/preparer.h"

#define DRIVER "nic.drarun.dev"

static char dir[64], state[96], orders[96], cdi[96], checkpoints[128], checkpoint[160], said[4096];

static void on_log(void *arg, const struct log_line *line)
{
    (void)arg;
    snprintf(said, sizeof said, "%s", line->text);
}

static int make_dirs(void **unused)
{
    (void)unused;
    snprintf(dir, sizeof dir, "/tmp/salvage-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(state, sizeof state, "%s/state", dir);
    snprintf(orders, sizeof orders, "%s/orders", dir);
    snprintf(cdi, sizeof cdi, "%s/cdi", dir);
    snprintf(checkpoints, sizeof checkpoints, "%s/" DRIVER, state);
    snprintf(checkpoint, sizeof checkpoint, "%s/u-1.json", checkpoints);
    log_divert(on_log, NULL);
    return dirs_make(checkpoints, 0700, NULL) | dirs_make(cdi, 0755, NULL);
}

static int remove_dirs(void **unused)
{
    (void)unused;
    log_divert(NULL, NULL);
    return tree_remove(AT_FDCWD, dir);
}

static void write_file(const char *path, const char *text, size_t length)
{
    assert_int_equal(file_write_atomic(path, text, length, 0600, NULL), 0);
}

/* A claim of the devices a and b as Prepare leaves it; its checkpoint's text. */
static char *prepared(void)
{
    json_t *document = checkpoint_document(DRIVER, "train", "job-w-0", "u-1", "pod-uid");
    json_t *spec = cdi_spec_new(DRIVER);
    for (const char *const *name = (const char *const[]){"a", "b", NULL}; *name; name++) {
        struct node_device device = {.kind = NODE_DEVICE_NIC};
        snprintf(device.name, sizeof device.name, "%s", *name);
        assert_true(cdi_spec_add(spec, "u-1", &device, NULL));
        assert_true(checkpoint_add_take(document, "nic", "n0", *name, false, NULL, NULL));
    }
    assert_true(cdi_spec_add_metadata(spec, "u-1", "nic", "/file", "/in/container"));
    assert_true(checkpoint_set_cdi(document, spec));
    assert_int_equal(checkpoint_save(document, checkpoints, "u-1", NULL), 0);
    assert_int_equal(cdi_spec_write(spec, cdi, DRIVER, "u-1", NULL), 0);
    char *text = checkpoint_text(checkpoints, "u-1");
    json_decref(document);
    json_decref(spec);
    return text;
}

/* What a plugin holds that starts now: a letter for each of a, b and c. */
static const char *held(void)
{
    static char letters[4];
    struct event_base *base = event_base_new();
    const struct preparer_config config = {
        .driver = DRIVER, .node = "n0", .state_dir = state, .orders_dir = orders, .cdi_dir = cdi};
    struct preparer *preparer = NULL;
    size_t n = 0;
    said[0] = '\0';
    assert_int_equal(preparer_new(base, NULL, &config, &preparer, NULL), 0);
    for (const char *name = "a\0b\0c\0"; *name; name += 2)
        if (preparer_holds(preparer, name))
            letters[n++] = *name;
    letters[n] = '\0';
    preparer_free(preparer);
    event_base_free(base);
    return letters;
}

static void a_checkpoint_cut_at_any_byte_keeps_its_devices(void **unused)
{
    (void)unused;
    char *text = prepared();
    size_t length = strlen(text);
    assert_string_equal(held(), "ab");
    assert_string_equal(said, "");
    for (size_t n = 0; n < length; n++) {
        write_file(checkpoint, text, n);
        assert_string_equal(held(), "ab");
        assert_non_null(strstr(said, checkpoint));
        assert_non_null(strstr(said, "given to no other: "));
        assert_non_null(strstr(said, "remove the file"));
    }
    free(text);
}

static void a_byte_of_nothing_keeps_them_too(void **unused)
{
    (void)unused;
    char *text = prepared();
    size_t length = strlen(text);
    for (size_t n = 0; n < length; n += 7) {
        write_file(checkpoint, text, length);
        int fd = open(checkpoint, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "\0", 1, (off_t)n), 1);
        close(fd);
        assert_string_equal(held(), "ab");
    }
    free(text);
}

static void without_its_specification_the_text_tells(void **unused)
{
    (void)unused;
    char *text = prepared();
    assert_int_equal(cdi_spec_remove(cdi, DRIVER, "u-1", NULL), 0);
    write_file(checkpoint, text, (size_t)(strstr(text, "\"b\"") - text));
    assert_string_equal(held(), "a");
    write_file(checkpoint, text, 1);
    assert_string_equal(held(), ""); /* no container was started with what no specification has */
    assert_non_null(strstr(said, "nothing says that a container has a device of it"));
    char order[160];
    snprintf(order, sizeof order, "%s/u-1.b.json", orders);
    write_file(order, "{}", 2);
    assert_string_equal(held(), "b");
    assert_int_equal(unlink(order), 0);
    free(text);
}

static void where_both_are_damaged_all_devices_are_kept(void **unused)
{
    (void)unused;
    char *text = prepared(), path[160];
    snprintf(path, sizeof path, "%s/" DRIVER "-claim_u-1.json", cdi);
    write_file(checkpoint, text, 5);
    write_file(path, "{\"devices", 9);
    assert_string_equal(held(), "abc");
    assert_non_null(strstr(said, "no device is prepared for others"));
    free(text);
}

/* Good JSON all the same: {"device":"a" is {"device":"c" with one bit more. */
static void a_flipped_bit_in_a_name_keeps_them(void **unused)
{
    (void)unused;
    char *text = prepared(), *name = strstr(text, "\"device\":\"a\"");
    assert_non_null(name);
    name[strlen("\"device\":\"")] ^= 2;
    write_file(checkpoint, text, strlen(text));
    assert_string_equal(held(), "abc");
    assert_non_null(strstr(said, "it is not as it was written"));
    free(text);
}

/* What is written there must not become another's. */
static void places_that_others_can_change_are_refused(void **unused)
{
    (void)unused;
    char open_dir[128], link[128];
    struct event_base *base = event_base_new();
    snprintf(open_dir, sizeof open_dir, "%s/open", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    assert_int_equal(mkdir(open_dir, 0700), 0);
    assert_int_equal(chmod(open_dir, 0777), 0);
    assert_int_equal(symlink(open_dir, link), 0);
    for (size_t i = 0; i < 6; i++) {
        const char *bad = i % 2 ? link : open_dir;
        char deeper[160];
        struct drarun_error err = {0};
        struct preparer *preparer = NULL;
        snprintf(deeper, sizeof deeper, "%s/deeper", bad);
        const struct preparer_config config = {.driver = DRIVER,
                                               .node = "n0",
                                               .state_dir = i / 2 == 0 ? deeper : state,
                                               .orders_dir = i / 2 == 1 ? deeper : orders,
                                               .cdi_dir = i / 2 == 2 ? deeper : cdi};
        assert_int_equal(preparer_new(base, NULL, &config, &preparer, &err), -EPERM);
        assert_non_null(strstr(err.text, "/open (mode 777): chmod go-w"));
        snprintf(deeper, sizeof deeper, "%s/deeper", open_dir);
        assert_int_not_equal(access(deeper, F_OK), 0);
    }
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_cut_at_any_byte_keeps_its_devices),
        cmocka_unit_test(a_byte_of_nothing_keeps_them_too),
        cmocka_unit_test(without_its_specification_the_text_tells),
        cmocka_unit_test(where_both_are_damaged_all_devices_are_kept),
        cmocka_unit_test(a_flipped_bit_in_a_name_keeps_them),
        cmocka_unit_test(places_that_others_can_change_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dirs, remove_dirs);
}
