/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/differences.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/order.h"
#include "lib/doc/value.h"

#define SHOWN_MAX 8u /* different values of ranks or workers */

static void differ(struct strlist *list, const char *what, const char *first, const char *second)
{
    if (strcmp(first, second) != 0)
        strlist_addf(list, "%s: %s, then %s", what, first[0] ? first : "not known",
                     second[0] ? second : "not known");
}

static void differ_count(struct strlist *list, const char *what, uint64_t first, uint64_t second)
{
    if (first != second)
        strlist_addf(list, "%s: %" PRIu64 ", then %" PRIu64, what, first, second);
}

/* The value of the variable that an assignment names; NULL: it is not set there. */
static const char *value_in(const struct strlist *env, const char *assignment)
{
    size_t length = strcspn(assignment, "=");
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], assignment, length) == 0 && env->items[i][length] == '=')
            return env->items[i] + length + 1;
    return NULL;
}

static void differ_environment(struct strlist *list, const struct strlist *first,
                               const struct strlist *second)
{
    for (size_t i = 0; i < first->count; i++) {
        const char *one = first->items[i], *then = value_in(second, one);
        size_t length = strcspn(one, "=");
        if (!then)
            strlist_addf(list, "only the first: %s", one);
        else if (one[length] && strcmp(one + length + 1, then) != 0)
            strlist_addf(list, "%.*s: %s, then %s", (int)length, one, one + length + 1, then);
    }
    for (size_t i = 0; i < second->count; i++)
        if (!value_in(first, second->items[i]))
            strlist_addf(list, "only the second: %s", second->items[i]);
}

/* ---- what many have ---- */

/* "PIX on 6, NODE on 2"; one value of all stands without its count. Of sorted values. */
static char *summary(const struct strlist *values, size_t max)
{
    struct buf out = BUF_INIT;
    size_t shown = 0;
    for (size_t i = 0, same; i < values->count; i += same) {
        for (same = 1; i + same < values->count; same++)
            if (strcmp(values->items[i], values->items[i + same]) != 0)
                break;
        if (shown++ == max) {
            buf_add_str(&out, ", and others");
            break;
        }
        buf_printf(&out, "%s%s", i ? ", " : "", values->items[i]);
        if (same < values->count)
            buf_printf(&out, " on %zu", same);
    }
    return buf_take(&out);
}

static void differ_many(struct strlist *list, const char *what, struct strlist *first,
                        struct strlist *second)
{
    if (first->count == 0 || second->count == 0)
        return;
    qsort(first->items, first->count, sizeof *first->items, order_texts);
    qsort(second->items, second->count, sizeof *second->items, order_texts);
    cleanup_free char *all = summary(first, SIZE_MAX), *other = summary(second, SIZE_MAX);
    cleanup_free char *short_one = summary(first, SHOWN_MAX), *then = summary(second, SHOWN_MAX);
    if (!all || !other || !short_one || !then || strcmp(all, other) == 0)
        return;
    if (strcmp(short_one, then) == 0)
        strlist_addf(list, "%s: %s: those differ", what, then);
    else
        differ(list, what, short_one, then);
}

static const struct {
    const char *what;
    size_t offset;
} of_ranks[] = {
    {"devices", offsetof(struct result_rank, model)},
    {"GPUs' drivers", offsetof(struct result_rank, driver)},
    {"kernels", offsetof(struct result_rank, kernel)},
    {"GPUs to their nearest NICs", offsetof(struct result_rank, path)},
    {"ranks' NICs", offsetof(struct result_rank, nic)},
    {"ranks' own NICs", offsetof(struct result_rank, nearest)},
    {"ranks' nodes", offsetof(struct result_rank, node)},
};

static void add_values(const struct result *r, size_t offset, struct strlist *values)
{
    for (size_t i = 0; i < r->rank_count; i++) {
        const char *value = (const char *)&r->ranks[i] + offset;
        if (value[0])
            strlist_add(values, value);
    }
}

static void differ_ranks(struct strlist *list, const struct result *a, const struct result *b)
{
    for (size_t i = 0; i < sizeof of_ranks / sizeof *of_ranks; i++) {
        CLEANUP(strlist_done) struct strlist first = STRLIST_INIT, second = STRLIST_INIT;
        add_values(a, of_ranks[i].offset, &first);
        add_values(b, of_ranks[i].offset, &second);
        differ_many(list, of_ranks[i].what, &first, &second);
    }
}

/* ---- each rank's own ---- */

/* "0000:18:00.0 with mlx5_0 (PIX)", of what is known. */
static void own_devices(const struct result_rank *rank, struct buf *out)
{
    bool single = rank->nic[0] && !strchr(rank->nic, ',');
    const char *nic = rank->nearest[0] ? rank->nearest : single ? rank->nic : "";
    buf_add_str(out, rank->address);
    if (nic[0])
        buf_printf(out, "%s%s", out->len ? " with " : "", nic);
    if (nic[0] && rank->path[0])
        buf_printf(out, " (%s)", rank->path);
}

static const struct result_rank *rank_of(const struct result *r, unsigned number)
{
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].rank == number)
            return &r->ranks[i];
    return NULL;
}

/* Whose devices are others: what all have together may be the same, and crossed. */
static void differ_own(struct strlist *list, const struct result *a, const struct result *b)
{
    size_t differing = 0;
    for (size_t i = 0; i < a->rank_count; i++) {
        const struct result_rank *other = rank_of(b, a->ranks[i].rank);
        struct buf first = BUF_INIT, then = BUF_INIT;
        own_devices(&a->ranks[i], &first);
        if (other)
            own_devices(other, &then);
        if (first.len && then.len && strcmp(first.data, then.data) != 0 &&
            differing++ < DIFFERENCES_RANKS_MAX)
            strlist_addf(list, "rank %u: %s, then %s", a->ranks[i].rank, first.data, then.data);
        buf_done(&first);
        buf_done(&then);
    }
    if (differing > DIFFERENCES_RANKS_MAX)
        strlist_addf(list, "and %zu more ranks have other devices",
                     differing - DIFFERENCES_RANKS_MAX);
}

/* ---- how it was measured, and what came of it ---- */

static void differ_config(struct strlist *list, const struct result_config *a,
                          const struct result_config *b)
{
    static const struct {
        const char *what;
        size_t offset;
    } counts[] = {
        {"calls of a measurement", offsetof(struct result_config, iterations)},
        {"calls that count as one", offsetof(struct result_config, aggregated)},
        {"calls to warm up", offsetof(struct result_config, warmup)},
        {"--blocking", offsetof(struct result_config, blocking)},
        {"--unalign", offsetof(struct result_config, unaligned)},
        {"--cudagraph", offsetof(struct result_config, graph)},
    };
    for (size_t i = 0; a->known && b->known && i < sizeof counts / sizeof *counts; i++)
        differ_count(list, counts[i].what, *(const uint64_t *)((const char *)a + counts[i].offset),
                     *(const uint64_t *)((const char *)b + counts[i].offset));
}

static bool has_slow(const struct probed *p, const struct probed_slow *slow)
{
    for (size_t i = 0; i < p->slow_count; i++)
        if (p->slow[i].kind == slow->kind && p->slow[i].at.rank == slow->at.rank &&
            p->slow[i].other.rank == slow->other.rank &&
            strcmp(p->slow[i].at.host, slow->at.host) == 0)
            return true;
    return false;
}

/* Whom the exchanges of pairs name in one of them alone; the other one has looked too. */
static void differ_slow(struct strlist *list, const char *which, const struct probed *p,
                        const struct probed *other)
{
    for (size_t i = 0; other->known && !other->why_not[0] && i < p->slow_count; i++) {
        struct buf where = BUF_INIT;
        if (has_slow(other, &p->slow[i]))
            continue;
        probed_where(&p->slow[i], &where);
        strlist_addf(list, "slow in the %s alone: %s %s: %+.1f %%", which,
                     probed_kind_name(p->slow[i].kind), where.data ? where.data : "",
                     probed_percent(&p->slow[i]));
        buf_done(&where);
    }
}

static void differ_end(struct strlist *list, const struct result *a, const struct result *b)
{
    differ_slow(list, "first", &a->probed, &b->probed);
    differ_slow(list, "second", &b->probed, &a->probed);
    if (strcmp(a->failure.text, b->failure.text) != 0) {
        if (a->failure.kind[0])
            strlist_addf(list, "the first's job failed: %s", a->failure.text);
        if (b->failure.kind[0])
            strlist_addf(list, "the second's job failed: %s", b->failure.text);
    }
}

/* ---- jobs ---- */

static char *leaf(const json_t *value)
{
    return json_is_string(value) ? strdup(json_string_value(value))
           : value               ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT)
                                 : strdup("not set");
}

/* Environments are compared as the ranks saw them. */
static bool is_passed_over(const char *key)
{
    return strcmp(key, "env") == 0;
}

static void differ_value(struct strlist *list, const char *path, const json_t *a, const json_t *b,
                         unsigned *left);

static void differ_members(struct strlist *list, const char *path, const json_t *a, const json_t *b,
                           bool only_new, unsigned *left)
{
    const char *key;
    json_t *value;
    value_foreach(a, key, value)
    {
        struct buf member = BUF_INIT;
        const json_t *other = json_object_get(b, key);
        buf_printf(&member, "%s.%s", path, key);
        if (!member.failed && !is_passed_over(key) && !(only_new && other))
            differ_value(list, member.data, only_new ? NULL : value, only_new ? value : other,
                         left);
        buf_done(&member);
    }
}

static bool holds_objects(const json_t *list)
{
    return json_is_object(json_array_get(list, 0));
}

/* Lists of objects (containers) by their places, other lists (a command) as a whole. */
static void differ_value(struct strlist *list, const char *path, const json_t *a, const json_t *b,
                         unsigned *left)
{
    if (*left == 0 || json_equal(a, b))
        return;
    if (json_is_object(a) && json_is_object(b)) {
        differ_members(list, path, a, b, false, left);
        differ_members(list, path, b, a, true, left);
        return;
    }
    if (holds_objects(a) && holds_objects(b) && json_array_size(a) == json_array_size(b)) {
        for (size_t i = 0; i < json_array_size(a); i++) {
            struct buf item = BUF_INIT;
            buf_printf(&item, "%s[%zu]", path, i);
            if (!item.failed)
                differ_value(list, item.data, json_array_get(a, i), json_array_get(b, i), left);
            buf_done(&item);
        }
        return;
    }
    cleanup_free char *first = leaf(a), *second = leaf(b);
    if (first && second)
        differ(list, path, first, second);
    (*left)--;
}

static const json_t *spec_of(const struct result *r)
{
    return json_object_get(json_object_get(r->about, "job"), "spec");
}

static const json_t *status_of(const struct result *r)
{
    return json_object_get(r->about, "status");
}

/* What the plan made of each worker's claims: "8 GPUs, 8 NICs: 8 PIX, 400 GB/s of 400". */
static void add_devices(const struct result *r, struct strlist *values)
{
    const json_t *lines = json_object_get(json_object_get(status_of(r), "workers"), "lines");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *devices = value_text(json_array_get(lines, i), "devices");
        if (devices)
            strlist_add(values, devices);
    }
}

static void differ_jobs(struct strlist *list, const struct result *a, const struct result *b)
{
    unsigned left = DIFFERENCES_SPEC_MAX;
    CLEANUP(strlist_done) struct strlist first = STRLIST_INIT, second = STRLIST_INIT;
    const char *launcher = value_text(json_object_get(status_of(a), "launcher"), "version");
    const char *then = value_text(json_object_get(status_of(b), "launcher"), "version");
    if (spec_of(a) && spec_of(b))
        differ_value(list, "spec", spec_of(a), spec_of(b), &left);
    if (left == 0)
        strlist_addf(list, "spec: more than %u differences", DIFFERENCES_SPEC_MAX - 1);
    if (launcher && then)
        differ(list, "launcher", launcher, then);
    add_devices(a, &first);
    add_devices(b, &second);
    differ_many(list, "workers' devices", &first, &second);
}

/* ---- all ---- */

void differences_add(const struct result *a, const struct result *b, struct strlist *list)
{
    size_t before = list->count;
    differ(list, "library", a->library, b->library);
    differ(list, "program", a->program, b->program);
    differ_count(list, "ranks", a->rank_count, b->rank_count);
    differ_count(list, "hosts", result_hosts(a), result_hosts(b));
    differ_ranks(list, a, b);
    differ_own(list, a, b);
    differ_config(list, &a->config, &b->config);
    differ_jobs(list, a, b);
    differ_environment(list, &a->env, &b->env);
    differ_end(list, a, b);
    for (size_t i = before; i < list->count; i++)
        result_clean_text(list->items[i]); /* some of it is of somebody's file */
}
