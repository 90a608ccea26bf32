/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/bench/failure.h"
#include "launcher/bench/results.h"
#include "launcher/cli/verb.h"
#include "launcher/run/command_line.h"
#include "launcher/run/run.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/program_find.h"

static void add(struct strlist *line, const char *option, const char *value)
{
    if (!value)
        return;
    strlist_add(line, option);
    strlist_add(line, value);
}

static void add_count(struct strlist *line, const char *option, uint32_t value)
{
    if (value)
        strlist_addf(line, "%s=%u", option, value);
}

/* As one would type it after `drarun run`. */
static void write_line(const struct bench_choice *choice, const char *program, const char *results,
                       struct strlist *line)
{
    add_count(line, "--ranks", choice->ranks);
    add_count(line, "--workers", choice->workers);
    add_count(line, "--ranks-per-worker", choice->per_worker);
    add(line, "--agents", choice->agents);
    add(line, "--key-file", choice->key_file);
    add(line, "--bind", choice->bind);
    add(line, "--hang-after", choice->hang_after);
    add(line, "--stdin", "none"); /* no rank reads it: who reads next may */
    for (size_t i = 0; i < choice->env.count; i++)
        add(line, "--env", choice->env.items[i]);
    add(line, "--", program);
    strlist_add_all(line, choice->words.items + 1);
    add(line, "--json-lines", results);
}

/* In memory, for rank 0 to write to; gone with this process, also when drarun-remote takes its
 * place. */
static int memory_file(int *ret_fd, char *path, size_t size, struct drarun_error *err)
{
    int fd = memfd_create("drarun-bench", MFD_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "memory for results: %s", strerror(errno));
    snprintf(path, size, "/proc/%d/fd/%d", (int)getpid(), fd);
    *ret_fd = fd;
    return 0;
}

/* The ranks, and how they failed in the user's file of results. */
static int run_ranks(char *const all[], const struct bench_choice *choice,
                     const struct strlist *words)
{
    struct run_line line;
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *report = NULL;
    bool lines = choice->files.lines && !choice->agents;
    int status;
    if (command_line_parse((int)words->count, words->items, &line, &err) < 0)
        status = verb_fail(NULL, &err);
    else
        status = run_programs(all, &line, lines ? &report : NULL);
    run_line_done(&line);
    if (failure_append(report, choice->files.lines, &err) < 0)
        log_error("bench: %s", err.text);
    return status;
}

/* Neither a wheel nor the Debian package drarun has it: the message says what does. */
static int find_program(char path[PATH_MAX], struct drarun_error *err)
{
    struct drarun_error own = {0};
    int rc = program_find("drarun-bench", "DRARUN_BENCH", path, &own);
    const char *where = " (the Debian package drarun-bench and a release's tarball have it)";
    if (rc == 0)
        return 0;
    return error_kind(err, own.kind, -rc, "%s%s", own.text, rc == -ENOENT ? where : "");
}

int bench_local(char *const all[], const struct bench_choice *choice)
{
    char program[PATH_MAX], results[64] = "";
    cleanup_close int fd = -1;
    struct drarun_error err = {0};
    CLEANUP(runs_done) struct runs runs = {0};
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    int rc = find_program(program, &err);
    if (rc == 0 && !choice->no_verdict && !choice->files.lines && !choice->agents)
        rc = memory_file(&fd, results, sizeof results, &err);
    if (rc == 0)
        write_line(choice, program, results[0] ? results : NULL, &words);
    if (rc == 0 && words.failed)
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc < 0)
        return verb_fail("bench", &err);
    int status = run_ranks(all, choice, &words);
    const char *file = results[0] ? results : choice->agents ? NULL : choice->files.lines;
    if (status > 1 || choice->no_verdict || !file)
        return status;
    int judged = results_read(file, &runs, &err) < 0 ? verdict_none(&err)
                                                     : verdict_lines(&runs, &choice->asked, NULL);
    return status ? status : judged;
}
