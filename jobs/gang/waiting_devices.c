/* SPDX-License-Identifier: Apache-2.0 */
/* What the slices lack, in one clause. */
#include <string.h>

#include "jobs/gang/waiting_private.h"
#include "lib/base/cleanup.h"

/* `device.attributes["dra.net"].rdma == true` is `rdma == true` to people; all else stays. */
static void add_term(const char *text, struct buf *out)
{
    static const char head[] = "device.attributes[\"", tail[] = "\"].";
    while (*text) {
        const char *end =
            strncmp(text, head, strlen(head)) == 0 ? strstr(text + strlen(head), tail) : NULL;
        if (end) {
            text = end + strlen(tail);
            continue;
        }
        buf_add(out, text, 1);
        text++;
    }
}

static bool is_of_class(const struct predict_term *term)
{
    return strncmp(term->where, "class ", strlen("class ")) == 0;
}

/* "device of class dranet with rdma == true" */
static void add_kind(const struct predict_need *need, struct buf *out)
{
    const char *separator = " with ";
    const char *class = NULL;
    for (size_t t = 0; t < need->term_count && !class; t++)
        class = is_of_class(&need->terms[t]) ? need->terms[t].where : NULL;
    buf_add_str(out, "device");
    if (class)
        buf_printf(out, " of %s", class);
    else
        buf_printf(out, " for %s", need->requests);
    for (size_t t = 0; t < need->term_count; t++) {
        if (is_of_class(&need->terms[t]))
            continue;
        buf_add_str(out, separator);
        add_term(need->terms[t].text, out);
        separator = " and ";
    }
}

/* The terms that left none over, those that ruled out most devices in their order. */
static void add_ruled_out(const struct predict_need *need, struct buf *out)
{
    const char *separator = ": ";
    if (predict_need_is_absent(need)) {
        buf_add_str(out, ": no node publishes one");
        return;
    }
    for (size_t t = 0; t < need->term_count; t++) {
        const struct predict_term *term = &need->terms[t];
        if (term->ruled_out == 0)
            continue;
        buf_add_str(out, separator);
        add_term(term->text, out);
        buf_printf(out, " (%s) rules out %zu", term->where, term->ruled_out);
        separator = ", ";
    }
    if (need->tainted)
        buf_printf(out, "%s%zu tainted%s%s", separator, need->tainted, need->taint ? " with " : "",
                   need->taint ? need->taint : "");
    buf_printf(out, " of %zu", need->devices);
}

/* What follows "worker 3 of 4 has no node: " in the prediction's own text. */
static const char *why_no_node(const char *shortage)
{
    const char *colon = strstr(shortage, "no node: ");
    return colon ? colon + strlen("no node: ") : shortage;
}

/* The need of which the prediction says that others have all of it, or NULL: "those for request
 * nic-0 are taken by ...". */
static const struct predict_need *need_taken(const struct prediction *p)
{
    static const char before[] = "those for request ", after[] = " are taken by ";
    const char *at = strstr(p->shortage, before);
    const char *end = at ? strstr(at, after) : NULL;
    if (!end)
        return NULL;
    at += strlen(before);
    for (size_t n = 0; n < p->need_count; n++) {
        for (const char *name = p->needs[n].requests; *name; name += strspn(name, ", ")) {
            size_t length = strcspn(name, ",");
            if (length == (size_t)(end - at) && strncmp(name, at, length) == 0)
                return &p->needs[n];
            name += length;
        }
    }
    return NULL;
}

char *devices_missing(const struct prediction *prediction)
{
    struct buf out = BUF_INIT;
    if (!prediction || !prediction->shortage)
        return NULL;
    for (size_t n = 0; n < prediction->need_count; n++) {
        const struct predict_need *need = &prediction->needs[n];
        if (need->admitted > 0)
            continue;
        buf_add_str(&out, out.len > 0 ? "; no " : "no ");
        add_kind(need, &out);
        add_ruled_out(need, &out);
    }
    const struct predict_need *taken = NULL;
    if (out.len == 0 && !prediction->spread_short)
        taken = need_taken(prediction);
    if (taken) {
        buf_add_str(&out, "no ");
        add_kind(taken, &out);
        buf_add_str(&out, " left: ");
    }
    if (out.len == 0 || taken)
        buf_add_str(&out, why_no_node(prediction->shortage));
    if (prediction->holders)
        buf_printf(&out, "; held by %s", prediction->holders);
    char *text = out.failed ? NULL : buf_take(&out);
    buf_done(&out);
    return text;
}
