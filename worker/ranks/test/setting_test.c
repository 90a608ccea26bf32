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
#include "worker/ranks/setting.h"

static const struct strlist none = STRLIST_INIT;

/* All three levels. */
struct parts {
    struct rank_settings settings;
    Drarun__Wire__Environment all, worker, rank;
    Drarun__Wire__WorkerSetting own;
    Drarun__Wire__RankSetting setting, *list[1];
};

#define LIST(env, field, ...)                                                                      \
    do {                                                                                           \
        static const char *const list_[] = {__VA_ARGS__};                                          \
        (env)->field = unconst(list_);                                                             \
        (env)->n_##field = ARRAY_LEN(list_);                                                       \
    } while (0)

static void fill(struct parts *p)
{
    drarun__wire__environment__init(&p->all);
    drarun__wire__environment__init(&p->worker);
    drarun__wire__environment__init(&p->rank);
    drarun__wire__worker_setting__init(&p->own);
    drarun__wire__rank_setting__init(&p->setting);
    p->settings = (struct rank_settings){&p->all, &p->own};
    p->own.env = &p->worker;
    p->list[0] = &p->setting;
    p->own.ranks = p->list;
    p->own.n_ranks = 1;
    p->setting.local_rank = 1;
    p->setting.env = &p->rank;
    LIST(&p->all, set, "NCCL_DEBUG=INFO");
    LIST(&p->all, defaults, "A=all", "B=all", "C=all", "USER=all");
    LIST(&p->all, prepend, "LD_LIBRARY_PATH=/opt/nccl", "EMPTY=/x", "NEW=/y");
    LIST(&p->worker, defaults, "A=worker", "B=worker");
    LIST(&p->rank, defaults, "A=rank");
    LIST(&p->rank, set, "LOCAL_RANK=0");
}

static void is(const struct strlist *env, const char *name, const char *value)
{
    const char *there = env_get(env, name);
    assert_non_null(there);
    assert_string_equal(there, value);
}

static void nearest_wins_and_the_user_above_all(void **state)
{
    (void)state;
    struct parts p;
    struct strlist env = STRLIST_INIT;
    fill(&p);
    strlist_add(&env, "USER=own");
    strlist_add(&env, "NCCL_DEBUG=WARN");
    strlist_add(&env, "LOCAL_RANK=1");
    strlist_add(&env, "LD_LIBRARY_PATH=/usr/lib");
    strlist_add(&env, "EMPTY=");
    rank_setting_base(&p.settings, &env);
    is(&env, "NCCL_DEBUG", "INFO");
    rank_setting_add(&p.settings, 1, &none, &env);
    is(&env, "A", "rank");
    is(&env, "B", "worker");
    is(&env, "C", "all");
    is(&env, "USER", "own");
    is(&env, "LOCAL_RANK", "0");
    is(&env, "LD_LIBRARY_PATH", "/opt/nccl:/usr/lib");
    is(&env, "EMPTY", "/x");
    is(&env, "NEW", "/y");
    assert_false(env.failed);
    strlist_done(&env);
}

/* What the image has set rules a default out; what another level has set does not. */
static void no_default_beside_its_opposite(void **state)
{
    (void)state;
    struct parts p;
    struct strlist env = STRLIST_INIT;
    fill(&p);
    LIST(&p.all, defaults, "OMPI_MCA_btl_tcp_if_include=eth0", "NCCL_NET=IB", "UCX_TLS=tcp,self",
         "NCCL_IB_GID_INDEX=3");
    LIST(&p.worker, defaults, "UCX_NET_DEVICES=mlx5_0:1", "NCCL_IB_ADDR_RANGE=10.0.0.0/8");
    strlist_add(&env, "OMPI_MCA_btl_tcp_if_exclude=lo,docker0");
    strlist_add(&env, "NCCL_NET_PLUGIN=spcx");
    rank_setting_add(&p.settings, 1, &none, &env);
    assert_null(env_get(&env, "OMPI_MCA_btl_tcp_if_include"));
    assert_null(env_get(&env, "NCCL_NET"));
    is(&env, "UCX_TLS", "tcp,self");
    is(&env, "UCX_NET_DEVICES", "mlx5_0:1");
    is(&env, "NCCL_IB_GID_INDEX", "3");
    assert_false(env.failed);
    strlist_done(&env);
}

static void no_default_beside_the_files(void **state)
{
    (void)state;
    struct parts p;
    struct strlist env = STRLIST_INIT, files = STRLIST_INIT;
    fill(&p);
    LIST(&p.all, defaults, "OMPI_MCA_btl_tcp_if_include=eth0", "OMPI_MCA_coll_hcoll_enable=0",
         "NCCL_NET=IB");
    strlist_add(&files, "OMPI_MCA_btl_tcp_if_exclude=lo,docker0");
    strlist_add(&files, "OMPI_MCA_coll_hcoll_enable=1");
    strlist_add(&files, "NCCL_NET_PLUGIN=spcx");
    rank_setting_add(&p.settings, 1, &files, &env);
    assert_null(env_get(&env, "OMPI_MCA_btl_tcp_if_include"));
    assert_null(env_get(&env, "OMPI_MCA_btl_tcp_if_exclude"));
    assert_null(env_get(&env, "NCCL_NET"));
    is(&env, "OMPI_MCA_coll_hcoll_enable", "0");
    strlist_done(&env);
    strlist_done(&files);
}

static void other_ranks_get_the_workers(void **state)
{
    (void)state;
    struct parts p;
    struct strlist env = STRLIST_INIT;
    fill(&p);
    rank_setting_add(&p.settings, 0, &none, &env);
    is(&env, "A", "worker");
    assert_null(env_get(&env, "LOCAL_RANK"));
    strlist_done(&env);
}

static void nothing_derived(void **state)
{
    (void)state;
    const struct rank_settings nothing = {0};
    struct strlist env = STRLIST_INIT;
    rank_setting_base(&nothing, &env);
    rank_setting_add(&nothing, 0, &none, &env);
    assert_int_equal(env.count, 0);
    assert_false(rank_setting_binds(&nothing));
    strlist_done(&env);
}

/* From the network: what is no variable is none. */
static void odd_entries(void **state)
{
    (void)state;
    struct parts p;
    struct strlist env = STRLIST_INIT;
    fill(&p);
    LIST(&p.all, defaults, "NOTHING", "=x", "", "EQ==");
    rank_setting_add(&p.settings, 0, &none, &env);
    is(&env, "EQ", "=");
    assert_null(env_get(&env, "NOTHING"));
    strlist_done(&env);
}

static void usable_cpus_alone(void **state)
{
    (void)state;
    struct parts p;
    struct cpu list[] = {{.id = 2}, {.id = 4}, {.id = 5}};
    struct cpus usable = {.list = list, .count = 3};
    struct drarun_error err = {0};
    uint32_t *ids = NULL;
    size_t count = 0;
    fill(&p);
    assert_false(rank_setting_binds(&p.settings));
    p.setting.cpus = unconst("3-5,8");
    assert_true(rank_setting_binds(&p.settings));
    assert_int_equal(rank_setting_cpus(&p.settings, 1, &usable, &ids, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(ids[0], 4);
    assert_int_equal(ids[1], 5);
    free(ids);
    assert_int_equal(rank_setting_cpus(&p.settings, 0, &usable, &ids, &count, &err), 0);
    assert_int_equal(count, 0);
    free(ids);
    p.setting.cpus = unconst("x");
    assert_int_equal(rank_setting_cpus(&p.settings, 1, &usable, &ids, &count, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPUs of local rank 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_wins_and_the_user_above_all),
        cmocka_unit_test(no_default_beside_its_opposite),
        cmocka_unit_test(no_default_beside_the_files),
        cmocka_unit_test(other_ranks_get_the_workers),
        cmocka_unit_test(nothing_derived),
        cmocka_unit_test(odd_entries),
        cmocka_unit_test(usable_cpus_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
