/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "worker/host/room.h"

#define NONE                                                                                       \
    {                                                                                              \
        ROOM_NO_LIMIT, 0                                                                           \
    }
#define FILES                                                                                      \
    {                                                                                              \
        4, 24                                                                                      \
    }
#define MIB ((uint64_t)1024 * 1024)

static void refuses_what_has_no_room(void **state)
{
    static const struct {
        struct room room;
        struct room_need need;
        const char *part; /* of the message; NULL: there is room */
    } cases[] = {
        {{ROOM_NO_LIMIT, NONE, NONE, NONE}, {1000000, 0, 0, FILES}, NULL},
        {{64, NONE, NONE, NONE}, {10, 0, 0, FILES}, NULL},
        {{64, NONE, NONE, NONE},
         {32, 0, 0, FILES},
         "32 ranks on this worker need 152 open files, and the limit is 64: raise it (ulimit -n), "
         "or give it fewer ranks"},
        {{64, NONE, NONE, NONE}, {2, 8, 0, FILES}, NULL},
        {{64, NONE, NONE, NONE}, {10, 0, 1000, FILES}, NULL},
        {{64, NONE, NONE, NONE},
         {9, 8, 0, FILES},
         "9 ranks on this worker beside the 8 that run need 92 open files, and the limit is 64: "
         "raise"},
        {{ROOM_NO_LIMIT, {100, 97}, NONE, NONE}, {3, 0, 0, FILES}, NULL},
        {{ROOM_NO_LIMIT, {100, 97}, NONE, NONE}, {3, 97, 0, FILES}, NULL},
        {{ROOM_NO_LIMIT, {100, 97}, NONE, NONE},
         {4, 0, 0, FILES},
         "4 ranks on this worker are more than the user may start, 100 processes and threads, of "
         "which 97 run: raise the limit (ulimit -u), or give it fewer ranks"},
        {{ROOM_NO_LIMIT, {100, 97}, NONE, NONE},
         {1, 0, 3, FILES},
         "4 ranks on this machine are more than the user may start, 100 processes and threads, of "
         "which 97 run: raise the limit (ulimit -u), or start fewer ranks"},
        {{ROOM_NO_LIMIT, {100, 120}, NONE, NONE}, {1, 0, 0, FILES}, "1 rank on this worker"},
        {{ROOM_NO_LIMIT, NONE, {512, 500}, NONE}, {12, 0, 0, FILES}, NULL},
        {{ROOM_NO_LIMIT, NONE, {512, 500}, NONE}, {6, 0, 6, FILES}, NULL},
        {{ROOM_NO_LIMIT, NONE, {512, 500}, NONE},
         {13, 0, 0, FILES},
         "may hold, 512 processes and threads, of which 500"},
        {{ROOM_NO_LIMIT, NONE, {512, 500}, NONE},
         {6, 0, 7, FILES},
         "13 ranks on this machine are more than the control group may hold, 512"},
        {{ROOM_NO_LIMIT, NONE, NONE, {64 * MIB, 0}}, {512, 0, 0, FILES}, NULL},
        {{ROOM_NO_LIMIT, NONE, NONE, {64 * MIB, 32 * MIB}},
         {512, 0, 0, FILES},
         "512 ranks on this worker need 64.0 MiB of memory even if they do nothing, and 32.0 MiB "
         "of "
         "the control group's 64.0 MiB are left (memory.max): raise it"},
        {{ROOM_NO_LIMIT, NONE, NONE, {64 * MIB, 32 * MIB}},
         {128, 0, 384, FILES},
         "512 ranks on this machine need 64.0 MiB of memory"},
        {{ROOM_NO_LIMIT, NONE, NONE, {MIB, 2 * MIB}},
         {1, 0, 0, FILES},
         "and 0.0 KiB of the control group's 1.0 MiB"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct drarun_error err = {0};
        int rc = room_check(&cases[i].room, &cases[i].need, &err);
        assert_int_equal(rc < 0, cases[i].part != NULL);
        if (cases[i].part && !strstr(err.text, cases[i].part))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.text, cases[i].part);
        assert_int_equal(err.kind, cases[i].part ? DRARUN_ERR_PREFLIGHT : DRARUN_ERR_NONE);
    }
}

static uint64_t files_of(uint64_t ranks, bool pmix, bool all_read, uint32_t neighbours)
{
    const struct room_files files = room_files(pmix, all_read, neighbours);
    return room_files_for(&files, ranks);
}

static void files_by_what_ranks_use(void **state)
{
    (void)state;
    assert_int_equal(files_of(100, true, false, 0), 424);
    assert_int_equal(files_of(100, false, false, 0), 224);
    assert_int_equal(files_of(100, true, true, 9), 533);
}

static void looks_at_this_process(void **state)
{
    struct rlimit limit;
    const struct room_need need = {.ranks = 1, .files = room_files(true, false, 0)};
    struct room room;
    (void)state;
    room_look(&need, &room);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max != RLIM_INFINITY)
        assert_int_equal(room.files, limit.rlim_max);
    assert_int_equal(room_check(&room, &need, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_has_no_room),
        cmocka_unit_test(files_by_what_ranks_use),
        cmocka_unit_test(looks_at_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
