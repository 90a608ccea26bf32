/* SPDX-License-Identifier: Apache-2.0 */
/* Which claim has which device. */
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
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "plugin/prepare/preparer_private.h"

static char one_uid[] = "u-1", two_uid[] = "u-2", ns[] = "ns", one_name[] = "one",
            two_name[] = "two";

static void hold(struct preparer *preparer, const char *device, char *uid, char *name)
{
    const struct task task = {.namespace_ = ns, .name = name, .uid = uid};
    assert_true(preparer_hold(preparer, device, &task));
}

static struct preparer three_held(void)
{
    struct preparer preparer = {.base = NULL};
    hold(&preparer, "a", one_uid, one_name);
    hold(&preparer, "b", one_uid, one_name);
    hold(&preparer, "c", two_uid, two_name);
    return preparer;
}

static void release_all(struct preparer *preparer)
{
    preparer_release(preparer, "u-1");
    preparer_release(preparer, "u-2");
    assert_null(preparer->holdings.list);
}

static void holders_are_found(void **state)
{
    static const struct {
        const char *device, *but, *uid; /* uid NULL: nobody */
    } rows[] = {{"a", NULL, "u-1"}, {"a", "u-1", NULL}, {"a", "u-2", "u-1"},
                {"b", NULL, "u-1"}, {"c", NULL, "u-2"}, {"d", NULL, NULL}};
    struct preparer preparer = three_held();
    struct preparer_counts counts;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct holding *h = preparer_holder(&preparer, rows[i].device, rows[i].but);
        assert_int_equal(h != NULL, rows[i].uid != NULL);
        assert_int_equal(preparer_holds(&preparer, rows[i].device), i != 5);
        if (h)
            assert_string_equal(h->uid, rows[i].uid);
    }
    assert_string_equal(preparer_holding(&preparer, "u-2")->device, "c");
    assert_null(preparer_holding(&preparer, "u-3"));
    preparer_count(&preparer, &counts);
    assert_int_equal(counts.claims, 2);
    preparer_release(&preparer, "u-3");
    preparer_release(&preparer, "u-1");
    assert_false(preparer_holds(&preparer, "a") || preparer_holds(&preparer, "b"));
    assert_true(preparer_holds(&preparer, "c"));
    preparer_count(&preparer, &counts);
    assert_int_equal(counts.claims, 1);
    release_all(&preparer);
}

static void claims_are_described(void **state)
{
    const struct holding known = {.known = true, .namespace_ = "ns", .name = "one", .uid = "u-1"},
                         salvaged = {.uid = "u-1"};
    char text[HOLDING_TEXT_MAX];
    (void)state;
    holding_describe(&known, text, sizeof text);
    assert_string_equal(text, "ns/one");
    holding_describe(&salvaged, text, sizeof text);
    assert_string_equal(text, "of UID u-1");
}

static void devices_that_cannot_be_taken_back(void **state)
{
    struct preparer preparer = three_held();
    (void)state;
    assert_false(preparer_is_stuck(&preparer, "a"));
    preparer_lose(&preparer, "u-1");
    preparer_lose(&preparer, "u-3");
    assert_true(preparer_is_stuck(&preparer, "a") && preparer_is_stuck(&preparer, "b"));
    assert_false(preparer_is_stuck(&preparer, "c") || preparer_is_stuck(&preparer, "d"));
    release_all(&preparer);
}

/* From the first call on, for all devices of the claim. */
static void claims_are_gone_since(void **state)
{
    struct preparer preparer = three_held();
    (void)state;
    int64_t since = preparer_gone_since(&preparer, "u-1");
    assert_true(since > 0);
    usleep(2000);
    assert_int_equal(preparer_gone_since(&preparer, "u-1"), since);
    assert_int_equal(preparer_holder(&preparer, "a", NULL)->gone_ms, since);
    assert_int_equal(preparer_holder(&preparer, "b", NULL)->gone_ms, since);
    assert_int_equal(preparer_holder(&preparer, "c", NULL)->gone_ms, 0);
    assert_true(preparer_gone_since(&preparer, "u-2") > since);
    release_all(&preparer);
}

static void directory_is_one_instances(void **state)
{
    char dir[] = "/tmp/holdings_test.XXXXXX", expected[128];
    struct preparer preparer = {.base = NULL};
    struct drarun_error err = {0};
    int first = -1, second = -1;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(preparer.dir, sizeof preparer.dir, "%s", dir);
    assert_int_equal(preparer_lock(&preparer, &first, &err), 0);
    assert_int_equal(preparer_lock(&preparer, &second, &err), -EWOULDBLOCK);
    snprintf(expected, sizeof expected, "lock %s: Resource temporarily unavailable", dir);
    assert_string_equal(err.text, expected);
    assert_int_equal(second, -1);
    close(first);
    assert_int_equal(preparer_lock(&preparer, &second, &err), 0);
    close(second);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(preparer_lock(&preparer, &first, &err), -ENOENT);
}

/* What checkpoints say: not of administrators' access, and not of another boot. */
static void checkpoints_are_read(void **state)
{
    char dir[] = "/tmp/holdings_test.XXXXXX";
    const struct preparer_config config = {.driver = "d"};
    struct preparer preparer = {.config = &config, .boot = "boot-2"};
    struct drarun_error err = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(preparer.dir, sizeof preparer.dir, "%s", dir);
    for (int i = 1; i <= 2; i++) {
        char uid[8], boot[8];
        snprintf(uid, sizeof uid, "u-%d", i);
        snprintf(boot, sizeof boot, "boot-%d", i);
        CLEANUP(json_decrefp)
        json_t *document = checkpoint_document("d", "ns", i == 1 ? "one" : "two", uid, "pod");
        CLEANUP(json_decrefp) json_t *spec = json_pack("{s:[]}", "devices");
        assert_true(checkpoint_add_take(document, "r", "n", i == 1 ? "a" : "b", false, NULL, NULL));
        assert_true(checkpoint_add_take(document, "r", "n", "admin", true, NULL, NULL));
        assert_true(checkpoint_set_boot(document, boot));
        assert_true(checkpoint_set_cdi(document, spec));
        assert_int_equal(checkpoint_save(document, dir, uid, &err), 0);
    }
    for (int i = 0; i < 2; i++) { /* again, it holds nothing twice */
        if (preparer_reread(&preparer, "u-1", &err) < 0 ||
            preparer_reread(&preparer, "u-2", &err) < 0 ||
            preparer_reread(&preparer, "u-3", &err) < 0)
            fail_msg("%s", err.text);
        const struct holding *h = preparer.holdings.list;
        assert_non_null(h);
        assert_null(h->next);
        assert_string_equal(h->device, "b");
        assert_string_equal(h->uid, "u-2");
        assert_string_equal(h->namespace_, "ns");
        assert_string_equal(h->name, "two");
        assert_true(h->known);
    }
    release_all(&preparer);
    tree_remove(AT_FDCWD, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_are_found),
        cmocka_unit_test(claims_are_described),
        cmocka_unit_test(devices_that_cannot_be_taken_back),
        cmocka_unit_test(claims_are_gone_since),
        cmocka_unit_test(directory_is_one_instances),
        cmocka_unit_test(checkpoints_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
