/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/run/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/wire/dial.h"

#define KILL_AFTER_MS 1000 /* so that every rank is gone within 2 s of the first failure */

/* Options that a cluster's job has no use for, before or behind its spec. */
static int check_for_cluster(const struct run_line *line, struct drarun_error *err)
{
    const struct job_request *request = &line->request;
    const struct option_spec *given = line->not_for_cluster;
    if (request->inherit)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "-genv%s: the ranks' environment is set in the job's spec (the container's env)",
            request->inherit);
    if (request->cores > 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%u cores for each rank: the job's spec sets it: bind: core:%u",
                          request->cores, request->cores);
    if (!given)
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "--%s applies to a program on the command line; %s is a job of a cluster%s%s",
                      given->name, request->programs[0].argv[0], given->instead ? ": " : "",
                      given->instead ? given->instead : "");
}

/* What ranks on this machine have no use for, and what the spec of --local says. */
static int check_for_local(const struct run_line *line, struct drarun_error *err)
{
    const struct job_request *request = &line->request;
    const struct option_spec *given = line->not_for_local;
    if (request->launch_env || request->launch_mpirun) /* pmix is the default */
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--local and --launch: the spec sets it: launch");
    if (!given)
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--local and --%s: %s", given->name,
                      given->instead ? given->instead
                                     : "it has no effect on ranks of this machine");
}

bool command_line_is_spec(const struct run_line *line)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    const struct job_request *request = &line->request;
    if (line->one_program || request->program_count != 1 || request->programs[0].argc < 1)
        return false;
    const char *word = request->programs[0].argv[0];
    size_t length = strlen(word);
    if (strcmp(word, "-") == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        size_t n = strlen(endings[i]);
        if (length > n && strcmp(word + length - n, endings[i]) == 0)
            return true;
    }
    return false;
}

/* Words up to ":" or the end. */
static size_t count_words(int argc, char *const argv[])
{
    int count = 0;
    while (count < argc && strcmp(argv[count], ":") != 0)
        count++;
    return (size_t)count;
}

/* One program with its options. Returns how many words that were. */
static int parse_program(int argc, char *const argv[], struct run_line *line, bool first,
                         struct drarun_error *err)
{
    struct job_request *request = &line->request;
    struct request_program *program = &request->programs[request->program_count++];
    int used = options_parse(&run_option_table, argc, argv, !first, line, err);
    if (used < 0)
        return used;
    program->argv = argv + used;
    program->argc = (size_t)(argc - used);
    if (!line->one_program && !command_line_is_spec(line)) /* else nothing follows it */
        program->argc = count_words(argc - used, argv + used);
    int words = used + (int)program->argc;
    if (program->argc > 0 && !program->argv[0][0])
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "the program's name is empty; is a variable of the command line unset?");
    if (program->argc > 0 || (first && (line->help || line->version || line->cluster.job)))
        return words;
    if (first && request->program_count == 1)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "no program given: drarun [options] program [args]; drarun help shows the "
            "verbs");
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "no program before or after a \":\"");
}

static int check_level(const struct run_line *line, struct drarun_error *err)
{
    if (line->console.quiet && line->verbose)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--quiet and --verbose: give one of them");
    return 0;
}

/* mpirun's PE=N says how many of what its --bind-to says. */
static int bind_to_cores(struct job_request *request, struct drarun_error *err)
{
    if (request->cores == 0 || request->bind == request->bind_cores)
        return 0;
    if (request->bind && strcmp(request->bind, "core") != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%u cores for each rank are --bind core:%u, and --bind %s is given, too: "
                          "give one of them",
                          request->cores, request->cores, request->bind);
    snprintf(request->bind_cores, sizeof request->bind_cores, "core:%u", request->cores);
    request->bind = request->bind_cores;
    return 0;
}

int command_line_parse_spec(struct run_line *line, struct drarun_error *err)
{
    struct job_request *request = &line->request;
    struct request_program *program = &request->programs[0];
    struct cluster_run *cluster = &line->cluster;
    char *const *words = program->argv + 1;
    int count = (int)program->argc - 1;
    int used = options_parse(&run_option_table, count, words, false, line, err);
    if (used < 0 || line->help || line->version)
        return used < 0 ? used : 0;
    bool split = used > 0 && strcmp(words[used - 1], "--") == 0;
    if (used < count && !split)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "unexpected argument \"%s\": arguments for the ranks go after --",
                          words[used]);
    if (program->ranks && line->local)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-n %u: a job's spec sets the ranks of each worker (ranksPerWorker); "
                          "--workers N changes the workers",
                          program->ranks);
    if (program->ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-n %u: a job's spec sets the ranks of each worker (ranksPerWorker); "
                          "--workers N changes the workers, --namespace %u is the namespace",
                          program->ranks, program->ranks);
    if (!line->local && (program->env.count > 0 || request->env_all.count > 0 || program->wd))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: the job's spec sets it: the container's %s",
                          program->wd ? "--wd" : "--env", program->wd ? "workingDir" : "env");
    if (request->hosts_shown || request->per_host)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: a job's spec sets its workers, and the ranks of each",
                          request->hosts_shown ? request->hosts_shown : "-N");
    int rc = line->local ? check_for_local(line, err) : check_for_cluster(line, err);
    if (rc == 0)
        rc = bind_to_cores(request, err);
    if (rc == 0)
        rc = check_level(line, err); /* one may stand before the file, the other behind it */
    if (rc < 0)
        return rc;
    for (int i = used; i < count; i++)
        strlist_add(&line->args, words[i]);
    cluster->file = program->argv[0];
    cluster->args = &line->args;
    cluster->workers = request->workers;
    cluster->report_bindings = request->report_bindings;
    cluster->label = line->console.label;
    cluster->quiet = line->console.quiet;
    cluster->json = request->json;
    cluster->report_path = request->report_path;
    return line->args.failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* "--agents a:7173 b:7173": the options behind it are then the program's words. */
static bool is_address(const char *word)
{
    char host[256];
    uint16_t port = 0;
    return !strchr(word, '/') && address_split(word, host, sizeof host, &port, NULL) == 0 &&
           host[0] && port > 0;
}

static int check_together(const struct run_line *line, struct drarun_error *err)
{
    const struct job_request *request = &line->request;
    if (request->agents && request->programs[0].argc > 0 &&
        is_address(request->programs[0].argv[0]))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--agents: %s is in the place of the program: list the agents with "
                          "commas between them, without blanks",
                          request->programs[0].argv[0]);
    if (request->agents && request->workers)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--workers starts agents here, --agents uses those that run already: "
                          "give one of them");
    if (request->agents && !request->key_file)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--agents needs --key-file FILE, the key that those agents were started with");
    if (request->alloc && (request->agents || request->workers))
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--alloc, --agents and --workers each select the agents: give one of them");
    if (request->key_file && !request->agents)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--key-file is for --agents");
    return check_level(line, err);
}

/* What holds for all programs comes before what each says itself. */
static int give_to_all(struct job_request *request, struct drarun_error *err)
{
    bool failed = request->env_all.failed;
    for (size_t i = 0; request->env_all.count > 0 && i < request->program_count; i++) {
        struct strlist own = request->programs[i].env;
        request->programs[i].env = (struct strlist)STRLIST_INIT;
        strlist_add_all(&request->programs[i].env, request->env_all.items);
        if (own.count > 0)
            strlist_add_all(&request->programs[i].env, own.items);
        failed |= own.failed || request->programs[i].env.failed;
        strlist_done(&own);
    }
    return failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

static int count_programs(int argc, char *const argv[])
{
    int count = 1;
    for (int i = 0; i < argc; i++)
        count += strcmp(argv[i], ":") == 0;
    return count;
}

int command_line_parse(int argc, char *const argv[], struct run_line *line,
                       struct drarun_error *err)
{
    struct job_request *request = &line->request;
    *line = (struct run_line){
        .request =
            {
                .programs = calloc((size_t)count_programs(argc, argv), sizeof *request->programs),
                .radix = 8,
                .kill_after_ms = KILL_AFTER_MS,
            },
    };
    if (!request->programs)
        return error_set(err, ENOMEM, "out of memory");
    for (int at = 0; at <= argc;) {
        int words = parse_program(argc - at, argv + at, line, at == 0, err);
        if (words < 0)
            return words;
        at += words + 1; /* behind the ":" */
    }
    if (line->help || line->version)
        return 0;
    int rc = give_to_all(request, err);
    if (rc == 0)
        rc = bind_to_cores(request, err);
    return rc < 0 ? rc : check_together(line, err);
}

/* A hyphen, a dash or a minus sign of Unicode (U+2010 to U+2015, U+2212). */
static bool has_other_dash(const char *word)
{
    return (strncmp(word, "\xe2\x80", 2) == 0 && word[2] >= '\x90' && word[2] <= '\x95') ||
           strncmp(word, "\xe2\x88\x92", 3) == 0;
}

int command_line_check_program(const struct run_line *line, struct drarun_error *err)
{
    const struct job_request *request = &line->request;
    for (size_t i = 0; i < request->program_count; i++)
        if (has_other_dash(request->programs[i].argv[0]))
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                              "\"%s\" begins with a dash that is not \"-\", as web pages and word "
                              "processors write it: type the option by hand",
                              request->programs[i].argv[0]);
    if (!line->not_for_programs)
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "--%s is for a job of a cluster, and %s is a program: a job is a file that "
                      "ends in .yaml, .yml or .json, or - for standard input",
                      line->not_for_programs->name, request->programs[0].argv[0]);
}
