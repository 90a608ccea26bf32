/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/bench/probed.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define SHOWN_MAX 8u /* of each kind, to people */

void probed_done(struct probed *p)
{
    free(p->slow);
    *p = (struct probed){0};
}

struct probed_slow *probed_add(struct probed *p)
{
    struct probed_slow *larger = array_room(p->slow, p->slow_count, &p->slow_cap, sizeof *larger);
    if (!larger)
        return NULL;
    p->slow = larger;
    struct probed_slow *slow = &p->slow[p->slow_count++];
    *slow = (struct probed_slow){.at = {.rank = -1, .rail = -1}, .other = {.rank = -1, .rail = -1}};
    return slow;
}

static const struct {
    const char *name, *title;
} kinds[] = {
    [PROBED_UNKNOWN] = {"unknown", ""},    [PROBED_RANK] = {"rank", "Slow rank"},
    [PROBED_PAIR] = {"pair", "Slow pair"}, [PROBED_HOST] = {"host", "Slow host"},
    [PROBED_NIC] = {"nic", "Slow NIC"},    [PROBED_PATH] = {"path", "Slow path"},
};

const char *probed_kind_name(enum probed_kind kind)
{
    return kinds[kind].name;
}

enum probed_kind probed_kind_find(const char *name)
{
    for (size_t i = PROBED_RANK; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return (enum probed_kind)i;
    return PROBED_UNKNOWN;
}

double probed_percent(const struct probed_slow *slow)
{
    return slow->usual > 0 ? (slow->seconds / slow->usual - 1) * 100 : 0;
}

bool probed_is_slow(const struct probed *p, int rank)
{
    for (size_t i = 0; i < p->slow_count; i++)
        if ((p->slow[i].kind == PROBED_RANK || p->slow[i].kind == PROBED_NIC) &&
            p->slow[i].at.rank == rank)
            return true;
    return false;
}

bool probed_host_is_slow(const struct probed *p, const char *host)
{
    for (size_t i = 0; i < p->slow_count; i++)
        if (p->slow[i].kind == PROBED_HOST && strcmp(p->slow[i].at.host, host) == 0)
            return true;
    return false;
}

/* ---- for people ---- */

static const char *home(const struct probed_end *end)
{
    return end->node[0] ? end->node : end->host;
}

void probed_where(const struct probed_slow *slow, struct buf *out)
{
    const struct probed_end *a = &slow->at, *b = &slow->other;
    switch (slow->kind) {
    case PROBED_RANK:
        buf_printf(out, "%d on %s (%s)", a->rank, a->host, a->device);
        return;
    case PROBED_PAIR:
        buf_printf(out, "%d on %s and %d on %s", a->rank, a->host, b->rank, b->host);
        return;
    case PROBED_HOST:
        buf_printf(out, "%s: all its rails", home(a));
        return;
    case PROBED_NIC:
        buf_printf(out, "rail %d of %s (%s, rank %d)", a->rail, home(a),
                   a->nic[0] ? a->nic : "its NIC", a->rank);
        return;
    case PROBED_PATH:
        buf_printf(out, "rail %d of %s and rail %d of %s", a->rail, home(a), b->rail, home(b));
        return;
    case PROBED_UNKNOWN:
        return;
    }
}

static void slow_lines(const struct probed *p, enum probed_kind kind, struct buf *out)
{
    const char *take = kind == PROBED_HOST                         ? " its pairs take at least"
                       : kind == PROBED_RANK || kind == PROBED_NIC ? " its pairs take"
                                                                   : "";
    unsigned shown = 0;
    for (size_t i = 0; i < p->slow_count && shown < SHOWN_MAX; i++) {
        const struct probed_slow *slow = &p->slow[i];
        if (slow->kind != kind)
            continue;
        buf_printf(out, "# %-21s: ", kinds[kind].title);
        probed_where(slow, out);
        buf_printf(out, ":%s %.2f us, others' %.2f: %+.1f %%\n", take, slow->seconds * 1e6,
                   slow->usual * 1e6, probed_percent(slow));
        shown++;
    }
}

static bool has(const struct probed *p, enum probed_kind first, enum probed_kind last)
{
    for (size_t i = 0; i < p->slow_count; i++)
        if (p->slow[i].kind >= first && p->slow[i].kind <= last)
            return true;
    return false;
}

void probed_text(const struct probed *p, struct buf *out)
{
    if (!p->known)
        return;
    if (p->why_not[0]) {
        buf_printf(out, "# All pairs of ranks   : not measured: %s\n", p->why_not);
        return;
    }
    buf_printf(out, "# All pairs of ranks   : %zu measured%s\n", p->pairs,
               has(p, PROBED_RANK, PROBED_PAIR) ? "" : "; none is slower than the rest");
    slow_lines(p, PROBED_RANK, out);
    slow_lines(p, PROBED_PAIR, out);
    if (p->rails == 0)
        return;
    buf_printf(out, "# Rails of the hosts   : %zu on each of %zu hosts, %zu pairs measured%s\n",
               p->rails, p->hosts, p->rail_pairs,
               has(p, PROBED_HOST, PROBED_PATH) ? "" : "; no NIC is slower than the rest");
    slow_lines(p, PROBED_HOST, out);
    slow_lines(p, PROBED_NIC, out);
    slow_lines(p, PROBED_PATH, out);
}

/* ---- for programs ---- */

static json_t *number(int value)
{
    return value < 0 ? NULL : json_integer(value);
}

static json_t *text(const char *value)
{
    return value[0] ? json_string(value) : NULL;
}

static json_t *end_json(const struct probed_end *end)
{
    return json_pack("{s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "rank", number(end->rank), "rail",
                     number(end->rail), "host", text(end->host), "node", text(end->node), "device",
                     text(end->device), "nic", text(end->nic));
}

static json_t *slow_json(const struct probed_slow *slow)
{
    bool two = slow->kind == PROBED_PAIR || slow->kind == PROBED_PATH;
    json_t *o = end_json(&slow->at);
    json_t *rest = json_pack("{s:s, s:o*, s:f, s:f, s:f}", "what", kinds[slow->kind].name, "other",
                             two ? end_json(&slow->other) : NULL, "time", slow->seconds * 1e6,
                             "usual", slow->usual * 1e6, "percent", probed_percent(slow));
    int rc = rest ? json_object_update(rest, o) : -1;
    json_decref(o);
    if (rc == 0)
        return rest;
    json_decref(rest);
    return NULL;
}

json_t *probed_json(const struct probed *p)
{
    json_t *list = json_array();
    int rc = 0;
    for (size_t i = 0; i < p->slow_count; i++)
        rc |= json_array_append_new(list, slow_json(&p->slow[i]));
    json_t *rails = p->rails
                        ? json_pack("{s:I, s:I, s:I}", "each", (json_int_t)p->rails, "hosts",
                                    (json_int_t)p->hosts, "measured", (json_int_t)p->rail_pairs)
                        : NULL;
    json_t *all = json_pack("{s:I, s:o*, s:o*, s:o}", "measured", (json_int_t)p->pairs, "why_not",
                            text(p->why_not), "rails", rails, "slow", list);
    if (rc == 0)
        return all;
    json_decref(all);
    return NULL;
}
