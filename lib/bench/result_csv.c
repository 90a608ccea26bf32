/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/result_csv.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/bench/written.h"

static void cell(FILE *out, bool known, double value)
{
    fputc(',', out);
    if (known)
        fprintf(out, "%.6g", value);
}

static void half(FILE *out, const struct result_row *row, const char *place,
                 const struct result_half *h)
{
    const struct spread *s = &h->spread;
    const double times[] = {s->least, s->most, s->mean, s->p50, s->p95, s->p99, s->deviation};
    if (!h->measured)
        return;
    fprintf(out, "%" PRIu64 ",%" PRIu64 ",%s,%s,%d,%s", row->bytes, row->count, row->type, row->op,
            row->root, place);
    cell(out, h->seconds >= 0, h->seconds * 1e6);
    cell(out, true, h->algbw);
    cell(out, true, h->busbw);
    cell(out, h->wrong >= 0, h->wrong);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        cell(out, h->has_spread, times[i] * 1e6);
    cell(out, h == &row->out_of_place && row->latency >= 0, row->latency * 1e6);
    fputc('\n', out);
}

int result_csv_begin(FILE *out, const char *name, struct drarun_error *err)
{
    fputs("size,count,type,redop,root,place,time_us,algbw,busbw,wrong,min_us,max_us,avg_us,p50_us,"
          "p95_us,p99_us,stdev_us,latency_us\n",
          out);
    return written(out, name, err);
}

void result_csv_text(const struct result *r, struct buf *out)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    bool whole = file && result_csv_begin(file, "csv", NULL) == 0;
    for (size_t i = 0; whole && i < r->row_count; i++)
        whole = result_csv_row(file, "csv", &r->rows[i], NULL) == 0;
    whole = file && fclose(file) == 0 && whole;
    if (whole)
        buf_add(out, text, size);
    out->failed |= !whole;
}

int result_csv_row(FILE *out, const char *name, const struct result_row *row,
                   struct drarun_error *err)
{
    half(out, row, "out", &row->out_of_place);
    half(out, row, "in", &row->in_place);
    return written(out, name, err);
}
