/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/binding.h"
#include "lib/base/cleanup.h"

/* Two NUMA nodes of two cores with two threads each. */
static struct cpu machine[] = {{0, 0, 0}, {4, 0, 0}, {1, 1, 0}, {5, 1, 0},
                               {2, 2, 1}, {6, 2, 1}, {3, 3, 1}, {7, 3, 1}};
static const struct cpus two_nodes = {machine, ARRAY_LEN(machine), 4};

/* An affinity mask left three cores on one node and one on the other. */
static struct cpu rest[] = {{1, 0, 0}, {2, 1, 0}, {3, 2, 0}, {9, 3, 8}};
static const struct cpus uneven = {rest, ARRAY_LEN(rest), 4};

static struct cpu six[] = {{0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 1}, {4, 4, 1}, {5, 5, 1}};
static const struct cpus three_each = {six, ARRAY_LEN(six), 6};

static struct cpu four_each[] = {{0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 0},
                                 {4, 4, 1}, {5, 5, 1}, {6, 6, 1}, {7, 7, 1}};
static const struct cpus eight = {four_each, ARRAY_LEN(four_each), 8};

/* CPUs of the ranks in order, "/" between them; "*" behind those that share. */
static const struct {
    const struct cpus *cpus;
    const char *policy;
    uint32_t size;
    const char *bound;
} cases[] = {
    {&two_nodes, "none", 2, "/"},
    {&two_nodes, "core", 1, "0,4"},
    {&two_nodes, "core", 2, "0,4/2,6"},
    {&two_nodes, "core", 3, "0,4/1,5/2,6"},
    {&two_nodes, "core", 4, "0,4/1,5/2,6/3,7"},
    {&two_nodes, "core", 5, "0,4*/1,5*/2,6*/3,7*/0,4*"},
    {&two_nodes, "core:1", 3, "0,4/1,5/2,6"},
    {&two_nodes, "core:2", 1, "0-1,4-5"},
    {&two_nodes, "core:2", 2, "0-1,4-5/2-3,6-7"},
    {&two_nodes, "core:2", 3, "0-1,4-5*/2-3,6-7*/0-1,4-5*"},
    {&two_nodes, "core:3", 1, "0-2,4-6"}, /* no node has so many */
    {&two_nodes, "core:3", 2, "0-2,4-6*/0-2,4-6*"},
    {&two_nodes, "core:4", 1, "0-7"},
    {&three_each, "core:2", 1, "0-1"},
    {&three_each, "core:2", 2, "0-1/3-4"},
    {&three_each, "core:2", 3, "0-1/2-3/4-5"}, /* one of them has cores of two nodes */
    {&three_each, "core:2", 4, "0-1*/3-4*/0-1*/3-4*"},
    {&eight, "core:2", 3, "0-1/2-3/4-5"},
    {&eight, "core:2", 2, "0-1/4-5"},
    {&uneven, "core:3", 1, "1-3"},
    {&uneven, "core:2", 2, "1-2/3,9"},
    {&two_nodes, "numa", 1, "0-1,4-5"},
    {&two_nodes, "numa", 2, "0-1,4-5/2-3,6-7"},
    {&two_nodes, "numa", 4, "0-1,4-5/0-1,4-5/2-3,6-7/2-3,6-7"},
    {&two_nodes, "numa", 5, "0-1,4-5*/0-1,4-5*/0-1,4-5*/2-3,6-7*/2-3,6-7*"},
    {&uneven, "numa", 4, "1-3/1-3/1-3/9"},
    {&uneven, "core", 4, "1/2/3/9"},
    {&two_nodes, "0-1;2,3", 2, "0-1/2-3"},
    {&two_nodes, "0-1;2,3", 3, "0-1*/2-3*/0-1*"},
    {&two_nodes, "0,2,4", 3, "0/2/4"},
    {&two_nodes, "0,2", 3, "0*/2*/0*"},
    {&two_nodes, "3", 1, "3"},
    {&two_nodes, "5-7", 2, "5/6"},
    {&two_nodes, "4,0", 2, "4/0"}, /* in the order of the list */
    {&two_nodes, "6-7,2", 4, "6*/7*/2*/6*"},
    {&two_nodes, "1,1,0", 3, "1/1/0"}, /* a CPU may be named again */
};

static void add_rank(const struct bind_policy *policy, const struct cpus *cpus, uint32_t rank,
                     uint32_t size, struct buf *out)
{
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    bool shared = false;
    struct drarun_error err = {0};
    if (bind_cpus(policy, cpus, rank, size, &ids, &count, &shared, &err) < 0)
        fail_msg("%s", err.text);
    buf_add_str(out, rank > 0 ? "/" : "");
    cpulist_format(ids, count, out);
    buf_add_str(out, shared ? "*" : "");
}

static void binds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bind_policy policy;
        struct buf bound = BUF_INIT;
        assert_int_equal(bind_parse(cases[i].policy, &policy, NULL), 0);
        for (uint32_t rank = 0; rank < cases[i].size; rank++)
            add_rank(&policy, cases[i].cpus, rank, cases[i].size, &bound);
        assert_string_equal(bound.data, cases[i].bound);
        buf_done(&bound);
    }
}

/* The same for one more rank: what others have, and what it gets. */
static const struct {
    const struct cpus *cpus;
    const char *policy, *used, *bound;
} later[] = {
    {&two_nodes, "none", "0-7", ""},
    {&two_nodes, "core", "", "0,4"},
    {&two_nodes, "core", "0,4", "1,5"},
    {&two_nodes, "core", "0,4/2,6", "1,5"},
    {&two_nodes, "core", "0-1,4-5/2,6", "3,7"},
    {&two_nodes, "core", "0,4/1,5/2,6/3,7", "0,4*"},
    {&two_nodes, "core", "0,4/0,4/1,5/2,6/3,7", "1,5*"},
    {&two_nodes, "core:2", "0-1,4-5", "2-3,6-7"},
    {&two_nodes, "core:3", "", "0-2,4-6"},
    {&three_each, "core:2", "0", "3-4"},
    {&two_nodes, "numa", "0-1,4-5", "2-3,6-7"},
    {&two_nodes, "numa", "0-1,4-5/2-3,6-7", "0-1,4-5"},
    {&two_nodes, "numa", "0-1,4-5/0-1,4-5/2-3,6-7/2-3,6-7", "0-1,4-5*"},
    {&uneven, "numa", "1-3/1-3/9", "1-3"},
    {&two_nodes, "0-1;2,3", "0-1", "2-3"},
    {&two_nodes, "0-1;2,3", "3/0-1/0-1", "2-3*"},
    {&two_nodes, "4,0", "4", "0"},
    {&two_nodes, "0-3;4-7;8-11", "0-3", "4-7"}, /* no launched rank has the third set either */
    {&two_nodes, "8-11;0,8;1", "", "1"},
    {&two_nodes, "8;1", "1", "1*"},
};

static void add_used(const char *sets, uint32_t *used)
{
    cleanup_free char *copy = strdup(sets);
    char *next = copy;
    assert_non_null(copy);
    for (char *set; (set = strsep(&next, "/"));) {
        cleanup_free uint32_t *ids = NULL;
        size_t count = 0;
        assert_int_equal(cpulist_parse(set, &ids, &count, NULL), 0);
        for (size_t i = 0; i < count; i++)
            used[ids[i]]++;
    }
}

static void binds_to_what_others_leave(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(later); i++) {
        CLEANUP(buf_done) struct buf bound = BUF_INIT;
        cleanup_free uint32_t *ids = NULL;
        uint32_t used[CPUS_MAX] = {0};
        struct bind_policy policy;
        size_t count = 0;
        bool shared = false;
        assert_int_equal(bind_parse(later[i].policy, &policy, NULL), 0);
        add_used(later[i].used, used);
        assert_int_equal(bind_free_cpus(&policy, later[i].cpus, used, &ids, &count, &shared, NULL),
                         0);
        buf_add_str(&bound, "");
        cpulist_format(ids, count, &bound);
        buf_add_str(&bound, shared ? "*" : "");
        assert_string_equal(bound.data, later[i].bound);
    }
}

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", "empty part"}, {"socket", "\"socket\""}, {"0;;1", "empty part"},    {"0-1;", "empty part"},
    {"3-1", "\"3-1\""}, {"0;9999", "\"9999\""},   {"none,core", "\"none\""}, {"\n", "empty part"},
};

static void refuses_what_is_no_policy(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct bind_policy policy = {0};
        struct drarun_error err = {0};
        assert_int_equal(bind_parse(wrong[i].text, &policy, &err), -EINVAL);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, wrong[i].says));
        assert_non_null(strstr(err.text, "expected none, core, core:N, numa or CPUs"));
        assert_int_equal(policy.kind, 0);
    }
}

static void more_cores_than_there_are(void **state)
{
    (void)state;
    static const char *const no_number[] = {"core:", "core:0", "core:x", "core:8193", "core:1;2"};
    struct bind_policy policy;
    struct drarun_error err = {0};
    uint32_t *ids = NULL;
    size_t count = 0;
    bool shared = false;
    for (size_t i = 0; i < ARRAY_LEN(no_number); i++) {
        assert_true(bind_parse(no_number[i], &policy, &err) < 0);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, "binding core:N: expected "));
    }
    assert_int_equal(bind_parse("core:5", &policy, NULL), 0);
    static const uint32_t unused[CPUS_MAX];
    assert_int_equal(bind_free_cpus(&policy, &two_nodes, unused, &ids, &count, &shared, NULL),
                     -EINVAL);
    assert_int_equal(bind_cpus(&policy, &two_nodes, 0, 1, &ids, &count, &shared, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_string_equal(err.text,
                        "binding core:5: ranks can use 4 cores here: give a smaller number");
    assert_null(ids);
}

static void names_the_cpu_that_cannot_be_used(void **state)
{
    (void)state;
    static const char *const lists[] = {"8", "0,8", "0;8", "0;1,8"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct bind_policy policy;
        struct drarun_error err = {0};
        uint32_t *ids = NULL;
        size_t count = 0;
        bool shared = false;
        assert_int_equal(bind_parse(lists[i], &policy, NULL), 0);
        assert_int_equal(bind_cpus(&policy, &two_nodes, 1, 2, &ids, &count, &shared, &err),
                         -EINVAL);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, "CPU 8 cannot be used here; usable CPUs: 0-7"));
        assert_null(ids);
    }
}

static void list_without_a_set_that_can_be_used(void **state)
{
    (void)state;
    static const char *const lists[] = {"8", "0,8", "0,9;8", "8;8-11"};
    static const uint32_t unused[CPUS_MAX];
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct bind_policy policy;
        struct drarun_error err = {0};
        uint32_t *ids = NULL;
        size_t count = 0;
        bool shared = false;
        assert_int_equal(bind_parse(lists[i], &policy, NULL), 0);
        assert_int_equal(bind_free_cpus(&policy, &two_nodes, unused, &ids, &count, &shared, &err),
                         -EINVAL);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, "CPU 8 cannot be used here; usable CPUs: 0-7"));
        assert_null(ids);
    }
}

static void workers_that_have_the_same_cpus(void **state)
{
    static const struct bind_place places[] = {
        {"node-b", "0-3"}, {"node-a", "0-3"}, {"node-b", "4-7"}, {"node-a", ""},
        {"node-b", "0-3"}, {"w-5", ""},       {"node-a", ""},    {"node-b", "0-3"},
    };
    static const uint32_t wanted[] = {1, 2, 3, 4, 1, 6, 4, 1};
    uint32_t numbers[ARRAY_LEN(places)] = {0};
    (void)state;
    assert_int_equal(bind_number_cpus(places, ARRAY_LEN(places), numbers, NULL), 0);
    assert_memory_equal(numbers, wanted, sizeof wanted);
    assert_int_equal(bind_number_cpus(places, 0, numbers, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binds),
        cmocka_unit_test(binds_to_what_others_leave),
        cmocka_unit_test(refuses_what_is_no_policy),
        cmocka_unit_test(more_cores_than_there_are),
        cmocka_unit_test(names_the_cpu_that_cannot_be_used),
        cmocka_unit_test(list_without_a_set_that_can_be_used),
        cmocka_unit_test(workers_that_have_the_same_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
