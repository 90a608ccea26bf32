/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/rankenv.h"
#include "lib/base/cleanup.h"

static const struct rankenv_job job = {.uid = "u1",
                                       .attempt = 2,
                                       .master_addr = "10.0.0.1",
                                       .master_port = 29500,
                                       .host = "w-2",
                                       .node = "node-b"};

struct expectation {
    const char *name, *value; /* NULL: must not be there */
};

static void check(const struct strlist *env, const struct expectation *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = env_get(env, expected[i].name);
        if (!expected[i].value && value)
            fail_msg("%s is there: %s", expected[i].name, value);
        if (expected[i].value && (!value || strcmp(value, expected[i].value) != 0))
            fail_msg("%s is %s instead of %s", expected[i].name, value ? value : "missing",
                     expected[i].value);
    }
}

/* 5 ranks on 3 workers, of which one has none: rank 3 is the second on worker 2. */
static void make_env(struct strlist *env, bool pmix, bool torchrun)
{
    static const struct rank_block blocks[] = {{0, 2, 0, 0}, {2, 3, 2, 1}};
    struct rankmap map;
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 3, &map, NULL), 0);
    struct rank_place place = rankmap_place(&map, 3);
    struct rankenv_job mine = job;
    mine.pmix = pmix;
    mine.torchrun = torchrun;
    rankenv_add(env, &mine, &map, &place);
    assert_false(env->failed);
    rankmap_done(&map);
}

static void sets_the_place_of_a_rank(void **state)
{
    (void)state;
    static const struct expectation expected[] = {
        {"RANK", "3"},
        {"WORLD_SIZE", "5"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "3"},
        {"NODE_RANK", "1"},
        {"GROUP_RANK", "1"},
        {"NNODES", "2"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "29500"},
        {"DRARUN_JOB", "u1"},
        {"DRARUN_ATTEMPT", "2"},
        {"DRARUN_RANK", "3"},
        {"DRARUN_SIZE", "5"},
        {"DRARUN_LOCAL_RANK", "1"},
        {"DRARUN_LOCAL_SIZE", "3"},
        {"DRARUN_WORKER", "2"},
        {"DRARUN_WORKERS", "3"},
        {"DRARUN_HOST", "w-2"},
        {"DRARUN_NODE", "node-b"},
        {"OMPI_COMM_WORLD_RANK", NULL},
        {"OMPI_MCA_schizo", NULL},
        {"MPI_LOCALRANKID", NULL},
        {"PET_NNODES", NULL},
        {"PMI_RANK", NULL}, /* the agent's, with PMI_FD */
    };
    struct strlist env = STRLIST_INIT;
    make_env(&env, false, false);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void adds_what_mpi_needs(void **state)
{
    (void)state;
    static const struct expectation expected[] = {
        {"RANK", "3"},
        {"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_SIZE", "5"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
        {"OMPI_COMM_WORLD_NODE_RANK", "1"},
        {"MPI_LOCALRANKID", "1"},
        {"MPI_LOCALNRANKS", "3"},
        {"OMPI_MCA_schizo", "^orte"},
        {"OMPI_MCA_orte_externally_bound", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    };
    struct strlist env = STRLIST_INIT;
    make_env(&env, true, false);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void the_user_wins_but_for_the_place(void **state)
{
    (void)state;
    static const char *const given[] = {
        "RANK=77",         "DRARUN_JOB=other",     "MASTER_PORT=1234",
        "NNODES=9",        "OMPI_MCA_schizo=ompi", "MASTER_ADDR=here",
        "WORLD_SIZE=1000", "LOCAL_RANK=5",         NULL};
    static const struct expectation expected[] = {
        {"RANK", "3"},       {"DRARUN_JOB", "u1"},        {"MASTER_PORT", "1234"},
        {"NNODES", "2"},     {"OMPI_MCA_schizo", "ompi"}, {"MASTER_ADDR", "here"},
        {"WORLD_SIZE", "5"}, {"LOCAL_RANK", "1"},
    };
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, (char *const *)given);
    make_env(&env, true, false);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void torchrun_gets_its_options(void **state)
{
    (void)state;
    static const char *const given[] = {"RANK=77",
                                        "LOCAL_RANK=1",
                                        "WORLD_SIZE=4",
                                        "PET_RDZV_ID=mine",
                                        "MASTER_PORT=1234",
                                        "PET_NODE_RANK=6",
                                        NULL};
    static const struct expectation expected[] = {
        {"RANK", NULL},
        {"LOCAL_RANK", NULL},
        {"WORLD_SIZE", NULL},
        {"LOCAL_WORLD_SIZE", NULL},
        {"GROUP_RANK", NULL},
        {"NNODES", "2"},
        {"NODE_RANK", "1"},
        {"PET_NNODES", "2"},
        {"PET_NODE_RANK", "1"},
        {"PET_MASTER_ADDR", "10.0.0.1"},
        {"PET_MASTER_PORT", "1234"},
        {"PET_RDZV_ENDPOINT", "10.0.0.1:1234"},
        {"PET_RDZV_ID", "mine"},
        {"PET_RDZV_BACKEND", NULL},
        {"DRARUN_RANK", "3"},
    };
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, (char *const *)given);
    make_env(&env, false, true);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void an_ipv6_endpoint_has_brackets(void **state)
{
    (void)state;
    static const char *const given[] = {"MASTER_ADDR=fd00::1", NULL};
    static const struct expectation expected[] = {
        {"PET_MASTER_ADDR", "fd00::1"},
        {"PET_RDZV_ENDPOINT", "[fd00::1]:29500"},
        {"PET_RDZV_ID", "u1.2"},
    };
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, (char *const *)given);
    make_env(&env, false, true);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void clean_drops_the_outer_launcher_alone(void **state)
{
    (void)state;
    static const char *const given[] = {"PMIX_RANK=0",
                                        "PATH=/bin",
                                        "PMIX_NAMESPACE=x",
                                        "PMIX_MCA_gds=hash",
                                        "PMI_FD=7",
                                        "PMI_FD=8",
                                        "PMI_DEBUG=1",
                                        "OMPI_COMM_WORLD_RANK=1",
                                        "OMPI_MCA_btl=self",
                                        "OMPI_MCA_orte_hnp_uri=1;tcp",
                                        "OMPI_MCA_ess=^singleton",
                                        "SLURM_PROCID=1",
                                        "SLURM_JOB_ID=5",
                                        "SLURM_STEP_ID=0",
                                        "SLURM_STEPID=0",
                                        "HYDI_CONTROL_FD=4",
                                        "MPI_LOCALRANKID=0",
                                        "RANK=3",
                                        "RANKING=1",
                                        "TORCHELASTIC_USE_AGENT_STORE=True",
                                        "UCX_TLS=tcp",
                                        "NCCL_DEBUG=INFO",
                                        "MASTER_ADDR=user",
                                        "DRARUN_CONFIG=x",
                                        NULL};
    static const char *const kept[] = {
        "PATH=/bin",   "PMI_DEBUG=1",     "OMPI_MCA_btl=self", "SLURM_JOB_ID=5",  "RANKING=1",
        "UCX_TLS=tcp", "NCCL_DEBUG=INFO", "MASTER_ADDR=user",  "DRARUN_CONFIG=x",
    };
    struct strlist env = STRLIST_INIT;
    rankenv_clean(&env); /* empty: nothing to do */
    strlist_add_all(&env, (char *const *)given);
    rankenv_clean(&env);
    assert_int_equal(env.count, ARRAY_LEN(kept));
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        assert_string_equal(env.items[i], kept[i]);
    assert_null(env.items[env.count]);
    strlist_done(&env);
}

/* Their store is not ours, though a user may set the same names by hand. */
static void clean_drops_the_master_of_another_job(void **state)
{
    (void)state;
    static const char *const markers[] = {"TORCHELASTIC_RUN_ID=1", "DRARUN_JOB=outer"};
    for (size_t i = 0; i < ARRAY_LEN(markers); i++) {
        struct strlist env = STRLIST_INIT;
        strlist_add(&env, "MASTER_ADDR=a");
        strlist_add(&env, "MASTER_PORT=1");
        strlist_add(&env, markers[i]);
        rankenv_clean(&env);
        assert_int_equal(env.count, 0);
        strlist_done(&env);
    }
}

static const struct {
    const char *argv[6];
    bool torchrun;
} programs[] = {
    {{"torchrun", "train.py"}, true},
    {{"/opt/venv/bin/torchrun", "--nproc-per-node=8"}, true},
    {{"python", "-m", "torch.distributed.run", "train.py"}, true},
    {{"/usr/bin/python3.11", "-u", "-X", "dev", "-m", "torch.distributed.run"}, true},
    {{"python3", "-m", "torch.distributed.launch"}, true},
    {{"python3", "-mtorch.distributed.run"}, true},
    {{"python3", "/usr/bin/torchrun", "x.py"}, true},
    {{"python3", "train.py", "-m", "torch.distributed.run"}, false},
    {{"python3", "-m", "pdb", "torchrun"}, false},
    {{"python3", "-c", "print()", "-m", "torch.distributed.run"}, false},
    {{"python3", "-W"}, false},
    {{"python3", "-m"}, false},
    {{"mytorchrun"}, false},
    {{"torchrun.sh"}, false},
    {{NULL}, false},
};

static void knows_torchrun(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        char *argv[ARRAY_LEN(programs[i].argv) + 1] = {NULL};
        memcpy(argv, programs[i].argv, sizeof programs[i].argv);
        if (rankenv_is_torchrun(argv) != programs[i].torchrun)
            fail_msg("program %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_the_place_of_a_rank),
        cmocka_unit_test(adds_what_mpi_needs),
        cmocka_unit_test(the_user_wins_but_for_the_place),
        cmocka_unit_test(torchrun_gets_its_options),
        cmocka_unit_test(an_ipv6_endpoint_has_brackets),
        cmocka_unit_test(clean_drops_the_outer_launcher_alone),
        cmocka_unit_test(clean_drops_the_master_of_another_job),
        cmocka_unit_test(knows_torchrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
