/* SPDX-License-Identifier: Apache-2.0 */
/* JSON with places: what stands where is found here, what a scalar means is left to jansson, which
 * holds to RFC 8259. */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/build.h"

struct cursor {
    struct builder *b;
    const char *p, *end;
    struct doc_place at;
};

static void step(struct cursor *c)
{
    if (*c->p == '\n')
        c->at = (struct doc_place){c->at.line + 1, 1};
    else if (((unsigned char)*c->p & 0xc0) != 0x80) /* not the rest of a character */
        c->at.column++;
    c->p++;
}

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        step(c);
}

static int unexpected(struct cursor *c, const char *wanted, struct drarun_error *err)
{
    if (c->p >= c->end)
        return build_error(c->b, c->at, err, "JSON: expected %s, got the end of the text", wanted);
    int length = 1;
    while (c->p + length < c->end && ((unsigned char)c->p[length] & 0xc0) == 0x80)
        length++;
    return build_error(c->b, c->at, err, "JSON: expected %s, got \"%.*s\"", wanted, length, c->p);
}

/* To the end of a string; jansson judges what is inside. */
static bool skip_string(struct cursor *c)
{
    for (step(c); c->p < c->end && *c->p != '"'; step(c))
        if (*c->p == '\\' && c->p + 1 < c->end)
            step(c);
    if (c->p >= c->end)
        return false;
    step(c);
    return true;
}

static int scalar(struct cursor *c, json_t **ret_value, struct drarun_error *err)
{
    const char *start = c->p;
    struct doc_place at = c->at;
    json_error_t why;
    if (*c->p == '"' && !skip_string(c))
        return build_error(c->b, at, err, "JSON: this text has no end: a '\"' is missing");
    while (c->p == start || (*start != '"' && c->p < c->end && !strchr(" \t\r\n,:[]{}\"", *c->p)))
        step(c);
    json_t *value = json_loadb(start, (size_t)(c->p - start), JSON_DECODE_ANY, &why);
    if (!value && !why.text[0]) /* so does jansson say that it is out of memory */
        return error_set(err, ENOMEM, "out of memory");
    if (!value)
        return build_error(c->b, at, err, "JSON: expected a value, got %.*s: %s",
                           c->p - start > 40 ? 40 : (int)(c->p - start), start, why.text);
    *ret_value = value;
    return 0;
}

static int read_key(struct cursor *c, struct drarun_error *err)
{
    struct doc_place at = c->at;
    json_t *key = NULL;
    if (c->p >= c->end || *c->p != '"')
        return unexpected(c, "a key in quotation marks", err);
    int rc = scalar(c, &key, err);
    if (rc == 0)
        rc = build_key(c->b, json_string_value(key), at, err);
    json_decref(key);
    skip_space(c);
    if (rc == 0 && (c->p >= c->end || *c->p != ':'))
        return unexpected(c, "\":\"", err);
    if (rc == 0)
        step(c);
    skip_space(c);
    return rc;
}

/* A scalar, or the beginning of a container. */
static int read_value(struct cursor *c, struct drarun_error *err)
{
    struct doc_place at = c->at;
    json_t *value = NULL;
    if (c->p >= c->end || strchr(",:]}", *c->p))
        return unexpected(c, "a value", err);
    if (*c->p == '{' || *c->p == '[') {
        bool object = *c->p == '{';
        step(c);
        return build_open(c->b, object, at, err);
    }
    int rc = scalar(c, &value, err);
    return rc < 0 ? rc : build_value_take(c->b, value, at, err);
}

/* What comes in an open container: its end, or a comma where one must be, a key, a value. */
static int read_inside(struct cursor *c, struct drarun_error *err)
{
    const struct frame *f = &c->b->frames[c->b->depth - 1];
    bool object = json_is_object(f->container);
    if (c->p < c->end && *c->p == (object ? '}' : ']')) {
        step(c);
        return build_close(c->b, err);
    }
    if (f->count > 0) {
        if (c->p >= c->end || *c->p != ',')
            return unexpected(c, object ? "\",\" or \"}\"" : "\",\" or \"]\"", err);
        step(c);
        skip_space(c);
    }
    int rc = object ? read_key(c, err) : 0;
    return rc < 0 ? rc : read_value(c, err);
}

int json_read(struct builder *b, const char *text, size_t len, struct drarun_error *err)
{
    struct cursor c = {b, text, text + len, {1, 1}};
    int rc = 0;
    for (skip_space(&c); rc == 0 && (b->depth > 0 || c.p < c.end); skip_space(&c))
        rc = b->depth ? read_inside(&c, err) : read_value(&c, err);
    return rc;
}
