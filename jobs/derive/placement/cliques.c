/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/placement/cliques.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/worker_ranges.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define RANGES_MAX 2000

struct seat {
    const char *clique;
    uint32_t worker, leader; /* the first worker of its clique */
};

static int compare_numbers(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static bool together(const struct seat *a, const struct seat *b)
{
    return a->clique && b->clique && strcmp(a->clique, b->clique) == 0;
}

static int by_clique(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    int order = strcmp(x->clique ? x->clique : "", y->clique ? y->clique : "");
    return order ? order : compare_numbers(x->worker, y->worker);
}

static int by_leader(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    int order = compare_numbers(x->leader, y->leader);
    return order ? order : compare_numbers(x->worker, y->worker);
}

int cliques_order(const char *const *cliques, uint32_t workers, uint32_t **ret_order,
                  struct drarun_error *err)
{
    cleanup_free struct seat *seats = calloc(workers + 1u, sizeof *seats);
    cleanup_free uint32_t *order = calloc(workers + 1u, sizeof *order);
    bool changed = false;
    if (!seats || !order)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < workers; i++)
        seats[i] = (struct seat){cliques[i], i, i};
    qsort(seats, workers, sizeof *seats, by_clique);
    for (uint32_t i = 1; i < workers; i++)
        if (together(&seats[i - 1], &seats[i]))
            seats[i].leader = seats[i - 1].leader;
    qsort(seats, workers, sizeof *seats, by_leader);
    for (uint32_t i = 0; i < workers; i++) {
        order[i] = seats[i].worker;
        changed |= order[i] != i;
    }
    *ret_order = changed ? TAKE_PTR(order) : NULL;
    return 0;
}

static int compare_workers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return compare_numbers(*x, *y);
}

static json_t *clique_json(const char *clique, uint32_t *members, uint32_t count, uint32_t first,
                           uint32_t each)
{
    struct buf text = BUF_INIT;
    qsort(members, count, sizeof *members, compare_workers);
    worker_ranges(members, count, RANGES_MAX, &text);
    json_t *ranks = each == 0 ? NULL
                    : count * each > 1
                        ? json_sprintf("%u-%u", first * each, (first + count) * each - 1)
                        : json_sprintf("%u", first * each);
    json_t *object = json_pack("{s:s, s:s, s:o*}", "clique", clique, "workers",
                               text.data ? text.data : "", "ranks", ranks);
    buf_done(&text);
    return object;
}

json_t *cliques_json(const char *const *cliques, const uint32_t *order, uint32_t workers,
                     uint32_t each)
{
    cleanup_free uint32_t *members = calloc(workers + 1u, sizeof *members);
    CLEANUP(json_decrefp) json_t *list = json_array();
    if (!members || !list)
        return NULL;
    for (uint32_t i = 0, n; i < workers; i += n) {
        const char *clique = cliques[order ? order[i] : i];
        for (n = 0; i + n < workers; n++) {
            members[n] = order ? order[i + n] : i + n;
            if (n > 0 &&
                !(clique && cliques[members[n]] && strcmp(clique, cliques[members[n]]) == 0))
                break;
        }
        if (clique && json_array_append_new(list, clique_json(clique, members, n, i, each)) < 0)
            return NULL;
    }
    return json_array_size(list) > 0 ? TAKE_PTR(list) : json_null();
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

void cliques_line(const json_t *list, struct buf *out)
{
    size_t i;
    json_t *clique;
    json_array_foreach(list, i, clique)
    {
        buf_printf(out, "%s%s: workers %s, ranks %s",
                   i ? "; " : "NVLink: ", text_at(clique, "clique"), text_at(clique, "workers"),
                   text_at(clique, "ranks"));
    }
}
