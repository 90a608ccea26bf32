/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the benchmark in a build without it (-DDRARUN_BENCH=OFF): they say so. */
#include "launcher/verbs/optional.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/log.h"

static const struct option_table none = {0};

#define WHY                                                                                        \
    "%s: this drarun was built without the benchmark (-DDRARUN_BENCH=OFF): use one that has it, "  \
    "as a release does"

static int run(int argc, char *const argv[])
{
    const char *last = argc > 0 ? argv[argc - 1] : "";
    bool asks = strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0;
    if (asks)
        printf(WHY "\n", argv[-1]);
    else
        log_error(WHY, argv[-1]);
    return asks ? 0 : error_exit_status(DRARUN_ERR_USAGE);
}

const struct verb verb_bench = {
    "bench", NULL, "Is not in this build.", &none, run, "not in this build", NULL};
const struct verb verb_accept = {
    "accept", NULL, "Is not in this build.", &none, run, "not in this build", NULL};
