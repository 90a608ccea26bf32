/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/bench/failure.h"
#include "launcher/bench/results.h"
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
                       const char *report, struct strlist *line)
{
    add_count(line, "--ranks", choice->ranks);
    add_count(line, "--workers", choice->workers);
    add_count(line, "--ranks-per-worker", choice->per_worker);
    add(line, "--agents", choice->agents);
    add(line, "--key-file", choice->key_file);
    add(line, "--bind", choice->bind);
    add(line, "--hang-after", choice->hang_after);
    add(line, "--report", report);
    for (size_t i = 0; i < choice->env.count; i++)
        add(line, "--env", choice->env.items[i]);
    add(line, "--", program);
    strlist_add_all(line, choice->words.items + 1);
    add(line, "--json-lines", results);
}

/* In memory, and gone with this process, also when drarun-remote takes its place. */
static int memory_file(const char *what, int *ret_fd, char *path, size_t size,
                       struct drarun_error *err)
{
    int fd = memfd_create("drarun-bench", MFD_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "memory for %s: %s", what, strerror(errno));
    snprintf(path, size, "/proc/%d/fd/%d", (int)getpid(), fd);
    *ret_fd = fd;
    return 0;
}

int bench_local(char *const all[], const struct bench_choice *choice)
{
    char program[PATH_MAX], results[64] = "", report[64] = "";
    cleanup_close int fd = -1, report_fd = -1;
    bool lines = choice->files.lines && !choice->agents;
    struct drarun_error err = {0};
    CLEANUP(runs_done) struct runs runs = {0};
    CLEANUP(strlist_done) struct strlist line = STRLIST_INIT;
    int rc = program_find("drarun-bench", "DRARUN_BENCH", program, &err);
    if (rc == 0 && !choice->no_verdict && !choice->files.lines && !choice->agents)
        rc = memory_file("results", &fd, results, sizeof results, &err);
    if (rc == 0 && lines)
        rc = memory_file("a report", &report_fd, report, sizeof report, &err);
    if (rc == 0)
        write_line(choice, program, results[0] ? results : NULL, report[0] ? report : NULL, &line);
    if (rc == 0 && line.failed)
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc < 0) {
        log_error("bench: %s", err.text);
        return error_exit_status(err.kind);
    }
    int status = run_verb(all, (int)line.count, line.items);
    if (report[0] && failure_append(report, choice->files.lines, &err) < 0)
        log_error("bench: %s", err.text);
    const char *file = results[0] ? results : choice->agents ? NULL : choice->files.lines;
    if (status > 1 || choice->no_verdict || !file)
        return status;
    int judged = results_read(file, &runs, &err) < 0 ? verdict_none(&err)
                                                     : verdict_lines(&runs, &choice->asked, NULL);
    return status ? status : judged;
}
