/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/preflight/preflight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/preflight_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/cpus.h"

/* ---- merging ---- */

static int compare_words(const struct preflight_finding *x, const struct preflight_finding *y)
{
    int order = (int)y->refusal - (int)x->refusal;
    if (order == 0)
        order = (int)x->code - (int)y->code;
    if (order == 0)
        order = strcmp(x->text, y->text);
    return order ? order : strcmp(x->cure, y->cure);
}

static int by_words(const void *a, const void *b)
{
    const struct preflight_finding *x = a, *y = b;
    int order = compare_words(x, y);
    return order ? order : (x->worker > y->worker) - (x->worker < y->worker);
}

static int by_worker(const void *a, const void *b)
{
    const struct preflight_finding *x = a, *y = b;
    int order = (int)y->refusal - (int)x->refusal;
    if (order == 0)
        order = (x->worker > y->worker) - (x->worker < y->worker);
    return order ? order : by_words(a, b);
}

static char *one_worker(const struct preflight_worker *worker, uint32_t index)
{
    char *text = NULL;
    int n = worker->pod && worker->node
                ? asprintf(&text, "worker %u (%s on %s)", index, worker->pod, worker->node)
            : worker->pod ? asprintf(&text, "worker %u (%s)", index, worker->pod)
                          : asprintf(&text, "worker %u", index);
    return n < 0 ? NULL : text;
}

static char *many_workers(const struct preflight_finding *list, size_t count)
{
    struct buf out = BUF_INIT;
    cleanup_free uint32_t *ids = calloc(count, sizeof *ids);
    for (size_t i = 0; ids && i < count; i++)
        ids[i] = list[i].worker;
    buf_add_str(&out, "workers ");
    if (ids)
        cpulist_format(ids, count, &out);
    char *text = ids && !out.failed && out.data ? strdup(out.data) : NULL;
    buf_done(&out);
    return text;
}

/* The same words of several workers become one finding. */
static size_t merge(struct preflight_run *run)
{
    size_t kept = 0;
    qsort(run->list, run->count, sizeof *run->list, by_words);
    for (size_t i = 0, end; i < run->count; i = end) {
        struct preflight_finding first = run->list[i];
        for (end = i + 1; end < run->count && compare_words(&first, &run->list[end]) == 0; end++)
            ;
        first.others = (uint32_t)(end - i - 1);
        first.where = first.others ? many_workers(&run->list[i], end - i)
                                   : one_worker(&run->in->workers[first.worker], first.worker);
        run->failed |= !first.where;
        for (size_t k = i + 1; k < end; k++)
            preflight_finding_done(&run->list[k]);
        run->list[kept++] = first;
    }
    return kept;
}

static int conclude(struct preflight_run *run, struct preflight *ret_preflight,
                    struct drarun_error *err)
{
    struct preflight result = {.count = run->count > 0 ? merge(run) : 0, .list = run->list};
    if (run->failed) {
        preflight_done(&result);
        return error_set(err, ENOMEM, "preflight: out of memory");
    }
    if (result.count > 0)
        qsort(result.list, result.count, sizeof *result.list, by_worker);
    while (result.refusals < result.count && result.list[result.refusals].refusal)
        result.refusals++;
    *ret_preflight = result;
    return 0;
}

int preflight_check(const struct preflight_input *input, struct preflight *ret_preflight,
                    struct drarun_error *err)
{
    struct preflight_run run = {.in = input};
    preflight_rules(&run);
    return conclude(&run, ret_preflight, err);
}

int preflight_reach(const struct preflight_input *input, const struct reach *reach,
                    struct preflight *ret_preflight, struct drarun_error *err)
{
    struct preflight_run run = {.in = input};
    preflight_reach_rules(&run, reach);
    return conclude(&run, ret_preflight, err);
}

void preflight_done(struct preflight *preflight)
{
    for (size_t i = 0; i < preflight->count; i++)
        preflight_finding_done(&preflight->list[i]);
    free(preflight->list);
    *preflight = (struct preflight){0};
}

/* ---- telling ---- */

void preflight_line(const struct preflight_finding *finding, struct buf *out)
{
    buf_printf(out, "%s: %s: %s", finding->where, finding->text, finding->cure);
}

int preflight_result(const struct preflight *preflight, struct drarun_error *err)
{
    struct buf line = BUF_INIT;
    if (preflight->refusals == 0)
        return 0;
    preflight_line(&preflight->list[0], &line);
    if (preflight->refusals > 1)
        buf_printf(&line, " (and %zu more)", preflight->refusals - 1);
    error_kind(err, DRARUN_ERR_PREFLIGHT, EPERM, "%s", line.data ? line.data : "out of memory");
    buf_done(&line);
    return -EPERM;
}
