/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/variables/inspector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

#define PLUGIN "NCCL_PROFILER_PLUGIN"
#define INTERVAL "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"

static void assert_list(const struct strlist *list, const char *const *expected)
{
    size_t count = 0;
    for (; expected[count]; count++) {
        assert_true(count < list->count);
        assert_string_equal(list->items[count], expected[count]);
    }
    assert_int_equal(list->count, count);
}

/* A name without a folder is looked for by the dynamic linker: nobody can say whether it is there.
 */
static void places_of_the_library(void **unused)
{
    static const char *const own[] = {"A=/b", PLUGIN "=/opt/mine.so", NULL};
    static const char *const named[] = {PLUGIN "=inspector", "X" PLUGIN "=/x", NULL};
    static const char *const its_path[] = {"/opt/mine.so", NULL};
    const char *const *const without[] = {NULL, named};
    struct strlist paths = STRLIST_INIT;
    (void)unused;
    inspector_paths(unconst(own), &paths);
    assert_list(&paths, its_path);
    strlist_done(&paths);
    for (size_t i = 0; i < ARRAY_LEN(without); i++) {
        inspector_paths(unconst(without[i]), &paths);
        assert_int_equal(paths.count, 7);
        assert_string_equal(paths.items[0],
                            "/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so");
        assert_string_equal(paths.items[6], "/opt/nccl/lib/libnccl-profiler-inspector.so");
        strlist_done(&paths);
    }
}

static void what_the_user_says_stays(void **unused)
{
    static const struct {
        const char *before[4], *after[5];
    } rows[] = {
        {{NULL}, {PLUGIN "=/l.so", INSPECTOR_ENABLE "=1", INTERVAL "=1000000", NULL}},
        {{INSPECTOR_ENABLE "=0", NULL},
         {INSPECTOR_ENABLE "=0", PLUGIN "=/l.so", INTERVAL "=1000000", NULL}},
        {{INTERVAL "=5", PLUGIN "=own", NULL},
         {INTERVAL "=5", PLUGIN "=own", INSPECTOR_ENABLE "=1", NULL}},
        {{PLUGIN "=a", INSPECTOR_ENABLE "=1", INTERVAL "=7", NULL},
         {PLUGIN "=a", INSPECTOR_ENABLE "=1", INTERVAL "=7", NULL}},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct strlist env = STRLIST_INIT;
        for (const char *const *entry = rows[i].before; *entry; entry++)
            strlist_add(&env, *entry);
        inspector_env("/l.so", &env);
        assert_list(&env, rows[i].after);
        strlist_done(&env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_the_library),
        cmocka_unit_test(what_the_user_says_stays),
    };
    return cmocka_run_group_tests_name("inspector", tests, NULL, NULL);
}
