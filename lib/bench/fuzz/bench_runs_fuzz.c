/* SPDX-License-Identifier: Apache-2.0 */
/* Anybody's output of a benchmark, and the verdict on it: what counts as measured is a number, and
 * what is written as JSON is read back with as many rows. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/bench/result_json.h"
#include "lib/bench/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_half(const struct result_half *half)
{
    if (half->measured &&
        (!isfinite(half->busbw) || half->busbw < 0 || half->seconds != half->seconds))
        abort();
}

static void check_json(const struct result *r)
{
    struct result again;
    json_t *json = result_json(r);
    result_init(&again);
    if (!json || result_json_read(json, "again", 0, &again, NULL) < 0 ||
        again.row_count != r->row_count || again.rank_count != r->rank_count)
        abort();
    json_decref(json);
    result_done(&again);
}

static void check_verdict(const struct run *run, const struct known *known)
{
    static const struct limit_given given = {0};
    static const struct verdict_demands demands = {
        .min_busbw = 1, .min_best_busbw = 1, .min_percent = 1};
    struct verdict verdict;
    struct buf out = BUF_INIT;
    verdict_make(run, known_find(known, NULL, &run->result), &given, &demands, &verdict);
    verdict_text(&verdict, &out);
    json_t *json = verdict_json(&verdict);
    if (!json || !out.data || (verdict.data == VERDICT_DATA_WRONG && verdict.best))
        abort();
    json_decref(json);
    buf_done(&out);
    verdict_done(&verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct runs runs = {0};
    static struct known known; /* read once: it takes longer than the rest */
    if (known.count == 0 && known_builtin(&known, NULL) < 0)
        abort();
    int rc = runs_read((const char *)data, size, "fuzz", &runs, NULL);
    for (size_t i = 0; rc == 0 && i < runs.count; i++) {
        const struct result *r = &runs.list[i]->result;
        for (size_t k = 0; k < r->row_count; k++) {
            check_half(&r->rows[k].out_of_place);
            check_half(&r->rows[k].in_place);
        }
        check_json(r);
        check_verdict(runs.list[i], &known);
    }
    runs_done(&runs);
    return 0;
}
