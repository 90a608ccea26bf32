/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/rankmap.h"
#include "lib/base/cleanup.h"

static const struct {
    uint32_t counts[3];
    size_t apps;
    uint32_t workers, per_worker;
    const char *ppn, *mapping;
} built[] = {
    {{4}, 1, 1, 0, "0,1,2,3", "(vector,(0,1,4))"},
    {{4}, 1, 2, 0, "0,1;2,3", "(vector,(0,2,2))"},
    {{5}, 1, 2, 0, "0,1,2;3,4", "(vector,(0,1,3),(1,1,2))"},
    {{7}, 1, 3, 0, "0,1,2;3,4;5,6", "(vector,(0,1,3),(1,2,2))"},
    {{5}, 1, 2, 4, "0,1,2,3;4", "(vector,(0,1,4),(1,1,1))"},
    {{8}, 1, 4, 2, "0,1;2,3;4,5;6,7", "(vector,(0,4,2))"},
    {{2}, 1, 4, 0, "0;1", "(vector,(0,2,1))"},
    {{2}, 1, 3, 2, "0,1", "(vector,(0,1,2))"},
    {{1, 3}, 2, 2, 0, "0,1;2,3", "(vector,(0,2,2))"},
    {{3, 1, 2}, 3, 2, 0, "0,1,2;3,4,5", "(vector,(0,2,3))"},
    {{1, 1, 1}, 3, 1, 0, "0,1,2", "(vector,(0,1,3))"},
};

static void builds_block_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(built); i++) {
        struct rankmap map;
        struct buf ppn = BUF_INIT, mapping = BUF_INIT;
        assert_int_equal(rankmap_build(built[i].counts, built[i].apps, built[i].workers,
                                       built[i].per_worker, &map, NULL),
                         0);
        rankmap_ppn_text(&map, &ppn);
        rankmap_pmi1_mapping(&map, &mapping);
        assert_string_equal(ppn.data, built[i].ppn);
        assert_string_equal(mapping.data, built[i].mapping);
        buf_done(&ppn);
        buf_done(&mapping);
        rankmap_done(&map);
    }
}

static const struct {
    struct rank_part parts[3];
    size_t count;
    const char *ppn, *mapping;
} apart[] = {
    {{{4, 2}}, 1, "0,1;2,3", "(vector,(0,2,2))"},
    {{{5, 2}}, 1, "0,1,2;3,4", "(vector,(0,1,3),(1,1,2))"},
    {{{1, 1}, {4, 2}}, 2, "0;1,2;3,4", "(vector,(0,1,1),(1,2,2))"},
    {{{2, 2}, {6, 1}, {1, 1}}, 3, "0;1;2,3,4,5,6,7;8", "(vector,(0,2,1),(2,1,6),(3,1,1))"},
    {{{1, 3}, {2, 1}}, 2, "0;1,2", "(vector,(0,1,1),(1,1,2))"},
};

static void programs_have_workers_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(apart); i++) {
        struct rankmap map;
        struct buf ppn = BUF_INIT, mapping = BUF_INIT;
        assert_int_equal(rankmap_build_parts(apart[i].parts, apart[i].count, NULL, &map, NULL), 0);
        rankmap_ppn_text(&map, &ppn);
        rankmap_pmi1_mapping(&map, &mapping);
        assert_string_equal(ppn.data, apart[i].ppn);
        assert_string_equal(mapping.data, apart[i].mapping);
        assert_int_equal(map.apps, apart[i].count);
        buf_done(&ppn);
        buf_done(&mapping);
        rankmap_done(&map);
    }
}

static void parts_that_are_refused(void **state)
{
    static const struct {
        struct rank_part parts[2];
        size_t count;
        const char *says;
    } cases[] = {
        {{{0}}, 0, "no program to run"},
        {{{1, 1}, {0, 1}}, 2, "program 2 has no ranks"},
        {{{1, 0}}, 1, "program 1 has no workers"},
        {{{1, RANKMAP_WORKERS_MAX}, {1, 1}}, 2, "expected 1 to 65536 workers, got 65537"},
        {{{RANKMAP_RANKS_MAX, 1}, {1, 1}}, 2, "more than 1000000 ranks"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct drarun_error err = {0};
        struct rankmap map;
        assert_int_equal(rankmap_build_parts(cases[i].parts, cases[i].count, NULL, &map, &err),
                         -EINVAL);
        assert_string_equal(err.text, cases[i].says);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    }
}

static const struct {
    uint32_t counts[2];
    size_t apps;
    uint32_t workers, per_worker;
    const char *says;
} refused[] = {
    {{0}, 0, 1, 0, "no program"},
    {{2, 0}, 2, 1, 0, "program 2 has no ranks"},
    {{5},
     1,
     2,
     2,
     "5 ranks do not fit on 2 workers with 2 ranks each: they need 3 on each worker, or more "
     "workers"},
    {{2},
     1,
     1,
     1,
     "2 ranks do not fit on 1 worker with 1 rank each: they need 2 on each worker, or more "
     "workers"},
    {{1}, 1, 0, 0, "got 0"},
    {{1}, 1, RANKMAP_WORKERS_MAX + 1, 0, "got 65537"},
    {{RANKMAP_RANKS_MAX, 1}, 2, 1, 0, "more than 1000000 ranks"},
    {{UINT32_MAX, 2}, 2, 1, 0, "more than 1000000 ranks"},
};

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct rankmap map;
        struct drarun_error err = {0};
        assert_int_equal(rankmap_build(refused[i].counts, refused[i].apps, refused[i].workers,
                                       refused[i].per_worker, &map, &err),
                         -EINVAL);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, refused[i].says));
    }
}

static const struct rank_block cyclic[] = {
    {0, 2, 1, 0}, {2, 1, 0, 0}, {3, 1, 0, 1}, {4, 3, 1, 1}, {7, 1, 0, 2}};

/* Ranks that are not in worker order, as another mapping policy could send. */
static void places_from_blocks(void **state)
{
    (void)state;
    static const struct rank_place places[] = {
        {0, 1, 0, 5, 0, 0, 3}, {1, 1, 1, 5, 0, 1, 3}, {2, 0, 0, 3, 0, 2, 3}, {3, 0, 1, 3, 1, 0, 4},
        {4, 1, 2, 5, 1, 1, 4}, {5, 1, 3, 5, 1, 2, 4}, {6, 1, 4, 5, 1, 3, 4}, {7, 0, 2, 3, 2, 0, 1},
    };
    struct rankmap map;
    struct buf text = BUF_INIT;
    assert_int_equal(rankmap_from_blocks(cyclic, ARRAY_LEN(cyclic), 3, &map, NULL), 0);
    assert_int_equal(map.ranks, 8);
    assert_int_equal(map.apps, 3);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct rank_place place = rankmap_place(&map, places[i].rank);
        assert_memory_equal(&place, &places[i], sizeof place);
        assert_int_equal(rankmap_worker(&map, places[i].rank), places[i].worker);
    }
    rankmap_ppn_text(&map, &text);
    assert_string_equal(text.data, "2,3,7;0,1,4,5,6");
    buf_reset(&text);
    rankmap_peers_text(&map, 1, &text);
    assert_string_equal(text.data, "0,1,4,5,6");
    buf_reset(&text);
    rankmap_peers_text(&map, 2, &text);
    assert_string_equal(text.data, "");
    rankmap_pmi1_mapping(&map, &text);
    assert_string_equal(text.data, "(vector,(1,1,2),(0,1,2),(1,1,3),(0,1,1))");
    buf_done(&text);
    rankmap_done(&map);
}

static const struct {
    struct rank_block blocks[2];
    size_t count;
    uint32_t workers;
    const char *says;
} malformed[] = {
    {{{0, 1, 0, 0}}, 0, 1, "0 blocks"},
    {{{0, 1, 0, 0}}, 1, 0, "0 workers"},
    {{{0, 1, 0, 0}}, 1, RANKMAP_WORKERS_MAX + 1, "65537 workers"},
    {{{1, 1, 0, 0}}, 1, 1, "starts at rank 1 instead of 0"},
    {{{0, 2, 0, 0}, {1, 2, 0, 0}}, 2, 1, "starts at rank 1 instead of 2"},
    {{{0, 2, 0, 0}, {3, 1, 0, 0}}, 2, 1, "starts at rank 3 instead of 2"},
    {{{0, 0, 0, 0}}, 1, 1, "has 0 ranks"},
    {{{0, RANKMAP_RANKS_MAX + 1, 0, 0}}, 1, 1, "has 1000001 ranks"},
    {{{0, 2, 0, 0}, {2, UINT32_MAX, 0, 0}}, 2, 1, "has 4294967295 ranks"},
    {{{0, 1, 2, 0}}, 1, 2, "on worker 2 of 2"},
    {{{0, 1, 0, 1}}, 1, 1, "program 1 after program 0"},
    {{{0, 1, 0, 0}, {1, 1, 0, 2}}, 2, 1, "program 2 after program 0"},
    {{{0, 1, 0, 0}, {1, 1, 0, UINT32_MAX}}, 2, 1, "of program 4294967295"},
};

static void refuses_malformed_blocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        struct rankmap map;
        struct drarun_error err = {0};
        assert_int_equal(rankmap_from_blocks(malformed[i].blocks, malformed[i].count,
                                             malformed[i].workers, &map, &err),
                         -EPROTO);
        assert_non_null(strstr(err.text, malformed[i].says));
    }
}

struct seen {
    const struct rankmap *map;
    uint32_t worker, count;
};

static void check_local(uint32_t rank, void *arg)
{
    struct seen *seen = arg;
    struct rank_place place = rankmap_place(seen->map, rank);
    assert_int_equal(place.worker, seen->worker);
    assert_int_equal(place.local_rank, seen->count++);
    assert_int_equal(place.local_size, seen->map->local_sizes[seen->worker]);
}

/* Whatever the shape, every rank is on one worker and each worker numbers its own from 0. */
static void every_rank_has_one_place(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers < 12; workers++)
        for (uint32_t total = 2; total < 40; total += 3) {
            const uint32_t counts[] = {total / 2, total - total / 2};
            struct rankmap map;
            assert_int_equal(rankmap_build(counts, 2, workers, 0, &map, NULL), 0);
            struct seen seen = {&map, 0, 0};
            uint32_t all = 0;
            for (; seen.worker < workers; seen.worker++) {
                seen.count = 0;
                rankmap_each_local(&map, seen.worker, check_local, &seen);
                assert_int_equal(seen.count, map.local_sizes[seen.worker]);
                all += seen.count;
            }
            assert_int_equal(all, total);
            rankmap_done(&map);
        }
}

/* Two programs on two workers, then what is spawned: on one of them, and on both. */
static void maps_are_appended_and_undone(void **state)
{
    const uint32_t first[] = {2, 1}, second[] = {2};
    struct rankmap map, more, big;
    struct buf ppn = BUF_INIT;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(rankmap_build(first, 2, 2, 0, &map, NULL), 0);
    assert_int_equal(rankmap_build(second, 1, 2, 0, &more, NULL), 0);
    size_t blocks = map.block_count;
    assert_int_equal(rankmap_append(&map, &more, NULL), 0);
    rankmap_ppn_text(&map, &ppn);
    assert_string_equal(ppn.data, "0,1,3;2,4");
    assert_int_equal(map.ranks, 5);
    assert_int_equal(map.apps, 3);
    assert_int_equal(map.app_firsts[2], 3);
    struct rank_place place = rankmap_place(&map, 4);
    assert_int_equal(place.worker, 1);
    assert_int_equal(place.app, 2);
    assert_int_equal(place.app_rank, 1);
    assert_int_equal(place.local_rank, 1);
    assert_int_equal(rankmap_truncate(&map, blocks), 0);
    assert_int_equal(map.ranks, 3);
    assert_int_equal(map.apps, 2);
    const uint32_t most = RANKMAP_RANKS_MAX;
    assert_int_equal(rankmap_build(&most, 1, 2, 0, &big, NULL), 0);
    assert_int_equal(rankmap_append(&map, &big, &err), -EINVAL);
    assert_string_equal(err.text, "more than 1000000 ranks");
    assert_int_equal(map.ranks, 3);
    buf_done(&ppn);
    rankmap_done(&big);
    rankmap_done(&more);
    rankmap_done(&map);
}

static void the_largest_map_builds(void **state)
{
    (void)state;
    const uint32_t count = RANKMAP_RANKS_MAX;
    struct rankmap map;
    assert_int_equal(rankmap_build(&count, 1, RANKMAP_WORKERS_MAX, 0, &map, NULL), 0);
    struct rank_place place = rankmap_place(&map, count - 1);
    assert_int_equal(place.worker, RANKMAP_WORKERS_MAX - 1);
    assert_int_equal(place.local_rank, place.local_size - 1);
    rankmap_done(&map);
    rankmap_done(&map); /* twice is fine */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_block_order),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(places_from_blocks),
        cmocka_unit_test(refuses_malformed_blocks),
        cmocka_unit_test(every_rank_has_one_place),
        cmocka_unit_test(the_largest_map_builds),
        cmocka_unit_test(maps_are_appended_and_undone),
        cmocka_unit_test(parts_that_are_refused),
        cmocka_unit_test(programs_have_workers_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
