/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/show.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

static const char *const state_names[] = {[ACCEPT_UNKNOWN] = "unknown",
                                          [ACCEPT_PASSED] = "passed",
                                          [ACCEPT_BAD] = "bad",
                                          [ACCEPT_SUSPECT] = "suspect"};

static void set_figure(json_t *object, const char *key, double value)
{
    if (value >= 0)
        json_object_set_new(object, key, json_real(value));
}

/* NULL: there is none. */
static json_t *words_of(const char *text)
{
    return text[0] ? value_of_words(text) : NULL;
}

static json_t *node_json(const struct accept_node *node, const char *name, const json_t *history)
{
    json_t *object = json_pack("{s:s, s:s, s:i, s:o*, s:o*}", "name", name, "state",
                               state_names[node->state], "pairs", (int)node->pairs, "reason",
                               words_of(node->reason), "notLookedAt", words_of(node->not_looked));
    json_t *earlier = json_object_get(history, name);
    set_figure(object, "alone", node->alone);
    set_figure(object, "worstPair", node->worst);
    if (earlier)
        json_object_set(object, "earlier", earlier);
    return object;
}

static void count(json_t *verdict)
{
    for (size_t s = 0; s < ARRAY_LEN(state_names); s++) {
        json_int_t n = 0;
        size_t i;
        json_t *node;
        json_array_foreach(json_object_get(verdict, "nodes"), i, node)
        {
            n += strcmp(json_string_value(json_object_get(node, "state")), state_names[s]) == 0;
        }
        json_object_set_new(verdict, state_names[s], json_integer(n));
    }
}

/* Of the whole run: no node is to blame for how few there are. */
static void add_not_compared(const struct accept *plan, json_t *verdict)
{
    CLEANUP(strlist_done) struct strlist sentences = STRLIST_INIT;
    accept_not_compared(plan, &sentences);
    json_t *list = json_array();
    for (size_t i = 0; i < sentences.count; i++)
        json_array_append_new(list, json_string(sentences.items[i]));
    if (sentences.count)
        json_object_set(verdict, "notCompared", list);
    json_decref(list);
}

json_t *accept_verdict(const struct accept *plan, const struct strlist *names,
                       const json_t *left_out, const json_t *history)
{
    size_t node_count = 0, path_count;
    const struct accept_node *nodes = plan ? accept_nodes(plan, &node_count) : NULL;
    const struct accept_path *paths = plan ? accept_paths(plan, &path_count) : NULL;
    json_t *list = json_array(), *between = json_array();
    const char *name;
    json_t *why;
    int rc = 0;
    for (size_t i = 0; i < node_count; i++)
        rc |= json_array_append_new(list, node_json(&nodes[i], names->items[i], history));
    value_foreach(left_out, name, why)
    {
        rc |= json_array_append_new(list, json_pack("{s:s, s:s, s:O, s:i}", "name", name, "state",
                                                    "unknown", "reason", why, "pairs", 0));
    }
    for (size_t i = 0; plan && i < path_count; i++)
        rc |= json_array_append_new(between, json_pack("{s:[s, s], s:o}", "nodes",
                                                       names->items[paths[i].node],
                                                       names->items[paths[i].partner], "reason",
                                                       value_of_words(paths[i].reason)));
    CLEANUP(json_decrefp)
    json_t *verdict = json_pack("{s:o, s:o}", "nodes", list, "paths", between);
    if (!verdict || rc < 0)
        return NULL;
    count(verdict);
    if (plan)
        add_not_compared(plan, verdict);
    return json_incref(verdict);
}

static json_int_t number_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

int accept_verdict_status(const json_t *verdict)
{
    return number_at(verdict, "bad") || number_at(verdict, "suspect") ||
           number_at(verdict, "unknown") || json_array_size(json_object_get(verdict, "paths"));
}

/* ---- text ---- */

static void add_figure(const json_t *node, const char *key, struct buf *out)
{
    const json_t *value = json_object_get(node, key);
    if (value)
        buf_printf(out, " %10.2f", json_number_value(value));
    else
        buf_printf(out, " %10s", "-");
}

static void add_node(const json_t *node, int width, struct buf *out)
{
    const char *reason = json_string_value(json_object_get(node, "reason"));
    const json_t *earlier = json_object_get(node, "earlier");
    buf_printf(out, "%-*s  %-8s", width, json_string_value(json_object_get(node, "name")),
               json_string_value(json_object_get(node, "state")));
    add_figure(node, "alone", out);
    add_figure(node, "worstPair", out);
    buf_printf(out, " %6d", (int)number_at(node, "pairs"));
    if (earlier)
        buf_printf(out, "  bad in %d of %d earlier runs", (int)number_at(earlier, "bad"),
                   (int)number_at(earlier, "runs"));
    buf_printf(out, "%s%s\n", reason ? "  " : "", reason ? reason : "");
}

static void append_state(const json_t *verdict, const char *state, json_t *list)
{
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(verdict, "nodes"), i, node)
    {
        if (strcmp(json_string_value(json_object_get(node, "state")), state) == 0)
            json_array_append(list, node);
    }
}

json_t *accept_verdict_nodes(const json_t *verdict)
{
    static const char *const order[] = {"bad", "suspect", "unknown", "passed"};
    json_t *list = json_array();
    for (size_t s = 0; s < ARRAY_LEN(order); s++)
        append_state(verdict, order[s], list);
    return list;
}

void accept_verdict_not_looked(const json_t *verdict, struct buf *out)
{
    CLEANUP(json_decrefp) json_t *counts = json_object();
    size_t i;
    json_t *node, *number, *sentence;
    const char *text;
    json_array_foreach(json_object_get(verdict, "notCompared"), i, sentence)
    {
        buf_printf(out, "not compared: %s\n", json_string_value(sentence));
    }
    json_array_foreach(json_object_get(verdict, "nodes"), i, node)
    {
        text = json_string_value(json_object_get(node, "notLookedAt"));
        if (text)
            json_object_set_new(counts, text, json_integer(number_at(counts, text) + 1));
    }
    json_object_foreach(counts, text, number)
    {
        buf_printf(out, "not looked at on %d node%s: %s\n", (int)json_integer_value(number),
                   json_integer_value(number) == 1 ? "" : "s", text);
    }
}

void accept_verdict_text(const json_t *verdict, struct buf *out)
{
    CLEANUP(json_decrefp) json_t *sorted = accept_verdict_nodes(verdict);
    size_t i, length;
    json_t *item;
    int width = 4;
    json_array_foreach(json_object_get(verdict, "nodes"), i, item)
    {
        length = json_string_length(json_object_get(item, "name"));
        width = (int)length > width ? (int)length : width;
    }
    buf_printf(out, "%-*s  %-8s %10s %10s %6s\n", width, "NODE", "VERDICT", "ALONE GB/s",
               "PAIR GB/s", "PAIRS");
    json_array_foreach(sorted, i, item)
    {
        add_node(item, width, out);
    }
    json_array_foreach(json_object_get(verdict, "paths"), i, item)
    {
        const json_t *nodes = json_object_get(item, "nodes");
        buf_printf(out, "between %s and %s: %s; each is well with others\n",
                   json_string_value(json_array_get(nodes, 0)),
                   json_string_value(json_array_get(nodes, 1)),
                   json_string_value(json_object_get(item, "reason")));
    }
    accept_verdict_not_looked(verdict, out);
    buf_printf(out, "%d passed, %d bad, %d suspect, %d unknown\n",
               (int)number_at(verdict, "passed"), (int)number_at(verdict, "bad"),
               (int)number_at(verdict, "suspect"), (int)number_at(verdict, "unknown"));
}
