/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/choice.h"

#include <errno.h>

#include "benchmarks/bench/options.h"
#include "lib/base/error.h"

void bench_choice_done(struct bench_choice *choice)
{
    bench_machine_done(&choice->asked.machine);
    strlist_done(&choice->env);
    strlist_done(&choice->sweep);
    strlist_done(&choice->tolerations);
    strlist_done(&choice->words);
}

int bench_choice_check(struct bench_choice *choice, struct drarun_error *err)
{
    struct bench_options options;
    if (choice->role && !choice->job)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--role %s is of a job: add --job FILE",
                          choice->role);
    int rc = options_read((int)choice->words.count, choice->words.items, &options, err);
    if (rc < 0)
        return rc;
    choice->files = (struct keep_files){
        .json = options.json_file, .lines = options.lines_file, .csv = options.csv_file};
    choice->asked.demands.min_busbw = options.min_busbw;
    choice->backend_given = options.backend_given;
    return bench_machine_ready(&choice->asked.machine, err);
}

void bench_choice_help(struct buf *out)
{
    buf_add_str(out, "\nAnd those of drarun-bench, its -n, -x and -V by their long names:\n");
    options_help(&bench_option_table, out);
}
