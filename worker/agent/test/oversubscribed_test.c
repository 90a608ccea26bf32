/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/base/affinity.h"
#include "lib/base/unconst.h"
#include "lib/wire/copy.h"
#include "worker/agent/private.h"
#include "worker/host/pod.h"

#define WORKERS 2

static const struct pod pod;
static uint32_t cpus, quota;

uint32_t __wrap_affinity_count(void);
uint32_t __wrap_affinity_count(void)
{
    return cpus;
}

uint32_t __wrap_cgroup_cpu_quota(void);
uint32_t __wrap_cgroup_cpu_quota(void)
{
    return quota;
}

/* `ranks` on each of two workers; this is the first. */
static void take_job(struct agent_job *job, uint32_t ranks, const char *const *hosts,
                     const uint32_t *shared, const char *bind)
{
    Drarun__Wire__Launch launch = DRARUN__WIRE__LAUNCH__INIT;
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Worker worker[WORKERS], *workers[WORKERS];
    Drarun__Wire__Block block[WORKERS], *blocks[WORKERS];
    char *argv[] = {unconst("program")};
    app.argv = argv;
    app.n_argv = 1;
    for (uint32_t w = 0; w < WORKERS; w++) {
        drarun__wire__worker__init(workers[w] = &worker[w]);
        drarun__wire__block__init(blocks[w] = &block[w]);
        worker[w].host = unconst(hosts[w]);
        worker[w].cpus = shared[w];
        block[w].first = w * ranks;
        block[w].count = ranks;
        block[w].worker = w;
    }
    launch.uid = unconst("0123abcd");
    launch.radix = 8;
    launch.apps = apps;
    launch.n_apps = 1;
    launch.blocks = blocks;
    launch.n_blocks = WORKERS;
    launch.workers = workers;
    launch.n_workers = WORKERS;
    launch.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    launch.bind = unconst(bind);
    launch.session_dir = unconst("/tmp/x");
    Drarun__Wire__Launch *wire = wire_copy(&launch.base);
    assert_non_null(wire);
    assert_int_equal(agent_job_init_take(job, wire, NULL), 0);
}

static void counts_the_ranks_that_share(void **state)
{
    static const struct {
        const char *says, *hosts[WORKERS];
        bool pod;
        uint32_t shared[WORKERS], cpus, quota, own, others;
        bool want;
    } cases[] = {
        {"enough", {"a", "b"}, true, {1, 1}, 6, UINT32_MAX, 3, 3, false},
        {"pods on a node", {"a", "b"}, true, {1, 1}, 5, UINT32_MAX, 3, 3, true},
        {"each has a quota", {"a", "b"}, true, {1, 1}, 6, 3, 3, 3, false},
        {"pods with CPUs of their own", {"a", "b"}, true, {1, 2}, 3, UINT32_MAX, 3, 3, false},
        {"this one alone", {"a", "b"}, true, {1, 2}, 2, UINT32_MAX, 3, 1, true},
        {"agents of a host", {"a", "a"}, false, {1, 1}, 5, UINT32_MAX, 3, 3, true},
        {"their quota", {"a", "a"}, false, {1, 1}, 6, 5, 3, 3, true},
        {"other hosts", {"a", "b"}, false, {1, 2}, 3, 3, 3, 3, false},
        {"not known", {"a", "a"}, false, {0, 0}, 0, UINT32_MAX, 3, 3, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent agent = {.options.pod = cases[i].pod ? &pod : NULL};
        cpus = cases[i].cpus;
        quota = cases[i].quota;
        take_job(&agent.job, cases[i].others, cases[i].hosts, cases[i].shared, "none");
        if (agent_is_oversubscribed(&agent, cases[i].own) != cases[i].want)
            fail_msg("%s: want %d", cases[i].says, cases[i].want);
        agent_job_done(&agent.job);
    }
}

/* One more rank here. */
static void add_group(struct agent_job *job)
{
    Drarun__Wire__Group group = DRARUN__WIRE__GROUP__INIT;
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Block block = DRARUN__WIRE__BLOCK__INIT, *blocks[] = {&block};
    char *argv[] = {unconst("program")};
    app.argv = argv;
    app.n_argv = 1;
    block.count = 1;
    group.index = job->group_count;
    group.first = job->map.ranks;
    group.apps = apps;
    group.n_apps = 1;
    group.blocks = blocks;
    group.n_blocks = 1;
    Drarun__Wire__Group *wire = wire_copy(&group.base);
    assert_non_null(wire);
    assert_int_equal(agent_job_add_group_take(job, wire, NULL), 0);
}

static bool find_two(int found[2])
{
    cpu_set_t set;
    int count = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            found[count++] = cpu;
    return count == 2;
}

/* The last group's ranks are bound, as its agent does before it judges. */
static void bind_last(struct agent *agent)
{
    struct drarun_error err = {0};
    if (agent_bind_group(agent, agent->job.groups[agent->job.group_count - 1], &err) < 0)
        fail_msg("%s", err.text);
}

static void free_agent(struct agent *agent)
{
    for (uint32_t i = 0; i < agent->job.local_count; i++)
        free(agent->rank[i].cpus);
    agent_job_done(&agent->job);
}

/* Also where ranks are bound to CPUs that were listed: here to the same two, each of them. */
static void ended_groups_need_no_cpus(void **state)
{
    static const char *const hosts[] = {"a", "b"};
    static const uint32_t shared[] = {1, 2};
    struct agent_rank ranks[3] = {0};
    struct agent agent = {.options.pod = &pod, .rank = ranks};
    char list[64];
    int two[2];
    (void)state;
    if (!find_two(two))
        skip();
    snprintf(list, sizeof list, "%d,%d;%d,%d", two[0], two[1], two[0], two[1]);
    cpus = 64;
    quota = UINT32_MAX;
    take_job(&agent.job, 1, hosts, shared, list);
    add_group(&agent.job);
    bind_last(&agent);
    assert_false(agent_is_oversubscribed(&agent, 2));
    add_group(&agent.job);
    bind_last(&agent);
    assert_true(agent_is_oversubscribed(&agent, 3));
    agent_job_release_group(&agent.job, agent.job.groups[1]);
    assert_false(agent_is_oversubscribed(&agent, 2));
    free_agent(&agent);
}

static void assert_bound(const struct agent_rank *rank, int cpu, bool shared)
{
    assert_int_equal(rank->cpu_count, 1);
    assert_int_equal(rank->cpus[0], cpu);
    assert_int_equal(rank->cpus_shared, shared);
}

/* A rank that comes later gets the CPU of one that has ended, and its parent's only then. */
static void ended_groups_leave_their_cpus(void **state)
{
    static const char *const hosts[] = {"a", "b"};
    static const uint32_t shared[] = {1, 2};
    struct agent_rank ranks[4] = {0};
    struct agent agent = {.options.pod = &pod, .rank = ranks};
    char list[32];
    int two[2];
    (void)state;
    if (!find_two(two))
        skip();
    snprintf(list, sizeof list, "%d,%d", two[0], two[1]);
    take_job(&agent.job, 1, hosts, shared, list);
    bind_last(&agent);
    assert_bound(&ranks[0], two[0], false);
    add_group(&agent.job);
    bind_last(&agent);
    assert_bound(&ranks[1], two[1], false);
    agent_job_release_group(&agent.job, agent.job.groups[1]);
    add_group(&agent.job);
    bind_last(&agent);
    assert_bound(&ranks[2], two[1], false);
    add_group(&agent.job);
    bind_last(&agent);
    assert_bound(&ranks[3], two[0], true);
    free_agent(&agent);
}

/* The launch's rank of the other worker has the second CPU. */
static void ranks_of_other_workers_keep_theirs(void **state)
{
    static const char *const hosts[] = {"a", "a"};
    static const uint32_t shared[] = {1, 1};
    struct agent_rank ranks[2] = {0};
    struct agent agent = {.rank = ranks};
    char list[32];
    int two[2];
    (void)state;
    if (!find_two(two))
        skip();
    snprintf(list, sizeof list, "%d,%d", two[0], two[1]);
    take_job(&agent.job, 1, hosts, shared, list);
    bind_last(&agent);
    assert_bound(&ranks[0], two[0], false);
    add_group(&agent.job);
    bind_last(&agent);
    assert_bound(&ranks[1], two[0], true);
    free_agent(&agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_the_ranks_that_share),
        cmocka_unit_test(ended_groups_need_no_cpus),
        cmocka_unit_test(ended_groups_leave_their_cpus),
        cmocka_unit_test(ranks_of_other_workers_keep_theirs),
    };
    return cmocka_run_group_tests_name("agent_oversubscribed", tests, NULL, NULL);
}
