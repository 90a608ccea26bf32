/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts for those who did not run the test: CI systems, and people who get a page. */
#include <stdio.h>
#include <string.h>

#include "launcher/accept/show.h"
#include "lib/base/cleanup.h"
#include "lib/bench/plot_svg.h"
#include "lib/bench/report_html.h"
#include "lib/doc/value.h"

/* Text between tags or in an attribute. */
static void add(struct buf *out, const char *text)
{
    plot_text(text, out);
}

static const char *text_at(const json_t *object, const char *key)
{
    return value_text_or(object, key, "");
}

/* "node-1 and node-2" */
static void add_ends(const json_t *path, struct buf *out)
{
    const json_t *nodes = json_object_get(path, "nodes");
    add(out, json_string_value(json_array_get(nodes, 0)));
    buf_add_str(out, " and ");
    add(out, json_string_value(json_array_get(nodes, 1)));
}

static int count_at(const json_t *object, const char *key)
{
    return (int)json_integer_value(json_object_get(object, key));
}

static bool is_state(const json_t *node, const char *state)
{
    return strcmp(text_at(node, "state"), state) == 0;
}

/* "400.12 GB/s alone, 380.00 GB/s in the worst of 3 pairs; not looked at: GPUs: no NVML" */
static void add_figures(const json_t *node, struct buf *out)
{
    const json_t *alone = json_object_get(node, "alone"),
                 *pair = json_object_get(node, "worstPair");
    if (alone)
        buf_printf(out, "%.2f GB/s alone", json_number_value(alone));
    if (pair)
        buf_printf(out, "%s%.2f GB/s in the worst of %d pairs", alone ? ", " : "",
                   json_number_value(pair), count_at(node, "pairs"));
    if (text_at(node, "notLookedAt")[0])
        buf_printf(out, "%snot looked at: %s", alone || pair ? "; " : "",
                   text_at(node, "notLookedAt"));
}

/* ---- JUnit ---- */

static void add_case(const json_t *node, struct buf *out)
{
    struct buf figures = BUF_INIT;
    add_figures(node, &figures);
    buf_add_str(out, "  <testcase classname=\"drarun.accept.node\" name=\"");
    add(out, text_at(node, "name"));
    buf_add_str(out, "\">");
    if (is_state(node, "unknown")) {
        buf_add_str(out, "<skipped message=\"");
        add(out, text_at(node, "reason"));
        buf_add_str(out, "\"/>");
    } else if (!is_state(node, "passed")) {
        buf_printf(out, "<failure type=\"%s\" message=\"", text_at(node, "state"));
        add(out, text_at(node, "reason"));
        buf_add_str(out, "\"/>");
    }
    if (figures.len > 0) {
        buf_add_str(out, "<system-out>");
        add(out, figures.data);
        buf_add_str(out, "</system-out>");
    }
    buf_add_str(out, "</testcase>\n");
    out->failed |= figures.failed;
    buf_done(&figures);
}

static void add_path(const json_t *path, struct buf *out)
{
    buf_add_str(out, "  <testcase classname=\"drarun.accept.path\" name=\"");
    add_ends(path, out);
    buf_add_str(out, "\"><failure type=\"path\" message=\"");
    add(out, text_at(path, "reason"));
    buf_add_str(out, "\"/></testcase>\n");
}

void accept_verdict_junit(const json_t *verdict, struct buf *out)
{
    const json_t *nodes = json_object_get(verdict, "nodes");
    const json_t *paths = json_object_get(verdict, "paths"), *item;
    int failures =
        count_at(verdict, "bad") + count_at(verdict, "suspect") + (int)json_array_size(paths);
    char counts[96];
    size_t i;
    snprintf(counts, sizeof counts, "tests=\"%zu\" failures=\"%d\" errors=\"0\" skipped=\"%d\"",
             json_array_size(nodes) + json_array_size(paths), failures,
             count_at(verdict, "unknown"));
    buf_printf(out,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites %s>\n"
               " <testsuite name=\"drarun accept\" %s>\n",
               counts, counts);
    json_array_foreach(nodes, i, item) add_case(item, out);
    json_array_foreach(paths, i, item) add_path(item, out);
    json_array_foreach(json_object_get(verdict, "notCompared"), i, item)
    {
        buf_add_str(out, i ? "\n" : "  <system-out>");
        buf_add_str(out, "not compared: ");
        add(out, json_string_value(item));
    }
    buf_add_str(out, i ? "</system-out>\n" : "");
    buf_add_str(out, " </testsuite>\n</testsuites>\n");
}

/* ---- a page ---- */

static void add_number(const json_t *node, const char *key, struct buf *out)
{
    const json_t *value = json_object_get(node, key);
    if (value)
        buf_printf(out, "<td>%.2f</td>", json_number_value(value));
    else
        buf_add_str(out, "<td class=\"faint\">-</td>");
}

static void add_row(const json_t *node, struct buf *out)
{
    const json_t *earlier = json_object_get(node, "earlier");
    const char *colour = is_state(node, "passed")    ? "good"
                         : is_state(node, "unknown") ? "faint"
                                                     : "low";
    buf_add_str(out, "<tr><td class=\"text\">");
    add(out, text_at(node, "name"));
    buf_printf(out, "</td><td class=\"text %s\">%s</td>", colour, text_at(node, "state"));
    add_number(node, "alone", out);
    add_number(node, "worstPair", out);
    buf_printf(out, "<td>%d</td><td class=\"text\">", count_at(node, "pairs"));
    add(out, text_at(node, "reason"));
    if (earlier && count_at(earlier, "bad") > 0)
        buf_printf(out, "%sbad in %d of %d earlier runs", text_at(node, "reason")[0] ? "; " : "",
                   count_at(earlier, "bad"), count_at(earlier, "runs"));
    buf_add_str(out, "</td></tr>\n");
}

void accept_verdict_html(const json_t *verdict, struct buf *out)
{
    CLEANUP(json_decrefp) json_t *sorted = accept_verdict_nodes(verdict);
    size_t i;
    const json_t *path, *node;
    report_begin("Nodes tested by drarun accept", PLOT_BOTH, out);
    buf_printf(out, "<p class=\"big%s\">", accept_verdict_status(verdict) ? " failed" : "");
    buf_printf(out, "%d passed, %d bad, %d suspect, %d unknown</p>\n", count_at(verdict, "passed"),
               count_at(verdict, "bad"), count_at(verdict, "suspect"),
               count_at(verdict, "unknown"));
    buf_add_str(out, "<p class=\"faint\">Bus bandwidth in GB/s: of each node alone at its best "
                     "size, and of the slowest of its pairs.</p>\n<div class=\"wide\"><table><tr>"
                     "<th class=\"text\">node</th><th class=\"text\">verdict</th><th>alone</th>"
                     "<th>worst pair</th><th>pairs</th><th class=\"text\">why</th></tr>\n");
    json_array_foreach(sorted, i, node)
    {
        add_row(node, out);
    }
    buf_add_str(out, "</table></div>\n");
    json_array_foreach(json_object_get(verdict, "paths"), i, path)
    {
        buf_add_str(out, "<p class=\"failed\">between ");
        add_ends(path, out);
        buf_add_str(out, ": ");
        add(out, text_at(path, "reason"));
        buf_add_str(out, "; each is well with others</p>\n");
    }
    struct buf lines = BUF_INIT;
    accept_verdict_not_looked(verdict, &lines);
    if (lines.len > 0) {
        char *rest = NULL;
        buf_add_str(out, "<pre>");
        for (char *line = strtok_r(lines.data, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
            add(out, line);
            buf_add_str(out, "\n");
        }
        buf_add_str(out, "</pre>\n");
    }
    out->failed |= lines.failed;
    buf_done(&lines);
    report_end(out);
}
