/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "launcher/job/launch_plan.h"
#include "lib/base/cleanup.h"

/* A plan by hand: worker 0 with two GPUs, worker 1 with one MIG device, worker 2 without any. */
struct parts {
    struct plan plan;
    struct plan_worker workers[3];
    struct plan_gpu gpus[2], mig[1];
    struct plan_vars rank_env[2], mig_env[1];
    struct rankmap map;
};

static void add(struct plan_vars *vars, const char *name, const char *value,
                enum plan_origin origin)
{
    vars->list = realloc(vars->list, (vars->count + 1) * sizeof *vars->list);
    assert_non_null(vars->list);
    vars->list[vars->count++] =
        (struct plan_var){name, value, origin, "rule", "fact", "reason", "source"};
}

static void fill(struct parts *p, uint32_t ranks)
{
    struct drarun_error err = {0};
    *p = (struct parts){0};
    p->plan.workers = p->workers;
    p->plan.worker_count = 3;
    p->workers[0].gpus = p->gpus;
    p->workers[0].gpu_count = 2;
    p->workers[0].rank_env = p->rank_env;
    p->workers[1].gpus = p->mig;
    p->workers[1].gpu_count = 1;
    p->workers[1].rank_env = p->mig_env;
    p->gpus[0].cpus = "0-3";
    p->gpus[1].cpus = "4-7";
    add(&p->plan.env, "NCCL_NET", "IB", PLAN_BY_PROFILE);
    add(&p->plan.env, "NCCL_DEBUG", "INFO", PLAN_BY_USER);
    add(&p->plan.env, "MASTER_ADDR", "w-0", PLAN_BY_PROFILE);
    add(&p->plan.prepend, "LD_LIBRARY_PATH", "/usr/local/gib/lib64", PLAN_BY_PROFILE);
    add(&p->workers[0].env, "NCCL_IB_HCA", "=mlx5_0:1", PLAN_BY_RULE);
    for (int i = 0; i < 2; i++) {
        add(&p->rank_env[i], "RANK", i ? "1" : "0", PLAN_BY_PLACE);
        add(&p->rank_env[i], "LOCAL_RANK", i ? "1" : "0", PLAN_BY_PLACE);
        add(&p->rank_env[i], "CUDA_VISIBLE_DEVICES", "0,1", PLAN_BY_RULE);
    }
    add(&p->mig_env[0], "LOCAL_RANK", "0", PLAN_BY_PLACE);
    const uint32_t counts[] = {ranks};
    assert_int_equal(rankmap_build(counts, 1, 3, 2, &p->map, &err), 0);
}

static void drop(struct parts *p)
{
    free(p->plan.env.list);
    free(p->plan.prepend.list);
    free(p->workers[0].env.list);
    free(p->rank_env[0].list);
    free(p->rank_env[1].list);
    free(p->mig_env[0].list);
    rankmap_done(&p->map);
}

static void has(char **list, size_t count, size_t expected, const char *entry)
{
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found |= strcmp(list[i], entry) == 0;
    if (count != expected || !found)
        fail_msg("%zu entries, expected %zu with %s", count, expected, entry);
}

static void levels(void **state)
{
    (void)state;
    struct parts p;
    fill(&p, 5); /* 2, 2 and 1 */
    struct launch_plan *made = launch_plan_new(&p.plan, 1, &p.map);
    assert_non_null(made);
    const Drarun__Wire__Environment *all = launch_plan_all(made);
    has(all->defaults, all->n_defaults, 1, "NCCL_NET=IB");
    has(all->set, all->n_set, 1, "NCCL_DEBUG=INFO");
    has(all->prepend, all->n_prepend, 1, "LD_LIBRARY_PATH=/usr/local/gib/lib64");
    const Drarun__Wire__WorkerSetting *first = launch_plan_worker(made, 0);
    has(first->env->defaults, first->env->n_defaults, 1, "NCCL_IB_HCA==mlx5_0:1");
    assert_int_equal(first->n_ranks, 2);
    assert_int_equal(first->ranks[1]->local_rank, 1);
    assert_string_equal(first->ranks[1]->cpus, "4-7");
    has(first->ranks[1]->env->defaults, first->ranks[1]->env->n_defaults, 1,
        "CUDA_VISIBLE_DEVICES=0,1");
    assert_int_equal(first->ranks[1]->env->n_set, 0); /* its place is as the launcher says */
    /* two ranks for one device: whose is whose is not known */
    assert_int_equal(launch_plan_worker(made, 1)->n_ranks, 0);
    assert_int_equal(launch_plan_worker(made, 2)->n_ranks, 0);
    assert_null(launch_plan_worker(made, 3));
    launch_plan_free(made);
    drop(&p);
}

static void mig_ranks_are_first(void **state)
{
    (void)state;
    struct parts p;
    fill(&p, 5);
    p.mig_env[0].list[0].value = "0";
    p.rank_env[1].list[1].value = "0"; /* a rank that sees its device alone */
    struct launch_plan *made = launch_plan_new(&p.plan, 1, &p.map);
    const Drarun__Wire__RankSetting *rank = launch_plan_worker(made, 0)->ranks[1];
    has(rank->env->set, rank->env->n_set, 1, "LOCAL_RANK=0");
    launch_plan_free(made);
    drop(&p);
}

/* Of a job with two roles: what both plans say goes to all ranks, the rest to the workers of each.
 */
static void what_plans_say_apart(void **state)
{
    (void)state;
    struct parts first, second;
    fill(&first, 5);
    fill(&second, 5);
    first.plan.worker_count = 1;
    second.plan.worker_count = 2;
    add(&first.plan.env, "NCCL_SOCKET_IFNAME", "eth0", PLAN_BY_RULE);
    second.plan.env.list[0].value = "Socket";
    second.plan.prepend.list[0].value = "/other";
    const struct plan both[] = {first.plan, second.plan};
    struct launch_plan *made = launch_plan_new(both, 2, &first.map);
    assert_non_null(made);
    const Drarun__Wire__Environment *all = launch_plan_all(made);
    has(all->set, all->n_set, 1, "NCCL_DEBUG=INFO");
    assert_int_equal(all->n_defaults, 0);
    assert_int_equal(all->n_prepend, 0);
    const Drarun__Wire__Environment *own = launch_plan_worker(made, 0)->env;
    has(own->defaults, own->n_defaults, 3, "NCCL_NET=IB");
    has(own->defaults, own->n_defaults, 3, "NCCL_SOCKET_IFNAME=eth0");
    has(own->prepend, own->n_prepend, 1, "LD_LIBRARY_PATH=/usr/local/gib/lib64");
    for (uint32_t worker = 1; worker < 3; worker++) {
        own = launch_plan_worker(made, worker)->env;
        has(own->defaults, own->n_defaults, worker == 1 ? 2 : 1, "NCCL_NET=Socket");
        has(own->prepend, own->n_prepend, 1, "LD_LIBRARY_PATH=/other");
    }
    launch_plan_free(made);
    drop(&first);
    drop(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(mig_ranks_are_first),
        cmocka_unit_test(what_plans_say_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
