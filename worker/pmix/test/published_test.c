/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pmix.h>

#include "lib/base/log.h"
#include "lib/wire/frame.h"
#include "worker/pmix/published.h"

#define RANK_KEYS 4096u
#define ALL_BYTES (256u << 20)

static struct published *table;
static char logged[256];

static void keep_line(void *arg, const struct log_line *line)
{
    (void)arg;
    assert_string_equal(logged, ""); /* once */
    assert_true(line->about.of_rank);
    snprintf(logged, sizeof logged, "%.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
}

static int set_up(void **state)
{
    (void)state;
    logged[0] = '\0';
    log_divert(keep_line, NULL);
    table = published_new();
    return table ? published_grow(table, 20) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    log_divert(NULL, NULL);
    published_free(table);
    published_free(NULL);
    return 0;
}

static pmix_status_t add_bytes(const char *key, uint32_t rank, bool first_read, size_t bytes)
{
    pmix_proc_t publisher;
    pmix_info_t info;
    PMIX_LOAD_PROCID(&publisher, "nspace", rank);
    PMIX_INFO_LOAD(&info, key, "value", PMIX_STRING);
    pmix_status_t status =
        published_add(table, &publisher, rank, first_read, rank == 3, &info, bytes);
    PMIX_INFO_DESTRUCT(&info);
    return status;
}

static pmix_status_t add(const char *key, uint32_t rank, bool first_read)
{
    return add_bytes(key, rank, first_read, 10);
}

static void an_entry_has_what_was_given(void **state)
{
    (void)state;
    assert_int_equal(add("key", 3, true), PMIX_SUCCESS);
    assert_int_equal(add("other", 2, false), PMIX_SUCCESS);
    const struct data_entry *entry = published_find(table, "key", 3);
    assert_non_null(entry);
    assert_string_equal(entry->publisher.nspace, "nspace");
    assert_int_equal(entry->publisher.rank, 3);
    assert_int_equal(entry->rank, 3);
    assert_int_equal(entry->reader, ANY_RANK);
    assert_int_equal(entry->bytes, 10);
    assert_true(entry->first_read);
    assert_true(entry->far);
    assert_false(entry->shared);
    assert_string_equal(entry->key, "key");
    assert_string_equal(entry->value.data.string, "value");
    entry = published_find(table, "other", 2);
    assert_false(entry->first_read);
    assert_false(entry->far);
    assert_null(published_find(table, "key", 2));
    assert_null(published_find(table, "other", 3));
    assert_null(published_find(table, "none", 3));
}

static void ranks_are_those_of_the_job(void **state)
{
    (void)state;
    assert_int_equal(published_ranks(table), 20);
    assert_int_equal(add("key", 20, false), PMIX_ERR_BAD_PARAM);
    assert_int_equal(add("key", 19, false), PMIX_SUCCESS);
    assert_null(published_next(table, 20, NULL));
    assert_int_equal(published_grow(table, 10), 0);
    assert_int_equal(published_ranks(table), 20); /* never fewer */
    assert_int_equal(published_grow(table, 21), 0);
    assert_int_equal(published_ranks(table), 21);
    assert_null(published_next(table, 20, NULL));
    assert_int_equal(add("more", 20, false), PMIX_SUCCESS);
    assert_non_null(published_find(table, "key", 19)); /* as before */
}

/* Those that are for one look-up each may have the same key, once of each rank. */
static void keys_are_published_once(void **state)
{
    (void)state;
    assert_int_equal(add("a", 1, false), PMIX_SUCCESS);
    assert_int_equal(add("a", 1, false), PMIX_ERR_DUPLICATE_KEY);
    assert_int_equal(add("a", 2, false), PMIX_ERR_DUPLICATE_KEY);
    assert_int_equal(add("a", 2, true), PMIX_ERR_DUPLICATE_KEY);
    assert_int_equal(add("b", 1, true), PMIX_SUCCESS);
    assert_int_equal(add("b", 1, true), PMIX_ERR_DUPLICATE_KEY);
    assert_int_equal(add("b", 2, false), PMIX_ERR_DUPLICATE_KEY);
    assert_int_equal(add("b", 2, true), PMIX_SUCCESS);
    published_find(table, "b", 1)->reader = 7; /* another one found its reader */
    assert_int_equal(add("b", 1, true), PMIX_SUCCESS);
    published_remove(table, published_find(table, "a", 1));
    assert_null(published_find(table, "a", 1));
    assert_int_equal(add("a", 2, true), PMIX_SUCCESS);
}

static void a_look_up_finds_what_is_for_it(void **state)
{
    (void)state;
    for (uint32_t rank = 1; rank <= 4; rank++)
        assert_int_equal(add("b", rank, true), PMIX_SUCCESS);
    struct data_entry *first = published_find(table, "b", 1),
                      *second = published_find(table, "b", 2);
    assert_ptr_equal(published_find_for(table, "b", 9, false), first);
    assert_null(published_find_for(table, "b", 9, true)); /* not the answer that it awaits */
    published_find(table, "b", 4)->reader = 9;
    assert_ptr_equal(published_find_for(table, "b", 9, false), published_find(table, "b", 4));
    assert_ptr_equal(published_find_for(table, "b", 9, true), published_find(table, "b", 4));
    assert_ptr_equal(published_find_for(table, "b", 8, false), first);
    first->reader = 7; /* another one's */
    assert_ptr_equal(published_find_for(table, "b", 8, false), second);
    second->shared = true; /* it is looked up at the launcher's */
    assert_ptr_equal(published_find_for(table, "b", 8, false), published_find(table, "b", 3));
    assert_null(published_find_for(table, "none", 8, false));
    assert_int_equal(add("a", 1, false), PMIX_SUCCESS);
    published_find(table, "a", 1)->shared = true;
    for (int calls = 0; calls < 2; calls++) /* for all, again and again */
        assert_ptr_equal(published_find_for(table, "a", 8, calls), published_find(table, "a", 1));
}

static void all_of_a_rank(void **state)
{
    (void)state;
    const unsigned count = 3000; /* some are in one bucket */
    char key[32];
    bool *seen = calloc(count, sizeof *seen);
    unsigned found = 0;
    assert_non_null(seen);
    assert_null(published_next(table, 1, NULL));
    for (unsigned i = 0; i < 2 * count; i++) {
        snprintf(key, sizeof key, "%u", i);
        assert_int_equal(add(key, i < count ? 1 : 2, false), PMIX_SUCCESS);
    }
    for (struct data_entry *at = NULL; (at = published_next(table, 1, at)); found++) {
        unsigned long number = strtoul(at->key, NULL, 10);
        assert_true(number < count);
        assert_false(seen[number]);
        seen[number] = true;
        assert_int_equal(at->rank, 1);
    }
    assert_int_equal(found, count);
    free(seen);
    for (struct data_entry *at; (at = published_next(table, 2, NULL));)
        published_remove(table, at);
    assert_non_null(published_next(table, 1, NULL));
    assert_null(published_next(table, 3, NULL));
}

static void a_rank_has_so_many_keys(void **state)
{
    (void)state;
    char key[32], expected[128];
    for (unsigned i = 0; i < RANK_KEYS; i++) {
        snprintf(key, sizeof key, "%u", i);
        assert_int_equal(add(key, 5, false), PMIX_SUCCESS);
    }
    assert_string_equal(logged, "");
    snprintf(expected, sizeof expected,
             "rank 5: PMIx: it has published more than 4096 keys or %u bytes: the rest is rejected",
             (unsigned)FRAME_MAX);
    assert_int_equal(add("more", 5, false), PMIX_ERR_OUT_OF_RESOURCE);
    assert_string_equal(logged, expected);
    assert_int_equal(add("more", 5, false), PMIX_ERR_OUT_OF_RESOURCE); /* said once */
    assert_int_equal(add("of another", 6, false), PMIX_SUCCESS);
    published_remove(table, published_find(table, "7", 5));
    assert_int_equal(add("more", 5, false), PMIX_SUCCESS);
}

static void a_rank_has_so_many_bytes(void **state)
{
    (void)state;
    assert_int_equal(add_bytes("a", 5, false, FRAME_MAX + 1), PMIX_ERR_OUT_OF_RESOURCE);
    assert_null(published_find(table, "a", 5));
    assert_int_equal(add_bytes("a", 5, false, FRAME_MAX - 1), PMIX_SUCCESS);
    assert_int_equal(add_bytes("b", 5, false, 2), PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(add_bytes("b", 5, false, 1), PMIX_SUCCESS);
    assert_int_equal(add_bytes("c", 5, false, 1), PMIX_ERR_OUT_OF_RESOURCE);
    published_remove(table, published_find(table, "a", 5));
    assert_int_equal(add_bytes("c", 5, false, FRAME_MAX - 1), PMIX_SUCCESS);
    assert_int_equal(add_bytes("d", 5, false, 1), PMIX_ERR_OUT_OF_RESOURCE);
}

static void all_ranks_have_so_many_bytes(void **state)
{
    (void)state;
    const uint32_t full = ALL_BYTES / FRAME_MAX;
    char key[32];
    assert_int_equal(published_grow(table, full + 2), 0);
    for (uint32_t rank = 0; rank < full; rank++) {
        snprintf(key, sizeof key, "%u", rank);
        assert_int_equal(add_bytes(key, rank, false, FRAME_MAX - (rank == 0)), PMIX_SUCCESS);
    }
    assert_int_equal(add_bytes("a", full, false, 2), PMIX_ERR_OUT_OF_RESOURCE);
    snprintf(key, sizeof key, "rank %u: PMIx: all ranks", full);
    assert_int_equal(strncmp(logged, key, strlen(key)), 0);
    assert_string_equal(strstr(logged, ": all"), ": all ranks have published more than 268435456 "
                                                 "bytes: the rest is rejected");
    assert_int_equal(add_bytes("a", full, false, 1), PMIX_SUCCESS);
    assert_int_equal(add_bytes("b", full, false, 1), PMIX_ERR_OUT_OF_RESOURCE);
    published_remove(table, published_find(table, "1", 1));
    assert_int_equal(add_bytes("b", full, false, 1), PMIX_SUCCESS);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_entry_has_what_was_given),
        CASE(ranks_are_those_of_the_job),
        CASE(keys_are_published_once),
        CASE(a_look_up_finds_what_is_for_it),
        CASE(all_of_a_rank),
        CASE(a_rank_has_so_many_keys),
        CASE(a_rank_has_so_many_bytes),
        CASE(all_ranks_have_so_many_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
