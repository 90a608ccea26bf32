/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/order.h"
#include "lib/bench/differences.h"

#define RESAMPLES 1000u
#define CALLS_MAX 2000u /* of a half that are looked at */

/* ---- how sure ---- */

/* xorshift64*: the same numbers each time. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, order_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double resampled_median(const struct result_half *half, double *room, uint64_t *state)
{
    size_t count = half->call_count - half->skipped;
    count = count < CALLS_MAX ? count : CALLS_MAX;
    for (size_t i = 0; i < count; i++)
        room[i] = half->calls[half->skipped + next(state) % count];
    return median(room, count);
}

static double calls_median(const struct result_half *half, double *room)
{
    size_t count = half->call_count - half->skipped;
    count = count < CALLS_MAX ? count : CALLS_MAX;
    memcpy(room, half->calls + half->skipped, count * sizeof *room);
    return median(room, count);
}

static bool has_calls(const struct result_half *half)
{
    return half->calls && half->call_count >= half->skipped + 5;
}

static int interval(const struct result_half *a, const struct result_half *b, struct compared *c)
{
    uint64_t state = 88172645463325252u;
    cleanup_free double *room = calloc(CALLS_MAX, sizeof *room);
    cleanup_free double *changes = calloc(RESAMPLES, sizeof *changes);
    if (!has_calls(a) || !has_calls(b))
        return 0;
    if (!room || !changes)
        return -ENOMEM;
    for (size_t i = 0; i < RESAMPLES; i++) {
        double first = resampled_median(a, room, &state);
        double second = resampled_median(b, room, &state);
        if (!(first > 0))
            return 0;
        changes[i] = 100 * (second / first - 1);
    }
    qsort(changes, RESAMPLES, sizeof *changes, order_doubles);
    c->has_interval = true;
    c->least = changes[RESAMPLES * 25 / 1000];
    c->most = changes[RESAMPLES * 975 / 1000];
    /* what is shown is what is compared: one slow call moves a mean by any amount */
    c->first = calls_median(a, room);
    c->second = calls_median(b, room);
    c->change = 100 * (c->second / c->first - 1);
    return 0;
}

/* ---- pairs ---- */

static bool same_row(const struct result_row *a, const struct result_row *b)
{
    return a->bytes == b->bytes && a->root == b->root && strcmp(a->type, b->type) == 0 &&
           strcmp(a->op, b->op) == 0;
}

/* The row of `of` that stands as often as row i of r did until there: cycles (-N) repeat rows. */
static const struct result_row *partner(const struct result *of, const struct result *r, size_t i)
{
    size_t before = 0;
    for (size_t k = 0; k < i; k++)
        before += same_row(&r->rows[k], &r->rows[i]);
    for (size_t k = 0; k < of->row_count; k++)
        if (same_row(&of->rows[k], &r->rows[i]) && before-- == 0)
            return &of->rows[k];
    return NULL;
}

static bool usable(const struct result_half *half)
{
    return half->measured && half->seconds > 0;
}

static int add_half(struct compare *c, const struct result_row *row, const struct result_row *other,
                    bool in_place)
{
    static const struct result_half nothing;
    const struct result_half *a = in_place ? &row->in_place : &row->out_of_place;
    const struct result_half *b = !other     ? &nothing
                                  : in_place ? &other->in_place
                                             : &other->out_of_place;
    if (!usable(a) || !usable(b)) {
        c->only_first += usable(a);
        c->only_second += usable(b);
        return 0;
    }
    struct compared *to = &c->list[c->count++];
    *to = (struct compared){.row = row,
                            .in_place = in_place,
                            .first = a->seconds,
                            .second = b->seconds,
                            .change = 100 * (b->seconds / a->seconds - 1)};
    return interval(a, b, to);
}

static int pair_rows(const struct result *a, const struct result *b, struct compare *c)
{
    int rc = 0;
    if (!(c->list = calloc(2 * a->row_count + 1, sizeof *c->list)))
        return -ENOMEM;
    for (size_t i = 0; rc == 0 && i < a->row_count; i++) {
        const struct result_row *other = partner(b, a, i);
        rc = add_half(c, &a->rows[i], other, false);
        rc = rc < 0 ? rc : add_half(c, &a->rows[i], other, true);
    }
    for (size_t i = 0; i < b->row_count; i++)
        if (!partner(a, b, i))
            c->only_second += usable(&b->rows[i].out_of_place) + usable(&b->rows[i].in_place);
    return rc;
}

static void add_failures(const struct run *run, const char *name, struct strlist *failures)
{
    struct strlist why = STRLIST_INIT;
    run_is_incomplete(run, &why);
    for (size_t i = 0; i < why.count; i++)
        strlist_addf(failures, "%s: %s", name, why.items[i]);
    failures->failed = failures->failed || why.failed;
    strlist_done(&why);
}

static int nothing_in_common(const struct compare *c, const char *first_name,
                             const char *second_name, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "%s and %s have no size, type, operation and root in common%s%s", first_name,
                      second_name, c->failures.count ? "; " : "",
                      c->failures.count ? c->failures.items[0] : "");
}

int compare_runs(const struct run *first, const char *first_name, const struct run *second,
                 const char *second_name, struct compare *ret, struct drarun_error *err)
{
    const struct result *a = &first->result, *b = &second->result;
    const char *wrong_one = result_wrong(a) > 0 || a->wrong_rows > 0   ? first_name
                            : result_wrong(b) > 0 || b->wrong_rows > 0 ? second_name
                                                                       : NULL;
    struct compare c = {0};
    if (wrong_one)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: its data was wrong: there is nothing to compare", wrong_one);
    if (a->stand_in || b->stand_in)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: measured with a stand-in: there is nothing to compare",
                          a->stand_in ? first_name : second_name);
    if (a->collective[0] && b->collective[0] && strcmp(a->collective, b->collective) != 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s is of %s and %s of %s", first_name,
                          a->collective, second_name, b->collective);
    add_failures(first, first_name, &c.failures);
    add_failures(second, second_name, &c.failures);
    int rc = c.failures.failed ? -ENOMEM : pair_rows(a, b, &c);
    if (rc == 0 && c.count == 0)
        rc = nothing_in_common(&c, first_name, second_name, err);
    else if (rc < 0)
        rc = error_set(err, -rc, "out of memory");
    if (rc < 0) {
        compare_done(&c);
        return rc;
    }
    differences_add(a, b, &c.differences);
    *ret = c;
    return 0;
}

void compare_done(struct compare *c)
{
    free(c->list);
    strlist_done(&c->differences);
    strlist_done(&c->failures);
}

bool compared_slower(const struct compared *c, double percent)
{
    return (c->has_interval ? c->least : c->change) > percent;
}

static bool compared_faster(const struct compared *c, double percent)
{
    return (c->has_interval ? c->most : c->change) < -percent;
}

/* ---- for people, for programs ---- */

static size_t count_slower(const struct compare *c, double percent)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += compared_slower(&c->list[i], percent);
    return count;
}

static void line(const struct compared *c, double percent, struct buf *out)
{
    char size[24];
    result_size_text(c->row->bytes, size, sizeof size);
    buf_printf(out, "%10s  %8s  %-5s  %11.2f  %11.2f  %+7.1f %%", size, c->row->type,
               c->in_place ? "in" : "out", c->first * 1e6, c->second * 1e6, c->change);
    if (c->has_interval)
        buf_printf(out, "  %+7.1f to %+.1f", c->least, c->most);
    buf_printf(out, "%s\n",
               compared_slower(c, percent)   ? "  SLOWER"
               : compared_faster(c, percent) ? "  faster"
                                             : "");
}

void compare_text(const struct compare *c, double percent, struct buf *out)
{
    size_t sure = 0;
    buf_printf(out, "%10s  %8s  %-5s  %11s  %11s  %9s  %s\n", "size", "type", "place", "first (us)",
               "second (us)", "change", "95 %");
    for (size_t i = 0; i < c->count; i++) {
        line(&c->list[i], percent, out);
        sure += c->list[i].has_interval;
    }
    for (size_t i = 0; i < c->differences.count; i++)
        buf_printf(out, "note: %s\n", c->differences.items[i]);
    if (c->only_first || c->only_second)
        buf_printf(out, "note: %zu measurements stand only in the first, %zu only in the second\n",
                   c->only_first, c->only_second);
    if (sure < c->count)
        buf_printf(out,
                   "note: without single calls (-I 1) nobody knows whether %zu of %zu changes are "
                   "more than chance\n",
                   c->count - sure, c->count);
    buf_printf(out, "%zu of %zu measurements are more than %g %% slower\n",
               count_slower(c, percent), c->count, percent);
    for (size_t i = 0; i < c->failures.count; i++)
        buf_printf(out, "%s %s\n", i ? "       " : "FAILED:", c->failures.items[i]);
}

json_t *compare_json(const struct compare *c, double percent)
{
    json_t *rows = json_array(), *notes = json_array(), *failures = json_array();
    bool failed = !rows || !notes || !failures;
    for (size_t i = 0; !failed && i < c->count; i++) {
        const struct compared *one = &c->list[i];
        json_t *row =
            json_pack("{s:I, s:s, s:b, s:f, s:f, s:f, s:b}", "size", (json_int_t)one->row->bytes,
                      "type", one->row->type, "in_place", one->in_place, "first_us",
                      one->first * 1e6, "second_us", one->second * 1e6, "change_percent",
                      one->change, "slower", compared_slower(one, percent));
        if (row && one->has_interval)
            failed = json_object_set_new(row, "interval_percent",
                                         json_pack("[f, f]", one->least, one->most)) < 0;
        failed = json_array_append_new(rows, row) < 0 || failed;
    }
    for (size_t i = 0; !failed && i < c->differences.count; i++)
        failed = json_array_append_new(notes, json_string(c->differences.items[i])) < 0;
    for (size_t i = 0; !failed && i < c->failures.count; i++)
        failed = json_array_append_new(failures, json_string(c->failures.items[i])) < 0;
    json_t *all =
        json_pack("{s:o, s:o, s:I, s:I, s:I, s:b, s:o}", "measurements", rows, "differences", notes,
                  "slower", (json_int_t)count_slower(c, percent), "only_first",
                  (json_int_t)c->only_first, "only_second", (json_int_t)c->only_second, "failed",
                  c->failures.count > 0, "failures", failures);
    if (!failed)
        return all;
    json_decref(all);
    return NULL;
}
