/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/wire/copy.h"
#include "worker/job/agent_job.h"

/* Two programs of three and two ranks over two workers: 0 1 | 2 and 3 | 4. */
struct parts {
    Drarun__Wire__Launch launch;
    Drarun__Wire__App app[2], *apps[2];
    Drarun__Wire__Block block[4], *blocks[4];
    Drarun__Wire__Worker worker[2], *workers[2];
    char *argv[2][3];
};

static void fill(struct parts *p)
{
    static const uint32_t layout[4][4] = {/* first, count, worker, app */
                                          {0, 2, 0, 0},
                                          {2, 1, 1, 0},
                                          {3, 1, 0, 1},
                                          {4, 1, 1, 1}};
    drarun__wire__launch__init(&p->launch);
    for (size_t i = 0; i < 2; i++) {
        drarun__wire__app__init(&p->app[i]);
        drarun__wire__worker__init(&p->worker[i]);
        p->argv[i][0] = unconst(i == 0 ? "one" : "two");
        p->argv[i][1] = unconst("argument");
        p->app[i].argv = p->argv[i];
        p->app[i].n_argv = 2;
        p->worker[i].host = unconst(i == 0 ? "node" : "another");
        p->apps[i] = &p->app[i];
        p->workers[i] = &p->worker[i];
    }
    for (size_t i = 0; i < 4; i++) {
        drarun__wire__block__init(&p->block[i]);
        p->block[i].first = layout[i][0];
        p->block[i].count = layout[i][1];
        p->block[i].worker = layout[i][2];
        p->block[i].app = layout[i][3];
        p->blocks[i] = &p->block[i];
    }
    p->launch.uid = unconst("0123abcd");
    p->launch.attempt = 2;
    p->launch.worker = 1;
    p->launch.radix = 8;
    p->launch.apps = p->apps;
    p->launch.n_apps = 2;
    p->launch.blocks = p->blocks;
    p->launch.n_blocks = 4;
    p->launch.workers = p->workers;
    p->launch.n_workers = 2;
    p->launch.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    p->launch.session_dir = unconst("/tmp/x");
    p->launch.secret = unconst("k7");
}

/* As it comes from the wire. */
static int receive(const struct parts *p, struct agent_job *job, struct drarun_error *err)
{
    Drarun__Wire__Launch *launch = wire_copy(&p->launch.base);
    assert_non_null(launch);
    return agent_job_init_take(job, launch, err);
}

static void what_the_agent_needs(void **state)
{
    struct parts p;
    struct agent_job job;
    struct drarun_error err = {0};
    (void)state;
    fill(&p);
    assert_int_equal(receive(&p, &job, &err), 0);
    assert_string_equal(job.groups[0]->nspace, "drarun.0123abcd.2.k7");
    assert_string_equal(job.groups[0]->kvs, "drarun.0123abcd.2");
    assert_int_equal(job.worker, 1);
    assert_true(job.pmix);
    assert_int_equal(job.local_count, 2);
    assert_int_equal(job.local[0], 2);
    assert_int_equal(job.local[1], 4);
    assert_int_equal(agent_job_local_index(&job, 4), 1);
    assert_int_equal(agent_job_local_index(&job, 3), -1);
    assert_int_equal(agent_job_local_index(&job, 5), -1);
    cleanup_free char **argv = agent_job_argv(&job, 1);
    assert_string_equal(argv[0], "two");
    assert_string_equal(argv[1], "argument");
    assert_null(argv[2]);
    assert_string_equal(job.nodes[0], "node");
    agent_job_done(&job);
}

static void programs_are_worlds_of_their_own(void **state)
{
    struct parts p;
    struct agent_job job;
    struct drarun_error err = {0};
    Drarun__Wire__World world[2], *worlds[2] = {&world[0], &world[1]};
    (void)state;
    fill(&p);
    drarun__wire__world__init(&world[0]);
    drarun__wire__world__init(&world[1]);
    p.launch.worlds = worlds;
    p.launch.n_worlds = 2;
    assert_int_equal(receive(&p, &job, &err), 0);
    assert_int_equal(job.launched, 2);
    assert_int_equal(job.group_count, 2);
    assert_string_equal(job.groups[0]->nspace, "drarun.0123abcd.2.k7");
    assert_string_equal(job.groups[1]->nspace, "drarun.0123abcd.2.s1.k7");
    const struct rank_group *second = agent_job_group_of(&job, 4);
    assert_ptr_equal(second, job.groups[1]);
    assert_int_equal(second->first, 3);
    assert_int_equal(second->first_app, 1);
    assert_int_equal(second->map.ranks, 2);
    assert_int_equal(second->map.apps, 1);
    assert_int_equal(second->local_first, 1);
    assert_int_equal(second->local_count, 1);
    assert_false(second->spawned);
    assert_int_equal(job.local[1], 4);
    assert_int_equal(job.map.ranks, 5);
    assert_int_equal(agent_job_launched_ranks(&job), 5);
    assert_int_equal(agent_job_universe(&job), 5);
    agent_job_done(&job);
    p.launch.n_worlds = 1;
    assert_int_equal(receive(&p, &job, &err), -EPROTO);
    assert_string_equal(err.text, "launch message: expected one world for each program, or none");
    agent_job_done(&job);
}

/* A server would wait for ranks that are not its own. */
static void workers_of_one_host_are_nodes_of_their_own(void **state)
{
    struct parts p;
    struct agent_job job;
    (void)state;
    fill(&p);
    p.worker[1].host = unconst("node");
    assert_int_equal(receive(&p, &job, NULL), 0);
    assert_string_equal(job.nodes[0], "node-w0");
    assert_string_equal(job.nodes[1], "node-w1");
    assert_string_equal(job.host, "node");
    agent_job_done(&job);
}

static void worker_without_ranks(void **state)
{
    struct parts p;
    struct agent_job job;
    (void)state;
    fill(&p);
    p.block[1].worker = p.block[3].worker = 0;
    assert_int_equal(receive(&p, &job, NULL), 0);
    assert_int_equal(job.local_count, 0);
    agent_job_done(&job);
}

static char long_uid[66];

static void no_uid(struct parts *p)
{
    p->launch.uid = unconst("");
}
static void too_long_uid(struct parts *p)
{
    p->launch.uid = long_uid;
}
static void no_workers(struct parts *p)
{
    p->launch.n_workers = 0;
}
static void foreign_index(struct parts *p)
{
    p->launch.worker = 2;
}
static void no_radix(struct parts *p)
{
    p->launch.radix = 0;
}
static void huge_radix(struct parts *p)
{
    p->launch.radix = UINT32_MAX;
}
static void no_mode(struct parts *p)
{
    p->launch.mode = 0;
}
static void unknown_mode(struct parts *p)
{
    p->launch.mode = 77;
}
static void relative_session(struct parts *p)
{
    p->launch.session_dir = unconst("tmp/x");
}
static void path_as_secret(struct parts *p)
{
    p->launch.secret = unconst("../x");
}
static void too_long_secret(struct parts *p)
{
    p->launch.secret = unconst("abcdefghijklmnopqrstuvwxyz2345677");
}
static void no_program(struct parts *p)
{
    p->app[1].n_argv = 0;
}
static void nameless_program(struct parts *p)
{
    p->argv[1][0] = unconst("");
}
static void block_of_no_program(struct parts *p)
{
    p->block[3].app = 2;
}
static void block_of_no_worker(struct parts *p)
{
    p->block[3].worker = 2;
}
static void empty_block(struct parts *p)
{
    p->block[1].count = 0;
}
static void hole(struct parts *p)
{
    p->block[1].first = 3;
}
static void overlap(struct parts *p)
{
    p->block[1].first = 1;
}
static void overflow(struct parts *p)
{
    p->block[3].count = UINT32_MAX;
}
static void no_blocks(struct parts *p)
{
    p->launch.n_blocks = 0;
}
static void bad_binding(struct parts *p)
{
    p->launch.bind = unconst("3-1");
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        void (*spoil)(struct parts *p);
        const char *says;
    } rows[] = {
        {no_uid, "no job uid"},
        {too_long_uid, "no job uid, or one of more than 64 characters"},
        {no_workers, "no workers, or too many"},
        {foreign_index, "this worker's index is not below the number of workers"},
        {no_radix, "radix of the tree out of range"},
        {huge_radix, "radix of the tree out of range"},
        {no_mode, "unknown launch mode"},
        {unknown_mode, "unknown launch mode"},
        {relative_session, "the session directory is neither"},
        {path_as_secret, "the namespace's secret has invalid characters"},
        {too_long_secret, "the namespace's secret has invalid characters, or too many"},
        {no_program, "a program without a name"},
        {nameless_program, "a program without a name"},
        {block_of_no_program, "ranks of an unknown program"},
        {block_of_no_worker, "rank map: block 3 is on worker 2 of 2"},
        {empty_block, "rank map: block 1 has 0 ranks"},
        {hole, "rank map: block 1 starts at rank 3"},
        {overlap, "rank map: block 1 starts at rank 1"},
        {overflow, "rank map: block 3 has 4294967295 ranks"},
        {no_blocks, "rank map: 0 blocks"},
        {bad_binding, "binding \"3-1\""},
    };
    (void)state;
    memset(long_uid, 'x', sizeof long_uid - 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct parts p;
        struct agent_job job;
        struct drarun_error err = {0};
        fill(&p);
        rows[i].spoil(&p);
        if (receive(&p, &job, &err) == 0)
            fail_msg("case %zu is accepted", i);
        assert_int_not_equal(err.code, 0);
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\" lacks \"%s\"", err.text, rows[i].says);
        agent_job_done(&job); /* a half-built one */
    }
}

/* ---- groups that come later ---- */

/* One program of two ranks, asked for by rank 4: 5 | 6. */
struct group_parts {
    Drarun__Wire__Group group;
    Drarun__Wire__App app, *apps[1];
    Drarun__Wire__Block block[2], *blocks[2];
    char *argv[1];
};

static void fill_group(struct group_parts *p)
{
    drarun__wire__group__init(&p->group);
    drarun__wire__app__init(&p->app);
    p->argv[0] = unconst("three");
    p->app.argv = p->argv;
    p->app.n_argv = 1;
    p->apps[0] = &p->app;
    for (uint32_t i = 0; i < 2; i++) {
        drarun__wire__block__init(&p->block[i]);
        p->block[i].first = i;
        p->block[i].count = 1;
        p->block[i].worker = i;
        p->blocks[i] = &p->block[i];
    }
    p->group.index = 1;
    p->group.first = 5;
    p->group.parent = 4;
    p->group.apps = p->apps;
    p->group.n_apps = 1;
    p->group.blocks = p->blocks;
    p->group.n_blocks = 2;
}

static int receive_group(const struct group_parts *p, struct agent_job *job,
                         struct drarun_error *err)
{
    Drarun__Wire__Group *group = wire_copy(&p->group.base);
    assert_non_null(group);
    return agent_job_add_group_take(job, group, err);
}

static void groups_come_and_go(void **state)
{
    struct parts p;
    struct group_parts g;
    struct agent_job job;
    (void)state;
    fill(&p);
    fill_group(&g);
    g.group.bind = unconst("core");
    assert_int_equal(receive(&p, &job, NULL), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(receive_group(&g, &job, NULL), 0);
        const struct rank_group *group = agent_job_group_of(&job, 6);
        assert_int_equal(job.map.ranks, 7);
        assert_int_equal(group->index, 1);
        assert_string_equal(group->nspace, "drarun.0123abcd.2.s1.k7");
        assert_string_equal(group->kvs, "drarun.0123abcd.2.s1");
        assert_ptr_equal(agent_job_group_named(&job, group->nspace), group);
        assert_int_equal(agent_job_group_of(&job, 4)->index, 0);
        assert_int_equal(group->first_app, 2);
        assert_string_equal(job.apps[2]->argv[0], "three");
        assert_int_equal(group->bind.kind, BIND_CORE);
        assert_int_equal(job.groups[0]->bind.kind, BIND_NONE);
        assert_int_equal(group->local_first, 2);
        assert_int_equal(group->local_count, 1);
        assert_int_equal(job.local[2], 6);
        assert_int_equal(agent_job_local_index(&job, 6), 2);
        assert_true(rank_group_has(group, 5));
        assert_false(rank_group_has(group, 4));
        assert_int_equal(agent_job_drop_group(&job), 0);
        assert_int_equal(job.map.ranks, 5);
        assert_int_equal(job.map.apps, 2);
        assert_int_equal(agent_job_local_index(&job, 6), -1);
        assert_null(agent_job_group_named(&job, "drarun.0123abcd.2.s1.k7"));
    }
    agent_job_done(&job);
}

static void a_released_group_keeps_its_numbers(void **state)
{
    struct parts p;
    struct group_parts g;
    struct agent_job job;
    (void)state;
    fill(&p);
    fill_group(&g);
    assert_int_equal(receive(&p, &job, NULL), 0);
    assert_int_equal(receive_group(&g, &job, NULL), 0);
    agent_job_release_group(&job, job.groups[1]);
    assert_null(agent_job_group_named(&job, "drarun.0123abcd.2.s1.k7"));
    assert_int_equal(job.apps[2]->n_argv, 0);
    assert_string_equal(job.apps[2]->wd, "");
    assert_null(job.groups[1]->map.local_sizes); /* one for each worker */
    assert_true(rank_group_has(job.groups[1], 6));
    g.group.index = 2;
    g.group.first = 7;
    g.group.parent = 6; /* which has ended since it asked */
    assert_int_equal(receive_group(&g, &job, NULL), 0);
    assert_int_equal(agent_job_group_of(&job, 6)->index, 1);
    assert_int_equal(agent_job_group_of(&job, 8)->index, 2);
    assert_non_null(agent_job_group_named(&job, "drarun.0123abcd.2.s2.k7"));
    assert_string_equal(job.apps[3]->argv[0], "three");
    assert_int_equal(job.map.ranks, 9);
    assert_int_equal(agent_job_local_index(&job, 8), 3);
    agent_job_done(&job);
}

/* 3 and 2 ranks of the Launch, then 1 and 1. */
static void ranks_of_workers_that_share(void **state)
{
    static const struct {
        const char *hosts[2];
        uint32_t cpus[2];
        uint32_t on_cpus;
        uint32_t others_on_cpus[2], others_on_host[2]; /* at first, then */
    } cases[] = {
        {{"node", "another"}, {1, 2}, 2, {0, 0}, {0, 0}},
        {{"node", "node"}, {0, 0}, 5, {3, 4}, {3, 4}},
        {{"node", "another"}, {0, 0}, 2, {0, 0}, {0, 0}},
        {{"pod", "other"}, {1, 1}, 5, {3, 4}, {0, 0}}, /* pods on one node */
        {{"node", "node"}, {1, 2}, 2, {0, 0}, {3, 4}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parts p;
        struct group_parts g;
        struct agent_job job;
        fill(&p);
        fill_group(&g);
        for (size_t w = 0; w < 2; w++) {
            p.worker[w].host = unconst(cases[i].hosts[w]);
            p.worker[w].cpus = cases[i].cpus[w];
        }
        assert_int_equal(receive(&p, &job, NULL), 0);
        for (size_t spawned = 0; spawned < 2; spawned++) {
            if (spawned)
                assert_int_equal(receive_group(&g, &job, NULL), 0);
            assert_int_equal(agent_job_ranks_on_cpus(&job), cases[i].on_cpus);
            assert_int_equal(agent_job_others_on_cpus(&job), cases[i].others_on_cpus[spawned]);
            assert_int_equal(agent_job_others_on_host(&job), cases[i].others_on_host[spawned]);
        }
        assert_int_equal(agent_job_launched_here(&job), 2);
        assert_int_equal(agent_job_group_before(&job, job.groups[1]),
                         cases[i].others_on_cpus[1] - cases[i].others_on_cpus[0]);
        agent_job_release_group(&job, job.groups[1]);
        assert_int_equal(agent_job_ranks_on_cpus(&job), cases[i].on_cpus);
        assert_int_equal(agent_job_others_on_cpus(&job), cases[i].others_on_cpus[0]);
        assert_int_equal(agent_job_others_on_host(&job), cases[i].others_on_host[0]);
        agent_job_done(&job);
    }
}

static void group_other_first_rank(struct group_parts *p)
{
    p->group.first = 6;
}

static void group_other_index(struct group_parts *p)
{
    p->group.index = 2;
}

static void group_unknown_parent(struct group_parts *p)
{
    p->group.parent = 5;
}

static void group_unknown_program(struct group_parts *p)
{
    p->block[1].app = 1;
}

static void group_unknown_worker(struct group_parts *p)
{
    p->block[1].worker = 2;
}

static void group_nameless_program(struct group_parts *p)
{
    p->app.n_argv = 0;
}

static void group_no_ranks(struct group_parts *p)
{
    p->group.n_blocks = 0;
}

static void group_unknown_binding(struct group_parts *p)
{
    p->group.bind = unconst("socket");
}

static void a_group_that_cannot_be_changes_nothing(void **state)
{
    static const struct {
        void (*spoil)(struct group_parts *p);
        const char *says;
    } rows[] = {
        {group_other_first_rank, "ranks 6 of group 1 do not follow the job's 5 in 1"},
        {group_other_index, "of group 2 do not follow the job's 5 in 1"},
        {group_unknown_parent, "ranks 5 of group 1 do not follow"},
        {group_unknown_program, "launch message: ranks of an unknown program"},
        {group_unknown_worker, "is on worker 2 of 2"},
        {group_nameless_program, "launch message: a program without a name"},
        {group_no_ranks, "rank map: 0 blocks"},
        {group_unknown_binding, "binding \"socket\""},
    };
    struct parts p;
    struct agent_job job;
    (void)state;
    fill(&p);
    assert_int_equal(receive(&p, &job, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct group_parts g;
        struct drarun_error err = {0};
        fill_group(&g);
        rows[i].spoil(&g);
        if (receive_group(&g, &job, &err) == 0)
            fail_msg("case %zu is accepted", i);
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\" lacks \"%s\"", err.text, rows[i].says);
        assert_int_equal(job.map.ranks, 5);
        assert_int_equal(job.group_count, 1);
    }
    agent_job_done(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_agent_needs),
        cmocka_unit_test(programs_are_worlds_of_their_own),
        cmocka_unit_test(workers_of_one_host_are_nodes_of_their_own),
        cmocka_unit_test(worker_without_ranks),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(groups_come_and_go),
        cmocka_unit_test(a_released_group_keeps_its_numbers),
        cmocka_unit_test(ranks_of_workers_that_share),
        cmocka_unit_test(a_group_that_cannot_be_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
