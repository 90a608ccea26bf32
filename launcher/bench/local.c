/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/local.h"

#include <errno.h>

#include "launcher/programs.h"
#include "launcher/run.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

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
static void write_line(const struct bench_choice *choice, const char *program, struct strlist *line)
{
    add_count(line, "--ranks", choice->ranks);
    add_count(line, "--workers", choice->workers);
    add_count(line, "--ranks-per-worker", choice->per_worker);
    add(line, "--agents", choice->agents);
    add(line, "--key-file", choice->key_file);
    add(line, "--bind", choice->bind);
    add(line, "--hang-after", choice->hang_after);
    for (size_t i = 0; i < choice->env.count; i++)
        add(line, "--env", choice->env.items[i]);
    add(line, "--", program);
    strlist_add_all(line, choice->words.items);
}

int bench_local(char *const all[], const struct bench_choice *choice)
{
    char program[PATH_MAX];
    struct drarun_error err = {0};
    CLEANUP(strlist_done) struct strlist line = STRLIST_INIT;
    int rc = program_find("drarun-bench", "DRARUN_BENCH", program, &err);
    if (rc == 0)
        write_line(choice, program, &line);
    if (rc == 0 && line.failed)
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc < 0) {
        log_error("bench: %s", err.text);
        return error_exit_status(err.kind);
    }
    return run_verb(all, (int)line.count, line.items);
}
