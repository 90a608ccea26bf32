/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/result_json.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/marked.h"
#include "lib/bench/written.h"

#define JSON_VERSION 3

/* Steals value, as jansson does; without memory *object becomes NULL and stays so. */
static void set(json_t **object, const char *key, json_t *value)
{
    if (*object && json_object_set_new(*object, key, value) < 0) {
        json_decref(*object);
        *object = NULL;
    } else if (!*object) {
        json_decref(value);
    }
}

static void append(json_t **array, json_t *value)
{
    if (*array && json_array_append_new(*array, value) < 0) {
        json_decref(*array);
        *array = NULL;
    } else if (!*array) {
        json_decref(value);
    }
}

/* Texts of machines are not always UTF-8. */
static json_t *text(const char *value)
{
    json_t *json = json_string(value);
    return json ? json : json_string("?");
}

static void set_known(json_t **object, const char *key, const char *value)
{
    if (value[0])
        set(object, key, text(value));
}

static json_t *yes_or_no(bool value)
{
    return json_string(value ? "true" : "false");
}

static json_t *texts(const struct strlist *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        append(&array, text(list->items[i]));
    return array;
}

static json_t *microseconds(const double *seconds, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        append(&array, json_real(seconds[i] * 1e6));
    return array;
}

/* ---- begin ---- */

static json_t *device(const struct result_rank *rank)
{
    json_t *o = json_object();
    set(&o, "rank", json_integer(rank->rank));
    set(&o, "group", json_integer(rank->group));
    set(&o, "pid", json_integer(rank->pid));
    set(&o, "hostname", text(rank->host));
    set(&o, "device", json_integer(rank->device));
    set(&o, "device_hex", text(rank->address));
    set(&o, "device_info", text(rank->model));
    set_known(&o, "node", rank->node);
    set_known(&o, "nic", rank->nic);
    set_known(&o, "nic_nearest", rank->nearest);
    set_known(&o, "nic_path", rank->path);
    if (rank->numa >= 0)
        set(&o, "numa", json_integer(rank->numa));
    set_known(&o, "kernel", rank->kernel);
    set_known(&o, "driver", rank->driver);
    if (rank->nic_gbit > 0)
        set(&o, "nic_gbit", json_real(rank->nic_gbit));
    if (rank->copy_gbs > 0)
        set(&o, "copy_gbs", json_real(rank->copy_gbs));
    return o;
}

static json_t *config(const struct result *r)
{
    const struct result_config *c = &r->config;
    bool factor = c->step_factor > 1;
    json_t *o = json_object(), *devices = json_array();
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"nthreads", c->threads},
                   {"ngpus", c->gpus},
                   {"minimum_bytes", c->min_bytes},
                   {"maximum_bytes", c->max_bytes},
                   {factor ? "step_factor" : "step_bytes", factor ? c->step_factor : c->step_bytes},
                   {"warmup_iters", c->warmup},
                   {"iterations", c->iterations},
                   {"aggregated_iterations", c->aggregated},
                   {"validation", c->validation},
                   {"graph", c->graph},
                   {"per_iter_skip", c->skip},
                   {"unalign", c->unaligned},
                   {"blocking", c->blocking}};
    for (size_t i = 0; c->known && i < sizeof numbers / sizeof *numbers; i++)
        set(&o, numbers[i].key, json_integer((json_int_t)numbers[i].value));
    if (c->known) {
        set(&o, "blocking_collectives", yes_or_no(c->blocking));
        set(&o, "per_iter_timing", yes_or_no(c->per_iteration));
        set(&o, "parallel_init", yes_or_no(c->parallel_init));
    }
    for (size_t i = 0; i < r->rank_count; i++)
        append(&devices, device(&r->ranks[i]));
    set(&o, "devices", devices);
    return o;
}

static void put_begin(json_t **o, const struct result *r)
{
    set(o, "version", json_integer(JSON_VERSION));
    set_known(o, "program", r->program);
    set_known(o, "collective", r->collective);
    set_known(o, "library", r->library);
    set_known(o, "start_time", r->start);
    set(o, "args", texts(&r->args));
    set(o, "env", texts(&r->env));
    set(o, "config", config(r));
    if (r->stand_in)
        set(o, "stand_in", json_true());
    if (r->about)
        set(o, "about", json_incref(r->about));
}

/* ---- rows ---- */

static json_t *half(const struct result_half *h)
{
    if (!h->measured && h->wrong > 0) /* as theirs */
        return json_pack("{s:s, s:s, s:s, s:f}", "time", "nan", "alg_bw", "nan", "bus_bw", "nan",
                         "nwrong", h->wrong);
    if (!h->measured)
        return json_null();
    json_t *o = json_object();
    set(&o, h->cpu_time ? "cpu_time" : "time",
        h->seconds >= 0 ? json_real(h->seconds * 1e6) : json_null());
    set(&o, "alg_bw", json_real(h->algbw));
    set(&o, "bus_bw", json_real(h->busbw));
    set(&o, "nwrong", h->wrong < 0 ? json_null() : json_real(h->wrong));
    if (h->ranks)
        set(&o, "per_rank_times_us", microseconds(h->ranks, h->rank_count));
    return o;
}

static json_t *half_spread(const struct result_half *h)
{
    const struct spread *s = &h->spread;
    json_t *o = json_object();
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"min_us", s->least * 1e6},       {"max_us", s->most * 1e6},
                   {"avg_us", s->mean * 1e6},        {"p50_us", s->p50 * 1e6},
                   {"p95_us", s->p95 * 1e6},         {"p99_us", s->p99 * 1e6},
                   {"stdev_us", s->deviation * 1e6}, {"cv_pct", spread_variation(s)}};
    set(&o, "skipped_iterations", json_integer((json_int_t)h->skipped));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        set(&o, numbers[i].key, json_real(numbers[i].value));
    set(&o, "times_us", microseconds(h->calls, h->call_count));
    return o;
}

static void put_row(json_t **o, const struct result_row *row)
{
    char root[16];
    snprintf(root, sizeof root, "%6d", row->root); /* as theirs: the table's cell */
    set(o, "size", json_integer((json_int_t)row->bytes));
    set(o, "count", json_integer((json_int_t)row->count));
    set(o, "type", text(row->type));
    set(o, "redop", text(row->op));
    set(o, "root", json_string(root));
    if (row->latency >= 0)
        set(o, "latency_us", json_real(row->latency * 1e6));
    set(o, "out_of_place", half(&row->out_of_place));
    if (row->out_of_place.has_spread)
        set(o, "out_of_place_per_iter", half_spread(&row->out_of_place));
    set(o, "in_place", half(&row->in_place));
    if (row->in_place.has_spread)
        set(o, "in_place_per_iter", half_spread(&row->in_place));
}

/* ---- end ---- */

/* NULL where no rank is known to have received wrong data. */
static json_t *wrong_ranks(const struct result *r)
{
    json_t *array = NULL;
    for (size_t i = 0; i < r->rank_count; i++) {
        if (r->ranks[i].wrong <= 0)
            continue;
        array = array ? array : json_array();
        append(&array, json_pack("{s:i, s:f}", "rank", (int)r->ranks[i].rank, "elements",
                                 r->ranks[i].wrong));
    }
    return array;
}

static void put_end(json_t **o, const struct result *r)
{
    if (r->wrong_rows >= 0) {
        json_t *bounds = json_object();
        set(&bounds, "count", json_integer((json_int_t)r->wrong_rows));
        set(&bounds, "okay", yes_or_no(r->wrong_rows == 0));
        set(o, "out_of_bounds", bounds);
    }
    json_t *wrong = wrong_ranks(r);
    if (wrong)
        set(o, "wrong_ranks", wrong);
    if (r->average >= 0) {
        json_t *average = json_object();
        set(&average, "bandwidth", json_real(r->average));
        set(&average, "okay", json_string(r->below_least ? "false" : "unchecked"));
        set(o, "average_bus_bandwidth", average);
        if (r->traffic.known)
            set(o, "traffic",
                json_pack("{s:f, s:f}", "rdma", r->traffic.rdma, "net", r->traffic.net));
    }
    if (r->faults.known)
        set(o, "device_errors",
            json_pack("{s:s, s:s, s:o}", "looked_for_on", r->faults.looked, "not_looked_for",
                      r->faults.not_looked, "rose", texts(&r->faults.rose)));
    if (r->probed.known)
        set(o, "pairs", probed_json(&r->probed));
    set_known(o, "end_time", r->end);
}

static void put_failure(json_t **o, const struct result_failure *failure)
{
    json_t *failed = json_object();
    if (!failure->kind[0]) {
        json_decref(failed);
        return;
    }
    set(&failed, "kind", text(failure->kind));
    set(&failed, "text", text(failure->text));
    set(&failed, "status", json_integer(failure->status));
    set_known(&failed, "host", failure->host);
    set_known(&failed, "cause", failure->cause);
    set(o, "failed", failed);
}

json_t *result_json(const struct result *r)
{
    json_t *o = json_object(), *rows = json_array();
    put_begin(&o, r);
    for (size_t i = 0; i < r->row_count; i++) {
        json_t *row = json_object();
        put_row(&row, &r->rows[i]);
        append(&rows, row);
    }
    set(&o, "results", rows);
    put_end(&o, r);
    put_failure(&o, &r->failure);
    return o;
}

/* ---- lines ---- */

static int line(const struct result_lines *to, json_t *o, struct drarun_error *err)
{
    cleanup_free char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    if (to->marked)
        return marked_write(to->out, to->name, text, err);
    fputs(text, to->out);
    fputc('\n', to->out);
    return written(to->out, to->name, err);
}

static json_t *of_kind(const char *kind)
{
    json_t *o = json_object();
    set(&o, "kind", json_string(kind));
    return o;
}

int result_line_begin(const struct result_lines *to, const struct result *r,
                      struct drarun_error *err)
{
    json_t *o = to->out ? of_kind("begin") : NULL;
    if (!to->out)
        return 0;
    put_begin(&o, r);
    return line(to, o, err);
}

int result_line_row(const struct result_lines *to, const struct result_row *row,
                    struct drarun_error *err)
{
    json_t *o = to->out ? of_kind("row") : NULL;
    if (!to->out)
        return 0;
    put_row(&o, row);
    return line(to, o, err);
}

int result_line_end(const struct result_lines *to, const struct result *r, struct drarun_error *err)
{
    json_t *o = to->out ? of_kind("end") : NULL;
    if (!to->out)
        return 0;
    put_end(&o, r);
    return line(to, o, err);
}

int result_line_failed(const struct result_lines *to, const struct result *r,
                       struct drarun_error *err)
{
    json_t *o = to->out ? of_kind("failed") : NULL;
    if (!to->out)
        return 0;
    put_failure(&o, &r->failure);
    return line(to, o, err);
}
