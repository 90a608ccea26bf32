/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/options.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "jobs/ranks/binding.h"
#include "jobs/spec/k8s_name.h"
#include "jobs/spec/spec.h"
#include "jobs/ranks/rankmap.h"
#include "launcher/run/foreign.h"
#include "launcher/run/line.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"
#include "lib/base/signal_name.h"
#include "lib/wire/channel.h"

#define RADIX_MAX 1024
#define SIGNAL_BEFORE_MS 60000 /* srun's, too */

static struct job_request *request_of(void *target)
{
    return &((struct run_line *)target)->request;
}

static struct request_program *current(void *target)
{
    const struct job_request *request = request_of(target);
    return &request->programs[request->program_count - 1];
}

static bool is_number(const char *word)
{
    return word[0] && strspn(word, "0123456789") == strlen(word);
}

static int set_ranks(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    int64_t number = 0;
    struct drarun_error bad = {0};
    int rc = number_parse(shown, value, 1, RANKMAP_RANKS_MAX, &number, &bad);
    if (rc == 0)
        current(target)->ranks = (uint32_t)number;
    else if (rc == -EINVAL && strcmp(shown, "-n") == 0 && value[0] == 'p' && is_number(value + 1))
        error_kind(err, bad.kind, bad.code, "%s; write -np %s, as two words", bad.text, value + 1);
    else if (rc == -EINVAL && strcmp(shown, "-n") == 0 && k8s_is_label(value)) /* as kubectl's */
        error_kind(err, bad.kind, bad.code,
                   "%s; for run, -n is the number of ranks: use --namespace %s for the namespace",
                   bad.text, value);
    else
        error_kind(err, bad.kind, bad.code, "%s", bad.text);
    return rc;
}

static int set_env(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct strlist *env = &current(target)->env;
    if (value[0] == '\0' || value[0] == '=')
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected NAME or NAME=VALUE, got \"%s\"", shown, value);
    strlist_add(env, value);
    return env->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

static int set_wd(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    if (!value[0])
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected a directory, got \"\"",
                          shown);
    current(target)->wd = value;
    return 0;
}

/* For libdrarun, whose words are those of a job's spec. */
static int set_expand(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    (void)shown, (void)value, (void)err;
    current(target)->expand = SIZE_MAX;
    return 0;
}

static int set_stdin(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct job_request *request = request_of(target);
    int64_t rank = 0;
    if (strcmp(value, "none") == 0)
        rank = REQUEST_STDIN_NONE;
    else if (strcmp(value, "all") == 0)
        rank = REQUEST_STDIN_ALL;
    else if (number_parse(shown, value, 0, RANKMAP_RANKS_MAX - 1, &rank, NULL) < 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected a rank, \"all\" or \"none\", got \"%s\"", shown, value);
    request->stdin_rank = (int32_t)rank;
    return 0;
}

static int set_bind(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct job_request *request = request_of(target);
    struct bind_policy policy;
    int rc = bind_parse(value, &policy, err);
    if (rc < 0)
        return error_prefix(err, "%s", shown);
    request->bind = value;
    return 0;
}

static int set_launch(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct job_request *request = request_of(target);
    if (strcmp(value, "pmix") != 0 && strcmp(value, "env") != 0 && strcmp(value, "mpirun") != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected \"pmix\", \"env\" or \"mpirun\", got \"%s\"", shown, value);
    request->launch_env = value[0] == 'e';
    request->launch_mpirun = value[0] == 'm';
    return 0;
}

static int set_stop_at(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    static const struct {
        const char *name;
        Drarun__Wire__StopAt at;
    } known[] = {
        {"exec", DRARUN__WIRE__STOP_AT__STOP_AT_EXEC},
        {"init", DRARUN__WIRE__STOP_AT__STOP_AT_INIT},
        {"app", DRARUN__WIRE__STOP_AT__STOP_AT_APP},
    };
    struct job_request *request = request_of(target);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(value, known[i].name) == 0) {
            request->stop_at = known[i].at;
            return 0;
        }
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s: expected \"exec\", \"init\" or \"app\", got \"%s\"", shown, value);
}

static int set_output(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct job_request *request = request_of(target);
    if (strcmp(value, "text") != 0 && strcmp(value, "json") != 0) {
        error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected \"text\" or \"json\", got \"%s\"",
                   shown, value);
        return foreign_explain(shown, err);
    }
    request->json = value[0] == 'j';
    return 0;
}

static int set_verbose(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct run_line *line = target;
    (void)shown, (void)value, (void)err;
    line->verbose++;
    return 0;
}

/* srun's prefixes are for what drarun does not have. */
static int refuse_prefix(const char *shown, const char *value, const char *colon,
                         struct drarun_error *err)
{
    bool batch = memchr(value, 'B', (size_t)(colon - value)) != NULL;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s %s: %s", shown, value,
                      batch ? "B: signals sbatch's shell alone, and drarun signals ranks: leave it "
                              "out"
                            : "prefixes are srun's, for reservations and sbatch's shell, which "
                              "drarun does not have: leave them out");
}

/* SIG[@TIME] */
static int set_signal(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct job_request *request = request_of(target);
    const char *at = strchr(value, '@'), *colon = strchr(value, ':');
    int64_t before_ms = SIGNAL_BEFORE_MS;
    if (colon)
        return refuse_prefix(shown, value, colon, err);
    int signo = signal_of_name(value, at ? (size_t)(at - value) : strlen(value));
    if (signo == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected SIG[@TIME] with one of " SIGNAL_NAMES ", got \"%s\"", shown,
                          value);
    if (at && duration_parse(shown, at + 1, &before_ms, err) < 0)
        return -err->code;
    if (before_ms <= 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s %s: the time must be above 0: at --timeout itself ranks get SIGTERM",
                          shown, value);
    request->warn_signo = signo;
    request->warn_before_ms = before_ms;
    return 0;
}

static_assert(SPEC_AGENT_TIMEOUT_MAX_MS == CHANNEL_AGENT_TIMEOUT_MAX_MS,
              "agents take what a spec and a command line may say");

static int set_agent_timeout(void *target, const char *shown, const char *value,
                             struct drarun_error *err)
{
    struct job_request *request = request_of(target);
    int64_t ms = 0;
    if (duration_parse(shown, value, &ms, err) < 0)
        return -err->code;
    if (ms < SPEC_AGENT_TIMEOUT_MIN_MS || ms > SPEC_AGENT_TIMEOUT_MAX_MS)
        return error_kind(err, DRARUN_ERR_USAGE, ERANGE, "%s: expected %ds to %ds, got %s", shown,
                          SPEC_AGENT_TIMEOUT_MIN_MS / 1000, SPEC_AGENT_TIMEOUT_MAX_MS / 1000,
                          value);
    request->agent_timeout_ms = ms;
    return 0;
}

#define FIELD(name) offsetof(struct run_line, request.name)
#define LINE(name) offsetof(struct run_line, name)

/* What an option applies to: programs on the command line, a job's spec whose ranks run here, or
 * one that is for a cluster. */
enum { TO_PROGRAMS = 1, TO_LOCAL = 2, TO_CLUSTER = 4 };

static const char programs[] = "Of each program";
static const char agents[] = "Agents";
static const char ranks[] = "Ranks";
static const char output[] = "Output";
static const char on_cluster[] = "A job of a cluster (drarun run FILE.yaml)";
static const char limits[] = "Time limits (90s, 1h30m, 2d; a bare number is seconds)";

static const struct option_spec specs[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "N",
     .group = programs,
     .kind = OPTION_CALL,
     .set = set_ranks,
     .each = true,
     .help = "number of ranks (default: one per worker)"},
    {.name = "env",
     .letter = 'x',
     .value = "NAME[=VALUE]",
     .group = programs,
     .kind = OPTION_CALL,
     .set = set_env,
     .each = true,
     .help = "set a variable for the ranks, or pass on drarun's own\n(NAME*: all whose names begin "
             "so); may be repeated"},
    {.name = "wd",
     .value = "DIR",
     .choices = "DIR",
     .group = programs,
     .kind = OPTION_CALL,
     .set = set_wd,
     .each = true,
     .help = "working directory of the ranks"},

    {.name = "expand",
     .kind = OPTION_CALL,
     .set = set_expand,
     .each = true,
     .applies = TO_PROGRAMS,
     .help = "replace $(NAME) in the program's words by the rank's variable"},
    {.name = "one-program",
     .kind = OPTION_FLAG,
     .offset = LINE(one_program),
     .applies = TO_PROGRAMS,
     .help = "take all words behind the options as one program's"},

    {.name = "workers",
     .value = "K",
     .group = agents,
     .kind = OPTION_COUNT,
     .offset = FIELD(workers),
     .min = 1,
     .max = RANKMAP_WORKERS_MAX,
     .help = "start K agents on this machine (default 1)"},
    {.name = "ranks-per-worker",
     .value = "R",
     .group = agents,
     .kind = OPTION_COUNT,
     .offset = FIELD(per_worker),
     .min = 1,
     .max = RANKMAP_RANKS_MAX,
     .applies = TO_PROGRAMS,
     .instead = "the spec sets it: ranksPerWorker",
     .help = "maximum ranks per worker (default: an even share)"},
    {.name = "agents",
     .value = "HOST:PORT,...",
     .group = agents,
     .kind = OPTION_TEXT,
     .offset = FIELD(agents),
     .applies = TO_PROGRAMS,
     .help = "use running agents, which were started with\ndrarun-worker --listen :PORT --key-file "
             "FILE"},
    {.name = "key-file",
     .value = "FILE",
     .choices = "FILE",
     .group = agents,
     .kind = OPTION_TEXT,
     .offset = FIELD(key_file),
     .applies = TO_PROGRAMS,
     .help = "the key of those agents: 64 hex digits or 32 bytes,\nreadable only by its owner"},
    {.name = "alloc",
     .value = "DIR",
     .choices = "DIR",
     .group = agents,
     .kind = OPTION_TEXT,
     .offset = FIELD(alloc),
     .applies = TO_PROGRAMS,
     .help = "use the agents that drarun alloc keeps (default:\n$DRARUN_ALLOC, if set)"},
    {.name = "radix",
     .value = "K",
     .kind = OPTION_COUNT,
     .offset = FIELD(radix),
     .min = 1,
     .max = RADIX_MAX,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .help = "children per agent in the tree of agents"},

    {.name = "launch",
     .value = "MODE",
     .choices = "pmix env mpirun",
     .group = ranks,
     .kind = OPTION_CALL,
     .set = set_launch,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: launch",
     .help =
         "pmix (default): PMIx, PMI-1 and the environment; env:\nonly RANK, WORLD_SIZE and similar "
         "variables; mpirun:\nPROGRAM is your mpirun and starts its processes through\nthe agents"},
    {.name = "bind",
     .value = "POLICY",
     .choices = "none core numa",
     .group = ranks,
     .kind = OPTION_CALL,
     .set = set_bind,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: bind",
     .help =
         "CPUs of each rank: none (default), core, core:N for N\ncores, numa, or a list such as "
         "0-1;2-3 (one set for each\nrank in turn)"},
    {.name = "slots",
     .value = "N",
     .group = ranks,
     .kind = OPTION_COUNT,
     .offset = FIELD(slots),
     .min = 1,
     .max = RANKMAP_RANKS_MAX,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: slots",
     .help = "maximum ranks per worker, including spawned ones\n(default: the ranks started, or "
             "the worker's CPUs if\nthey are more)"},
    {.name = "oversubscribe",
     .group = ranks,
     .kind = OPTION_FLAG,
     .offset = FIELD(oversubscribe),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: oversubscribe",
     .help = "let ranks spawn more ranks than there are slots"},
    {.name = "on-rank-failure",
     .value = "WHAT",
     .choices = "end continue",
     .group = ranks,
     .kind = OPTION_TEXT,
     .offset = FIELD(on_rank_failure),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: failurePolicy.onRankFailure",
     .help = "end (default): a rank that fails ends the job; continue:\nonly if others could wait "
             "for it, since it is between\nMPI_Init and MPI_Finalize"},
    {.name = "report-bindings",
     .group = ranks,
     .kind = OPTION_FLAG,
     .offset = FIELD(report_bindings),
     .help = "report where each rank runs, and on which CPUs"},
    {.name = "stop-at",
     .value = "PLACE",
     .choices = "exec init app",
     .group = ranks,
     .kind = OPTION_CALL,
     .set = set_stop_at,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .help = "let ranks wait for a debugger: exec, before their first\ninstruction; init, in "
             "PMIx_Init; app, where the MPI\nlibrary waits. SIGCONT to drarun resumes them"},
    {.name = "stdin",
     .value = "RANK",
     .choices = "all none 0",
     .group = ranks,
     .kind = OPTION_CALL,
     .set = set_stdin,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .help = "rank that gets drarun's standard input (default 0), or\nall, or none"},
    {.name = "label",
     .letter = 'l',
     .aliases = "-label",
     .group = output,
     .kind = OPTION_FLAG,
     .offset = LINE(console.label),
     .help = "put the rank before each line: [3] text"},
    {.name = "frames",
     .group = output,
     .kind = OPTION_FLAG,
     .offset = LINE(console.frames),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "drarun_job_follow(3) follows one",
     .help = "for a program that reads the output: \"[3] text\", \"[3:err] text\"\nand log lines "
             "as JSON, "
             "all on stdout"},
    {.name = "output-dir",
     .value = "DIR",
     .choices = "DIR",
     .group = output,
     .kind = OPTION_TEXT,
     .offset = LINE(console.dir),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "drarun logs JOB --rank R has the output of each",
     .help = "write the ranks' output to DIR/rank.N.out and .err\ninstead of showing it"},
    {.name = "output",
     .value = "FORMAT",
     .choices = "text json",
     .group = output,
     .kind = OPTION_CALL,
     .set = set_output,
     .help = "final report on stderr: text (default; silent when\nall went well) or json (always)"},
    {.name = "report",
     .value = "FILE",
     .choices = "FILE",
     .group = output,
     .kind = OPTION_TEXT,
     .offset = FIELD(report_path),
     .help = "write the final report to FILE, as JSON"},
    {.name = "verbose",
     .letter = 'v',
     .group = output,
     .kind = OPTION_CALL,
     .set = set_verbose,
     .help = "log each step; twice: details"},
    {.name = "quiet",
     .letter = 'q',
     .group = output,
     .kind = OPTION_FLAG,
     .offset = LINE(console.quiet),
     .help = "log only errors"},

    {.name = "timeout",
     .value = "TIME",
     .group = limits,
     .kind = OPTION_DURATION,
     .offset = FIELD(timeout_ms),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: timeouts.total",
     .help = "end the job after this time, with status 124"},
    {.name = "signal",
     .value = "SIG[@TIME]",
     .group = limits,
     .kind = OPTION_CALL,
     .set = set_signal,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: timeouts.signal",
     .help = "send this signal to the ranks TIME (default 60s) before\n--timeout, so that they can "
             "write a checkpoint"},
    {.name = "kill-after",
     .value = "TIME",
     .group = limits,
     .kind = OPTION_DURATION,
     .offset = FIELD(kill_after_ms),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .help = "time between SIGTERM and SIGKILL (default 1s)"},
    {.name = "hang-after",
     .value = "TIME",
     .group = limits,
     .kind = OPTION_DURATION,
     .offset = FIELD(hang_after_ms),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: hangAfter",
     .help = "end the job, and name the rank, if a rank is stopped or\nits agent is silent for "
             "this long (default: never)"},
    {.name = "agent-timeout",
     .value = "TIME",
     .group = limits,
     .kind = OPTION_CALL,
     .set = set_agent_timeout,
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: timeouts.agent",
     .help = "how long an agent may be silent before it is lost, and\nthe job with it: 5s to 10m "
             "(default 30s; in pods 12s)"},
    {.name = "start-timeout",
     .value = "TIME",
     .group = limits,
     .kind = OPTION_DURATION,
     .offset = FIELD(start_timeout_ms),
     .applies = TO_PROGRAMS | TO_LOCAL,
     .instead = "the spec sets it: timeouts.start",
     .help = "timeout for connecting to the agents, and again for\ntheir preparation (default: 30s "
             "and 0.1s for each\nagent; 10s for connecting to --agents)"},

    {.name = "orphan-wait",
     .value = "TIME",
     .group = limits,
     .kind = OPTION_DURATION,
     .offset = FIELD(orphan_wait_ms),
     .applies = TO_PROGRAMS,
     .help = "how long agents keep the ranks after they lose the\nlauncher, so that another one "
             "can end them cleanly\n(default: 0s)"},

    {.name = "local",
     .group = on_cluster,
     .applies = TO_LOCAL | TO_CLUSTER,
     .kind = OPTION_FLAG,
     .offset = LINE(local),
     .help = "run the job's ranks on this machine, without a cluster:\neach worker is a local "
             "agent, and no devices are claimed"},
    {.name = "here",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_FLAG,
     .offset = LINE(cluster.here),
     .help =
         "launch from this process, which must reach the pods;\ndefault: a pod does, and this one "
         "follows it"},
    {.name = "name",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = LINE(cluster.name),
     .help = "override the spec's name"},
    {.name = "replace",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_FLAG,
     .offset = LINE(cluster.replace),
     .help = "first delete a finished job of the same name"},
    CLUSTER_IMAGE_OPTION(on_cluster, TO_CLUSTER, LINE(cluster.image)),
    {.name = "namespace",
     .value = "NAME",
     .group = on_cluster,
     .applies = TO_CLUSTER,
     .kind = OPTION_TEXT,
     .offset = LINE(cluster.cluster.namespace),
     .help = "as with kubectl, like the next two options"},
    CLUSTER_CONTEXT_OPTIONS(on_cluster, TO_CLUSTER, LINE(cluster.cluster)),
    {.name = "job",
     .value = "NAME",
     .kind = OPTION_TEXT,
     .offset = LINE(cluster.job),
     .help = "the job that this launcher pod runs"},
    {.name = "help",
     .letter = 'h',
     .group = "Others",
     .kind = OPTION_FLAG,
     .offset = LINE(help),
     .help = "show this help"},
    {.name = "version",
     .letter = 'V',
     .group = "Others",
     .kind = OPTION_FLAG,
     .offset = LINE(version),
     .help = "show the version"},
};

static void note_option(void *target, const struct option_spec *spec)
{
    struct run_line *line = target;
    unsigned applies = spec->applies;
    if (applies && !(applies & TO_PROGRAMS) && !line->not_for_programs)
        line->not_for_programs = spec;
    if (applies && !(applies & TO_LOCAL) && !line->not_for_local)
        line->not_for_local = spec;
    if (applies && !(applies & TO_CLUSTER) && !line->not_for_cluster)
        line->not_for_cluster = spec;
}

const struct option_table run_option_table = {specs, ARRAY_LEN(specs), &foreign_others,
                                              note_option};

void run_options_help(struct buf *out)
{
    buf_add_str(out,
                "Usage: drarun [run] [options] program [args]"
                " [: [options] program [args]]...\n"
                "       drarun [run] FILE.yaml [options] [-- args]\n"
                "Starts ranks of MPI and NCCL programs, here or as a job of a cluster, and exits\n"
                "with their status. FILE.yaml may be -, for standard input.\n");
    options_help(&run_option_table, out);
    buf_add_str(out,
                "\nThe word run may be left out. A program called like a verb: drarun -- wait\n"
                "Options of mpirun, mpiexec and srun: drarun help mpirun, help srun.\n"
                "The other verbs: drarun help\n");
}
