/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/table.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/spread.h"

/* As many digits as fit in the width. */
static void fit(double value, int width, char *ret, size_t size)
{
    for (int digits = 2; digits >= 0; digits--)
        if (snprintf(ret, size, "%*.*f", width, digits, value) <= width)
            return;
    snprintf(ret, size, "%*.*e", width, width >= 7, value);
}

static void head_line(FILE *out, const char *const first[5], const char *const half[8], bool each)
{
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s", first[0], first[1], first[2], first[3], first[4]);
    for (unsigned i = 0; i < 2; i++) {
        fprintf(out, "  %7s  %6s  %6s  %6s", half[0], half[1], half[2], half[3]);
        if (each)
            fprintf(out, "  %7s  %7s  %7s  %7s", half[4], half[5], half[6], half[7]);
    }
    fputs(" \n", out);
}

static void head(FILE *out, bool each)
{
    static const char *const names[] = {"size", "count", "type", "redop", "root"};
    static const char *const units[] = {"(B)", "(elements)", "", "", ""};
    static const char *const half[] = {"time",  "algbw", "busbw", "#wrong",
                                       "i_min", "i_max", "i_p99", "i_cv%"};
    static const char *const half_units[] = {"(us)", "(GB/s)", "(GB/s)", "",
                                             "(us)", "(us)",   "(us)",   "(%)"};
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s%s\n", "", "", "", "", "",
            each ? "              out-of-place (+ per-iteration)                                "
                   "in-place (+ per-iteration)"
                 : "           out-of-place                       in-place          ");
    head_line(out, names, half, each);
    head_line(out, units, half_units, each);
}

bool table_is_first_of_host(const struct table_rank *ranks, unsigned rank)
{
    for (unsigned i = 0; i < rank; i++)
        if (strcmp(ranks[i].host, ranks[rank].host) == 0)
            return false;
    return true;
}

void table_rank_end(const struct table_rank *ranks, unsigned rank, struct probed_end *to)
{
    const struct table_rank *of = &ranks[rank];
    *to = (struct probed_end){.rank = (int)rank, .rail = -1};
    snprintf(to->host, sizeof to->host, "%s", of->host);
    snprintf(to->node, sizeof to->node, "%s", of->place.node);
    snprintf(to->device, sizeof to->device, "%s%s%s", of->device, of->address[0] ? " " : "",
             of->address);
    snprintf(to->nic, sizeof to->nic, "%s", of->place.nearest);
}

void table_probed(FILE *out, const struct probed *probed)
{
    struct buf text = BUF_INIT;
    probed_text(probed, &text);
    fputs(text.data ? text.data : "", out);
    fflush(out);
    buf_done(&text);
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
                ranks[i].host, ranks[i].index, *ranks[i].address ? ranks[i].address : o->backend,
                ranks[i].device);
    fputs("#\n", out);
    head(out, o->plan.each);
    fflush(out); /* the first row may take long */
}

static void calls(FILE *out, double *times, size_t count)
{
    struct spread spread;
    char text[4][16];
    spread_of(times, count, &spread);
    const double values[] = {spread.least * 1e6, spread.most * 1e6, spread.p99 * 1e6,
                             spread_variation(&spread)};
    for (size_t i = 0; i < 4; i++)
        fit(values[i], 7, text[i], sizeof text[i]);
    fprintf(out, "  %7s  %7s  %7s  %7s", text[0], text[1], text[2], text[3]);
}

static void half_row(FILE *out, const struct bench_options *o, const struct measured *m)
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
    if (o->plan.each)
        calls(out, m->each + o->skip, o->plan.iters - o->skip);
}

void table_row(FILE *out, const struct bench_options *o, const struct measure_case *m,
               const struct measured *out_of_place, const struct measured *in_place)
{
    const struct layout *l = &out_of_place->layout;
    size_t larger = l->send > l->recv ? l->send : l->recv;
    fprintf(out, "%12zu  %12zu  %8s  %6s  %6d", larger * element_size(m->type), l->count,
            element_name(m->type), m->collective->reduces ? reduction_name(m->op) : "none",
            m->collective->rooted ? (int)m->root : -1);
    half_row(out, o, out_of_place);
    half_row(out, o, in_place);
    fputc('\n', out);
    fflush(out);
}

void table_latency(FILE *out, const struct bench_options *o, const struct result *result)
{
    if (!o->latency)
        return;
    fprintf(
        out,
        "#\n# Latency: of %u single calls out of place, each behind a barrier, its slowest rank "
        "(us)\n# %10s  %8s  %6s  %6s  %9s  %9s  %9s  %9s  %9s\n",
        o->plan.iters - o->skip, "size", "type", "redop", "root", "median", "p95", "p99", "least",
        "most");
    for (size_t i = 0; i < result->row_count; i++) {
        const struct result_row *row = &result->rows[i];
        const struct spread *s = &row->out_of_place.spread;
        if (row->latency < 0)
            continue;
        fprintf(out, "# %10" PRIu64 "  %8s  %6s  %6d  %9.2f  %9.2f  %9.2f  %9.2f  %9.2f\n",
                row->bytes, row->type, row->op, row->root, row->latency * 1e6, s->p95 * 1e6,
                s->p99 * 1e6, s->least * 1e6, s->most * 1e6);
    }
    fputs("#\n", out);
}

void table_traffic(FILE *out, const struct result_traffic *traffic)
{
    if (traffic->known)
        fprintf(out, "# %-20s : rdma=%.0f net=%.0f bytes\n", "Traffic of the hosts", traffic->rdma,
                traffic->net);
}

void table_faults(FILE *out, const struct result_faults *faults)
{
    if (!faults->known)
        return;
    fprintf(out, "# %-20s : %s\n", "Errors looked for on", faults->looked);
    if (faults->not_looked[0])
        fprintf(out, "# %-20s : %s\n", "Errors not looked for", faults->not_looked);
    for (size_t i = 0; i < faults->rose.count; i++)
        fprintf(out, "# %-20s : %s\n", "Errors of devices", faults->rose.items[i]);
}

void table_wrong(FILE *out, const struct result *result)
{
    CLEANUP(strlist_done) struct strlist ranks = STRLIST_INIT;
    result_wrong_ranks(result, SIZE_MAX, &ranks); /* all: who reads it counts them */
    ;
    for (size_t i = 0; i < ranks.count; i++)
        fprintf(out, "# %-20s : %s\n", "Wrong data of", ranks.items[i]);
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
