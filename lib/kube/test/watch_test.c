/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/kube/object.h"
#include "lib/kube/watch_event.h"
#include "lib/kube/watch_store.h"

static const char stream[] =
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\\nb\"}}}\n"
    "\r\n"
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"\xc3\xa4\"}}}\n"
    "{\"type\":\"DELETED\",\"object\":{}}\n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n"
    "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n";

/* The types of all events, in pieces of so many bytes. */
static void decode(size_t piece, char *types)
{
    struct watch_decoder decoder = {0};
    struct drarun_error err = {0};
    for (size_t at = 0; at < sizeof stream - 1;) {
        size_t length = sizeof stream - 1 - at < piece ? sizeof stream - 1 - at : piece;
        const char *bytes = stream + at;
        enum watch_event_type type = 0;
        json_t *object = NULL;
        at += length;
        while (watch_decoder_next(&decoder, &bytes, &length, &type, &object, &err) > 0) {
            *types++ = (char)('0' + type);
            assert_true(json_is_object(object));
            json_decref(object);
        }
        assert_int_equal(err.code, 0);
        assert_int_equal(length, 0);
    }
    *types = '\0';
    watch_decoder_done(&decoder);
}

static void test_pieces(void **state)
{
    char types[16];
    (void)state;
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        decode(piece, types);
        assert_string_equal(types, "12345");
    }
}

static void test_malformed_events(void **state)
{
    static const char *const lines[] = {"{\n",
                                        "[]\n",
                                        "{\"type\":\"ADDED\"}\n",
                                        "{\"type\":\"ADDED\",\"object\":3}\n",
                                        "{\"type\":\"NONSENSE\",\"object\":{}}\n",
                                        "{\"object\":{}}\n",
                                        "{\"type\":\"ADDED\",\"object\":{}} x\n",
                                        "\xff\n"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct watch_decoder decoder = {0};
        struct drarun_error err = {0};
        const char *bytes = lines[i];
        size_t length = strlen(lines[i]);
        enum watch_event_type type = 0;
        json_t *object = NULL;
        if (watch_decoder_next(&decoder, &bytes, &length, &type, &object, &err) != -EPROTO)
            fail_msg("%s gave %s", lines[i], err.text);
        assert_null(object);
        watch_decoder_done(&decoder);
    }
}

static void test_event_limit(void **state)
{
    struct watch_decoder decoder = {0};
    struct drarun_error err = {0};
    static char chunk[1 << 20];
    int rc = 0;
    (void)state;
    memset(chunk, 'x', sizeof chunk);
    for (size_t i = 0; i < 9 && rc == 0; i++) {
        const char *bytes = chunk;
        size_t length = sizeof chunk;
        enum watch_event_type type = 0;
        json_t *object = NULL;
        rc = watch_decoder_next(&decoder, &bytes, &length, &type, &object, &err);
    }
    assert_int_equal(rc, -EFBIG);
    watch_decoder_done(&decoder);
}

static int put(struct watch_store *s, const char *name, const char *uid, const char *version,
               const char **ret_before)
{
    json_t *object = json_pack("{s:{s:s, s:s, s:s, s:s}}", "metadata", "namespace", "n", "name",
                               name, "uid", uid, "resourceVersion", version);
    json_t *before = NULL;
    int change = watch_store_put(s, object, &before, NULL);
    if (ret_before)
        *ret_before = before ? "some" : "none";
    json_decref(before);
    json_decref(object);
    return change;
}

static void test_changes(void **state)
{
    struct watch_store s = {0};
    const char *before;
    (void)state;
    assert_int_equal(watch_store_init(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "1", "10", &before), WATCH_CHANGE_NEW);
    assert_string_equal(before, "none");
    assert_int_equal(put(&s, "a", "1", "10", NULL), WATCH_CHANGE_NONE);
    assert_int_equal(put(&s, "a", "1", "11", &before), WATCH_CHANGE_CHANGED);
    assert_string_equal(before, "some");
    assert_int_equal(put(&s, "a", "2", "12", NULL), WATCH_CHANGE_REPLACED);
    assert_true(put(&s, "", "2", "12", NULL) < 0);
    assert_string_equal(kube_uid(watch_store_find(&s, "n", "a")), "2");
    assert_null(watch_store_find(&s, "", "a"));
    assert_int_equal(watch_store_count(&s), 1);
    json_t *gone = watch_store_remove(&s, watch_store_find(&s, "n", "a"));
    assert_string_equal(kube_resource_version(gone), "12");
    json_decref(gone);
    assert_int_equal(watch_store_count(&s), 0);
    watch_store_done(&s);
}

/* Read again, broken off, read again: the difference to what was known at first. */
static void test_reading_again(void **state)
{
    struct watch_store s = {0};
    json_t *gone = NULL;
    (void)state;
    assert_int_equal(watch_store_init(&s, NULL), 0);
    put(&s, "stays", "1", "1", NULL);
    put(&s, "changes", "2", "1", NULL);
    put(&s, "goes", "3", "1", NULL);
    put(&s, "replaced", "4", "1", NULL);
    const json_t *kept = watch_store_find(&s, "n", "stays");
    assert_int_equal(watch_store_begin(&s, NULL), 0);
    assert_int_equal(put(&s, "comes", "5", "2", NULL), WATCH_CHANGE_NEW);
    assert_int_equal(put(&s, "stays", "1", "1", NULL), WATCH_CHANGE_NONE);
    assert_int_equal(watch_store_begin(&s, NULL), 0);
    assert_int_equal(watch_store_count(&s), 5);
    assert_int_equal(put(&s, "stays", "1", "1", NULL), WATCH_CHANGE_NONE);
    assert_int_equal(put(&s, "changes", "2", "9", NULL), WATCH_CHANGE_CHANGED);
    assert_int_equal(put(&s, "replaced", "6", "9", NULL), WATCH_CHANGE_REPLACED);
    watch_store_end(&s, &gone);
    assert_int_equal(json_object_size(gone), 2);
    assert_non_null(json_object_get(gone, "n/goes"));
    assert_non_null(json_object_get(gone, "n/comes"));
    json_decref(gone);
    assert_int_equal(watch_store_count(&s), 3);
    assert_ptr_equal(watch_store_find(&s, "n", "stays"), kept);
    watch_store_done(&s);
}

static json_t *named(const char *namespace_, const char *name)
{
    return json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", namespace_, "name", name,
                     "uid", "u");
}

/* Where it may be known from: before all is read again, and since. */
static void test_swapping(void **state)
{
    struct watch_store s = {0};
    json_t *gone = NULL;
    (void)state;
    assert_int_equal(watch_store_init(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "1", "1", NULL), WATCH_CHANGE_NEW);
    assert_int_equal(put(&s, "b", "1", "1", NULL), WATCH_CHANGE_NEW);
    assert_int_equal(watch_store_begin(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "1", "1", NULL), WATCH_CHANGE_NONE);
    CLEANUP(json_decrefp) json_t *a = named("n", "a"), *b = named("n", "b"), *c = named("n", "c");
    watch_store_swap(&s, a);
    watch_store_swap(&s, b);
    watch_store_swap(&s, c); /* which is not known */
    assert_ptr_equal(watch_store_find(&s, "n", "a"), a);
    assert_ptr_equal(watch_store_find(&s, "n", "b"), b);
    assert_null(watch_store_find(&s, "n", "c"));
    assert_int_equal(watch_store_count(&s), 2);
    watch_store_end(&s, &gone);
    assert_int_equal(json_object_size(gone), 1); /* b was not seen again */
    assert_ptr_equal(json_object_get(gone, "n/b"), b);
    assert_ptr_equal(watch_store_find(&s, "n", "a"), a);
    json_decref(gone);
    watch_store_done(&s);
}

/* With its namespace and a slash a name has 511 bytes at most. */
static void test_names_of_objects(void **state)
{
    struct watch_store s = {0};
    struct drarun_error err = {0};
    json_t *before = NULL;
    char name[511];
    (void)state;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(watch_store_init(&s, NULL), 0);
    CLEANUP(json_decrefp) json_t *longest = named("n", name + 1), *longer = named("n", name);
    CLEANUP(json_decrefp) json_t *none = named("n", "");
    assert_int_equal(watch_store_put(&s, longest, &before, &err), WATCH_CHANGE_NEW);
    assert_ptr_equal(watch_store_find(&s, "n", name + 1), longest);
    assert_int_equal(watch_store_put(&s, longer, &before, &err), -EPROTO);
    assert_int_equal(strncmp(err.text, "an object without a usable name: \"xxx", 36), 0);
    assert_int_equal(watch_store_put(&s, none, &before, &err), -EPROTO);
    assert_string_equal(err.text, "an object without a usable name: \"\"");
    assert_int_equal(err.kind, DRARUN_ERR_CLUSTER);
    assert_null(watch_store_remove(&s, none));
    assert_null(watch_store_find(&s, "n", ""));
    watch_store_swap(&s, none);
    assert_int_equal(watch_store_count(&s), 1);
    watch_store_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),           cmocka_unit_test(test_malformed_events),
        cmocka_unit_test(test_event_limit),      cmocka_unit_test(test_changes),
        cmocka_unit_test(test_reading_again),    cmocka_unit_test(test_swapping),
        cmocka_unit_test(test_names_of_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
