/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/table.h"

#include <string.h>

/* As many digits as fit in the width. */
static void fit(double value, int width, char *ret, size_t size)
{
    for (int digits = 2; digits >= 0; digits--)
        if (snprintf(ret, size, "%*.*f", width, digits, value) <= width)
            return;
    snprintf(ret, size, "%*.*e", width, width >= 7, value);
}

void table_begin(FILE *out, const struct bench_options *o, const struct backend_world *world,
                 const struct table_rank *ranks)
{
    bool factor = o->step_factor > 1;
    fprintf(out, "# drarun-bench version %s %s\n# Collective test starting: %s\n", DRARUN_VERSION,
            world->library, o->collective->name);
    fprintf(out,
            "# nThread 1 nGpus 1 minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %u iters: "
            "%u agg iters: %u "
            "validation: %u graph: 0 unalign: %u\n",
            o->min_bytes, o->max_bytes, factor ? o->step_factor : o->step_bytes,
            factor ? "factor" : "bytes", o->warmup, o->plan.iters, o->plan.agg, o->plan.check,
            o->unaligned);
    fputs("#\n# Using devices\n", out);
    for (unsigned i = 0; i < world->ranks; i++)
        fprintf(out, "#  Rank %2u Group  0 Pid %6d on %10s device %2d [%s] %s\n", i, ranks[i].pid,
                ranks[i].host, 0, o->backend, ranks[i].device);
    fputs("#\n", out);
    fprintf(out,
            "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place     "
            "     \n",
            "", "", "", "", "");
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n", "size",
            "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
            "busbw", "#wrong");
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n", "(B)",
            "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
            "");
}

static void half_row(FILE *out, const struct measured *m)
{
    char time[16], algbw[16], busbw[16];
    fit(m->seconds * 1e6, 7, time, sizeof time);
    fit(m->algbw, 6, algbw, sizeof algbw);
    fit(m->busbw, 6, busbw, sizeof busbw);
    fprintf(out, "  %7s  %6s  %6s", time, algbw, busbw);
    if (m->wrong < 0)
        fputs("     N/A", out);
    else
        fprintf(out, "  %6g", m->wrong);
}

void table_row(FILE *out, const struct measure_case *m, const struct measured *out_of_place,
               const struct measured *in_place)
{
    const struct layout *l = &out_of_place->layout;
    size_t larger = l->send > l->recv ? l->send : l->recv;
    fprintf(out, "%12zu  %12zu  %8s  %6s  %6d", larger * element_size(m->type), l->count,
            element_name(m->type), m->collective->reduces ? reduction_name(m->op) : "none",
            m->collective->rooted ? (int)m->root : -1);
    half_row(out, out_of_place);
    half_row(out, in_place);
    fputc('\n', out);
    fflush(out);
}

void table_end(FILE *out, const struct bench_options *o, double wrong, double busbw)
{
    fprintf(out, "# %-20s : %.0f %s\n# %-20s : %g %s\n#\n# Collective test concluded: %s\n#\n",
            "Out of bounds values", wrong, wrong > 0 ? "FAILED" : "OK", "Avg bus bandwidth", busbw,
            o->min_busbw < 0       ? ""
            : busbw < o->min_busbw ? "FAILED"
                                   : "OK",
            o->collective->name);
    fflush(out);
}
