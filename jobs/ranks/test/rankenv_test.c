/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/rankenv.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

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

/* A rank that spins would keep the rank that it waits for from running. */
static void oversubscribed_ranks_leave_their_cpu(void **state)
{
    static const struct rank_block block = {0, 4, 0, 0};
    static const struct expectation set[] = {
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        {"I_MPI_WAIT_MODE", "1"},
        {"MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"},
        {"MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "10"},
    };
    static const struct expectation by_user[] = {
        {"OMPI_MCA_mpi_yield_when_idle", "0"},
        {"I_MPI_WAIT_MODE", NULL},
        {"I_MPI_THREAD_YIELD", "2"},
        {"MPIR_CVAR_CH4_PROGRESS_THROTTLE", "0"},
    };
    struct rankmap map;
    struct rankenv_job mine = job;
    (void)state;
    assert_int_equal(rankmap_from_blocks(&block, 1, 1, &map, NULL), 0);
    struct rank_place place = rankmap_place(&map, 3);
    mine.pmix = true;
    CLEANUP(strlist_done) struct strlist few = STRLIST_INIT;
    rankenv_add(&few, &mine, &map, &place);
    for (size_t i = 0; i < ARRAY_LEN(set); i++)
        assert_null(env_get(&few, set[i].name));
    mine.oversubscribed = true;
    CLEANUP(strlist_done) struct strlist many = STRLIST_INIT;
    rankenv_add(&many, &mine, &map, &place);
    check(&many, set, ARRAY_LEN(set));
    CLEANUP(strlist_done) struct strlist chosen = STRLIST_INIT;
    env_set(&chosen, "OMPI_MCA_mpi_yield_when_idle", "0");
    env_set(&chosen, "I_MPI_THREAD_YIELD", "2");
    env_set(&chosen, "MPIR_CVAR_CH4_PROGRESS_THROTTLE", "0");
    rankenv_add(&chosen, &mine, &map, &place);
    check(&chosen, by_user, ARRAY_LEN(by_user));
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
        {"JAX_COORDINATOR_ADDRESS", "10.0.0.1:29500"},
        {"JAX_NUM_PROCESSES", "5"},
        {"JAX_PROCESS_ID", "3"},
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
        {"HWLOC_LIBXML_IMPORT", NULL},
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
        {"OMPI_MCA_reachable", "^netlink"},
        {"HWLOC_LIBXML_IMPORT", "0"},
    };
    struct strlist env = STRLIST_INIT;
    make_env(&env, true, false);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void the_user_wins_but_for_the_place(void **state)
{
    (void)state;
    static const char *const given[] = {"RANK=77",
                                        "DRARUN_JOB=other",
                                        "MASTER_PORT=1234",
                                        "NNODES=9",
                                        "OMPI_MCA_schizo=ompi",
                                        "MASTER_ADDR=here",
                                        "WORLD_SIZE=1000",
                                        "LOCAL_RANK=5",
                                        "JAX_PROCESS_ID=9",
                                        NULL};
    static const struct expectation expected[] = {
        {"RANK", "3"},
        {"DRARUN_JOB", "u1"},
        {"MASTER_PORT", "1234"},
        {"NNODES", "2"},
        {"OMPI_MCA_schizo", "ompi"},
        {"MASTER_ADDR", "here"},
        {"WORLD_SIZE", "5"},
        {"LOCAL_RANK", "1"},
        {"JAX_PROCESS_ID", "3"},
        {"JAX_COORDINATOR_ADDRESS", "here:1234"},
    };
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, unconst(given));
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
        {"JAX_PROCESS_ID", NULL},
        {"DRARUN_RANK", "3"},
    };
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, unconst(given));
    make_env(&env, false, true);
    check(&env, expected, ARRAY_LEN(expected));
    strlist_done(&env);
}

static void an_ipv6_endpoint_has_brackets(void **state)
{
    (void)state;
    static const char *const given[] = {"MASTER_ADDR=fd00::1", NULL};
    static const struct expectation of_jax = {"JAX_COORDINATOR_ADDRESS", "[fd00::1]:29500"};
    static const struct expectation expected[] = {
        {"PET_MASTER_ADDR", "fd00::1"},
        {"PET_RDZV_ENDPOINT", "[fd00::1]:29500"},
        {"PET_RDZV_ID", "u1.2"},
    };
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, unconst(given));
    make_env(&env, false, true);
    check(&env, expected, ARRAY_LEN(expected));
    make_env(&env, false, false);
    check(&env, &of_jax, 1);
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
                                        "OMPI_PARENT_PORT=x.0:1",
                                        "OMPI_MCA_ess=^singleton",
                                        "SLURM_PROCID=1",
                                        "SLURM_JOB_ID=5",
                                        "SLURM_STEP_ID=0",
                                        "SLURM_STEPID=0",
                                        "HYDI_CONTROL_FD=4",
                                        "MPI_LOCALRANKID=0",
                                        "I_MPI_PMI=pmi2",
                                        "I_MPI_PMI_LIBRARY=/usr/lib64/libpmi2.so",
                                        "I_MPI_PMI_VALUE_LENGTH_MAX=512",
                                        "I_MPI_HYDRA_BOOTSTRAP=slurm",
                                        "I_MPI_HYDRA_BOOTSTRAP=rsh",
                                        "RANK=3",
                                        "JAX_PROCESS_ID=3",
                                        "RANKING=1",
                                        "TORCHELASTIC_USE_AGENT_STORE=True",
                                        "UCX_TLS=tcp",
                                        "NCCL_DEBUG=INFO",
                                        "MASTER_ADDR=user",
                                        "DRARUN_CONFIG=x",
                                        NULL};
    static const char *const kept[] = {
        "PATH=/bin",
        "PMI_DEBUG=1",
        "OMPI_MCA_btl=self",
        "SLURM_JOB_ID=5",
        "I_MPI_PMI_VALUE_LENGTH_MAX=512",
        "I_MPI_HYDRA_BOOTSTRAP=rsh",
        "RANKING=1",
        "UCX_TLS=tcp",
        "NCCL_DEBUG=INFO",
        "MASTER_ADDR=user",
        "DRARUN_CONFIG=x",
    };
    struct strlist env = STRLIST_INIT;
    rankenv_clean(&env); /* empty: nothing to do */
    strlist_add_all(&env, unconst(given));
    rankenv_clean(&env);
    assert_int_equal(env.count, ARRAY_LEN(kept));
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        assert_string_equal(env.items[i], kept[i]);
    assert_null(env.items[env.count]);
    strlist_done(&env);
}

/* Of a pod's environment nothing says what its job spec has set. */
static void clean_drops_intel_mpis_library_of_slurm(void **state)
{
    (void)state;
    static const char *const markers[] = {NULL, "SLURM_JOB_ID=5", "SLURM_CONF=/etc/slurm.conf"};
    for (size_t i = 0; i < ARRAY_LEN(markers); i++) {
        struct strlist env = STRLIST_INIT;
        strlist_add(&env, "I_MPI_PMI=pmi2");
        strlist_add(&env, "I_MPI_PMI_LIBRARY=/opt/libpmi2.so");
        if (markers[i])
            strlist_add(&env, markers[i]);
        rankenv_clean(&env);
        assert_int_equal(env_get(&env, "I_MPI_PMI") != NULL, !markers[i]);
        assert_int_equal(env_get(&env, "I_MPI_PMI_LIBRARY") != NULL, !markers[i]);
        strlist_done(&env);
    }
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

/* What an outer drarun chose is not the user's wish; what somebody set or changed since is. */
static void clean_drops_the_defaults_of_an_outer_drarun(void **state)
{
    (void)state;
    static const struct expectation expected[] = {
        {"OMPI_MCA_btl_sm_backing_directory", NULL},
        {"MPIR_CVAR_PMI_VERSION", NULL},
        {"OMPI_MCA_schizo", "ompi"},
        {"OMPI_MCA_orte_externally_bound", "0"},
        {"PET_RDZV_ID", NULL},
        {"PET_NNODES", NULL},
        {"DRARUN_DEFAULTS", NULL},
        {"DRARUN_PROGRESS", NULL},
    };
    struct strlist env = STRLIST_INIT;
    env_set(&env, "OMPI_MCA_schizo", "ompi");
    env_set(&env, "DRARUN_PROGRESS", "/tmp/outer");
    make_env(&env, true, true);
    rankenv_default(&env, "OMPI_MCA_btl_sm_backing_directory", "/dev/shm/%s", "outer");
    env_set(&env, "OMPI_MCA_orte_externally_bound", "0");
    assert_string_equal(env_get(&env, "PET_NNODES"), "2");
    assert_string_equal(env_get(&env, "MPIR_CVAR_PMI_VERSION"), "1");
    rankenv_clean(&env);
    check(&env, expected, ARRAY_LEN(expected));
    assert_false(env.failed);
    strlist_done(&env);
}

/* Two workers of one rank, as scripts for Kubeflow's operators expect. */
static void a_script_can_start_torchrun(void **state)
{
    static const struct rank_block one_each[] = {{0, 1, 0, 0}, {1, 1, 1, 0}},
                                   two[] = {{0, 2, 0, 0}, {2, 1, 1, 0}};
    static const struct expectation options[] = {
        {"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"PET_NNODES", "2"},
        {"PET_NODE_RANK", "1"},
        {"PET_MASTER_ADDR", "10.0.0.1"},
        {"PET_MASTER_PORT", "29500"},
        {"PET_RDZV_ENDPOINT", "10.0.0.1:29500"},
        {"PET_RDZV_BACKEND", NULL},
    };
    static const struct expectation none[] = {{"PET_NNODES", NULL}, {"PET_NODE_RANK", NULL}};
    static const struct {
        const struct rank_block *blocks;
        bool pmix, line;
        bool options;
    } cases[] = {
        {one_each, false, false, true},
        {one_each, true, false, false},
        {one_each, true, true, true},
        {two, false, true, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rankmap map;
        struct strlist env = STRLIST_INIT;
        assert_int_equal(rankmap_from_blocks(cases[i].blocks, 2, 2, &map, NULL), 0);
        struct rank_place place = rankmap_place(&map, 1);
        struct rankenv_job mine = job;
        mine.pmix = cases[i].pmix;
        mine.starts_torchrun = cases[i].line;
        rankenv_add(&env, &mine, &map, &place);
        if (cases[i].options)
            check(&env, options, ARRAY_LEN(options));
        else
            check(&env, none, ARRAY_LEN(none));
        strlist_done(&env);
        rankmap_done(&map);
    }
}

static const struct {
    const char *argv[8];
    bool torchrun;
} programs[] = {
    {{"torchrun", "train.py"}, true},
    {{"/opt/venv/bin/torchrun", "--nproc-per-node=8"}, true},
    {{"python", "-m", "torch.distributed.run", "train.py"}, true},
    {{"/usr/bin/python3.11", "-u", "-X", "dev", "-m", "torch.distributed.run"}, true},
    {{"python3", "-m", "torch.distributed.launch"}, true},
    {{"python3", "-mtorch.distributed.run"}, true},
    {{"python3", "-um", "torch.distributed.run", "train.py"}, true},
    {{"python3", "-uXdev", "-Im", "torch.distributed.run"}, true},
    {{"python3", "-uW", "ignore", "/usr/bin/torchrun"}, true},
    {{"python3", "/usr/bin/torchrun", "x.py"}, true},
    {{"python3", "train.py", "-m", "torch.distributed.run"}, false},
    {{"python3", "-m", "pdb", "torchrun"}, false},
    {{"python3", "-c", "print()", "-m", "torch.distributed.run"}, false},
    {{"python3", "-uc", "print()", "torchrun"}, false},
    {{"python3", "-um", "pdb", "torchrun"}, false},
    {{"python3", "-W"}, false},
    {{"python3", "-m"}, false},
    {{"env", "A=b", "torchrun", "x.py"}, true},
    {{"/usr/bin/numactl", "-N", "0", "timeout", "1h", "python3", "-m", "torch.distributed.run"},
     true},
    {{"env", "-a", "me", "torchrun", "x.py"}, true},
    {{"sudo", "-E", "A=b", "torchrun", "x.py"}, true},
    {{"env", "A=b", "python3", "x.py", "torchrun"}, false},
    {{"env", "A=torchrun"}, false},
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
        if (programs[i].torchrun && !rankenv_names_torchrun(argv))
            fail_msg("program %zu starts none", i);
        if (rankenv_runs_torchrun(argv) != programs[i].torchrun)
            fail_msg("program %zu runs it or not", i);
    }
}

static const struct {
    const char *argv[7];
    bool torchrun;
} shells[] = {
    {{"bash", "-c", "pip install -e . && torchrun --nproc-per-node=8 train.py"}, true},
    {{"/bin/sh", "-ec", "cd /app\n/opt/venv/bin/torchrun train.py"}, true},
    {{"bash", "-o", "pipefail", "-c", "(python3 -m torch.distributed.run t.py) | tee log"}, true},
    {{"bash", "-lc", "NAME=\"$(torchrun --help)\""}, true},
    {{"bash", "-euo", "pipefail", "-c", "torchrun train.py"}, true},
    {{"bash", "-euxo", "pipefail", "+O", "extglob", "-c", "torchrun train.py"}, true},
    {{"bash", "--login", "-euoc", "pipefail", "torchrun train.py"}, true},
    {{"sh", "-c", "-e", "torchrun train.py"}, true},
    {{"bash", "-c", "--", "torchrun train.py"}, true},
    {{"nice", "-n", "5", "bash", "-c", "torchrun train.py"}, true},
    {{"bash", "-euo", "pipefail", "train.sh", "-c", "torchrun"}, false},
    {{"bash", "-eo", "pipefail", "-c"}, false},
    {{"bash", "-euo"}, false},
    {{"bash", "-c", "# torchrun does this\npython3 train.py"}, false},
    {{"bash", "-c", "./mytorchrun train.py; cat torchrun.log"}, false},
    {{"bash", "train.sh", "-c", "torchrun"}, false},
    {{"bash", "--norc"}, false},
    {{"bash", "-c"}, false},
    {{"fish", "-c", "torchrun train.py"}, false},
    {{NULL}, false},
};

static void knows_a_line_with_torchrun(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        char *argv[ARRAY_LEN(shells[i].argv) + 1] = {NULL};
        memcpy(argv, shells[i].argv, sizeof shells[i].argv);
        if (rankenv_names_torchrun(argv) != shells[i].torchrun)
            fail_msg("line %zu", i);
    }
}

static const struct {
    const char *argv[6];
    bool torchrun;
} commands[] = {
    {{"bash", "-c", "torchrun train.py"}, true},
    {{"bash", "-c", "pip install -e . && torchrun --nproc-per-node=8 train.py"}, true},
    {{"bash", "-c", "cd /app; A=b C= \\\n  exec /opt/bin/torchrun t.py 2>&1 | tee log"}, true},
    {{"bash", "-c", "(python3 -um torch.distributed.run t.py)"}, true},
    {{"bash", "-c", "if ! test -f x; then torchrun a.py; else torchrun b.py; fi"}, true},
    {{"bash", "-c", "for i in 1 2; do timeout 1h torchrun t.py || break; done"}, true},
    {{"bash", "-c", "run() { \"$BIN/torchrun\" t.py; }\nrun"}, true},
    {{"nice", "bash", "-c", "exec sh -c 'cd x && torchrun t.py'"}, true},
    {{"bash", "-c", "torchrun t.py; echo 'it ends"}, true},
    {{"env", "-S", "A=b torchrun x"}, true},
    {{"nice", "env", "-iS", "A='b c' torchrun", "t.py"}, true},
    {{"env", "--split-string=python3 -u", "-m", "torch.distributed.run"}, true},
    {{"env", "-SA=b", "sh", "-c", "cd x; torchrun t.py"}, true},
    {{"bash", "-c", "env -S 'A=b torchrun' t.py"}, true},
    {{"env", "-S", "./app torchrun", "torchrun"}, false},
    {{"env", "-S"}, false},
    {{"bash", "-c", "env | grep x; ./app --launcher torchrun"}, false},
    {{"bash", "-c", "command -v torchrun; ./app"}, false},
    {{"bash", "-c", "which torchrun && pip show torchrun; ./app"}, false},
    {{"bash", "-c", "for i in torchrun; do ./app > torchrun 2> torchrun; done"}, false},
    {{"bash", "-c", "NAME=\"$(torchrun --help)\"; A=torchrun ./app"}, false},
    {{"bash", "-c", "cat >x <<END\ntorchrun t.py\nEND\n./app x"}, false},
    {{"bash", "-c", "echo 'a\ntorchrun b'; ./app '; torchrun c'"}, false},
    {{"bash", "-c", "./app # torchrun\n# ; torchrun"}, false},
    {{"bash", "-c", "sh -c 'echo torchrun'"}, false},
    {{"bash", "-c", "./app \\\ntorchrun"}, false},
    {{"bash", "-c", "A=b"}, false},
    {{"bash", "-c", ""}, false},
    {{"bash", "train.sh"}, false},
    {{NULL}, false},
};

static void knows_a_line_whose_command_is_torchrun(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        char *argv[ARRAY_LEN(commands[i].argv) + 1] = {NULL};
        memcpy(argv, commands[i].argv, sizeof commands[i].argv);
        if (rankenv_runs_torchrun(argv) != commands[i].torchrun)
            fail_msg("line %zu", i);
        if (commands[i].torchrun && !rankenv_names_torchrun(argv))
            fail_msg("line %zu starts none", i);
    }
    assert_false(rankenv_runs_torchrun(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_the_place_of_a_rank),
        cmocka_unit_test(oversubscribed_ranks_leave_their_cpu),
        cmocka_unit_test(adds_what_mpi_needs),
        cmocka_unit_test(the_user_wins_but_for_the_place),
        cmocka_unit_test(torchrun_gets_its_options),
        cmocka_unit_test(an_ipv6_endpoint_has_brackets),
        cmocka_unit_test(clean_drops_the_outer_launcher_alone),
        cmocka_unit_test(clean_drops_intel_mpis_library_of_slurm),
        cmocka_unit_test(clean_drops_the_master_of_another_job),
        cmocka_unit_test(clean_drops_the_defaults_of_an_outer_drarun),
        cmocka_unit_test(knows_torchrun),
        cmocka_unit_test(knows_a_line_with_torchrun),
        cmocka_unit_test(knows_a_line_whose_command_is_torchrun),
        cmocka_unit_test(a_script_can_start_torchrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
