/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/bench/marked.h"
#include "lib/bench/result_csv.h"

static void clock_text(char text[32])
{
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local))
        strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local);
}

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

/* ---- files ---- */

static int open_files(struct record *r, const struct bench_options *o, struct drarun_error *err)
{
    const char *marked = getenv(MARKED_VARIABLE);
    int rc = 0;
    if (o->json_file) {
        rc = written_open_new("-J", o->json_file, r->json_name, &r->json, err);
        if (rc == 0)
            printf("# Writing JSON output to %s\n", r->json_name);
    }
    if (rc == 0 && o->lines_file)
        rc = written_open("--json-lines", o->lines_file, "we", &r->lines.out, err);
    if (rc == 0 && o->csv_file)
        rc = written_open("--csv", o->csv_file, "we", &r->csv, err);
    r->lines.name = o->lines_file;
    r->csv_name = o->csv_file;
    if (marked && strcmp(marked, "1") == 0)
        r->marked = (struct result_lines){stdout, "standard output", true};
    return rc;
}

/* ---- what is known ---- */

static void take_options(struct result *to, const struct bench_options *o)
{
    to->config = (struct result_config){
        .known = true,
        .threads = 1,
        .gpus = 1,
        .min_bytes = o->min_bytes,
        .max_bytes = o->max_bytes,
        .step_bytes = o->step_bytes,
        .step_factor = o->step_factor,
        .unaligned = o->unaligned,
        .warmup = o->warmup,
        .iterations = o->plan.iters,
        .aggregated = o->plan.agg,
        .validation = o->plan.check,
        .blocking = o->plan.blocking,
        .skip = o->skip,
        .per_iteration = o->plan.each,
    };
}

static int take_ranks(struct result *to, const struct backend_world *world,
                      const struct table_rank *ranks, const char *backend)
{
    for (unsigned i = 0; i < world->ranks; i++) {
        struct result_rank *rank = result_add_rank(to);
        if (!rank)
            return -ENOMEM;
        rank->rank = i;
        rank->pid = ranks[i].pid;
        rank->device = ranks[i].index;
        snprintf(rank->host, sizeof rank->host, "%s", ranks[i].host);
        snprintf(rank->node, sizeof rank->node, "%s", ranks[i].place.node);
        snprintf(rank->nic, sizeof rank->nic, "%s", ranks[i].place.nics);
        snprintf(rank->nearest, sizeof rank->nearest, "%s", ranks[i].place.nearest);
        rank->numa = ranks[i].place.numa;
        snprintf(rank->path, sizeof rank->path, "%s", ranks[i].place.path);
        snprintf(rank->kernel, sizeof rank->kernel, "%s", ranks[i].place.kernel);
        snprintf(rank->driver, sizeof rank->driver, "%s", ranks[i].place.driver);
        rank->nic_gbit = ranks[i].place.nic_gbit;
        rank->copy_gbs = ranks[i].copy_gbs;
        snprintf(rank->model, sizeof rank->model, "%s", ranks[i].device);
        snprintf(rank->address, sizeof rank->address, "%s",
                 *ranks[i].address ? ranks[i].address : backend);
    }
    return 0;
}

int record_begin(struct record *r, const struct bench_options *o, const struct backend_world *world,
                 const struct table_rank *ranks, char *const argv[], char *const environment[],
                 struct drarun_error *err)
{
    struct result *to = &r->result;
    *r = (struct record){0};
    result_init(to);
    snprintf(to->program, sizeof to->program, "drarun-bench %s", DRARUN_VERSION);
    snprintf(to->library, sizeof to->library, "%s", world->library);
    to->stand_in = world->stand_in;
    result_name_collective(to, o->collective->name);
    clock_text(to->start);
    strlist_add_all(&to->args, argv);
    result_env_take(to, environment);
    take_options(to, o);
    if (take_ranks(to, world, ranks, o->backend) < 0 || to->args.failed || to->env.failed)
        return no_memory(err);
    int rc = open_files(r, o, err);
    rc = rc < 0 ? rc : result_line_begin(&r->lines, to, err);
    rc = rc < 0 ? rc : result_line_begin(&r->marked, to, err);
    return rc < 0 || !r->csv ? rc : result_csv_begin(r->csv, r->csv_name, err);
}

/* ---- rows ---- */

static double *copy_of(const double *list, size_t count)
{
    double *copy = calloc(count ? count : 1, sizeof *copy);
    if (copy)
        memcpy(copy, list, count * sizeof *copy);
    return copy;
}

static int take_half(struct result_half *to, const struct bench_options *o,
                     const struct measured *from, unsigned ranks)
{
    *to = (struct result_half){.measured = true,
                               .seconds = from->seconds,
                               .algbw = from->algbw,
                               .busbw = from->busbw,
                               .wrong = from->wrong,
                               .skipped = o->skip,
                               .rank_count = ranks};
    if (!(to->ranks = copy_of(from->ranks, ranks)))
        return -ENOMEM;
    if (!from->each)
        return 0;
    size_t looked_at = o->plan.iters - o->skip;
    double *sorted = copy_of(from->each + o->skip, looked_at);
    to->calls = copy_of(from->each, o->plan.iters);
    if (!sorted || !to->calls) {
        free(sorted);
        return -ENOMEM;
    }
    to->call_count = o->plan.iters;
    to->has_spread = true;
    spread_of(sorted, looked_at, &to->spread);
    free(sorted);
    return 0;
}

static void take_wrong(struct result *to, const struct measured *from)
{
    for (size_t i = 0; from->wrong > 0 && i < to->rank_count; i++)
        to->ranks[i].wrong += from->wrong_ranks[i];
}

int record_row(struct record *r, const struct bench_options *o, const struct measure_case *m,
               const struct measured *out_of_place, const struct measured *in_place,
               struct drarun_error *err)
{
    const struct layout *l = &out_of_place->layout;
    struct result_row *row = result_add_row(&r->result);
    if (!row)
        return no_memory(err);
    row->bytes = (l->send > l->recv ? l->send : l->recv) * element_size(m->type);
    row->count = l->count;
    row->root = m->collective->rooted ? (int)m->root : -1;
    snprintf(row->type, sizeof row->type, "%s", element_name(m->type));
    snprintf(row->op, sizeof row->op, "%s",
             m->collective->reduces ? reduction_name(m->op) : "none");
    if (take_half(&row->out_of_place, o, out_of_place, m->world->ranks) < 0 ||
        take_half(&row->in_place, o, in_place, m->world->ranks) < 0)
        return no_memory(err);
    take_wrong(&r->result, out_of_place);
    take_wrong(&r->result, in_place);
    if (o->latency && (l->count > 0 || m->collective->bare)) /* else no call was made */
        row->latency = row->out_of_place.spread.p50;
    int rc = result_line_row(&r->lines, row, err);
    rc = rc < 0 ? rc : result_line_row(&r->marked, row, err);
    return rc < 0 || !r->csv ? rc : result_csv_row(r->csv, r->csv_name, row, err);
}

/* ---- end ---- */

static int write_document(struct record *r, struct drarun_error *err)
{
    json_t *document = result_json(&r->result);
    int rc = 0;
    if (!document)
        return no_memory(err);
    errno = 0;
    json_dumpf(document, r->json, JSON_INDENT(1));
    fputc('\n', r->json);
    rc = written(r->json, r->json_name, err);
    json_decref(document);
    return rc;
}

int record_end(struct record *r, double wrong, double busbw, struct drarun_error *err)
{
    r->result.wrong_rows = wrong;
    r->result.average = busbw;
    r->result.ended = true;
    clock_text(r->result.end);
    int rc = result_line_end(&r->lines, &r->result, err);
    rc = rc < 0 ? rc : result_line_end(&r->marked, &r->result, err);
    rc = rc < 0 || !r->json ? rc : write_document(r, err);
    rc = rc < 0 ? rc : written_close(&r->json, r->json_name, err);
    rc = rc < 0 ? rc : written_close(&r->lines.out, r->lines.name, err);
    return rc < 0 ? rc : written_close(&r->csv, r->csv_name, err);
}

void record_done(struct record *r)
{
    FILE *const files[] = {r->json, r->lines.out, r->csv};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i])
            fclose(files[i]);
    r->json = r->lines.out = r->csv = NULL;
    result_done(&r->result);
}
