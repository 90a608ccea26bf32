/* SPDX-License-Identifier: Apache-2.0 */
/* A result as JSON: nccl-tests' schema (src/util.cu of 2.19, version 3: booleans and the root are
 * texts, devices stand in config), and beside it what it has not:
 *
 *   {"version": 3, "program", "collective", "library", "start_time", "args", "env", "config":
 *    {..., "devices": [{..., "node", "nic", "nic_nearest", "nic_path", "numa", "nic_gbit",
 *     "kernel", "driver", "copy_gbs"}]}, "stand_in", "about",
 *    "results": [{"size", "count", "type", "redop", "root", "latency_us", "out_of_place": {"time",
 *    "alg_bw", "bus_bw", "nwrong", "per_rank_times_us"}, "out_of_place_per_iter": {...},
 * "in_place", ...}], "out_of_bounds", "average_bus_bandwidth",
 *    "device_errors", "pairs": {...} (probed.h), "end_time", "failed": {"kind", "text", "status",
 *    "host", "cause"}}
 *
 * As JSON lines the same: {"kind": "begin", ...}, {"kind": "row", ...} for each of results, and
 * {"kind": "end", ...}, and {"kind": "failed", "failed": {...}} of a job that did not end well,
 * each written whole with its newline, so that what is there after any end of the program can be
 * read. Pure but for `out`. */
#ifndef DRARUN_LIB_BENCH_RESULT_JSON_H
#define DRARUN_LIB_BENCH_RESULT_JSON_H

#include <stdio.h>
#include "lib/bench/result.h"

/* A new reference; NULL without memory. What was not measured is left out or null. */
json_t *result_json(const struct result *r);

struct result_lines { /* where lines go */
    FILE *out;        /* NULL: nowhere */
    const char *name; /* for messages */
    bool marked;      /* among other output: marked.h */
};

/* One line each, flushed; a write that fails is an error that names the file. */
int result_line_begin(const struct result_lines *to, const struct result *r,
                      struct drarun_error *err);
int result_line_row(const struct result_lines *to, const struct result_row *row,
                    struct drarun_error *err);
int result_line_end(const struct result_lines *to, const struct result *r,
                    struct drarun_error *err);

int result_line_failed(const struct result_lines *to, const struct result *r,
                       struct drarun_error *err);

/* Adds what a document or a line says to *to. Members that are not known are passed over, those of
 * the wrong type are an error; `name` and `line` (0: none) are for messages. */
int result_json_read(const json_t *value, const char *name, unsigned line, struct result *to,
                     struct drarun_error *err);

#endif
