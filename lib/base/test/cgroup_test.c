/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cgroup.h"

static void no_such_file(void **state)
{
    (void)state;
    char word[32];
    assert_true(cgroup_open("memory", "no.such.file", "no.such.file") < 0);
    assert_true(cgroup_read_word("no-such-controller", "no.such.file", word, sizeof word) < 0);
}

static const char table[] = "12:cpuset:/kubepods/a\n"
                            "5:cpu,cpuacct:/kubepods/b\n"
                            "1:name=systemd:/init.scope\n"
                            "0::/new\n";

static void places_of_a_controller(void **state)
{
    static const struct {
        const char *table, *controller, *places; /* each "[v2 ]hierarchy group;" */
    } rows[] = {
        {table, "cpuset", "/cpuset /kubepods/a;v2  /new;"},
        {table, "cpu", "/cpu /kubepods/b;v2  /new;"},
        {table, "cpuacct", "/cpuacct /kubepods/b;v2  /new;"},
        {table, "pids", "v2  /new;"},
        {table, "", "v2  /new;"},
        {"0::/a:b", "cpu", "v2  /a:b;"},
        {"3:cpus:/x\n4:cp,cpuset,:/y\n", "cpu", ""},
        {"3:cpu\n\n:\n::\n3:cpu:\n", "cpu", "v2  ;/cpu ;"},
        {"", "cpu", ""},
        {NULL, "cpu", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cgroup_place place;
        char found[256] = "";
        size_t length = 0;
        for (const char *at = rows[i].table;
             (at = cgroup_next_place(at, rows[i].controller, &place));)
            length += (size_t)snprintf(found + length, sizeof found - length, "%s%s %s;",
                                       place.v2 ? "v2 " : "", place.hierarchy, place.group);
        assert_string_equal(found, rows[i].places);
    }
}

/* Too long a path is none: another file could be meant. */
static void long_paths_are_left_out(void **state)
{
    static char text[CGROUP_PATH_MAX + 64];
    struct cgroup_place place;
    (void)state;
    int n = snprintf(text, sizeof text, "0::/");
    memset(text + n, 'x', CGROUP_PATH_MAX);
    assert_null(cgroup_next_place(text, "cpu", &place));
    text[n + CGROUP_PATH_MAX - 2] = '\0';
    assert_non_null(cgroup_next_place(text, "cpu", &place));
    assert_int_equal(strlen(place.group), CGROUP_PATH_MAX - 1);
}

static void quotas(void **state)
{
    (void)state;
    assert_int_equal(cgroup_parse_quota("max 100000\n"), UINT32_MAX);
    assert_int_equal(cgroup_parse_quota("-1 100000"), UINT32_MAX);
    assert_int_equal(cgroup_parse_quota("200000 100000\n"), 2);
    assert_int_equal(cgroup_parse_quota("150000 100000"), 2);
    assert_int_equal(cgroup_parse_quota("20000 100000"), 1);
    assert_int_equal(cgroup_parse_quota("200000"), UINT32_MAX);
    assert_int_equal(cgroup_parse_quota(""), UINT32_MAX);
}

static void caches(void **state)
{
    static const struct {
        const char *text;
        bool v2;
        uint64_t cache;
    } rows[] = {
        {"anon 7\nfile 4096\nkernel 1\nshmem 96\nfile_mapped 5\n", true, 4000},
        {"anon 7\nfile 4096\n", true, 4096}, /* of a kernel that does not tell */
        {"file 96\nshmem 4096\n", true, 0},  /* counted one after the other */
        {"cache 1\nshmem 1\ntotal_cache 4096\ntotal_rss 2\ntotal_shmem 96\n", false, 4000},
        {"file 4096\n", false, 0},
        {"", true, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(cgroup_parse_cache(rows[i].text, rows[i].v2), rows[i].cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_such_file),
        cmocka_unit_test(places_of_a_controller),
        cmocka_unit_test(long_paths_are_left_out),
        cmocka_unit_test(quotas),
        cmocka_unit_test(caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
