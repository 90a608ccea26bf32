/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/asked.h"

#include "lib/base/number.h"

#define GBS_MAX 1e6
#define PERCENT_MAX 1000

int bench_asked_min_busbw(void *target, const char *shown, const char *value,
                          struct drarun_error *err)
{
    struct bench_asked *asked = target;
    return amount_parse(shown, value, GBS_MAX, "GB/s", &asked->demands.min_busbw, err);
}

int bench_asked_min_best(void *target, const char *shown, const char *value,
                         struct drarun_error *err)
{
    struct bench_asked *asked = target;
    return amount_parse(shown, value, GBS_MAX, "GB/s", &asked->demands.min_best_busbw, err);
}

int bench_asked_min_percent(void *target, const char *shown, const char *value,
                            struct drarun_error *err)
{
    struct bench_asked *asked = target;
    return amount_parse(shown, value, PERCENT_MAX, "a percentage", &asked->demands.min_percent,
                        err);
}
