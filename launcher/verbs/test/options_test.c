/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/foreign/options.h"
#include "launcher/verbs/completion.h"
#include "launcher/verbs/verbs.h"
#include "launcher/run/command_line.h"
#include "launcher/run/foreign.h"
#include "launcher/run/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/base/unconst.h"

#define WORDS_MAX 24

static int parse(const char *const words[], struct run_line *line, struct drarun_error *err)
{
    int argc = 0;
    while (words[argc])
        argc++;
    return command_line_parse(argc, unconst(words), line, err);
}

#define WORDS(...)                                                                                 \
    (const char *const[WORDS_MAX])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void reads_mpirun_spellings(void **state)
{
    static const char *const lines[][WORDS_MAX] = {
        {"-n", "4", "a"},  {"-np", "4", "a"}, {"--np", "4", "a"},
        {"-n4", "a"},      {"-n=4", "a"},     {"--ranks=4", "a"},
        {"--n", "4", "a"}, {"-ln4", "a"},     {"-n", "4", "--", "a"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_int_equal(parse(lines[i], &line, &err), 0);
        assert_int_equal(line.request.programs[0].ranks, 4);
        assert_string_equal(line.request.programs[0].argv[0], "a");
        assert_int_equal(line.request.programs[0].argc, 1);
        run_line_done(&line);
    }
}

static void leaves_the_programs_arguments_alone(void **state)
{
    struct run_line line;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(parse(WORDS("-n", "2", "a", "-n", "--label", "--", "x"), &line, &err), 0);
    assert_int_equal(line.request.programs[0].argc, 5);
    assert_false(line.console.label);
    run_line_done(&line);
    assert_int_equal(parse(WORDS("--", "-n"), &line, &err), 0);
    assert_string_equal(line.request.programs[0].argv[0], "-n");
    run_line_done(&line);
}

static void splits_programs(void **state)
{
    struct run_line line;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(parse(WORDS("-n", "2", "-x", "A=1", "a", "1", ":", "-n", "3", "--wd", "/tmp",
                                 "-x", "B", "b"),
                           &line, &err),
                     0);
    assert_int_equal(line.request.program_count, 2);
    assert_int_equal(line.request.programs[0].argc, 2);
    assert_int_equal(line.request.programs[1].ranks, 3);
    assert_string_equal(line.request.programs[1].wd, "/tmp");
    assert_string_equal(line.request.programs[0].env.items[0], "A=1");
    assert_string_equal(line.request.programs[1].env.items[0], "B");
    assert_null(line.request.programs[0].wd);
    run_line_done(&line);
}

/* The same forms as in a job's spec, and bare numbers. */
static void reads_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: none */
    } cases[] = {
        {"90", 90000},   {"0.5", 500},       {"0", 0},          {"250ms", 250},
        {"1.5m", 90000}, {"1h30m", 5400000}, {"2d", 172800000}, {"3650d", INT64_C(315360000000)},
        {"3651d", -1},   {"1h30", -1},       {"h", -1},         {"", -1},
        {"-1", -1},      {"0x10", -1},       {"1e3", -1},       {"1:30", -1},
        {"1 h", -1},     {"1.2.3", -1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        int rc = parse(WORDS("--timeout", cases[i].text, "a"), &line, &err);
        if (rc != (cases[i].ms < 0 ? -EINVAL : 0) ||
            (rc == 0 && line.request.timeout_ms != cases[i].ms))
            fail_msg("%s: %d, %s", cases[i].text, rc, err.text);
        run_line_done(&line);
    }
}

static void reads_values(void **state)
{
    struct run_line line;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(parse(WORDS("--timeout", "1.5m", "--kill-after=250ms", "--stdin", "all",
                                 "--workers", "3", "-vv", "--launch", "env", "--bind", "core",
                                 "--output=json", "--stop-at", "exec", "a"),
                           &line, &err),
                     0);
    assert_int_equal(line.request.timeout_ms, 90000);
    assert_int_equal(line.request.kill_after_ms, 250);
    assert_int_equal(line.request.stdin_rank, REQUEST_STDIN_ALL);
    assert_int_equal(line.request.workers, 3);
    assert_int_equal(line.verbose, 2);
    assert_true(line.request.launch_env);
    assert_true(line.request.json);
    assert_string_equal(line.request.bind, "core");
    assert_int_equal(line.request.stop_at, DRARUN__WIRE__STOP_AT__STOP_AT_EXEC);
    run_line_done(&line);
}

static void refuses_with_a_reason(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *part; /* of the message */
    } cases[] = {
        {{NULL}, "no program given"},
        {{"-n", "0", "a"}, "-n: expected 1 to"},
        {{"-n", "-1", "a"}, "-n: expected 1 to"},
        {{"-n", "99999999999999999999", "a"}, "-n: expected 1 to"},
        {{"-n", "x", "a"}, "got \"x\""},
        {{"-n"}, "-n needs a value: -n N"},
        {{"--label=yes", "a"}, "takes no value"},
        {{"--labl", "a"}, "did you mean --label?"},
        {{"--ouptut-dir", "d", "a"}, "did you mean --output-dir?"},
        {{"-labels", "a"}, "did you mean --label?"},
        {{"--zzzzzz", "a"}, "unknown option --zzzzzz; --help"},
        {{"a", ":"}, "no program before or after"},
        {{":", "a"}, "no program"},
        {{"a", ":", "--timeout", "3", "b"}, "is for the whole job"},
        {{"-x", "=1", "a"}, "expected NAME"},
        {{"--stdin", "first", "a"}, "expected a rank"},
        {{"--launch", "pmi", "a"},
         "--launch: expected \"pmix\", \"env\" or \"mpirun\", got \"pmi\""},
        {{"--alloc", "j", "--workers", "2", "a"},
         "--alloc, --agents and --workers each select the agents: give one of them"},
        {{"--alloc", "j", "--agents", "h:1", "--key-file", "k", "a"}, "each select the agents"},
        {{"-H", "h", "--hostfile", "f", "a"},
         "--hostfile: the hosts are given twice; name all of them in one list or file"},
        {{"--stop-at", "main", "a"}, "--stop-at: expected \"exec\", \"init\" or \"app\""},
        {{"--output", "xml", "a"}, "expected \"text\" or \"json\""},
        {{"--timeout", "soon", "a"}, "expected a duration"},
        {{"--agents", "h:1", "a"}, "needs --key-file"},
        {{"--agents", "h:1", "--workers", "2", "--key-file", "k", "a"}, "give one of them"},
        {{"--key-file", "k", "a"}, "is for --agents"},
        {{"-q", "-v", "a"}, "give one of them"},
        {{"--workers", "0", "a"}, "--workers: expected 1 to"},
        {{"-n", "1", "", "a"}, "the program's name is empty"},
        {{"a", ":", ""}, "the program's name is empty"},
        {{"-env", "FOO", "3"}, "no program given"},
        {{"-genv", "A"}, "-genv needs NAME VALUE or NAME=VALUE"},
        {{"-env", "=1", "a"}, "-env: expected NAME VALUE or NAME=VALUE, got"},
        {{"-env", "A=1"}, "no program given"},
        {{"--mca", "A=1", "2", "a"}, "-x takes NAME=VALUE"},
        {{"a", ":", "-genv", "A", "1", "b"}, "-genv is for the whole job"},
        {{"--mpi=pmi2", "a"}, "--mpi pmi2 is not possible here: ranks get PMIx"},
        {{"--kill-on-bad-exit=2", "a"}, "2 is not possible here: a rank that fails ends the job"},
        {{"--runtime-options", "donotlaunch", "a"}, "a rank that fails ends the job"},
        {{"--agent-timeout", "4.9", "a"}, "--agent-timeout: expected 5s to 600s, got 4.9"},
        {{"--agent-timeout=0", "a"}, "expected 5s to 600s, got 0"},
        {{"--agent-timeout", "11m", "a"}, "expected 5s to 600s, got 11m"},
        {{"--on-rank-failure", "ignore", "a"}, "expected one of \"end continue\""},
        {{"--map-by", "node", "a"}, "--ranks-per-worker R"},
        {{"--map-by", "socket:PE=2", "a"}, "--map-by socket:PE=2 is not possible here"},
        {{"--map-by", "slot:PE=x", "a"}, "--map-by: expected a whole number"},
        {{"--map-by", "slot:PE=2", "--bind-to", "numa", "a"}, "--bind core:2, and --bind numa is"},
        {{"--map-by", "slot:PE=1,SPAN", "a"}, "--map-by slot:PE=1,SPAN is not possible here"},
        {{"--map-by", "slot:PE=12345678901234567890", "a"}, "got 12345678901234567890"},
        {{"a", ":", "--map-by", "slot:PE=2", "b"}, "--map-by is for the whole job"},
        {{"a", ":", "--cpus-per-rank", "2", "b"}, "--cpus-per-rank is for the whole job"},
        {{"--cpus-per-rank", "1", "--map-by", "slot:PE=2", "a"}, "2 cores for each rank, and 1"},
        {{"--cpus-per-task=4", "a"}, "--bind core:N gives each rank N cores"},
        {{"-c4", "a"}, "mpirun's: the number of ranks is -n N; srun's: --bind"},
        {{"--output", "tag", "a"}, "--label tags lines"},
        {{"--tag-output=1", "a"}, "--tag-output takes no value"},
        {{"--mapby", "x", "a"}, "did you mean --map-by?"},
        {{"--multi-progg", "a"}, "unknown option --multi-progg; --help"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_true(parse(cases[i].words, &line, &err) < 0);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        if (!strstr(err.text, cases[i].part))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.text, cases[i].part);
        run_line_done(&line);
    }
}

/* Behind a job's file, and where the caller says so, no program follows. */
static void keeps_all_words(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        size_t argc;
        bool spec;
    } cases[] = {
        {{"--one-program", "-n", "2", "--", "a", ":", "-n", "b"}, 4, false},
        {{"--one-program", "--", ":", "a"}, 2, false},
        {{"--one-program", "j.yaml", ":"}, 2, false},
        {{"--local", "j.yaml", "-v", "--", "a", ":", "b"}, 6, true},
        {{"-", "--", ":"}, 3, true},
        {{"./j.json"}, 1, true},
        {{".json"}, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_int_equal(parse(cases[i].words, &line, &err), 0);
        assert_int_equal(line.request.program_count, 1);
        assert_int_equal(line.request.programs[0].argc, cases[i].argc);
        assert_int_equal(command_line_is_spec(&line), cases[i].spec);
        run_line_done(&line);
    }
}

/* What a verb hands on keeps its order; after "--" all of it does. */
static void picks_what_it_knows(void **state)
{
    (void)state;
    struct picked {
        const char *file;
        bool loud;
    } picked = {0};
    static const struct option_spec list[] = {
        {.name = "file", .letter = 'f', .value = "FILE", .kind = OPTION_TEXT},
        {.name = "loud",
         .letter = 'l',
         .kind = OPTION_FLAG,
         .offset = offsetof(struct picked, loud)},
    };
    const struct option_table table = {list, ARRAY_LEN(list)};
    static const char *const argv[] = {"word",        "-b", "-1", "-fx", "--loud",
                                       "--file-mode", "-",  "--", "-l"};
    const char *const rest[] = {"word", "-b", "-1", "--file-mode", "-", "--", "-l"};
    struct strlist others = STRLIST_INIT;
    struct drarun_error err = {0};
    assert_int_equal(options_pick(&table, ARRAY_LEN(argv), unconst(argv), &picked, &others, &err),
                     0);
    assert_string_equal(picked.file, "x");
    assert_true(picked.loud);
    assert_int_equal(others.count, ARRAY_LEN(rest));
    for (size_t i = 0; i < ARRAY_LEN(rest); i++)
        assert_string_equal(others.items[i], rest[i]);
    strlist_done(&others);
    static const char *const bare[] = {"-f"};
    assert_int_equal(options_pick(&table, 1, unconst(bare), &picked, &others, &err), -EINVAL);
    strlist_done(&others);
}

/* What means the same here does the same; its values are never taken for the program. */
static void takes_other_launchers_options(void **state)
{
    static const char *const lines[][WORDS_MAX] = {
        {"-np", "4", "a"},
        {"-np=4", "a"},
        {"--ntasks=4", "a"},
        {"-n", "4", "--mca", "btl", "self", "a"},
        {"-n", "4", "-genv", "A", "1", "-env", "B", "2", "-genvall", "a"},
        {"-n", "4", "-genvlist", "A,B", "a"},
        {"-genvnone", "-n", "4", "a"},
        {"-n4", "--pmixmca", "gds", "hash", "--set-env", "A=1", "a"},
        {"-n", "4", "--allow-run-as-root", "--oversubscribe", "--map-by", "slot", "a"},
        {"-n", "4", "--overlap", "a"},
        {"-n", "4", "-ppn", "2", "-prepend-rank", "-wdir", "/", "a"},
        {"-n", "4", "--ntasks-per-node=2", "-u", "-K1", "--mpi=pmix", "--export", "ALL", "a"},
        {"-n", "4", "--bind-to", "core", "--report-bindings", "-D", "/tmp", "a"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        if (parse(lines[i], &line, &err) < 0)
            fail_msg("line %zu: %s", i, err.text);
        assert_int_equal(line.request.programs[0].ranks, 4);
        assert_int_equal(line.request.programs[0].argc, 1);
        assert_string_equal(line.request.programs[0].argv[0], "a");
        run_line_done(&line);
    }
}

/* As mpirun's words say it. */
static void binds_to_cores(void **state)
{
    static const struct {
        const char *const words[WORDS_MAX];
        const char *is; /* NULL: not said */
    } cases[] = {
        {{"--bind-to", "core:overload-allowed", "a"}, "core"},
        {{"--bind-to", "none:if-supported", "a"}, "none"},
        {{"--bind", "core:3", "a"}, "core:3"},
        {{"--cpus-per-rank", "2", "a"}, "core:2"},
        {{"--map-by", "slot:PE=4", "a"}, "core:4"},
        {{"--map-by", ":pe=4", "a"}, "core:4"},
        {{"--map-by", "slot:PE=4,OVERSUBSCRIBE", "a"}, "core:4"},
        {{"--map-by", "slot:oversubscribe,pe=4", "a"}, "core:4"},
        {{"--map-by", "slot:PE=4", "--cpus-per-rank", "4", "a"}, "core:4"},
        {{"-n", "1", "--map-by", "slot:PE=4", "a", ":", "--map-by", "slot", "b"}, "core:4"},
        {{"--map-by", "slot:PE=2:OVERSUBSCRIBE", "--bind-to", "core", "a"}, "core:2"},
        {{"--map-by", "slot:OVERSUBSCRIBE", "a"}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        if (parse(cases[i].words, &line, &err) < 0)
            fail_msg("line %zu: %s", i, err.text);
        if (cases[i].is)
            assert_string_equal(line.request.bind, cases[i].is);
        else
            assert_null(line.request.bind);
        run_line_done(&line);
    }
}

/* Before and behind the file of a job that runs here; the spec of a cluster's job sets it. */
static void binds_a_jobs_ranks_to_cores(void **state)
{
    static const struct {
        const char *const words[WORDS_MAX];
        const char *is, *part; /* one of them */
    } cases[] = {
        {{"--local", "j.yaml", "--map-by", "slot:PE=2"}, "core:2", NULL},
        {{"--local", "--cpus-per-rank", "2", "j.yaml"}, "core:2", NULL},
        {{"--local", "--map-by", "slot:PE=2", "j.yaml", "--bind-to", "core"}, "core:2", NULL},
        {{"--local", "--map-by", "slot:PE=2", "j.yaml", "--bind", "numa"}, NULL, "give one of"},
        {{"j.yaml", "--map-by", "slot:PE=2"}, NULL, "the job's spec sets it: bind: core:2"},
        {{"--cpus-per-rank=2", "j.yaml"}, NULL, "the job's spec sets it: bind: core:2"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_int_equal(parse(cases[i].words, &line, &err), 0);
        if (command_line_parse_spec(&line, &err) == 0)
            assert_string_equal(line.request.bind, cases[i].is);
        else if (!cases[i].part || !strstr(err.text, cases[i].part))
            fail_msg("case %zu: %s", i, err.text);
        run_line_done(&line);
    }
}

/* Wherever it stands. */
static void names_the_option_that_does_not_apply(void **state)
{
    static const struct {
        const char *const words[WORDS_MAX];
        const char *part; /* of the message; NULL: it applies */
    } cases[] = {
        {{"j.yaml", "--timeout", "1s", "--output-dir", "d", "-v"}, "--timeout applies to a prog"},
        {{"--output-dir", "d", "j.yaml", "--timeout", "1s"}, "--output-dir applies to a program"},
        {{"j.yaml", "--expand"}, "--expand applies to a program"},
        {{"j.yaml", "--label", "--name", "n", "--here", "-v"}, NULL},
        {{"--local", "j.yaml", "--timeout", "1s", "--output-dir", "d", "-v"}, NULL},
        {{"--local", "j.yaml", "--key-file", "k"},
         "--local and --key-file: it has no effect on ranks of this"},
        {{"j.yaml", "--orphan-wait", "1s", "--local"},
         "--local and --orphan-wait: it has no effect on ranks of this"},
        {{"--local", "--launch", "env", "j.yaml"},
         "--local and --launch: the spec sets it: launch"},
        {{"--local", "j.yaml", "--launch", "mpirun"}, "--local and --launch: the spec sets it"},
        {{"--local", "--launch", "pmix", "j.yaml"}, NULL},
        {{"--local", "j.yaml", "--name", "n", "--agents", "a:1"}, "--local and --name:"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_int_equal(parse(cases[i].words, &line, &err), 0);
        int rc = command_line_parse_spec(&line, &err);
        if (cases[i].part ? rc == 0 || !strstr(err.text, cases[i].part) : rc < 0)
            fail_msg("case %zu: %s", i, err.text);
        run_line_done(&line);
    }
}

/* Also of a job whose ranks run in pods. */
static void reports_bindings_of_a_job(void **state)
{
    static const char *const lines[][WORDS_MAX] = {{"--report-bindings", "job.yaml"},
                                                   {"job.yaml", "--report-bindings", "--", "a"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        if (parse(lines[i], &line, &err) < 0 || command_line_parse_spec(&line, &err) < 0)
            fail_msg("line %zu: %s", i, err.text);
        assert_true(line.cluster.report_bindings);
        run_line_done(&line);
    }
}

/* As srun takes it, too. */
static void takes_a_signal_before_the_end(void **state)
{
    static const struct {
        const char *value;
        int signo;
        int64_t before_ms;
    } cases[] = {{"USR1", SIGUSR1, 60000},
                 {"SIGUSR2@90", SIGUSR2, 90000},
                 {"term@5m", SIGTERM, 300000},
                 {"10@250ms", SIGUSR1, 250}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_int_equal(
            parse(WORDS("--timeout", "10m", "--signal", cases[i].value, "a"), &line, &err), 0);
        assert_int_equal(line.request.warn_signo, cases[i].signo);
        assert_int_equal(line.request.warn_before_ms, cases[i].before_ms);
        assert_int_equal(request_check_warning(&line.request, &err), 0);
        run_line_done(&line);
    }
}

static void refuses_a_signal_that_cannot_come(void **state)
{
    static const struct {
        const char *const words[WORDS_MAX];
        const char *part;
    } cases[] = {
        {{"--signal", "B:USR1@60", "a"},
         "--signal B:USR1@60: B: signals sbatch's shell alone, and drarun signals ranks: leave it"},
        {{"--signal=RB:USR1", "a"}, "--signal RB:USR1: B: signals sbatch's shell alone"},
        {{"--signal", "R:USR1", "a"},
         "--signal R:USR1: prefixes are srun's, for reservations and sbatch's shell"},
        {{"--signal", "KILL@5", "a"}, "--signal: expected SIG[@TIME] with one of SIGHUP"},
        {{"--signal", "@5", "a"}, "--signal: expected SIG[@TIME] with one of SIGHUP"},
        {{"--signal", "USR1@soon", "a"}, "--signal: expected a duration"},
        {{"--signal", "USR1@", "a"}, "--signal: expected a duration"},
        {{"--signal", "USR1@0", "a"}, "--signal USR1@0: the time must be above 0"},
        {{"--signal", "USR1", "a"}, "--signal USR1@60s: it is sent before --timeout TIME"},
        {{"--timeout", "90", "--signal", "USR1@2m", "a"},
         "--signal USR1@120s: --timeout is 90 s, so the signal cannot come 120 s before it"},
        {{"--timeout", "90", "--signal", "USR1@90", "a"}, "cannot come 90 s before it"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        int rc = parse(cases[i].words, &line, &err);
        if (rc == 0)
            rc = request_check_warning(&line.request, &err);
        run_line_done(&line);
        if (rc == 0 || err.kind != DRARUN_ERR_USAGE || !strstr(err.text, cases[i].part))
            fail_msg("case %zu: %s", i, err.text);
    }
}

/* Each launcher's way to let ranks fail alone. */
static void others_let_ranks_fail(void **state)
{
    static const struct {
        const char *const words[WORDS_MAX];
        const char *is; /* NULL: not said */
    } cases[] = {
        {{"--on-rank-failure=continue", "a"}, "continue"},
        {{"--on-rank-failure", "end", "a"}, "end"},
        {{"--kill-on-bad-exit=0", "a"}, "continue"},
        {{"-K0", "a"}, "continue"},
        {{"-K", "a"}, NULL},
        {{"--kill-on-bad-exit=1", "a"}, NULL},
        {{"--continuous", "a"}, "continue"},
        {{"-disable-auto-cleanup", "a"}, "continue"},
        {{"--runtime-options", "ABORT-NONZERO-EXIT=0", "a"}, "continue"},
        {{"--rto", "error-nonzero-status=false", "a"}, "continue"},
        {{"--mca", "orte_abort_on_non_zero_status", "0", "a"}, "continue"},
        {{"--mca", "orte_abort_on_non_zero_status", "1", "a"}, NULL},
        {{"-env", "I_MPI_FAULT_CONTINUE", "on", "a"}, "continue"},
        {{"-K0", "--on-rank-failure", "end", "a"}, "end"},
        {{"--mca", "orte_abort_on_non_zero_status", "0", "--on-rank-failure", "end", "a"}, "end"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        if (parse(cases[i].words, &line, &err) < 0 ||
            foreign_variables_use(&run_option_table, &line, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        const char *is = line.request.on_rank_failure ? line.request.on_rank_failure : "not said";
        if (strcmp(is, cases[i].is ? cases[i].is : "not said") != 0)
            fail_msg("case %zu: %s", i, is);
        run_line_done(&line);
    }
}

static void other_launchers_variables(void **state)
{
    struct run_line line;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(parse(WORDS("-genv", "A", "1", "--mca", "btl", "tcp", "-env", "A", "2", "a",
                                 ":", "-mca", "pml", "ob1", "b"),
                           &line, &err),
                     0);
    assert_int_equal(line.request.programs[0].env.count, 3);
    assert_string_equal(line.request.programs[0].env.items[0], "A=1");
    assert_string_equal(line.request.programs[0].env.items[1], "OMPI_MCA_btl=tcp");
    assert_string_equal(line.request.programs[0].env.items[2], "A=2");
    assert_int_equal(line.request.programs[1].env.count, 2);
    assert_string_equal(line.request.programs[1].env.items[0], "A=1");
    assert_string_equal(line.request.programs[1].env.items[1], "OMPI_MCA_pml=ob1");
    run_line_done(&line);
    assert_int_equal(parse(WORDS("-genv", "A=1=2", "-env", "B=", "a", "-v"), &line, &err), 0);
    assert_int_equal(line.request.programs[0].env.count, 2);
    assert_string_equal(line.request.programs[0].env.items[0], "A=1=2");
    assert_string_equal(line.request.programs[0].env.items[1], "B=");
    assert_string_equal(line.request.programs[0].argv[0], "a");
    run_line_done(&line);
}

/* A variable sets what the command line does not say. */
static void heeds_other_launchers_variables(void **state)
{
    static const struct {
        const char *value;
        const char *words[WORDS_MAX];
        int64_t timeout_ms;
    } cases[] = {
        {"2", {"a"}, 2000}, {"2", {"--timeout", "7", "a"}, 7000},       {"0", {"a"}, 0},
        {"", {"a"}, 0},     {"2", {"--launch", "mpirun", "mpirun"}, 0}, {"soon", {"a"}, -1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_line line;
        struct drarun_error err = {0};
        assert_int_equal(parse(cases[i].words, &line, &err), 0);
        setenv("MPIEXEC_TIMEOUT", cases[i].value, 1);
        if (cases[i].timeout_ms < 0) {
            assert_true(foreign_variables_use(&run_option_table, &line, &err) < 0);
            assert_non_null(strstr(err.text, "MPIEXEC_TIMEOUT: expected a duration"));
        } else {
            assert_int_equal(foreign_variables_use(&run_option_table, &line, &err), 0);
            assert_int_equal(line.request.timeout_ms, cases[i].timeout_ms);
        }
        run_line_done(&line);
    }
    unsetenv("MPIEXEC_TIMEOUT");
}

/* Every entry that is refused is, and says what its entry says. */
static void refuses_other_launchers_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < foreign_option_count; i++) {
        const struct foreign_option *option = &foreign_options[i];
        const char *at = option->words;
        size_t n = 0;
        for (const char *w; option->way == FOREIGN_REFUSED && (w = words_next(&at, &n));) {
            struct run_line line;
            struct drarun_error err = {0};
            char word[64];
            snprintf(word, sizeof word, "%s%.*s", n == 1 ? "-" : "--", (int)n, w);
            if (parse(WORDS(word, "1", "2"), &line, &err) >= 0)
                fail_msg("%s is not refused", word);
            assert_int_equal(err.kind, DRARUN_ERR_USAGE);
            if (!strstr(err.text, option->text) || !strstr(err.text, word))
                fail_msg("%s: \"%s\" lacks \"%s\"", word, err.text, option->text);
            run_line_done(&line);
        }
    }
}

static int take_pair(const struct option_table *table, int argc, char *const argv[], bool each_only,
                     void *target, struct drarun_error *err)
{
    (void)table, (void)each_only, (void)err;
    if (strcmp(argv[0], "-pair") != 0)
        return 0;
    ((const char **)target)[0] = argc > 2 ? argv[2] : "";
    return argc > 2 ? 3 : argc;
}

static void pair_spellings(struct buf *out)
{
    buf_add_str(out, "--pair --refused ");
}

static bool pair_is_taken(const char *word)
{
    return strcmp(word, "--pair") == 0;
}

/* Options of others come before letters of ours, and only what is taken is suggested. */
static void hands_on_what_others_know(void **state)
{
    static const struct option_others others = {take_pair, pair_spellings, pair_is_taken};
    static const struct option_spec list[] = {
        {.name = "n", .letter = 'n', .value = "N", .group = "all", .kind = OPTION_TEXT},
        {.name = "paint", .letter = 'p', .group = "all", .kind = OPTION_FLAG, .offset = 8},
    };
    static const struct {
        const char *word, *part;
    } wrong[] = {
        {"-pairs", "did you mean --pair?"},
        {"--pain", "did you mean --paint?"},
        {"--refusd", "unknown option --refusd; --help lists them"},
        {"--nn", "unknown option --nn; --help lists them"},
    };
    const struct option_table table = {list, ARRAY_LEN(list), &others};
    const char *const argv[] = {"-pair", "a", "b", "prog"};
    const char *target[2] = {NULL, NULL};
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(options_parse(&table, 4, unconst(argv), false, target, &err), 3);
    assert_string_equal(target[0], "b");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_true(options_parse(&table, 1, unconst(&wrong[i].word), false, target, &err) < 0);
        if (!strstr(err.text, wrong[i].part))
            fail_msg("%s: \"%s\" lacks \"%s\"", wrong[i].word, err.text, wrong[i].part);
    }
    assert_int_equal(options_set(&table, "--n=4", "-np", NULL, false, target, &err), 0);
    assert_string_equal(target[0], "4");
}

static void table_is_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < run_option_table.count; i++) {
        const struct option_spec *a = &run_option_table.list[i];
        assert_non_null(a->help);
        assert_true(a->kind != OPTION_CALL || a->set);
        assert_true(a->kind == OPTION_FLAG || a->kind == OPTION_CALL || a->value);
        for (size_t k = 0; k < i; k++) {
            const struct option_spec *b = &run_option_table.list[k];
            assert_string_not_equal(a->name, b->name);
            assert_true(!a->letter || a->letter != b->letter);
        }
    }
}

/* What a list of choices has, its help names. */
static void check_choices(const struct verb *verb)
{
    char text[256], *left = NULL;
    for (size_t i = 0; verb->options && i < verb->options->count; i++) {
        const struct option_spec *spec = &verb->options->list[i];
        if (!spec->choices || !spec->help)
            continue;
        snprintf(text, sizeof text, "%s", spec->choices);
        for (char *word = strtok_r(text, " ", &left); word; word = strtok_r(NULL, " ", &left))
            if (strcmp(word, "FILE") != 0 && strcmp(word, "DIR") != 0 && !strstr(spec->help, word))
                fail_msg("drarun %s --%s: the help lacks %s", verb->name, spec->name, word);
    }
    for (size_t i = 0; verb->parts && verb->parts[i]; i++)
        check_choices(verb->parts[i]);
}

static void help_names_every_choice(void **state)
{
    (void)state;
    for (const struct verb_group *group = verb_groups; group->title; group++)
        for (size_t i = 0; group->verbs[i]; i++)
            check_choices(group->verbs[i]);
}

static void help_and_completion_know_every_option(void **state)
{
    struct buf help = BUF_INIT, completion = BUF_INIT;
    char name[64];
    (void)state;
    run_options_help(&help);
    assert_int_equal(completion_script("bash", &completion), 0);
    assert_int_equal(completion_script("csh", &completion), -EINVAL);
    buf_add(&help, "", 1);
    buf_add(&completion, "", 1);
    char *run = strstr(completion.data, "      run) _drarun_words");
    assert_non_null(run);
    *strchr(run, '\n') = '\0';
    for (size_t i = 0; i < run_option_table.count; i++) {
        const struct option_spec *spec = &run_option_table.list[i];
        snprintf(name, sizeof name, "--%s ", spec->name);
        assert_int_equal(strstr(run, name) != NULL, spec->group != NULL);
        name[strlen(name) - 1] = '\0';
        if (spec->group)
            assert_non_null(strstr(help.data, name));
    }
    for (const char *line = help.data; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    buf_done(&help);
    buf_done(&completion);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_mpirun_spellings),
        cmocka_unit_test(leaves_the_programs_arguments_alone),
        cmocka_unit_test(splits_programs),
        cmocka_unit_test(reads_durations),
        cmocka_unit_test(reads_values),
        cmocka_unit_test(refuses_with_a_reason),
        cmocka_unit_test(takes_other_launchers_options),
        cmocka_unit_test(binds_to_cores),
        cmocka_unit_test(binds_a_jobs_ranks_to_cores),
        cmocka_unit_test(names_the_option_that_does_not_apply),
        cmocka_unit_test(reports_bindings_of_a_job),
        cmocka_unit_test(takes_a_signal_before_the_end),
        cmocka_unit_test(refuses_a_signal_that_cannot_come),
        cmocka_unit_test(others_let_ranks_fail),
        cmocka_unit_test(other_launchers_variables),
        cmocka_unit_test(heeds_other_launchers_variables),
        cmocka_unit_test(refuses_other_launchers_options),
        cmocka_unit_test(keeps_all_words),
        cmocka_unit_test(picks_what_it_knows),
        cmocka_unit_test(hands_on_what_others_know),
        cmocka_unit_test(table_is_consistent),
        cmocka_unit_test(help_names_every_choice),
        cmocka_unit_test(help_and_completion_know_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
