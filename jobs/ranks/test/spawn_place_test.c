/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/spawn_place.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

#define WORKERS 3

/* One line a case. host: of every program. placed: "APP:WORKER*COUNT ..." */
static const struct {
    struct place_worker workers[WORKERS];
    uint32_t worker_count;
    uint32_t counts[2];
    const char *host;
    bool oversubscribe;
    const char *placed;
} placed[] = {
    {{{"a", NULL, 4, 2, false}}, 1, {2}, NULL, false, "0:0*2"},
    {{{"a", NULL, 4, 2, false}, {"b", NULL, 4, 0, false}}, 2, {3}, NULL, false, "0:0*2 0:1*1"},
    {{{"a", NULL, 2, 2, false}, {"b", NULL, 2, 1, false}}, 2, {1}, NULL, false, "0:1*1"},
    {{{"a", NULL, 3, 1, false}, {"b", NULL, 2, 0, false}},
     2,
     {1, 3},
     NULL,
     false,
     "0:0*1 1:0*1 1:1*2"},
    {{{"a", NULL, 2, 0, true}, {"b", NULL, 2, 0, false}}, 2, {2}, NULL, false, "0:1*2"},
    /* hosts */
    {{{"a", NULL, 2, 0, false}, {"b", NULL, 2, 0, false}}, 2, {2}, "b", false, "0:1*2"},
    {{{"a", "n1", 2, 0, false}, {"b", "n2", 2, 0, false}}, 2, {1}, "n2", false, "0:1*1"},
    {{{"a.x", NULL, 2, 0, false}, {"b.x", NULL, 2, 0, false}}, 2, {1}, "b", false, "0:1*1"},
    {{{"a", NULL, 2, 0, false}, {"b", NULL, 2, 0, false}}, 2, {1}, "b.x:4", false, "0:1*1"},
    {{{"a.x", NULL, 2, 0, false}, {"a.y", NULL, 2, 0, false}}, 2, {1}, "a.y", false, "0:1*1"},
    /* more than slots */
    {{{"a", NULL, 2, 2, false}}, 1, {3}, NULL, true, "0:0*3"},
    {{{"a", NULL, 2, 2, false}, {"b", NULL, 2, 1, false}}, 2, {4}, NULL, true, "0:0*2 0:1*2"},
    {{{"a", NULL, 1, 1, false}, {"b", NULL, 1, 0, true}, {"c", NULL, 1, 1, false}},
     3,
     {3},
     NULL,
     true,
     "0:0*2 0:2*1"},
};

static void fills_free_slots_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(placed); i++) {
        char *hosts[] = {unconst(placed[i].host)};
        struct place_program programs[2];
        size_t count = 0;
        for (; count < 2 && placed[i].counts[count] > 0; count++)
            programs[count] =
                (struct place_program){placed[i].counts[count], hosts, placed[i].host ? 1 : 0};
        struct rankmap map;
        struct buf text = BUF_INIT;
        assert_int_equal(spawn_place(placed[i].workers, placed[i].worker_count, programs, count,
                                     placed[i].oversubscribe, "", &map, NULL),
                         0);
        for (size_t b = 0; b < map.block_count; b++)
            buf_printf(&text, "%s%u:%u*%u", b > 0 ? " " : "", map.blocks[b].app,
                       map.blocks[b].worker, map.blocks[b].count);
        assert_string_equal(text.data, placed[i].placed);
        buf_done(&text);
        rankmap_done(&map);
    }
}

static const struct {
    struct place_worker workers[2];
    uint32_t count;
    const char *host;
    int code;
    const char *says;
} refused[] = {
    {{{"a", NULL, 2, 2, false}, {"b", NULL, 2, 1, false}},
     2,
     NULL,
     ENOSPC,
     "spawn: 2 ranks are asked for, 1 slot is free: more slots"},
    {{{"a", NULL, 2, 2, false}, {"b", NULL, 2, 1, false}},
     1,
     "a",
     ENOSPC,
     "spawn: 1 rank is asked for, 0 slots are free on a: more slots"},
    {{{"a", NULL, 2, 0, false}, {"b", NULL, 2, 0, false}},
     1,
     "c",
     ENOENT,
     "spawn: no worker of the job is on host c"},
    {{{"a", NULL, 2, 0, true}, {"b", NULL, 2, 0, true}},
     1,
     NULL,
     ENOSPC,
     "spawn: no worker takes more ranks"},
    {{{"a", NULL, 2, 0, false}, {"b", NULL, 2, 0, false}},
     0,
     NULL,
     EINVAL,
     "spawn: expected 1 to 1000000 ranks"},
    {{{"a", NULL, 2, 0, false}, {"b", NULL, 2, 0, false}},
     RANKMAP_RANKS_MAX + 1,
     NULL,
     EINVAL,
     "spawn: expected 1 to 1000000 ranks"},
};

static void refuses_with_what_to_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        char *hosts[] = {unconst(refused[i].host)};
        const struct place_program program = {refused[i].count, hosts, refused[i].host ? 1 : 0};
        struct drarun_error err = {0};
        struct rankmap map;
        assert_int_equal(
            spawn_place(refused[i].workers, 2, &program, 1, false, "more slots", &map, &err),
            -refused[i].code);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_string_equal(err.text, refused[i].says);
    }
}

static void slots_are_cpus_or_ranks(void **state)
{
    (void)state;
    assert_int_equal(spawn_slots(2, 8), 8);
    assert_int_equal(spawn_slots(8, 2), 8);
    assert_int_equal(spawn_slots(0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_free_slots_in_order),
        cmocka_unit_test(refuses_with_what_to_do),
        cmocka_unit_test(slots_are_cpus_or_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
