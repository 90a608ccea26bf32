/* SPDX-License-Identifier: Apache-2.0 */
/* drarun/bench.h in a build without the benchmark (-DDRARUN_BENCH=OFF): the library has the same
 * functions, and they say what is missing. */
#include "drarun/bench.h"

#include <errno.h>

#include "lib/base/error.h"

static int refuse(struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, ENOTSUP,
                      "this libdrarun was built without the benchmark (-DDRARUN_BENCH=OFF), which "
                      "judges results: use one that has it, as a release does");
}

int drarun_bench_verdicts(const char *text, size_t length,
                          const struct drarun_bench_options *options, char **ret_json,
                          struct drarun_error *err)
{
    (void)text, (void)length, (void)options, (void)ret_json;
    return refuse(err);
}

int drarun_bench_report(const char *text, size_t length, const struct drarun_bench_options *options,
                        char **ret_html, struct drarun_error *err)
{
    (void)text, (void)length, (void)options, (void)ret_html;
    return refuse(err);
}
