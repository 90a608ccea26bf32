/* SPDX-License-Identifier: Apache-2.0 */
/* YAML through libyaml's events; each event is one call of the builder. */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/error.h"
#include "lib/doc/build.h"
#include "lib/doc/yaml_scalar.h"

#define ANCHORS_MAX 1000

struct anchor {
    char *name;
    json_t *value;
    bool open; /* its container has not ended: an alias to it would be a cycle */
};

struct reading {
    struct builder *b;
    struct anchor anchors[ANCHORS_MAX];
    size_t anchor_count;
};

static struct doc_place place(const yaml_mark_t *mark)
{
    return (struct doc_place){(uint32_t)mark->line + 1, (uint32_t)mark->column + 1};
}

static void forget_anchors(struct reading *r)
{
    for (size_t i = 0; i < r->anchor_count; i++) {
        free(r->anchors[i].name);
        json_decref(r->anchors[i].value);
    }
    r->anchor_count = 0;
}

/* Takes value. ret_number: the anchor's, from 1. */
static int keep_anchor_take(struct reading *r, const char *name, json_t *value, bool open,
                            struct doc_place at, size_t *ret_number, struct drarun_error *err)
{
    if (r->anchor_count == ANCHORS_MAX) {
        json_decref(value);
        return build_error(r->b, at, err, "more than %d anchors", ANCHORS_MAX);
    }
    struct anchor *a = &r->anchors[r->anchor_count];
    *a = (struct anchor){strdup(name), value, open};
    if (!a->name) {
        json_decref(value);
        return error_set(err, ENOMEM, "out of memory");
    }
    *ret_number = ++r->anchor_count;
    return 0;
}

static int check_tag(struct reading *r, const yaml_char_t *tag, struct doc_place at,
                     struct drarun_error *err)
{
    if (!tag)
        return 0;
    return build_error(r->b, at, err,
                       "tags are not supported, got <%.60s>; a text can be written in quotes", tag);
}

/* A key is a text, or a plain whole number that is written in its one usual way. */
static int scalar_key(struct reading *r, const char *text, bool plain, struct doc_place at,
                      struct drarun_error *err)
{
    struct yaml_scalar s = {.kind = YAML_KIND_TEXT};
    char shown[24];
    if (plain)
        s = yaml_resolve(text, strlen(text));
    snprintf(shown, sizeof shown, "%" JSON_INTEGER_FORMAT, s.integer);
    if (s.kind == YAML_KIND_MERGE) {
        build_merge_key(r->b, at);
        return 0;
    }
    if (s.kind == YAML_KIND_TEXT || (s.kind == YAML_KIND_INTEGER && strcmp(shown, text) == 0))
        return build_key(r->b, text, at, err);
    return build_error(r->b, at, err, "a key that is a text was expected; quote \"%.40s\"", text);
}

static json_t *scalar_value(const char *text, size_t len, const struct yaml_scalar *s)
{
    switch (s->kind) {
    case YAML_KIND_NULL:
        return json_null();
    case YAML_KIND_BOOL:
        return json_boolean(s->boolean);
    case YAML_KIND_INTEGER:
        return json_integer(s->integer);
    case YAML_KIND_REAL:
        return json_real(s->real);
    default:
        return json_stringn_nocheck(text, len);
    }
}

static int read_scalar(struct reading *r, const yaml_event_t *event, struct drarun_error *err)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct doc_place at = place(&event->start_mark);
    struct yaml_scalar s = {.kind = YAML_KIND_TEXT};
    size_t number = 0;
    int rc = check_tag(r, event->data.scalar.tag, at, err);
    if (rc < 0)
        return rc;
    if (memchr(text, '\0', len))
        return build_error(r->b, at, err, "this text contains a NUL");
    if (build_wants_key(r->b)) {
        if (event->data.scalar.anchor)
            return build_error(r->b, at, err, "an anchor on a key is not supported");
        return scalar_key(r, text, plain, at, err);
    }
    if (plain)
        s = yaml_resolve(text, len);
    if (s.kind == YAML_KIND_TOO_LARGE)
        return build_error(r->b, at, err, "%.60s does not fit 64 bits; quote it if it is a text",
                           text);
    if (s.kind == YAML_KIND_NO_JSON)
        return build_error(r->b, at, err, "%s has no form in JSON; quote it if it is a text", text);
    json_t *value = scalar_value(text, len, &s);
    if (value && event->data.scalar.anchor)
        rc = keep_anchor_take(r, (const char *)event->data.scalar.anchor, json_incref(value), false,
                              at, &number, err);
    if (rc < 0) {
        json_decref(value);
        return rc;
    }
    return build_value_take(r->b, value, at, err);
}

static int read_open(struct reading *r, bool object, const yaml_char_t *anchor,
                     const yaml_char_t *tag, const yaml_mark_t *mark, struct drarun_error *err)
{
    struct doc_place at = place(mark);
    int rc = check_tag(r, tag, at, err);
    if (rc == 0 && build_wants_key(r->b))
        rc = build_error(r->b, at, err, "expected a key, got a %s", object ? "mapping" : "list");
    if (rc == 0)
        rc = build_open(r->b, object, at, err);
    if (rc < 0 || !anchor)
        return rc;
    struct frame *f = &r->b->frames[r->b->depth - 1];
    return keep_anchor_take(r, (const char *)anchor, json_incref(f->container), true, at,
                            &f->anchor, err);
}

static int read_close(struct reading *r, struct drarun_error *err)
{
    size_t anchor = r->b->frames[r->b->depth - 1].anchor;
    if (anchor)
        r->anchors[anchor - 1].open = false;
    return build_close(r->b, err);
}

static int read_alias(struct reading *r, const yaml_event_t *event, struct drarun_error *err)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct doc_place at = place(&event->start_mark);
    const struct anchor *a = NULL;
    json_t *value = NULL;
    for (size_t i = r->anchor_count; i-- > 0 && !a;)
        if (strcmp(r->anchors[i].name, name) == 0)
            a = &r->anchors[i];
    if (build_wants_key(r->b))
        return build_error(r->b, at, err, "an alias as a key is not supported");
    if (!a)
        return build_error(r->b, at, err, "the alias *%.60s has no anchor before it", name);
    if (a->open)
        return build_error(r->b, at, err, "the anchor &%.60s contains itself", name);
    if (build_in_merge(r->b)) /* it will be copied when it is merged */
        return build_value_take(r->b, json_incref(a->value), at, err);
    int rc = build_copy(r->b, a->value, at, &value, err);
    return rc < 0 ? rc : build_value_take(r->b, value, at, err);
}

static int read_event(struct reading *r, const yaml_event_t *event, struct drarun_error *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r, event, err);
    case YAML_ALIAS_EVENT:
        return read_alias(r, event, err);
    case YAML_SEQUENCE_START_EVENT:
        return read_open(r, false, event->data.sequence_start.anchor,
                         event->data.sequence_start.tag, &event->start_mark, err);
    case YAML_MAPPING_START_EVENT:
        return read_open(r, true, event->data.mapping_start.anchor, event->data.mapping_start.tag,
                         &event->start_mark, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return read_close(r, err);
    case YAML_DOCUMENT_END_EVENT:
        forget_anchors(r);
        return 0;
    default:
        return 0;
    }
}

/* Where a line is indented by one, libyaml says that it cannot start a token. */
static bool is_tab(const yaml_mark_t *mark, const char *text, size_t len)
{
    const char *line = text, *end = text + len;
    for (size_t i = 0; line && i < mark->line; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line ? line + 1 : NULL;
    }
    for (size_t i = 0; line && line + i < end && (line[i] == ' ' || line[i] == '\t'); i++)
        if (i == mark->column)
            return line[i] == '\t';
    return false;
}

static int syntax_error(const struct builder *b, const yaml_parser_t *parser, const char *text,
                        size_t len, struct drarun_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return error_set(err, ENOMEM, "out of memory");
    const char *problem = parser->problem ? parser->problem : "unreadable";
    struct doc_place at = place(&parser->problem_mark);
    struct doc_place begun = place(&parser->context_mark);
    if (parser->error == YAML_READER_ERROR) /* knows no line */
        return build_error(b, place(&parser->mark), err, "YAML: %s", problem);
    if (parser->error == YAML_SCANNER_ERROR && is_tab(&parser->problem_mark, text, len))
        return build_error(b, at, err, "YAML: a tab indents this line: YAML takes spaces alone");
    if (parser->context)
        return build_error(b, at, err, "YAML: %s %s in line %u", problem, parser->context,
                           begun.line);
    return build_error(b, at, err, "YAML: %s", problem);
}

static int read_events(struct reading *r, yaml_parser_t *parser, const char *text, size_t len,
                       struct drarun_error *err)
{
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return syntax_error(r->b, parser, text, len, err);
        int rc = read_event(r, &event, err);
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int yaml_read(struct builder *b, const char *text, size_t len, struct drarun_error *err)
{
    yaml_parser_t parser;
    cleanup_free struct reading *r = calloc(1, sizeof *r);
    if (!r || !yaml_parser_initialize(&parser))
        return error_set(err, ENOMEM, "out of memory");
    r->b = b;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int rc = read_events(r, &parser, text, len, err);
    yaml_parser_delete(&parser);
    forget_anchors(r);
    return rc;
}
