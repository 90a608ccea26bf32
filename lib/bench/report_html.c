/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/report_html.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/result_csv.h"
#include "lib/doc/value.h"

static const char layout[] =
    "body{margin:0 auto;max-width:900px;padding:24px 16px;font:15px/1.5 system-ui,'DejaVu "
    "Sans',sans-serif;background:var(--paper);color:var(--ink)}"
    "h1{font-size:22px}h2{font-size:18px;margin-top:32px;border-top:1px solid "
    "var(--grid);padding-top:16px}h3{font-size:15px}"
    "svg{display:block;box-sizing:border-box;width:100%;height:auto;margin:12px 0;"
    "border:1px solid var(--grid);border-radius:6px}"
    ".wide{overflow-x:auto}.badge{font-size:13px;font-weight:500;padding:2px 10px;border-radius:"
    "10px;border:1px "
    "solid;margin-left:8px;vertical-align:4px;white-space:nowrap}.good{color:var(--good)}"
    ".low{color:var(--limit)}a{color:inherit}.group{text-align:center}"
    ".text{text-align:left;white-space:normal}td.text:first-child{white-space:nowrap}"
    "td.text:last-child{min-width:14em}"
    ".big{font-size:30px;font-weight:600}.faint{color:var(--faint)}.failed{color:var(--limit)}"
    "dl{display:grid;grid-template-columns:6em 1fr;gap:2px 12px;margin:12px 0}"
    "dt{color:var(--faint)}dd{margin:0}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13px}"
    "th,td{text-align:right;white-space:nowrap;padding:2px 6px;border-bottom:1px solid "
    "var(--grid)}th{font-weight:500;color:var(--faint)}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;background:var(--box);padding:"
    "8px;border-radius:6px}"
    /* last, since it replaces rules above; a picture is scrolled there, so that its text is legible
     */
    "@media (max-width:600px){body{padding:12px "
    "8px}dl{grid-template-columns:1fr}dd{margin-bottom:8px}.big{font-size:"
    "24px}.wide svg{width:860px}}";

static const char light[] = "--paper:#ffffff;--ink:#1c2330;--faint:#667085;--grid:#e3e6eb;"
                            "--limit:#b42318;--good:#2f7d4f;--box:#f4f6f9;color-scheme:light";
static const char dark[] = "--paper:#15181d;--ink:#e4e8ee;--faint:#97a1b0;--grid:#2b3139;"
                           "--limit:#ff7b72;--good:#7ee2a8;--box:#1e242c;color-scheme:dark";

void report_begin(const char *title, enum plot_theme theme, struct buf *out)
{
    buf_add_str(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'\">\n<title>");
    plot_text(title, out);
    buf_printf(out, "</title>\n<style>:root{%s}", theme == PLOT_DARK ? dark : light);
    if (theme == PLOT_BOTH)
        buf_printf(out, "@media (prefers-color-scheme:dark){:root{%s}}", dark);
    buf_add_str(out, layout);
    buf_add_str(out, "</style></head><body>\n<h1>");
    plot_text(title, out);
    buf_add_str(out, "</h1>\n");
}

void report_end(struct buf *out)
{
    buf_add_str(out, "</body></html>\n");
}

/* ---- a run ---- */

/* How the run stands to what others measured on such machines. */
static void badge(const struct verdict *v, struct buf *out)
{
    static const char *const marks[][2] = {
        [VERDICT_BELOW] = {"low", "below what others measured"},
        [VERDICT_WITHIN] = {"good", "as others measured"},
        [VERDICT_ABOVE] = {"good", "above what others measured"}};
    enum verdict_standing standing = verdict_standing(v);
    if (standing != VERDICT_STANDING_UNKNOWN)
        buf_printf(out, " <span class=\"badge %s\">%s</span>", marks[standing][0],
                   marks[standing][1]);
}

/* The lines of the verdict: "  word      text". */
static void verdict_list(const struct verdict *v, struct buf *out)
{
    struct buf text = BUF_INIT;
    char *rest = NULL;
    verdict_text(v, &text);
    char *line = text.data ? strtok_r(text.data, "\n", &rest) : NULL;
    buf_add_str(out, "<h2>");
    plot_text(line ? line : "", out);
    buf_add_str(out, "</h2>\n");
    if (v->percent >= 0 && !v->failures.count) {
        buf_printf(out, "<p class=\"big\">%.1f %% <span class=\"faint\">of the limit</span>",
                   v->percent);
        badge(v, out);
        buf_add_str(out, "</p>\n");
    }
    if (v->failures.count)
        buf_add_str(out, "<p class=\"big failed\">FAILED</p>\n");
    buf_add_str(out, "<dl>\n");
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char *word = line + strspn(line, " "), *what = word;
        buf_add_str(out, "<dt>");
        if (word == line + 2) {
            word = strsep(&what, " ");
            plot_text(word, out);
        }
        buf_add_str(out, "</dt><dd>");
        plot_text(what ? what + strspn(what, " ") : "", out);
        buf_add_str(out, "</dd>\n");
    }
    buf_add_str(out, "</dl>\n");
    buf_done(&text);
}

static void half_cells(const struct result_half *h, bool spread, struct buf *out)
{
    if (!h->measured)
        buf_add_str(out, "<td></td><td></td><td></td><td></td>");
    else
        buf_printf(out, "<td>%.2f</td><td>%.2f</td><td>%.2f</td>", h->seconds * 1e6, h->algbw,
                   h->busbw);
    if (h->measured && h->wrong < 0)
        buf_add_str(out, "<td class=\"faint\">not checked</td>");
    else if (h->measured)
        buf_printf(out, "<td>%g</td>", h->wrong);
    if (spread && h->has_spread)
        buf_printf(out, "<td>%.2f</td><td>%.2f</td>", h->spread.p50 * 1e6, h->spread.p99 * 1e6);
    else if (spread)
        buf_add_str(out, "<td></td><td></td>");
}

static void row_table(const struct result *r, struct buf *out)
{
    bool spread = false, in_place = false; /* some collectives have no such call */
    char size[24];
    for (size_t i = 0; i < r->row_count; i++) {
        spread = spread || r->rows[i].out_of_place.has_spread || r->rows[i].in_place.has_spread;
        in_place = in_place || r->rows[i].in_place.measured;
    }
    static const char group[] = "<th class=\"group\" colspan=\"%d\">%s</th>";
    const char *more = spread ? "<th>p50</th><th>p99</th>" : "";
    int columns = spread ? 6 : 4;
    buf_add_str(out, "<h3>All sizes</h3>\n<p class=\"faint\">Times in us, bandwidths in GB/s.</p>\n"
                     "<div class=\"wide\"><table><tr><th colspan=\"3\"></th>");
    buf_printf(out, group, columns, "out of place");
    if (in_place)
        buf_printf(out, group, columns, "in place");
    buf_add_str(out, "</tr>\n<tr><th>size</th><th>type</th><th>op</th>");
    for (int i = 0; i <= in_place; i++)
        buf_printf(out, "<th>time</th><th>algbw</th><th>busbw</th><th>wrong</th>%s", more);
    buf_add_str(out, "</tr>\n");
    for (size_t i = 0; i < r->row_count; i++) {
        const struct result_row *row = &r->rows[i];
        result_size_text(row->bytes, size, sizeof size);
        buf_printf(out, "<tr><td>%s</td><td>", size);
        plot_text(row->type, out);
        buf_add_str(out, "</td><td>");
        plot_text(row->op, out);
        buf_add_str(out, "</td>");
        half_cells(&row->out_of_place, spread, out);
        if (in_place)
            half_cells(&row->in_place, spread, out);
        buf_add_str(out, "</tr>\n");
    }
    buf_add_str(out, "</table></div>\n");
}

/* A link that saves the text: the page stays one file. */
static void download(const char *name, const char *suffix, const char *type, const char *text,
                     size_t length, struct buf *out)
{
    buf_add_str(out, "<a download=\"");
    plot_text(name, out);
    buf_printf(out, ".%s\" href=\"data:%s,", suffix, type);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            strchr("-._~,:", c))
            buf_add(out, text + i, 1);
        else
            buf_printf(out, "%%%02X", c);
    }
    buf_printf(out, "\">%s</a>", suffix);
}

static void downloads(const struct verdict *v, const char *name, struct buf *out)
{
    json_t *json = verdict_json(v);
    cleanup_free char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
    struct buf csv = BUF_INIT;
    json_decref(json);
    result_csv_text(&v->run->result, &csv);
    buf_add_str(out, "<p class=\"faint\">Save as ");
    if (text)
        download(name, "json", "application/json", text, strlen(text), out);
    buf_add_str(out, text ? " or " : "");
    download(name, "csv", "text/csv", csv.data ? csv.data : "", csv.len, out);
    buf_add_str(out, "</p>\n");
    out->failed |= !text || csv.failed;
    buf_done(&csv);
}

static void words(const char *title, const struct strlist *list, const char *between,
                  struct buf *out)
{
    if (list->count == 0)
        return;
    buf_printf(out, "<h3>%s</h3>\n<pre>", title);
    for (size_t i = 0; i < list->count; i++) {
        buf_add_str(out, i ? between : "");
        plot_text(list->items[i], out);
    }
    buf_add_str(out, "</pre>\n");
}

static const char *const cells[] = {"pod", "node", "devices"};

/* What each worker of a job claimed, as its launcher told. */
static void worker_table(const struct result *r, struct buf *out)
{
    const json_t *status = json_object_get(r->about, "status"), *line;
    const json_t *lines = json_object_get(json_object_get(status, "workers"), "lines");
    size_t i;
    if (json_array_size(lines) == 0)
        return;
    buf_add_str(
        out,
        "<h3>Workers</h3>\n<div class=\"wide\"><table><tr><th>worker</th><th>pod</th><th>node</th>"
        "<th>devices</th></tr>\n");
    json_array_foreach(lines, i, line)
    {
        buf_add_str(out, "<tr><td>");
        if (value_text(line, "workers")) /* several alike, "0-3,7" */
            plot_text(value_text(line, "workers"), out);
        else
            buf_printf(out, "%lld", (long long)json_integer_value(json_object_get(line, "index")));
        for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
            buf_add_str(out, "</td><td>");
            plot_text(value_text_or(line, cells[k], ""), out);
        }
        buf_add_str(out, "</td></tr>\n");
    }
    buf_add_str(out, "</table></div>\n");
}

/* What the job asked for. */
static void job_text(const struct result *r, struct buf *out)
{
    const json_t *spec = json_object_get(json_object_get(r->about, "job"), "spec");
    cleanup_free char *text = json_is_object(spec) ? json_dumps(spec, JSON_INDENT(1)) : NULL;
    char *rest = NULL;
    if (!text)
        return;
    buf_add_str(out, "<h3>Job</h3>\n<pre>");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        plot_text(line, out);
        buf_add_str(out, "\n");
    }
    buf_add_str(out, "</pre>\n");
}

void report_run(const struct verdict *v, const char *name, enum plot_theme theme, struct buf *out)
{
    const struct result *r = &v->run->result;
    verdict_list(v, out);
    if (r->stand_in)
        return;
    buf_add_str(out, "<div class=\"wide\">\n");
    plot_bandwidth(v, theme, out);
    plot_latency(v, theme, out);
    if (v->best)
        plot_ranks(r, theme, out);
    plot_hosts(r, theme, out);
    buf_add_str(out, "</div>\n");
    if (v->best) {
        row_table(r, out);
        downloads(v, name, out);
    }
    worker_table(r, out);
    job_text(r, out);
    words("Command", &r->args, " ", out);
    words("Environment", &r->env, "\n", out);
}
