/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/verdict.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/result_json.h"

static void __attribute__((format(printf, 2, 3))) say(struct strlist *to, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    strlist_add(to, text);
}

/* ---- data ---- */

static void look_at_data(struct verdict *v)
{
    const struct result *r = &v->run->result;
    char size[24];
    v->wrong = result_wrong(r);
    v->data = v->wrong > 0   ? VERDICT_DATA_WRONG
              : v->wrong < 0 ? VERDICT_DATA_UNKNOWN
                             : VERDICT_DATA_RIGHT;
    for (size_t i = 0; v->wrong > 0 && i < r->row_count; i++) {
        const struct result_row *row = &r->rows[i];
        if (row->out_of_place.wrong <= 0 && row->in_place.wrong <= 0)
            continue;
        result_size_text(row->bytes, size, sizeof size);
        say(&v->failures, "data is wrong, first at %s%s: no bandwidth of this run counts", size,
            row->out_of_place.wrong > 0 ? "" : " in place");
        return;
    }
    if (r->wrong_rows > 0) { /* what its end says, where rows have only a difference */
        v->data = VERDICT_DATA_WRONG;
        v->wrong = r->wrong_rows;
        say(&v->failures, "data is wrong (%g out of bounds): no bandwidth of this run counts",
            r->wrong_rows);
    } else if (v->data == VERDICT_DATA_UNKNOWN && r->wrong_rows == 0 && r->config.validation > 0) {
        v->data = VERDICT_DATA_RIGHT;
    }
}

/* ---- RDMA ---- */

#define COUNTED_LEAST 1048576.0 /* bytes */
#define COUNTED_RATIO 4         /* of one kind to the other, for a plain word */

/* Where the log is silent. Control messages go over interfaces in any case. */
static void look_at_counters(struct verdict *v)
{
    const struct result_traffic *t = &v->run->result.traffic;
    if (v->rdma != VERDICT_RDMA_UNKNOWN || !t->known)
        return;
    v->rdma_counted = true;
    if (t->rdma >= COUNTED_LEAST && t->rdma > COUNTED_RATIO * t->net)
        v->rdma = VERDICT_RDMA_COUNTED;
    else if (t->net >= COUNTED_LEAST && t->net > COUNTED_RATIO * t->rdma)
        v->rdma = VERDICT_RDMA_NONE;
    else
        v->rdma_counted = false;
}

static enum verdict_rdma rdma_of_log(const struct nccl_log *log, const struct nccl_log_sums *sums,
                                     size_t hosts)
{
    if (sums->tcp > 0)
        return VERDICT_RDMA_NONE;
    if (sums->unproven > 0)
        return VERDICT_RDMA_UNKNOWN;
    if (sums->rdma > 0) /* beside NVLink between others of the hosts, too */
        return sums->rdma_gpu < sums->rdma ? VERDICT_RDMA_HOST : VERDICT_RDMA_GPU;
    if (hosts == 1)
        return VERDICT_RDMA_ONE_HOST;
    return log->nvlink_hosts > 0 ? VERDICT_RDMA_NVLINK : VERDICT_RDMA_UNKNOWN;
}

static void demand_rdma(struct verdict *v)
{
    if (v->rdma == VERDICT_RDMA_NONE)
        say(&v->failures, "RDMA is not used");
    else if (v->rdma == VERDICT_RDMA_UNKNOWN && v->sums.unproven > 0)
        say(&v->failures, "RDMA is not proven: %zu connections go over %s", v->sums.unproven,
            v->sums.unproven_words);
    else if (v->rdma == VERDICT_RDMA_UNKNOWN)
        say(&v->failures, "RDMA is not proven: run with NCCL_DEBUG=INFO");
}

static void look_at_rdma(struct verdict *v, const struct verdict_demands *demands)
{
    const struct nccl_log_sums *sums = &v->sums;
    size_t hosts = result_hosts(&v->run->result);
    v->rdma = rdma_of_log(&v->run->log, sums, hosts);
    look_at_counters(v);
    if (v->rdma == VERDICT_RDMA_NONE && !v->rdma_counted && strcmp(sums->tcp_words, "Socket") == 0)
        say(&v->findings,
            "%zu connections go over TCP sockets, not RDMA: NCCL found no network of its plugin or "
            "no HCA (NCCL_IB_HCA, NCCL_NET, /dev/infiniband in the container)",
            sums->tcp);
    else if (v->rdma == VERDICT_RDMA_NONE && !v->rdma_counted)
        say(&v->findings,
            "%zu connections go over %s, not RDMA: libfabric or UCX found no RDMA device, or was "
            "told to use none (FI_PROVIDER, UCX_TLS, /dev/infiniband in the container)",
            sums->tcp, sums->tcp_words);
    if (v->rdma == VERDICT_RDMA_HOST)
        say(&v->findings,
            "%zu of %zu RDMA connections go without GPUDirect, first %s: GPU and NIC far from each "
            "other, or no nvidia-peermem or DMA-BUF (NCCL_NET_GDR_LEVEL)",
            sums->rdma - sums->rdma_gpu, sums->rdma, sums->host_gpu_off);
    if (demands->require_rdma && hosts != 1)
        demand_rdma(v);
}

/* ---- within hosts ---- */

/* What connects GPUs that do not reach each other. */
static const char *detour_words(const struct nccl_within *within)
{
    return within->shm == 0   ? "the network"
           : within->net == 0 ? "shared memory"
                              : "shared memory and the network";
}

/* Without NVLink that may be the best there is, and only a reason is worth a word. */
static void look_within(struct verdict *v, const struct limit_given *given)
{
    const struct nccl_within *within = &v->within;
    bool link = given->link_gbs > 0 || (v->machine && v->machine->nvlink_gbs > 0);
    struct buf why = BUF_INIT;
    if (!nccl_within_detours(within) || (!link && !nccl_within_has_reason(within)))
        return;
    nccl_within_why(within, &why);
    size_t detours = within->shm + within->net;
    say(&v->findings, "%zu of %zu connections between GPUs of a host go through %s, not P2P: %s",
        detours, detours + within->p2p, detour_words(within), why.data ? why.data : "");
    buf_done(&why);
}

/* ---- figures ---- */

#define REDUCED_MOST 210 /* per cent of the wire: they carry no less than half */

static void compare_with_limit(struct verdict *v)
{
    const char *name = v->run->result.collective;
    if (!(v->limit.gbs > 0) || result_latency(&v->run->result))
        return;
    v->percent = 100 * v->best->busbw / v->limit.gbs;
    if (v->percent <= 105)
        return;
    bool reduces = strstr(name, "reduce") || strstr(name, "broadcast");
    if (reduces && v->percent > REDUCED_MOST && result_hosts(&v->run->result) > 1)
        say(&v->findings,
            "above the limit by more than switches that reduce, or a tree, explain: NVLink "
            "connects the hosts (NCCL_DEBUG=INFO shows it; --link GB/S is its limit), or their "
            "NICs are others");
    else if (reduces)
        say(&v->findings,
            "above the limit: switches that reduce (NVLS, SHARP), or a tree over two hosts, carry "
            "less than bus bandwidth counts; NCCL_ALGO=Ring measures the wire");
    else
        say(&v->findings, "above the limit: %s is not what this ran on", v->limit.why);
}

static void look_at_figures(struct verdict *v)
{
    const struct result *r = &v->run->result;
    v->best = v->data == VERDICT_DATA_WRONG ? NULL : result_peak(r, &v->row);
    v->average = v->data == VERDICT_DATA_WRONG ? -1
                 : r->average >= 0             ? r->average
                                               : result_average(r);
    if (v->best) {
        compare_with_limit(v);
        if (v->seen)
            v->seen_busbw = result_busbw_at(r, v->seen->bytes);
    } else {
        v->row = NULL;
    }
}

static void demand_busbw(struct verdict *v, const char *option, double least, const char *what,
                         double busbw)
{
    if (least >= 0 && busbw < 0)
        say(&v->failures, "%s %g: no bandwidth counts", option, least);
    else if (least >= 0 && busbw < least)
        say(&v->failures, "%s %g: %s has %.4g", option, least, what, busbw);
}

static void look_at_demands(struct verdict *v, const struct verdict_demands *demands)
{
    demand_busbw(v, "--min-busbw", demands->min_busbw, "the average of the sizes", v->average);
    demand_busbw(v, "--min-best-busbw", demands->min_best_busbw, "the best size",
                 v->best ? v->best->busbw : -1);
    if (demands->min_percent >= 0 && v->percent < demands->min_percent)
        say(&v->failures, "--min-percent %g: %s", demands->min_percent,
            v->percent < 0 ? "there is no per cent of a limit" : "it is less");
}

/* Calls at the beginning that take half as long again as all of the later ones do, but for one in
 * twenty of those: 0 when the calls are not known or differ all along. */
static size_t warming(const struct result_half *half, double *ret_times)
{
    size_t count = half->calls ? half->call_count : 0, first = half->skipped, late = 0;
    size_t middle = count / 2;
    double sum = 0, usual, most = 0;
    if (count < first + 10)
        return 0;
    for (size_t i = middle; i < count; i++)
        sum += half->calls[i];
    usual = sum / (double)(count - middle);
    while (first < middle && half->calls[first] > 1.5 * usual) {
        most = half->calls[first] > most ? half->calls[first] : most;
        first++;
    }
    for (size_t i = first; i < count; i++)
        late += half->calls[i] > 1.5 * usual;
    if (late * 20 > count - first)
        return 0;
    *ret_times = most / usual;
    return first - half->skipped;
}

static void look_at_warmup(struct verdict *v)
{
    const struct result *r = &v->run->result;
    size_t most = 0, at = 0;
    double times = 0, of_most = 0;
    char size[24];
    for (size_t i = 0; i < 2 * r->row_count; i++) {
        const struct result_row *row = &r->rows[i / 2];
        size_t calls = warming(i % 2 ? &row->in_place : &row->out_of_place, &times);
        if (calls <= most)
            continue;
        most = calls;
        at = i / 2;
        of_most = times;
    }
    if (most == 0)
        return;
    result_size_text(r->rows[at].bytes, size, sizeof size);
    say(&v->findings,
        "not warm: the first %zu of the timed calls at %s take up to %.1f times as long as later "
        "ones: raise --warmup_iters by %zu, or --per_iter_skip",
        most, size, of_most, most);
}

/* Demands apart: no figure is more than the part that was measured. */
static void look_at_end(struct verdict *v)
{
    const struct result *r = &v->run->result;
    size_t zeros = result_rank_zeros(r);
    run_is_incomplete(v->run, &v->failures);
    if (zeros > 1) /* and the figures are of whichever process wrote them */
        say(&v->failures,
            "rank 0 stands %zu times: every process measured alone; nccl-tests was built without "
            "MPI=1, or for an MPI that its launcher does not start",
            zeros);
    if (r->below_least)
        say(&v->failures,
            "the benchmark's own check failed: the average, %.4g GB/s, is below what "
            "it was told to reach (NCCL_TESTS_MIN_BW)",
            r->average);
}

/* An average without rows was cut out of an output; rows of which none can be read are none. */
static void look_for_any_figure(struct verdict *v)
{
    bool average_alone = v->average >= 0 && v->run->result.row_count == 0;
    if (!v->best && !average_alone && v->failures.count == 0)
        say(&v->failures, "no row was measured");
}

/* A figure alone proves nothing, and this is the commonest reason for such a one. */
static void look_at_alignment(struct verdict *v)
{
    const struct known_seen *seen = known_misaligned_find(v->machine, &v->run->result);
    char size[24];
    if (!seen)
        return;
    result_size_text(seen->bytes, size, sizeof size);
    say(&v->findings,
        "others saw %.2f to %.2f GB/s at %s with GPUs and NICs that share no PCIe switch (%s): "
        "drarun topo in a worker shows whether these do, align: required keeps them together",
        seen->low, seen->high, size, seen->source);
}

void verdict_make(const struct run *run, const struct known_machine *machine,
                  const struct limit_given *given, const struct verdict_demands *demands,
                  struct verdict *ret_verdict)
{
    struct verdict v = {.run = run,
                        .machine = machine,
                        .average = -1,
                        .percent = -1,
                        .seen_busbw = -1,
                        .within = run->log.within,
                        .seen = known_seen_find(machine, &run->result)};
    nccl_log_sum(&run->log, &v.sums);
    limit_of(run, machine, given, &v.limit);
    if (run->result.stand_in)
        say(&v.failures, "measured with a stand-in that moves nothing over real links: its figures "
                         "say nothing of a machine");
    else {
        look_at_end(&v);
        look_at_data(&v);
        look_at_rdma(&v, demands);
        look_within(&v, given);
        look_at_figures(&v);
        look_for_any_figure(&v);
        look_at_demands(&v, demands);
        look_at_alignment(&v);
        look_at_warmup(&v);
    }
    strlist_add_all(&v.findings, run->notes.items);
    *ret_verdict = v;
}

void verdict_done(struct verdict *v)
{
    strlist_done(&v->findings);
    strlist_done(&v->failures);
}

/* ---- for people ---- */

/* Each host has as many ranks, and each rank the same device. */
static bool is_even(const struct result *r, size_t hosts, size_t of_host)
{
    for (size_t i = 1; i < r->rank_count; i++)
        if (strcmp(r->ranks[i].model, r->ranks[0].model) != 0)
            return false;
    return r->rank_count == hosts * of_host;
}

/* "8 x NVIDIA B200, 4 x NVIDIA H100", of all hosts together. */
static void devices(const struct result *r, struct buf *out)
{
    const char *told[4];
    size_t count = 0;
    for (size_t i = 0; i < r->rank_count && count < ARRAY_LEN(told); i++) {
        size_t alike = 0, seen = 0;
        while (seen < count && strcmp(told[seen], r->ranks[i].model) != 0)
            seen++;
        if (seen < count)
            continue;
        for (size_t k = i; k < r->rank_count; k++)
            alike += strcmp(r->ranks[k].model, r->ranks[i].model) == 0;
        buf_printf(out, "%s%zu x %s", count ? ", " : "", alike,
                   r->ranks[i].model[0] ? r->ranks[i].model : "not known");
        told[count++] = r->ranks[i].model;
    }
}

static void subject(const struct verdict *v, struct buf *out)
{
    const struct result *r = &v->run->result;
    size_t hosts = result_hosts(r), of_host = known_ranks_of_host(r);
    buf_add_str(out, r->collective[0] ? r->collective : "a collective that it does not name");
    if (r->rank_count)
        buf_printf(out, " over %zu rank%s", r->rank_count, r->rank_count == 1 ? "" : "s");
    if (hosts)
        buf_printf(out, " on %zu host%s", hosts, hosts == 1 ? "" : "s");
    if (result_groups(r) > 1)
        buf_printf(out, " in %zu groups", result_groups(r));
    if (r->rank_count && r->ranks[0].model[0] && hosts && !is_even(r, hosts, of_host)) {
        buf_add_str(out, " (");
        devices(r, out);
        buf_add_str(out, " in all)");
    } else if (r->rank_count && r->ranks[0].model[0])
        buf_printf(out, " (%zu x %s%s)", of_host, r->ranks[0].model, hosts > 1 ? " each" : "");
    if (r->library[0])
        buf_printf(out, ", %s", r->library);
    buf_printf(out, ", %s\n", r->program[0] ? r->program : "nccl-tests");
}

static void latency(const struct result_row *row, struct buf *out)
{
    const struct result_half *half = &row->out_of_place;
    char size[24];
    result_size_text(row->bytes, size, sizeof size);
    buf_printf(out, "  latency   %.2f us at %s, the median of single calls", row->latency * 1e6,
               size);
    if (half->has_spread)
        buf_printf(out, "; 95 %% within %.2f, 99 %% within %.2f", half->spread.p95 * 1e6,
                   half->spread.p99 * 1e6);
    buf_add_str(out, "\n");
}

static void figures(const struct verdict *v, struct buf *out)
{
    const struct result_row *alone = result_latency(&v->run->result);
    char size[24];
    if (alone && v->best) {
        latency(alone, out);
        return;
    }
    if (!v->best) {
        buf_add_str(out, "  best      no figure counts\n");
    } else {
        result_size_text(v->row->bytes, size, sizeof size);
        buf_printf(out, "  best      %.2f GB/s bus bandwidth at %s%s", v->best->busbw, size,
                   v->best == &v->row->in_place ? " in place" : "");
        if (v->average >= 0)
            buf_printf(out, "; %.2f on average over %zu sizes", v->average,
                       v->run->result.row_count);
        buf_add_str(out, "\n");
    }
    if (!v->best && v->average >= 0)
        buf_printf(out, "  average   %.2f GB/s over sizes that it does not show\n", v->average);
    if (v->limit.gbs > 0)
        buf_printf(out, "  limit     %.1f GB/s: %s%s%s\n", v->limit.gbs, v->limit.why,
                   v->limit.assumed ? "; this is assumed" : "",
                   v->limit.unused ? "; the GPUs do not use it" : "");
    else
        buf_printf(out, "  limit     not known: %s\n", v->limit.why);
}

static void data(const struct verdict *v, struct buf *out)
{
    static const char *const words[] = {"not checked", "right", "WRONG"};
    CLEANUP(strlist_done) struct strlist ranks = STRLIST_INIT;
    result_wrong_ranks(&v->run->result, RESULT_WRONG_SHOWN, &ranks);
    buf_printf(out, "  data      %s%s%s\n", words[v->data], ranks.count ? ": " : "",
               ranks.count ? ranks.items[0] : "");
    for (size_t i = 1; i < ranks.count; i++)
        buf_printf(out, "            %s\n", ranks.items[i]);
}

static void counted(const struct verdict *v, const char *word, struct buf *out)
{
    const struct result_traffic *t = &v->run->result.traffic;
    buf_printf(out,
               "  rdma      %s: the hosts' devices counted %.4g MB by RDMA, %.4g MB by network "
               "interfaces\n",
               word, t->rdma / 1e6, t->net / 1e6);
}

static void within(const struct verdict *v, struct buf *out)
{
    if (v->within.p2p == 0 && !nccl_within_detours(&v->within))
        return;
    buf_add_str(out, "  gpus      connections within a host: ");
    nccl_within_text(&v->within, out);
    buf_add_str(out, " (NCCL's log)\n");
}

static void rdma(const struct verdict *v, struct buf *out)
{
    const struct nccl_log_sums *sums = &v->sums;
    switch (v->rdma) {
    case VERDICT_RDMA_ONE_HOST:
        return;
    case VERDICT_RDMA_UNKNOWN:
        if (sums->unproven > 0)
            buf_printf(out, "  rdma      not proven: %zu connections over %s (NCCL's log)\n",
                       sums->unproven, sums->unproven_words);
        else
            buf_add_str(out, "  rdma      not proven: there are no lines of NCCL_DEBUG=INFO that "
                             "say how hosts are connected\n");
        return;
    case VERDICT_RDMA_GPU:
    case VERDICT_RDMA_HOST:
        buf_printf(
            out, "  rdma      proven by NCCL's log: %zu connections over %s, %zu with GPUDirect\n",
            sums->rdma, sums->rdma_names, sums->rdma_gpu);
        return;
    case VERDICT_RDMA_NVLINK:
        buf_add_str(out, "  rdma      not needed: hosts are connected by NVLink (NCCL's log)\n");
        return;
    case VERDICT_RDMA_NONE:
        if (v->rdma_counted)
            counted(v, "NOT USED", out);
        else if (strcmp(sums->tcp_words, "Socket") == 0)
            buf_add_str(out, "  rdma      NOT USED: TCP (NCCL's log)\n");
        else
            buf_printf(out, "  rdma      NOT USED: TCP, %s (NCCL's log)\n", sums->tcp_words);
        return;
    case VERDICT_RDMA_COUNTED:
        counted(v, "proven", out);
        return;
    }
}

static const char *const standing_words[] = {"", "below", "within", "above"};

enum verdict_standing verdict_standing(const struct verdict *v)
{
    return !v->seen || v->seen_busbw < 0   ? VERDICT_STANDING_UNKNOWN
           : v->seen_busbw < v->seen->low  ? VERDICT_BELOW
           : v->seen_busbw > v->seen->high ? VERDICT_ABOVE
                                           : VERDICT_WITHIN;
}

static void device_errors(const struct verdict *v, struct buf *out)
{
    const struct result_faults *faults = &v->run->result.faults;
    if (!faults->known)
        return;
    buf_printf(out, "  errors    %s on %s%s%s\n", faults->rose.count ? "COUNTED" : "none",
               faults->looked, faults->not_looked[0] ? "; not looked for: " : "",
               faults->not_looked);
    for (size_t i = 0; i < faults->rose.count; i++)
        buf_printf(out, "            %s\n", faults->rose.items[i]);
}

#define SLOW_MAX 8u

/* Whom the exchanges of pairs name. */
static void slow(const struct verdict *v, struct buf *out)
{
    const struct probed *p = &v->run->result.probed;
    for (size_t i = 0; i < p->slow_count && i < SLOW_MAX; i++) {
        const char *word = i ? "          " : "  slow    ";
        buf_printf(out, "%s  %s ", word,
                   p->slow[i].kind == PROBED_NIC ? "NIC" : probed_kind_name(p->slow[i].kind));
        probed_where(&p->slow[i], out);
        buf_printf(out, ": %+.1f %%\n", probed_percent(&p->slow[i]));
    }
    if (p->slow_count > SLOW_MAX)
        buf_printf(out, "            and %zu more\n", p->slow_count - SLOW_MAX);
}

static void seen(const struct verdict *v, struct buf *out)
{
    const struct known_seen *s = v->seen;
    enum verdict_standing standing = verdict_standing(v);
    char size[24];
    if (!s)
        return;
    result_size_text(s->bytes, size, sizeof size);
    if (s->busbw > 0)
        buf_printf(out, "  others    %.2f GB/s at %s (%s); expected: %.2f to %.2f", s->busbw, size,
                   s->source, s->low, s->high);
    else
        buf_printf(out, "  others    %.2f to %.2f GB/s at %s (%s)", s->low, s->high, size,
                   s->source);
    if (standing)
        buf_printf(out, "; this run: %.2f, %s", v->seen_busbw, standing_words[standing]);
    buf_add_str(out, "\n");
}

void verdict_text(const struct verdict *v, struct buf *out)
{
    const char *below = verdict_standing(v) == VERDICT_BELOW ? ", and less than others saw" : "";
    subject(v, out);
    if (!v->run->result.stand_in) {
        figures(v, out);
        data(v, out);
        within(v, out);
        rdma(v, out);
        device_errors(v, out);
        slow(v, out);
        seen(v, out);
    }
    for (size_t i = 0; i < v->findings.count; i++)
        buf_printf(out, "  note      %s\n", v->findings.items[i]);
    if (v->failures.count)
        for (size_t i = 0; i < v->failures.count; i++)
            buf_printf(out, "%s %s\n",
                       i ? "         " : "  verdict   FAILED:", v->failures.items[i]);
    else if (v->percent >= 0 && v->limit.unused)
        buf_printf(out,
                   "  verdict   %.1f %% of the limit%s; the GPUs do not use that link: they are "
                   "connected by %s\n",
                   v->percent, below, detour_words(&v->within));
    else if (v->percent >= 0)
        buf_printf(out, "  verdict   %.1f %% of the limit%s\n", v->percent, below);
    else if (v->best && result_latency(&v->run->result))
        buf_add_str(out, "  verdict   none: of latency no limit is known\n");
    else if (v->best)
        buf_printf(out, "  verdict   none: there is no limit to compare it with%s\n", below);
    else
        buf_add_str(out, "  verdict   none: no row was measured\n");
}

/* ---- for programs ---- */

static json_t *seen_json(const struct verdict *v)
{
    const struct known_seen *s = v->seen;
    enum verdict_standing standing = verdict_standing(v);
    return json_pack("{s:f, s:f, s:o*, s:I, s:s, s:o*, s:s*}", "low", s->low, "high", s->high,
                     "busbw", s->busbw > 0 ? json_real(s->busbw) : NULL, "size",
                     (json_int_t)s->bytes, "source", s->source, "this",
                     standing ? json_real(v->seen_busbw) : NULL, "standing",
                     standing ? standing_words[standing] : NULL);
}

static json_t *connections_json(const struct nccl_log_sums *sums)
{
    const char *words = sums->unproven > 0 ? sums->unproven_words
                        : sums->tcp > 0    ? sums->tcp_words
                                           : sums->rdma_names;
    return json_pack("{s:I, s:I, s:I, s:I, s:s}", "rdma", (json_int_t)sums->rdma, "gpudirect",
                     (json_int_t)sums->rdma_gpu, "tcp", (json_int_t)sums->tcp, "unproven",
                     (json_int_t)sums->unproven, "over", words);
}

json_t *verdict_json(const struct verdict *v)
{
    static const char *const data_words[] = {"not checked", "right", "wrong"};
    static const char *const rdma_words[] = {"one host",   "not proven", "proven",  "proven",
                                             "not needed", "proven",     "not used"};
    const struct result *r = &v->run->result;
    json_t *o = json_pack("{s:s, s:I, s:I, s:s, s:s, s:b}", "collective", r->collective, "ranks",
                          (json_int_t)r->rank_count, "hosts", (json_int_t)result_hosts(r), "data",
                          data_words[v->data], "rdma", rdma_words[v->rdma], "failed",
                          v->failures.count > 0);
    if (!o)
        return NULL;
    int rc = 0;
    if (v->best)
        rc |= json_object_set_new(o, "best",
                                  json_pack("{s:f, s:I, s:b}", "busbw", v->best->busbw, "size",
                                            (json_int_t)v->row->bytes, "in_place",
                                            v->best == &v->row->in_place));
    if (v->best && result_latency(r))
        rc |= json_object_set_new(o, "latency",
                                  json_pack("{s:f, s:I}", "median_us",
                                            result_latency(r)->latency * 1e6, "size",
                                            (json_int_t)result_latency(r)->bytes));
    if (v->average >= 0)
        rc |= json_object_set_new(o, "average", json_real(v->average));
    rc |= json_object_set_new(o, "limit",
                              v->limit.gbs > 0
                                  ? json_pack("{s:f, s:b, s:s, s:o*}", "busbw", v->limit.gbs,
                                              "assumed", v->limit.assumed, "why", v->limit.why,
                                              "unused", v->limit.unused ? json_true() : NULL)
                                  : json_pack("{s:s}", "why", v->limit.why));
    if (v->percent >= 0)
        rc |= json_object_set_new(o, "percent", json_real(v->percent));
    if (v->sums.rdma + v->sums.tcp + v->sums.unproven > 0)
        rc |= json_object_set_new(o, "connections", connections_json(&v->sums));
    if (v->within.p2p > 0 || nccl_within_detours(&v->within))
        rc |= json_object_set_new(o, "within",
                                  json_pack("{s:I, s:I, s:I}", "p2p", (json_int_t)v->within.p2p,
                                            "shm", (json_int_t)v->within.shm, "net",
                                            (json_int_t)v->within.net));
    if (v->seen)
        rc |= json_object_set_new(o, "others", seen_json(v));
    rc |= json_object_set_new(o, "result", result_json(r));
    const struct strlist *lists[] = {&v->findings, &v->failures};
    for (size_t k = 0; k < 2; k++) {
        json_t *array = json_array();
        for (size_t i = 0; i < lists[k]->count; i++)
            rc |= json_array_append_new(array, json_string(lists[k]->items[i]));
        rc |= json_object_set_new(o, k ? "failures" : "notes", array);
    }
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}
