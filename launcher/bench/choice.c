/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/choice.h"

#include <errno.h>

#include "benchmarks/bench/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

void bench_choice_done(struct bench_choice *choice)
{
    strlist_done(&choice->env);
    strlist_done(&choice->words);
}

int bench_choice_check(const struct bench_choice *choice, struct drarun_error *err)
{
    struct bench_options options;
    CLEANUP(strlist_done) struct strlist line = STRLIST_INIT;
    strlist_add(&line, "drarun-bench");
    strlist_add_all(&line, choice->words.items);
    if (line.failed)
        return error_set(err, ENOMEM, "out of memory");
    return options_read((int)line.count, line.items, &options, err);
}

void bench_choice_help(struct buf *out)
{
    buf_add_str(out, "\nAnd those of drarun-bench, its -n, -x and -V by their long names:\n");
    options_help(&bench_option_table, out);
}
