/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/run/hosts.h"
#include "lib/base/cleanup.h"

#define HOSTS_MAX 3

static void check(const struct hosts *hosts, const struct host *want)
{
    size_t count = 0;
    while (count < HOSTS_MAX && want[count].name[0])
        count++;
    assert_int_equal(hosts->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(hosts->list[i].name, want[i].name);
        assert_int_equal(hosts->list[i].slots, want[i].slots);
    }
}

static void reads_lists(void **state)
{
    static const struct {
        const char *text;
        struct host want[HOSTS_MAX];
    } cases[] = {
        {"a", {{"a", 0}}},
        {"a:4,b", {{"a", 4}, {"b", 0}}},
        {"a,a,A", {{"a", 3}}},
        {"a:2,b:2,a", {{"a", 3}, {"b", 2}}},
        {"10.0.0.1:8", {{"10.0.0.1", 8}}},
        {"root@a:2,me@b,me@[::1]:3", {{"a", 2}, {"b", 0}, {"::1", 3}}},
        {"fe80::1,[::1]:2,[::2]", {{"fe80::1", 0}, {"::1", 2}, {"::2", 0}}},
    };
    static const char *const wrong[] = {"@",    "me@:2",  "",     ",",         "a,",
                                        ":4",   "a:",     "a:0",  "a:-1",      "[::1:4",
                                        "a:4x", "[::1]4", "a,,b", "a:1000001", "a:auto"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hosts hosts = {0};
        assert_int_equal(hosts_parse("-H", cases[i].text, &hosts, NULL), 0);
        check(&hosts, cases[i].want);
        hosts_done(&hosts);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct hosts hosts = {0};
        struct drarun_error err = {0};
        if (hosts_parse("-H", wrong[i], &hosts, &err) == 0)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, "-H: expected HOST or HOST:SLOTS"));
    }
}

static void reads_files(void **state)
{
    static const struct host want[HOSTS_MAX] = {{"a", 4}, {"b", 2}, {"c", 0}};
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "f names no host"},
        {"# nothing\n\n", "f names no host"},
        {"a slots=x\n", "f:1: expected a whole number"},
        {"# ours\n\na user=me\n", "f:3: host a: expected slots=N, got \"user=me\""},
        {"a slots =\n", "f:1: expected a whole number"},
        {"a\nb:x\n", "f:2: expected HOST or HOST:SLOTS"},
        {"a slots=2\nb\nA slots=2\n", "f:3: the slots of host A are given a second time"},
        {"a\na slots=2\n", "f:2: the slots of host a are given a second time"},
        {"a:2 slots=2\n", "f:1: the slots of host a:2 are given a second time"},
    };
    struct hosts hosts = {0};
    struct drarun_error err;
    (void)state;
    assert_int_equal(hosts_parse_file("f",
                                      "\xef\xbb\xbf# ours\n\na slots=4 max_slots=8\r\n"
                                      "b:2 ifname=ib0 # Hydra's\n\tc",
                                      &hosts, NULL),
                     0);
    check(&hosts, want);
    hosts_done(&hosts);
    assert_int_equal(hosts_parse_file("f",
                                      "\xef\xbb\xbf"
                                      "a slots=4\nb:2\nc\n",
                                      &hosts, NULL),
                     0);
    check(&hosts, want);
    hosts_done(&hosts);
    assert_int_equal(
        hosts_parse_file("f", "root@a slots = 4 max-slots =8\nb cpu= 2\nc\n", &hosts, NULL), 0);
    check(&hosts, want);
    hosts_done(&hosts);
    assert_int_equal(hosts_parse_file("f", "a count=4\nb\tslots\t=\t2\nc", &hosts, NULL), 0);
    check(&hosts, want);
    hosts_done(&hosts);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        err = (struct drarun_error){0};
        assert_true(hosts_parse_file("f", wrong[i].text, &hosts, &err) < 0);
        if (!strstr(err.text, wrong[i].says))
            fail_msg("%s: %s", wrong[i].text, err.text);
    }
}

static char name[] = "a", *const program[] = {name};

static int use(struct job_request *request, uint32_t ranks, struct drarun_error *err)
{
    static struct request_program one;
    one = (struct request_program){.ranks = ranks, .argv = program, .argc = 1};
    request->programs = &one;
    request->program_count = 1;
    request->hosts_shown = "-H";
    return hosts_use(request, err);
}

static void this_machine_says_how_many_ranks(void **state)
{
    struct job_request request = {.hosts = "localhost:3,127.0.0.1"};
    struct job_request more = {.hosts = "localhost:3"}, other = {.hosts = "localhost,nowhere:2"};
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(use(&request, 0, NULL), 0);
    assert_int_equal(request.programs[0].ranks, 4);
    assert_int_equal(use(&more, 8, NULL), 0);
    assert_int_equal(more.programs[0].ranks, 8);
    assert_true(use(&other, 0, &err) < 0);
    assert_non_null(strstr(err.text, "--agents nowhere:7173"));
}

/* hostname -f and hostname -i of Debian, and what batch systems write. */
static void this_machine_has_several_names(void **state)
{
    char own[256] = "", text[300];
    (void)state;
    assert_int_equal(gethostname(own, sizeof own - 1), 0);
    size_t first = strcspn(own, ".");
    assert_true(hosts_is_here(own));
    assert_true(hosts_is_here("LocalHost"));
    assert_true(hosts_is_here("127.0.0.1"));
    assert_true(hosts_is_here("127.0.1.1"));
    assert_false(hosts_is_here("128.0.1.1"));
    snprintf(text, sizeof text, "%.*s", (int)first, own);
    assert_true(hosts_is_here(text));
    snprintf(text, sizeof text, "%s.example.org", own);
    assert_int_equal(hosts_is_here(text), !own[first]); /* it has no second domain */
    snprintf(text, sizeof text, "%sx.example.org", own);
    assert_false(hosts_is_here(text));
    snprintf(text, sizeof text, "%.*s", (int)first - 1, own);
    assert_false(hosts_is_here(text));
}

static void fewer_ranks_than_slots_on_this_machine(void **state)
{
    struct job_request one = {.hosts = "localhost:4", .per_host = 2},
                       few = {.hosts = "localhost:4", .per_worker = 8},
                       two = {.hosts = "localhost:8", .per_worker = 3, .workers = 2};
    char agents[] = "127.0.0.1:1,127.0.0.1:2";
    struct job_request kept = {.hosts = "localhost:8", .per_worker = 3, .alloc_agents = agents};
    struct job_request said = {.hosts = "localhost:8", .per_worker = 3};
    (void)state;
    assert_int_equal(use(&one, 0, NULL), 0);
    assert_int_equal(one.programs[0].ranks, 2);
    assert_int_equal(use(&few, 0, NULL), 0);
    assert_int_equal(few.programs[0].ranks, 4);
    assert_int_equal(use(&two, 0, NULL), 0);
    assert_int_equal(two.programs[0].ranks, 6);
    assert_int_equal(use(&kept, 0, NULL), 0);
    assert_int_equal(kept.programs[0].ranks, 6);
    assert_int_equal(use(&said, 4, NULL), 0); /* which then does not fit */
    assert_int_equal(said.programs[0].ranks, 4);
}

static void agents_are_chosen_in_order(void **state)
{
    struct job_request request = {.agents = "a:1,b:2,[::1]:3", .hosts = "B:2,[::1]:2"};
    struct job_request uneven = {.agents = "a:1,b:2", .hosts = "a:1,b:2"};
    struct job_request twice = {.agents = "a:1,a:2", .hosts = "a"};
    struct job_request lone = {.per_host = 4}, several = {.per_host = 4, .workers = 2};
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(use(&request, 0, NULL), 0);
    assert_string_equal(request.agents, "b:2,[::1]:3");
    assert_int_equal(request.per_worker, 2);
    free(request.chosen_agents);
    assert_true(use(&uneven, 0, &err) < 0);
    assert_non_null(strstr(err.text, "every worker needs the same"));
    assert_true(use(&twice, 0, &err) < 0);
    assert_non_null(strstr(err.text, "2 of the agents are on that host"));
    assert_true(use(&lone, 0, &err) < 0);
    assert_non_null(strstr(err.text, "there is one worker: use -n 4;"));
    assert_true(use(&lone, 2, &err) < 0); /* -n 4 would be something else */
    assert_non_null(strstr(err.text, "the only worker has all ranks: leave -N out;"));
    assert_int_equal(use(&several, 0, NULL), 0);
    assert_int_equal(several.per_worker, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lists),
        cmocka_unit_test(reads_files),
        cmocka_unit_test(this_machine_says_how_many_ranks),
        cmocka_unit_test(this_machine_has_several_names),
        cmocka_unit_test(fewer_ranks_than_slots_on_this_machine),
        cmocka_unit_test(agents_are_chosen_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
