/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/rankenv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/shell_script.h"
#include "jobs/ranks/shell_words.h"
#include "jobs/ranks/wrapper.h"
#include "lib/base/cleanup.h"

/* ---- what an outer launcher left ---- */

/* Whole families, by prefix. */
static const char *const foreign_prefixes[] = {
    "PMIX_",            /* any PMIx server */
    "PMI_",             /* any PMI-1 or PMI-2 server */
    "OMPI_COMM_WORLD_", /* Open MPI's mpirun */
    "HYDRA_",           /* MPICH's and Intel MPI's mpiexec */
    "HYDI_",
    "MV2_COMM_WORLD_", /* MVAPICH's mpirun_rsh */
    "PALS_",           /* HPE's mpiexec */
    "SLURM_STEP_",     /* srun */
    "SLURM_SRUN_",
    "SLURM_PMI",
};

/* The one member of these families that a user sets by hand. PMIX_MCA_* goes too: what stands there
 * may be the agent's own, for the PMIx inside it; users give theirs to the program (-x). */
static const char *const users_prefixes[] = {"PMI_DEBUG="};

/* Open MPI 4's mpirun hands its daemon's address and its layout to its ranks as MCA parameters.
 * With one of these a rank would look for that daemon; no user sets them by hand. */
static const char *const foreign_names[] = {
    "OMPI_MCA_ess",
    "OMPI_MCA_ess_base_jobid",
    "OMPI_MCA_ess_base_vpid",
    "OMPI_MCA_orte_app_num",
    "OMPI_MCA_orte_bound_at_launch",
    "OMPI_MCA_orte_ess_node_rank",
    "OMPI_MCA_orte_ess_num_procs",
    "OMPI_MCA_orte_hnp_uri",
    "OMPI_PARENT_PORT", /* of a rank that another one started: its parent's, nobody else's */
    "OMPI_MCA_orte_jobfam_session_dir",
    "OMPI_MCA_orte_launch",
    "OMPI_MCA_orte_local_daemon_uri",
    "OMPI_MCA_orte_num_nodes",
    "OMPI_MCA_orte_parent_uri",
    "OMPI_MCA_orte_precondition_transports",
    "OMPI_MCA_orte_top_session_dir",
    "OMPI_APP_CTX_NUM_PROCS",
    "OMPI_ARGV",
    "OMPI_COMMAND",
    "OMPI_FILE_LOCATION",
    "OMPI_FIRST_RANKS",
    "OMPI_NUM_APP_CTX",
    "OMPI_UNIVERSE_SIZE",
    "PRTE_LAUNCHED",
    "MPI_LOCALNRANKS",
    "MPI_LOCALRANKID",
    /* srun's place of this task; SLURM_JOB_* describes the allocation and stays */
    "SLURM_GTIDS",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "SLURM_STEPID",
    "SLURM_TASK_PID",
    /* torchrun's and Kubeflow Trainer's: with USE_AGENT_STORE rank 0 would not serve the store that
     * the others dial */
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NNODES",
    "NODE_RANK",
    "RANK",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "WORLD_SIZE",
    /* drarun's own */
    "DRARUN_ALLOC",
    "DRARUN_ATTEMPT",
    "DRARUN_DEFAULTS",
    "DRARUN_HOST",
    "DRARUN_HOSTFILE",
    "DRARUN_JOB",
    "DRARUN_LOCAL_RANK",
    "DRARUN_LOCAL_SIZE",
    "DRARUN_NODE",
    "DRARUN_PROGRESS",
    "DRARUN_RANK",
    "DRARUN_REMOTE",
    "DRARUN_SIZE",
    "DRARUN_WORKER",
    "DRARUN_WORKERS",
};

/* What Slurm sets in its allocations: Intel MPI's mpiexec under --launch mpirun would start its
 * daemons by srun and not through the agents. */
static const char *const foreign_settings[] = {
    "I_MPI_HYDRA_BOOTSTRAP=slurm",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=--external-launcher",
};

/* A marker of an outer launcher and what it also set, where a user sets the same by hand, in a pod
 * as env of the job spec. Modules of Slurm's sites set I_MPI_PMI* for srun: Intel MPI would load
 * Slurm's library in place of its own, and ask srun, which has not started the rank, and not us. */
static const struct {
    const char *marker, *name;
} with_marker[] = {
    {"TORCHELASTIC_RUN_ID", "MASTER_ADDR"}, {"TORCHELASTIC_RUN_ID", "MASTER_PORT"},
    {"DRARUN_JOB", "MASTER_ADDR"},          {"DRARUN_JOB", "MASTER_PORT"},
    {"DRARUN_JOB", "PET_NODE_RANK"},        {"SLURM_JOB_ID", "I_MPI_PMI"},
    {"SLURM_JOB_ID", "I_MPI_PMI_LIBRARY"},  {"SLURM_CONF", "I_MPI_PMI"},
    {"SLURM_CONF", "I_MPI_PMI_LIBRARY"},
};

static bool has_prefix(const char *entry, const char *const prefixes[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool has_name(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_foreign(const char *entry)
{
    if (has_prefix(entry, users_prefixes, ARRAY_LEN(users_prefixes)))
        return false;
    if (has_prefix(entry, foreign_prefixes, ARRAY_LEN(foreign_prefixes)))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(foreign_names); i++)
        if (has_name(entry, foreign_names[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(foreign_settings); i++)
        if (strcmp(entry, foreign_settings[i]) == 0)
            return true;
    return false;
}

/* ---- defaults ---- */

#define DEFAULTS_VARIABLE "DRARUN_DEFAULTS" /* NAME=VALUE;NAME=VALUE */

void rankenv_default(struct strlist *env, const char *name, const char *format, ...)
{
    cleanup_free char *value = NULL, *list = NULL;
    va_list args;
    if (env_get(env, name))
        return;
    va_start(args, format);
    int length = vasprintf(&value, format, args);
    va_end(args);
    if (length < 0) {
        value = NULL;
        env->failed = true;
        return;
    }
    env_set(env, name, value);
    const char *before = env_get(env, DEFAULTS_VARIABLE);
    if (asprintf(&list, "%s%s%s=%s", before ? before : "", before ? ";" : "", name, value) < 0) {
        list = NULL;
        env->failed = true;
        return;
    }
    env_set(env, DEFAULTS_VARIABLE, list);
}

/* A value with a semicolon is not recognized and stays. */
static void drop_defaults(struct strlist *env)
{
    const char *list = env_get(env, DEFAULTS_VARIABLE);
    cleanup_free char *copy = list ? strdup(list) : NULL;
    char *rest = NULL;
    if (list && !copy)
        env->failed = true;
    for (char *entry = copy ? strtok_r(copy, ";", &rest) : NULL; entry;
         entry = strtok_r(NULL, ";", &rest)) {
        char *value = strchr(entry, '=');
        if (!value)
            continue;
        *value++ = '\0';
        const char *now = env_get(env, entry);
        if (now && strcmp(now, value) == 0)
            env_unset(env, entry);
    }
}

void rankenv_clean(struct strlist *env)
{
    drop_defaults(env);
    for (size_t i = 0; i < ARRAY_LEN(with_marker); i++)
        while (env_get(env, with_marker[i].marker) && env_get(env, with_marker[i].name))
            env_unset(env, with_marker[i].name); /* a name may be there twice */
    size_t kept = 0;
    for (size_t i = 0; i < env->count; i++) {
        if (is_foreign(env->items[i]))
            free(env->items[i]);
        else
            env->items[kept++] = env->items[i];
    }
    env->count = kept;
    if (env->items)
        env->items[kept] = NULL;
}

/* ---- what a rank gets ---- */

static const char *const place_names[] = {
    "RANK",      "WORLD_SIZE", "LOCAL_RANK",       "LOCAL_WORLD_SIZE", "ROLE_RANK",
    "ROLE_NAME", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE",
};

/* In the order of their ranks, as torchrun numbers these. A worker without ranks is no node:
 * torchrun would wait for it. worker: map->workers counts all. */
static uint32_t nodes_below(const struct rankmap *map, uint32_t worker)
{
    uint32_t nodes = 0;
    for (size_t b = 0; b < map->block_count && map->blocks[b].worker != worker; b++)
        nodes += map->local_firsts[b] == 0;
    return nodes;
}

static void set_number(struct strlist *env, const char *name, uint32_t value)
{
    env_setf(env, name, "%u", value);
}

static void default_text(struct strlist *env, const char *name, const char *value)
{
    if (value && value[0])
        rankenv_default(env, name, "%s", value);
}

static void default_number(struct strlist *env, const char *name, uint32_t value)
{
    if (value > 0)
        rankenv_default(env, name, "%u", value);
}

static void add_drarun(struct strlist *env, const struct rankenv_job *job,
                       const struct rankmap *map)
{
    env_set(env, "DRARUN_JOB", job->uid);
    set_number(env, "DRARUN_ATTEMPT", job->attempt);
    set_number(env, "DRARUN_WORKERS", map->workers);
}

static void add_drarun_rank(struct strlist *env, const struct rankenv_job *job,
                            const struct rankmap *map, const struct rank_place *place)
{
    set_number(env, "DRARUN_WORKER", place->worker);
    if (job->host)
        env_set(env, "DRARUN_HOST", job->host);
    if (job->node)
        env_set(env, "DRARUN_NODE", job->node);
    set_number(env, "DRARUN_RANK", place->rank);
    set_number(env, "DRARUN_SIZE", map->ranks);
    set_number(env, "DRARUN_LOCAL_RANK", place->local_rank);
    set_number(env, "DRARUN_LOCAL_SIZE", place->local_size);
}

static void add_nodes(struct strlist *env, const struct rankmap *map,
                      const struct rank_place *place)
{
    set_number(env, "NODE_RANK", nodes_below(map, place->worker));
    set_number(env, "NNODES", nodes_below(map, map->workers));
}

/* Where rank 0 listens, as ADDRESS:PORT, where both are known. */
static void default_endpoint(struct strlist *env, const char *name)
{
    const char *addr = env_get(env, "MASTER_ADDR"), *port = env_get(env, "MASTER_PORT");
    if (addr && port)
        rankenv_default(env, name, strchr(addr, ':') ? "[%s]:%s" : "%s:%s", addr, port);
}

/* What Kubeflow Trainer's JAX runtime sets, for jax.distributed.initialize(). */
static void add_jax(struct strlist *env, const struct rankmap *map, const struct rank_place *place)
{
    default_endpoint(env, "JAX_COORDINATOR_ADDRESS");
    set_number(env, "JAX_NUM_PROCESSES", map->ranks);
    set_number(env, "JAX_PROCESS_ID", place->rank);
}

void rankenv_torch(const struct rank_place *place, uint32_t ranks,
                   struct rankenv_number ret_numbers[RANKENV_TORCH_COUNT])
{
    ret_numbers[RANKENV_RANK] = (struct rankenv_number){"RANK", place->rank};
    ret_numbers[RANKENV_WORLD_SIZE] = (struct rankenv_number){"WORLD_SIZE", ranks};
    ret_numbers[RANKENV_LOCAL_RANK] = (struct rankenv_number){"LOCAL_RANK", place->local_rank};
    ret_numbers[RANKENV_LOCAL_WORLD_SIZE] =
        (struct rankenv_number){"LOCAL_WORLD_SIZE", place->local_size};
}

/* torch.distributed's env:// and what trainers read beside it. */
static void add_torch(struct strlist *env, const struct rankenv_job *job, const struct rankmap *map,
                      const struct rank_place *place)
{
    struct rankenv_number numbers[RANKENV_TORCH_COUNT];
    rankenv_torch(place, map->ranks, numbers);
    for (size_t i = 0; i < RANKENV_TORCH_COUNT; i++)
        set_number(env, numbers[i].name, numbers[i].value);
    set_number(env, "GROUP_RANK", nodes_below(map, place->worker));
    default_text(env, "MASTER_ADDR", job->master_addr);
    default_number(env, "MASTER_PORT", job->master_port);
}

/* The defaults of torchrun's options. Its static rendezvous stays the default, since that alone
 * keeps ranks in the order of the workers; endpoint and id are for programs that ask for c10d. */
static void add_torchrun_options(struct strlist *env, const struct rankenv_job *job,
                                 const struct rankmap *map, const struct rank_place *place)
{
    default_text(env, "MASTER_ADDR", job->master_addr);
    default_number(env, "MASTER_PORT", job->master_port);
    set_number(env, "PET_NODE_RANK", nodes_below(map, place->worker));
    default_number(env, "PET_NNODES", nodes_below(map, map->workers));
    default_text(env, "PET_MASTER_ADDR", env_get(env, "MASTER_ADDR"));
    default_text(env, "PET_MASTER_PORT", env_get(env, "MASTER_PORT"));
    default_endpoint(env, "PET_RDZV_ENDPOINT");
    rankenv_default(env, "PET_RDZV_ID", "%s.%u", job->uid, job->attempt);
}

static void add_torchrun(struct strlist *env, const struct rankenv_job *job,
                         const struct rankmap *map, const struct rank_place *place)
{
    for (size_t i = 0; i < ARRAY_LEN(place_names); i++)
        env_unset(env, place_names[i]);
    add_torchrun_options(env, job, map, place);
}

/* Several workers of one rank each: such a rank may be a script that starts torchrun. Without its
 * options each of these would be a job of its own, and nobody would notice. */
static bool may_start_torchrun(const struct rankenv_job *job, const struct rankmap *map)
{
    return (!job->pmix || job->starts_torchrun) && map->ranks > 1 &&
           nodes_below(map, map->workers) == map->ranks;
}

/* How each MPI library lets a waiting rank give its CPU to the others. Without this a rank spins
 * for its whole time slice while the rank that it waits for does not run. */
static const struct {
    const char *name, *value;
    const char *unless; /* the user has chosen another way; NULL: there is none */
} when_oversubscribed[] = {
    {"OMPI_MCA_mpi_yield_when_idle", "1", NULL},    /* Open MPI, as its mpirun does */
    {"I_MPI_WAIT_MODE", "1", "I_MPI_THREAD_YIELD"}, /* Intel MPI: it sleeps */
    /* MPICH 5 (4.0 has nothing of this kind); without the second it first polls 4096 times
     */
    {"MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1", NULL},
    {"MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "10", NULL},
};

static void add_oversubscribed(struct strlist *env)
{
    for (size_t i = 0; i < ARRAY_LEN(when_oversubscribed); i++)
        if (!when_oversubscribed[i].unless || !env_get(env, when_oversubscribed[i].unless))
            rankenv_default(env, when_oversubscribed[i].name, "%s", when_oversubscribed[i].value);
}

static void add_mpi(struct strlist *env, const struct rankenv_job *job, const struct rankmap *map,
                    const struct rank_place *place)
{
    set_number(env, "OMPI_COMM_WORLD_RANK", place->rank);
    set_number(env, "OMPI_COMM_WORLD_SIZE", map->ranks);
    set_number(env, "OMPI_COMM_WORLD_LOCAL_RANK", place->local_rank);
    set_number(env, "OMPI_COMM_WORLD_LOCAL_SIZE", place->local_size);
    set_number(env, "OMPI_COMM_WORLD_NODE_RANK", place->local_rank);
    set_number(env, "MPI_LOCALRANKID", place->local_rank);
    set_number(env, "MPI_LOCALNRANKS", place->local_size);
    /* MPICH 5 refuses to choose when it sees both PMI-1 and PMIx */
    rankenv_default(env, "MPIR_CVAR_PMI_VERSION", "1");
    /* Open MPI 4 without this: each rank is silently a job of its own */
    rankenv_default(env, "OMPI_MCA_schizo", "^orte");
    /* binding is ours; the library must neither bind nor complain */
    rankenv_default(env, "OMPI_MCA_orte_externally_bound", "1");
    rankenv_default(env, "OMPI_MCA_hwloc_base_binding_policy", "none");
    /* Open MPI 5.0 with IPv6, as Debian 13 has it: by netlink no address of a host that has both
     * families reaches another one, nor another worker of the same host (open-mpi/ompi #14079) */
    rankenv_default(env, "OMPI_MCA_reachable", "^netlink");
    /* libxml2, by which Debian's hwloc reads our topology, divides by zero when it starts: a trap
     * ends the rank, and without one the flags stay. hwloc's own parser reads all that hwloc
     * writes. */
    rankenv_default(env, "HWLOC_LIBXML_IMPORT", "0");
    if (job->oversubscribed)
        add_oversubscribed(env);
}

void rankenv_add(struct strlist *env, const struct rankenv_job *job, const struct rankmap *map,
                 const struct rank_place *place)
{
    add_drarun(env, job, map);
    if (job->mpirun) { /* hydra hands mpirun's environment to all: nothing of one worker */
        default_text(env, "MASTER_ADDR", job->master_addr);
        default_number(env, "MASTER_PORT", job->master_port);
        return;
    }
    add_drarun_rank(env, job, map, place);
    add_nodes(env, map, place);
    if (job->torchrun)
        add_torchrun(env, job, map, place);
    else {
        add_torch(env, job, map, place);
        add_jax(env, map, place);
        if (may_start_torchrun(job, map))
            add_torchrun_options(env, job, map, place);
    }
    if (job->pmix)
        add_mpi(env, job, map, place);
}

/* ---- torchrun ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_torch_module(const char *name)
{
    return name && (strcmp(name, "torch.distributed.run") == 0 ||
                    strcmp(name, "torch.distributed.launch") == 0);
}

/* What python runs: the first -m, or the first argument that is no option. Options of one letter
 * may stand together: "-um MODULE". */
static size_t find_in_python(char *const argv[])
{
    for (size_t i = 1; argv[i]; i++) {
        if (argv[i][0] != '-')
            return strcmp(base_name(argv[i]), "torchrun") == 0 ? i : SIZE_MAX;
        const char *letter = argv[i][1] == '-' ? NULL : strpbrk(argv[i], "cmWX");
        if (!letter)
            continue;
        bool is_next = !letter[1]; /* its value is the next word */
        bool is_torch = *letter == 'm' && is_torch_module(is_next ? argv[i + 1] : letter + 1);
        if (*letter == 'c' || *letter == 'm')
            return is_torch ? i + is_next : SIZE_MAX;
        if (is_next && argv[i + 1])
            i++;
    }
    return SIZE_MAX;
}

size_t rankenv_find_torchrun(char *const argv[])
{
    size_t at = argv ? wrapper_skip(argv) : 0, found = SIZE_MAX;
    if (!argv || !argv[at])
        return SIZE_MAX;
    const char *program = base_name(argv[at]);
    if (strncmp(program, "python", strlen("python")) == 0)
        found = find_in_python(argv + at);
    else if (strcmp(program, "torchrun") == 0)
        found = 0;
    return found == SIZE_MAX ? SIZE_MAX : at + found;
}

bool rankenv_is_torchrun(char *const argv[])
{
    return rankenv_find_torchrun(argv) != SIZE_MAX;
}

/* A word of the line, as far as quotes and the shell's own signs: enough to choose defaults by,
 * which do no harm to another program. */
static bool line_has_torchrun(const char *line)
{
    static const char between[] = " \t\n;&|()<>{}\"'`";
    while (*(line += strspn(line, between))) {
        size_t length = strcspn(line, between);
        if (*line == '#') {
            line += strcspn(line, "\n");
            continue;
        }
        cleanup_free char *word = strndup(line, length);
        if (word && (strcmp(base_name(word), "torchrun") == 0 || is_torch_module(word)))
            return true;
        line += length;
    }
    return false;
}

/* The line that argv has a shell run; NULL: none. */
static const char *find_line(char *const argv[])
{
    char *const *program = argv ? argv + wrapper_skip(argv) : NULL;
    struct shell_words shell;
    size_t count = 0;
    while (program && program[count])
        count++;
    bool is_shell = shell_words_read((const char *const *)program, count, &shell);
    return is_shell && shell.has_script ? program[shell.options] : NULL;
}

bool rankenv_names_torchrun(char *const argv[])
{
    const char *line = find_line(argv);
    return rankenv_runs_torchrun(argv) || (line && line_has_torchrun(line));
}

#define LINES_MAX 16u /* inside one another: sh -c "sh -c ..." */

static bool runs_torchrun(char *const argv[], unsigned int depth);

static void add_plain(struct strlist *argv, const struct strlist *words, size_t from)
{
    for (size_t i = from; i < words->count; i++) {
        CLEANUP(buf_done) struct buf plain = BUF_INIT;
        shell_unquote(words->items[i], &plain);
        strlist_add(argv, plain.data ? plain.data : "");
        argv->failed |= plain.failed;
    }
}

static bool command_runs_torchrun(const struct strlist *words, unsigned int depth)
{
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT;
    size_t i = 0;
    while (i < words->count &&
           (shell_is_assignment(words->items[i]) || strcmp(words->items[i], "!") == 0))
        i++;
    add_plain(&argv, words, i);
    return argv.count > 0 && !argv.failed && runs_torchrun(argv.items, depth);
}

/* Of a line that cannot be read to its end, what stands before counts. */
static bool line_runs_torchrun(const char *line, unsigned int depth)
{
    struct shell_script script;
    bool runs = false;
    shell_parse(line, &script);
    for (size_t i = 0; !runs && i < script.count; i++)
        runs = command_runs_torchrun(&script.commands[i].words, depth);
    shell_script_done(&script);
    return runs;
}

/* "env -S LINE WORD..." runs what "env", the line's words and the others would. */
static bool split_runs_torchrun(char *const argv[], unsigned int depth)
{
    CLEANUP(strlist_done) struct strlist all = STRLIST_INIT;
    struct shell_script script;
    size_t i;
    const char *line = wrapper_env_line(argv, &i);
    if (!line)
        return false;
    strlist_add(&all, argv[0]);
    shell_parse(line, &script);
    if (script.count > 0)
        add_plain(&all, &script.commands[0].words, 0);
    shell_script_done(&script);
    strlist_add_all(&all, argv + i);
    return !all.failed && runs_torchrun(all.items, depth);
}

static bool runs_torchrun(char *const argv[], unsigned int depth)
{
    if (rankenv_is_torchrun(argv))
        return true;
    if (!argv || depth == LINES_MAX)
        return false;
    const char *line = find_line(argv);
    return line ? line_runs_torchrun(line, depth + 1)
                : split_runs_torchrun(argv + wrapper_skip(argv), depth + 1);
}

bool rankenv_runs_torchrun(char *const argv[])
{
    return runs_torchrun(argv, 0);
}
