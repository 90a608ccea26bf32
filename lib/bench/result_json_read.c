/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/bench/result_json.h"
#include "lib/doc/value.h"

struct reading {
    const char *name;
    unsigned line;
    size_t item; /* of results or of devices */
    const char *list;
    const char *half; /* NULL */
    struct result *to;
    struct drarun_error *err;
};

static int wrong(const struct reading *r, const char *key, const char *expected)
{
    char line[16] = "", path[96] = "";
    if (r->line)
        snprintf(line, sizeof line, ":%u", r->line);
    if (r->list)
        snprintf(path, sizeof path, "%s[%zu].%s%s", r->list, r->item, r->half ? r->half : "",
                 r->half ? "." : "");
    return error_kind(r->err, DRARUN_ERR_SPEC, EINVAL, "%s%s: %s%s: expected %s", r->name, line,
                      path, key, expected);
}

static int no_memory(const struct reading *r)
{
    return error_set(r->err, ENOMEM, "%s: out of memory", r->name);
}

/* ---- members: a missing one leaves the value as it is ---- */

static int read_number(const struct reading *r, const json_t *object, const char *key,
                       double *value)
{
    const json_t *json = json_object_get(object, key);
    if (!json || json_is_null(json))
        return 0;
    if (!json_is_number(json) || json_number_value(json) < 0)
        return wrong(r, key, "a number that is not negative");
    if (json_number_value(json) > RESULT_MOST)
        return wrong(r, key, "a number of at most 1e30");
    *value = json_number_value(json);
    return 0;
}

static int read_whole(const struct reading *r, const json_t *object, const char *key,
                      uint64_t *value)
{
    const json_t *json = json_object_get(object, key);
    if (!json || json_is_null(json))
        return 0;
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return wrong(r, key, "a whole number that is not negative");
    *value = (uint64_t)json_integer_value(json);
    return 0;
}

static int read_small(const struct reading *r, const json_t *object, const char *key, int *value)
{
    const json_t *json = json_object_get(object, key);
    if (!json || json_is_null(json))
        return 0;
    if (!json_is_integer(json) || json_integer_value(json) < -1 ||
        json_integer_value(json) > INT32_MAX)
        return wrong(r, key, "a whole number from -1 to 2147483647");
    *value = (int)json_integer_value(json);
    return 0;
}

static int read_text(const struct reading *r, const json_t *object, const char *key, char *text,
                     size_t size)
{
    const json_t *json = json_object_get(object, key);
    if (!json || json_is_null(json))
        return 0;
    if (!json_is_string(json))
        return wrong(r, key, "a text");
    snprintf(text, size, "%s", json_string_value(json));
    return 0;
}

/* nccl-tests writes "true" and "false". */
static int read_flag(const struct reading *r, const json_t *object, const char *key, bool *value)
{
    const json_t *json = json_object_get(object, key);
    const char *text = json_string_value(json);
    if (!json || json_is_null(json))
        return 0;
    if (!json_is_boolean(json) &&
        (!text || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)))
        return wrong(r, key, "true or false");
    *value = json_is_true(json) || (text && strcmp(text, "true") == 0);
    return 0;
}

static int read_seconds(const struct reading *r, const json_t *object, const char *key,
                        double **ret_list, size_t *ret_count)
{
    const json_t *json = json_object_get(object, key);
    size_t count = json_array_size(json);
    if (!json || json_is_null(json) || (json_is_array(json) && count == 0))
        return 0;
    if (!json_is_array(json))
        return wrong(r, key, "a list of numbers");
    double *list = calloc(count, sizeof *list);
    if (!list)
        return no_memory(r);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(json, i);
        if (!json_is_number(item) || json_number_value(item) < 0 ||
            json_number_value(item) > RESULT_MOST) {
            free(list);
            return wrong(r, key, "a list of numbers from 0 to 1e30");
        }
        list[i] = json_number_value(item) / 1e6;
    }
    free(*ret_list);
    *ret_list = list;
    *ret_count = count;
    return 0;
}

static int read_texts(const struct reading *r, const json_t *object, const char *key,
                      struct strlist *list, bool allowed_only)
{
    const json_t *json = json_object_get(object, key);
    if (json && !json_is_null(json) && !json_is_array(json))
        return wrong(r, key, "a list of texts");
    for (size_t i = 0; i < json_array_size(json); i++) {
        const char *text = json_string_value(json_array_get(json, i));
        if (text && (!allowed_only || result_env_allowed(text)))
            strlist_add(list, text);
    }
    return list->failed ? no_memory(r) : 0;
}

/* ---- begin ---- */

static int read_device(struct reading *r, const json_t *object)
{
    uint64_t rank = r->item, group = 0;
    struct result_rank *to = result_add_rank(r->to);
    if (!to)
        return no_memory(r);
    if (!json_is_object(object))
        return wrong(r, "rank", "an object");
    int rc = read_whole(r, object, "rank", &rank);
    rc = rc < 0 ? rc : read_whole(r, object, "group", &group);
    rc = rc < 0 ? rc : read_small(r, object, "pid", &to->pid);
    rc = rc < 0 ? rc : read_small(r, object, "device", &to->device);
    rc = rc < 0 ? rc : read_text(r, object, "hostname", to->host, sizeof to->host);
    rc = rc < 0 ? rc : read_text(r, object, "node", to->node, sizeof to->node);
    rc = rc < 0 ? rc : read_text(r, object, "device_info", to->model, sizeof to->model);
    rc = rc < 0 ? rc : read_text(r, object, "device_hex", to->address, sizeof to->address);
    rc = rc < 0 ? rc : read_text(r, object, "nic", to->nic, sizeof to->nic);
    rc = rc < 0 ? rc : read_text(r, object, "nic_nearest", to->nearest, sizeof to->nearest);
    rc = rc < 0 ? rc : read_small(r, object, "numa", &to->numa);
    rc = rc < 0 ? rc : read_text(r, object, "nic_path", to->path, sizeof to->path);
    rc = rc < 0 ? rc : read_text(r, object, "kernel", to->kernel, sizeof to->kernel);
    rc = rc < 0 ? rc : read_text(r, object, "driver", to->driver, sizeof to->driver);
    rc = rc < 0 ? rc : read_number(r, object, "nic_gbit", &to->nic_gbit);
    rc = rc < 0 ? rc : read_number(r, object, "copy_gbs", &to->copy_gbs);
    to->rank = (unsigned)rank;
    to->group = (unsigned)group;
    return rc;
}

static int read_config(struct reading *r, const json_t *object)
{
    struct result_config *c = &r->to->config;
    const struct {
        const char *key;
        uint64_t *to;
    } numbers[] = {{"nthreads", &c->threads},
                   {"ngpus", &c->gpus},
                   {"minimum_bytes", &c->min_bytes},
                   {"maximum_bytes", &c->max_bytes},
                   {"step_factor", &c->step_factor},
                   {"step_bytes", &c->step_bytes},
                   {"warmup_iters", &c->warmup},
                   {"iterations", &c->iterations},
                   {"aggregated_iterations", &c->aggregated},
                   {"validation", &c->validation},
                   {"graph", &c->graph},
                   {"per_iter_skip", &c->skip},
                   {"unalign", &c->unaligned},
                   {"blocking", &c->blocking}};
    const json_t *devices = json_object_get(object, "devices");
    int rc = read_flag(r, object, "per_iter_timing", &c->per_iteration);
    rc = rc < 0 ? rc : read_flag(r, object, "parallel_init", &c->parallel_init);
    for (size_t i = 0; rc == 0 && i < sizeof numbers / sizeof *numbers; i++)
        rc = read_whole(r, object, numbers[i].key, numbers[i].to);
    c->known = json_object_get(object, "iterations") != NULL;
    if (rc == 0 && devices && !json_is_array(devices))
        return wrong(r, "config.devices", "a list");
    r->list = "config.devices";
    for (r->item = 0; rc == 0 && r->item < json_array_size(devices); r->item++)
        rc = read_device(r, json_array_get(devices, r->item));
    r->list = NULL;
    return rc;
}

static int read_begin(struct reading *r, const json_t *object)
{
    struct result *to = r->to;
    const json_t *settings = json_object_get(object, "config");
    const json_t *about = json_object_get(object, "about");
    uint64_t nccl = 0;
    int rc = read_text(r, object, "program", to->program, sizeof to->program);
    rc = rc < 0 ? rc : read_text(r, object, "collective", to->collective, sizeof to->collective);
    rc = rc < 0 ? rc : read_text(r, object, "library", to->library, sizeof to->library);
    rc = rc < 0 ? rc : read_text(r, object, "start_time", to->start, sizeof to->start);
    rc = rc < 0 ? rc : read_whole(r, object, "nccl_version", &nccl);
    rc = rc < 0 ? rc : read_flag(r, object, "stand_in", &to->stand_in);
    rc = rc < 0 ? rc : read_texts(r, object, "args", &to->args, false);
    rc = rc < 0 ? rc : read_texts(r, object, "env", &to->env, true);
    if (rc == 0 && nccl > 0 && !to->library[0])
        result_name_nccl(to, (unsigned)nccl);
    for (size_t i = 0; rc == 0 && !to->collective[0] && i < to->args.count; i++)
        result_name_collective(to, to->args.items[i]); /* theirs say it there alone */
    if (rc == 0 && json_is_object(about) && !to->about)
        to->about = json_deep_copy(about);
    if (rc == 0 && settings && !json_is_object(settings))
        return wrong(r, "config", "an object");
    return rc < 0 || !settings ? rc : read_config(r, settings);
}

/* ---- rows ---- */

static int read_spread(struct reading *r, const json_t *object, struct result_half *to)
{
    uint64_t skipped = 0;
    double *const fields[] = {&to->spread.least,    &to->spread.most, &to->spread.mean,
                              &to->spread.p50,      &to->spread.p95,  &to->spread.p99,
                              &to->spread.deviation};
    static const char *const keys[] = {"min_us", "max_us", "avg_us",  "p50_us",
                                       "p95_us", "p99_us", "stdev_us"};
    int rc = read_whole(r, object, "skipped_iterations", &skipped);
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof *keys; i++) {
        rc = read_number(r, object, keys[i], fields[i]);
        *fields[i] /= 1e6;
    }
    to->skipped = (size_t)skipped;
    to->has_spread = true;
    return rc < 0 ? rc : read_seconds(r, object, "times_us", &to->calls, &to->call_count);
}

static bool not_a_number(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && strstr(text, "nan");
}

static int read_half(struct reading *r, const json_t *row, const char *key, const char *spread_key,
                     struct result_half *to)
{
    const json_t *object = json_object_get(row, key), *calls = json_object_get(row, spread_key);
    double time = -1, algbw = -1, busbw = -1;
    if (!object || json_is_null(object))
        return 0;
    r->half = NULL;
    if (!json_is_object(object))
        return wrong(r, key, "an object or null");
    r->half = key;
    to->cpu_time = json_object_get(object, "cpu_time") != NULL;
    int rc = read_number(r, object, "nwrong", &to->wrong);
    if (rc < 0 || not_a_number(object, "time") || not_a_number(object, "bus_bw")) {
        r->half = NULL;
        return rc; /* theirs, of what was not measured */
    }
    rc = read_number(r, object, to->cpu_time ? "cpu_time" : "time", &time);
    rc = rc < 0 ? rc : read_number(r, object, "alg_bw", &algbw);
    rc = rc < 0 ? rc : read_number(r, object, "bus_bw", &busbw);
    rc = rc < 0 ? rc : read_seconds(r, object, "per_rank_times_us", &to->ranks, &to->rank_count);
    to->seconds = time < 0 ? -1 : time / 1e6;
    to->algbw = algbw;
    to->busbw = busbw;
    to->measured = busbw >= 0 && algbw >= 0;
    if (rc == 0 && json_is_object(calls)) {
        r->half = spread_key;
        rc = read_spread(r, calls, to);
    }
    r->half = NULL;
    return rc;
}

static int read_row(struct reading *r, const json_t *object)
{
    const json_t *root = json_object_get(object, "root");
    struct result_row *to = result_add_row(r->to);
    if (!to)
        return no_memory(r);
    if (!json_is_object(object) || !json_is_integer(json_object_get(object, "size")))
        return wrong(r, "size", "a whole number that is not negative");
    int rc = read_whole(r, object, "size", &to->bytes);
    rc = rc < 0 ? rc : read_whole(r, object, "count", &to->count);
    rc = rc < 0 ? rc : read_text(r, object, "type", to->type, sizeof to->type);
    rc = rc < 0 ? rc : read_text(r, object, "redop", to->op, sizeof to->op);
    if (json_object_get(object, "latency_us")) {
        rc = rc < 0 ? rc : read_number(r, object, "latency_us", &to->latency);
        to->latency /= 1e6;
    }
    if (rc == 0 && json_is_string(root)) /* as theirs: the table's cell */
        to->root = atoi(json_string_value(root));
    else if (rc == 0)
        rc = read_small(r, object, "root", &to->root);
    rc = rc < 0 ? rc
                : read_half(r, object, "out_of_place", "out_of_place_per_iter", &to->out_of_place);
    return rc < 0 ? rc : read_half(r, object, "in_place", "in_place_per_iter", &to->in_place);
}

static int read_rows(struct reading *r, const json_t *list)
{
    int rc = 0;
    if (list && !json_is_array(list))
        return wrong(r, "results", "a list");
    r->list = "results";
    for (r->item = 0; rc == 0 && r->item < json_array_size(list); r->item++)
        rc = read_row(r, json_array_get(list, r->item));
    r->list = NULL;
    return rc;
}

/* ---- end ---- */

static int read_device_errors(const struct reading *r, const json_t *object)
{
    struct result_faults *to = &r->to->faults;
    if (!object)
        return 0;
    strlist_done(&to->rose); /* a second end takes the place of the first */
    int rc = read_text(r, object, "looked_for_on", to->looked, sizeof to->looked);
    rc =
        rc < 0 ? rc : read_text(r, object, "not_looked_for", to->not_looked, sizeof to->not_looked);
    rc = rc < 0 ? rc : read_texts(r, object, "rose", &to->rose, false);
    to->known = rc == 0 && to->looked[0];
    return rc;
}

static int read_wrong_ranks(struct reading *r, const json_t *list)
{
    int rc = 0;
    if (list && !json_is_array(list))
        return wrong(r, "wrong_ranks", "a list");
    r->list = "wrong_ranks";
    for (r->item = 0; rc == 0 && r->item < json_array_size(list); r->item++) {
        const json_t *object = json_array_get(list, r->item);
        uint64_t rank = 0;
        double elements = 0;
        rc = read_whole(r, object, "rank", &rank);
        rc = rc < 0 ? rc : read_number(r, object, "elements", &elements);
        for (size_t i = 0; rc == 0 && i < r->to->rank_count; i++)
            if (r->to->ranks[i].rank == rank)
                r->to->ranks[i].wrong = elements;
    }
    r->list = NULL;
    return rc;
}

static int read_probed_end(const struct reading *r, const json_t *object, struct probed_end *to)
{
    int rc = read_small(r, object, "rank", &to->rank);
    rc = rc < 0 ? rc : read_small(r, object, "rail", &to->rail);
    rc = rc < 0 ? rc : read_text(r, object, "host", to->host, sizeof to->host);
    rc = rc < 0 ? rc : read_text(r, object, "node", to->node, sizeof to->node);
    rc = rc < 0 ? rc : read_text(r, object, "device", to->device, sizeof to->device);
    return rc < 0 ? rc : read_text(r, object, "nic", to->nic, sizeof to->nic);
}

static int read_probed_slow(const struct reading *r, const json_t *object, struct probed *to)
{
    char what[16] = "";
    int rc = read_text(r, object, "what", what, sizeof what);
    enum probed_kind kind = probed_kind_find(what);
    if (rc < 0 || !kind) /* of a later version */
        return rc;
    struct probed_slow *slow = probed_add(to);
    if (!slow)
        return no_memory(r);
    slow->kind = kind;
    rc = read_probed_end(r, object, &slow->at);
    rc = rc < 0 ? rc : read_probed_end(r, json_object_get(object, "other"), &slow->other);
    rc = rc < 0 ? rc : read_number(r, object, "time", &slow->seconds);
    rc = rc < 0 ? rc : read_number(r, object, "usual", &slow->usual);
    slow->seconds /= 1e6;
    slow->usual /= 1e6;
    return rc;
}

static int read_probed(struct reading *r, const json_t *object)
{
    struct probed *to = &r->to->probed;
    const json_t *rails = json_object_get(object, "rails"), *slow = json_object_get(object, "slow");
    uint64_t pairs = 0, each = 0, hosts = 0, met = 0;
    if (!object)
        return 0;
    probed_done(to); /* a second end takes the place of the first */
    int rc = read_whole(r, object, "measured", &pairs);
    rc = rc < 0 ? rc : read_text(r, object, "why_not", to->why_not, sizeof to->why_not);
    rc = rc < 0 ? rc : read_whole(r, rails, "each", &each);
    rc = rc < 0 ? rc : read_whole(r, rails, "hosts", &hosts);
    rc = rc < 0 ? rc : read_whole(r, rails, "measured", &met);
    to->known = rc == 0;
    to->pairs = (size_t)pairs;
    to->rails = (size_t)each;
    to->hosts = (size_t)hosts;
    to->rail_pairs = (size_t)met;
    r->list = "pairs.slow";
    for (r->item = 0; rc == 0 && r->item < json_array_size(slow); r->item++)
        rc = read_probed_slow(r, json_array_get(slow, r->item), to);
    r->list = NULL;
    return rc;
}

static int read_failure(const struct reading *r, const json_t *object)
{
    struct result_failure *to = &r->to->failure;
    int rc = read_text(r, object, "kind", to->kind, sizeof to->kind);
    rc = rc < 0 ? rc : read_text(r, object, "text", to->text, sizeof to->text);
    rc = rc < 0 ? rc : read_text(r, object, "host", to->host, sizeof to->host);
    rc = rc < 0 ? rc : read_text(r, object, "cause", to->cause, sizeof to->cause);
    return rc < 0 ? rc : read_small(r, object, "status", &to->status);
}

static int read_end(struct reading *r, const json_t *object)
{
    const json_t *bounds = json_object_get(object, "out_of_bounds");
    const json_t *average = json_object_get(object, "average_bus_bandwidth");
    uint64_t wrong_rows = 0;
    int rc = read_whole(r, bounds, "count", &wrong_rows);
    if (rc == 0 && json_object_get(bounds, "count"))
        r->to->wrong_rows = (double)(wrong_rows < RESULT_MANY ? wrong_rows : RESULT_MANY);
    if (rc == 0 && !not_a_number(average, "bandwidth"))
        rc = read_number(r, average, "bandwidth", &r->to->average);
    const json_t *okay = json_object_get(average, "okay"); /* "unchecked" is neither */
    if (rc == 0 && okay)
        r->to->below_least = json_is_false(okay) || (json_is_string(okay) &&
                                                     strcmp(json_string_value(okay), "false") == 0);
    const json_t *traffic = json_object_get(object, "traffic");
    rc = rc < 0 ? rc : read_number(r, traffic, "rdma", &r->to->traffic.rdma);
    rc = rc < 0 ? rc : read_number(r, traffic, "net", &r->to->traffic.net);
    r->to->traffic.known = rc == 0 && traffic;
    rc = rc < 0 ? rc : read_wrong_ranks(r, json_object_get(object, "wrong_ranks"));
    rc = rc < 0 ? rc : read_device_errors(r, json_object_get(object, "device_errors"));
    rc = rc < 0 ? rc : read_probed(r, json_object_get(object, "pairs"));
    rc = rc < 0 ? rc : read_failure(r, json_object_get(object, "failed"));
    rc = rc < 0 ? rc : read_text(r, object, "end_time", r->to->end, sizeof r->to->end);
    r->to->ended = r->to->ended || json_object_get(object, "end_time");
    return rc;
}

int result_json_read(const json_t *value, const char *name, unsigned line, struct result *to,
                     struct drarun_error *err)
{
    struct reading r = {.name = name, .line = line, .to = to, .err = err};
    const char *kind = value_text(value, "kind");
    if (!json_is_object(value))
        return wrong(&r, "the document", "an object");
    if (kind && strcmp(kind, "row") == 0)
        return read_row(&r, value);
    if (kind && strcmp(kind, "begin") == 0)
        return read_begin(&r, value);
    if (kind && strcmp(kind, "end") == 0) {
        int rc = read_end(&r, value);
        to->ended = to->ended || rc == 0;
        return rc;
    }
    if (kind && strcmp(kind, "failed") == 0)
        return read_failure(&r, json_object_get(value, "failed"));
    if (kind)
        return 0; /* of a later version */
    if (!json_object_get(value, "results"))
        return wrong(&r, "results", "it, as nccl-tests -J and drarun-bench write it");
    int rc = read_begin(&r, value);
    rc = rc < 0 ? rc : read_rows(&r, json_object_get(value, "results"));
    return rc < 0 ? rc : read_end(&r, value);
}
