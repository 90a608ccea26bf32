/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/reader.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/base/number.h"
#include "lib/base/plain.h"

#define SHOWN_MAX 40     /* characters of a value in a message */
#define MESSAGE_MAX 4000 /* more than all keys that are known in one place */
#define EXACT_MAX 9007199254740992.0

void reader_init(struct reader *r, const struct doc *doc, bool tolerant)
{
    *r = (struct reader){.doc = doc, .tolerant = tolerant, .max = READER_FINDINGS_MAX};
}

void reader_done(struct reader *r)
{
    for (size_t i = 0; i < READER_MAX; i++)
        free(r->list[i].path);
    memset(r->list, 0, sizeof r->list);
    strlist_done(&r->texts);
}

int reader_result(const struct reader *r, struct drarun_error *err)
{
    if (r->texts.failed)
        return error_set(err, ENOMEM, "out of memory");
    if (r->findings == 0)
        return 0;
    if (err) {
        snprintf(err->path, sizeof err->path, "%s", r->list[0].path);
        err->line = r->list[0].at.line;
        err->column = r->list[0].at.column;
    }
    if (r->findings == 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s", r->texts.items[0]);
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%.440s (and %zu more)", r->texts.items[0],
                      r->findings - 1);
}

void reader_fail_memory(const struct reader_node *node)
{
    node->reader->texts.failed = true;
}

struct reader_node reader_root(struct reader *r, size_t document)
{
    return (struct reader_node){.reader = r,
                                .value = doc_root(r->doc, document),
                                .root_place = doc_root_place(r->doc, document)};
}

struct reader_node reader_value(struct reader *r, json_t *value, const char *name)
{
    return (struct reader_node){.reader = r, .value = value, .key = name};
}

bool reader_get(const struct reader_node *object, const char *key, struct reader_node *ret_node)
{
    json_t *value = json_object_get(object->value, key);
    if (!value || (object->reader->tolerant && json_is_null(value)))
        return false;
    *ret_node = (struct reader_node){
        .reader = object->reader, .parent = object, .value = value, .key = key};
    return true;
}

struct reader_node reader_item(const struct reader_node *list, size_t index)
{
    return (struct reader_node){.reader = list->reader,
                                .parent = list,
                                .value = json_array_get(list->value, index),
                                .index = index};
}

static int cut(const char *text, size_t most)
{
    return (int)utf8_cut(text, strlen(text), most);
}

/* Control characters would let a text write on the terminal what it likes; a report of findings is
 * JSON, which has no other bytes than UTF-8, and a file's name may. */
static void tame(char *text)
{
    if (text)
        plain_text(text, strlen(text));
    for (char *p = text; p && *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
}

/* ".key", or ["a.b/c"] where a point could not be told from the path's. */
static void add_key(struct buf *path, const char *key)
{
    int length = cut(key, (size_t)SHOWN_MAX * 2);
    if (key[strcspn(key, ".[]\" ")] || !*key)
        buf_printf(path, "[\"%.*s\"]", length, key);
    else
        buf_printf(path, "%s%.*s", path->len ? "." : "", length, key);
}

static void add_path(struct buf *path, const struct reader_node *node)
{
    if (node->parent)
        add_path(path, node->parent);
    if (node->key)
        add_key(path, node->key);
    else if (node->parent)
        buf_printf(path, "[%zu]", node->index);
}

/* A node without a place of its own (merged, made) has its parent's. */
static struct doc_place place_of(const struct reader_node *node)
{
    struct doc_place at = node->root_place;
    if (!node->reader->doc || !node->parent)
        return at;
    if (node->key)
        at = doc_member_place(node->reader->doc, node->parent->value, node->key, NULL);
    else
        at = doc_item_place(node->reader->doc, node->parent->value, node->index);
    return at.line ? at : place_of(node->parent);
}

/* Moves the last text to where its place belongs. */
static void sort_in(struct reader *r, struct reader_finding finding)
{
    size_t i = r->texts.count - 1;
    char *text = r->texts.items[i];
    for (; i > 0; i--) {
        struct doc_place last = r->list[i - 1].at;
        if (last.line < finding.at.line ||
            (last.line == finding.at.line && last.column <= finding.at.column))
            break;
        r->texts.items[i] = r->texts.items[i - 1];
        r->list[i] = r->list[i - 1];
    }
    r->texts.items[i] = text;
    r->list[i] = finding;
}

/* What several readings of one place find is one finding. */
static void keep(struct reader *r, enum reader_code code, struct doc_place at, struct buf *path,
                 const char *text)
{
    struct buf line = BUF_INIT;
    if (r->doc)
        buf_printf(&line, "%s:", doc_name(r->doc));
    if (at.line)
        buf_printf(&line, "%u:%u:", at.line, at.column);
    buf_printf(&line, "%s%s%s", line.len ? " " : "", path->data ? path->data : "",
               path->len ? ": " : "");
    size_t message = line.len;
    buf_add_str(&line, text);
    tame(line.data);
    bool again = line.data && strlist_has(&r->texts, line.data);
    if (again || ++r->findings > r->max) {
        buf_done(&line);
        return;
    }
    struct reader_finding finding = {
        .at = at, .path = strdup(path->data ? path->data : ""), .message = message, .code = code};
    tame(finding.path);
    if (line.failed || path->failed || !finding.path)
        r->texts.failed = true;
    else
        strlist_add(&r->texts, line.data);
    if (!r->texts.failed)
        sort_in(r, finding);
    else
        free(finding.path);
    buf_done(&line);
}

const char *reader_code_name(enum reader_code code)
{
    switch (code) {
    case READER_UNKNOWN_KEY:
        return "unknown-key";
    case READER_WRONG_VALUE:
        return "wrong-value";
    case READER_MISSING:
        return "missing";
    case READER_REFUSED:
        break;
    }
    return "refused";
}

static char *format_text(struct reader *r, const char *format, va_list ap)
{
    char *text = NULL;
    if (vasprintf(&text, format, ap) < 0) {
        r->texts.failed = true;
        return NULL;
    }
    text[utf8_cut(text, strlen(text), MESSAGE_MAX)] = '\0';
    return text;
}

static int fail_at(const struct reader_node *node, enum reader_code code, const char *format,
                   va_list ap)
{
    struct buf path = BUF_INIT;
    cleanup_free char *text = format_text(node->reader, format, ap);
    add_path(&path, node);
    keep(node->reader, code, place_of(node), &path, text ? text : "");
    buf_done(&path);
    return -EINVAL;
}

static int fail_at_key(const struct reader_node *object, const char *key, enum reader_code code,
                       const char *format, va_list ap)
{
    struct buf path = BUF_INIT;
    struct doc_place at = {0, 0};
    cleanup_free char *text = format_text(object->reader, format, ap);
    add_path(&path, object);
    add_key(&path, key);
    if (object->reader->doc)
        doc_member_place(object->reader->doc, object->value, key, &at);
    keep(object->reader, code, at.line ? at : place_of(object), &path, text ? text : "");
    buf_done(&path);
    return -EINVAL;
}

int reader_fail(const struct reader_node *node, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int rc = fail_at(node, READER_REFUSED, format, ap);
    va_end(ap);
    return rc;
}

int reader_missing(const struct reader_node *node, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int rc = fail_at(node, READER_MISSING, format, ap);
    va_end(ap);
    return rc;
}

static int fail_value(const struct reader_node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int fail_value(const struct reader_node *node, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int rc = fail_at(node, READER_WRONG_VALUE, format, ap);
    va_end(ap);
    return rc;
}

int reader_fail_key(const struct reader_node *object, const char *key, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int rc = fail_at_key(object, key, READER_REFUSED, format, ap);
    va_end(ap);
    return rc;
}

int reader_unknown_key(const struct reader_node *object, const char *key, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int rc = fail_at_key(object, key, READER_UNKNOWN_KEY, format, ap);
    va_end(ap);
    return rc;
}

static void show_text(const char *text, char *out, size_t size)
{
    int n = cut(text, SHOWN_MAX);
    snprintf(out, size, "\"%.*s%s\"", n, text, text[n] ? "..." : "");
}

static void show(const json_t *value, char *out, size_t size)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        snprintf(out, size, "a mapping");
        return;
    case JSON_ARRAY:
        snprintf(out, size, "a list");
        return;
    case JSON_STRING:
        show_text(json_string_value(value), out, size);
        return;
    case JSON_INTEGER:
        snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    case JSON_REAL:
        snprintf(out, size, "%.15g", json_real_value(value));
        return;
    case JSON_NULL:
        snprintf(out, size, "nothing (null)");
        return;
    default:
        snprintf(out, size, "%s", json_is_true(value) ? "true" : "false");
    }
}

int reader_expected(const struct reader_node *node, const char *what)
{
    char shown[SHOWN_MAX * 2];
    show(node->value, shown, sizeof shown);
    return fail_value(node, "expected %s, got %s", what, shown);
}

int reader_object(const struct reader_node *node)
{
    return json_is_object(node->value) ? 0 : reader_expected(node, "a mapping");
}

int reader_list(const struct reader_node *node, size_t min)
{
    if (!json_is_array(node->value))
        return reader_expected(node, "a list");
    if (json_array_size(node->value) < min)
        return fail_value(node, "expected a list of at least %zu", min);
    return 0;
}

int reader_text(const struct reader_node *node, const char **ret_text)
{
    const char *text = json_string_value(node->value);
    if (!text) {
        bool number = json_is_number(node->value) || json_is_boolean(node->value);
        return reader_expected(node, number ? "a text (put it in quotes)" : "a text");
    }
    if (!*text)
        return fail_value(node, "expected a text that is not empty");
    *ret_text = text;
    return 0;
}

int reader_bool(const struct reader_node *node, bool *ret_value)
{
    if (!json_is_boolean(node->value))
        return reader_expected(node, "true or false");
    *ret_value = json_is_true(node->value);
    return 0;
}

bool reader_whole(const json_t *value, int64_t *ret_value)
{
    double real = json_real_value(value);
    if (json_is_integer(value))
        *ret_value = json_integer_value(value);
    else if (json_is_real(value) && real == floor(real) && fabs(real) < EXACT_MAX)
        *ret_value = (int64_t)real;
    else
        return false;
    return true;
}

int reader_integer(const struct reader_node *node, int64_t min, int64_t max, int64_t *ret_value)
{
    char what[96];
    int64_t value = 0;
    bool number = reader_whole(node->value, &value);
    if (number && value >= min && value <= max) {
        *ret_value = value;
        return 0;
    }
    if (number && value > max)
        snprintf(what, sizeof what, "an integer of at most %" PRId64, max);
    else
        snprintf(what, sizeof what, "an integer of at least %" PRId64, min);
    return reader_expected(node, what);
}

int reader_duration(const struct reader_node *node, int64_t *ret_ms)
{
    const char *text = json_string_value(node->value);
    int64_t seconds = 0;
    if (text && duration_read(text, ret_ms))
        return 0;
    if (reader_whole(node->value, &seconds) && seconds >= 0 && seconds <= DURATION_MAX_MS / 1000) {
        *ret_ms = seconds * 1000;
        return 0;
    }
    return reader_expected(node, "a duration such as 90s, 30m, 1h30m or 2d, at most 10 years");
}

int reader_choice(const struct reader_node *node, const char *words, int *ret_index)
{
    char what[400], nearest[NEAREST_WORD_MAX];
    const char *text = json_string_value(node->value);
    int index = text ? words_index(words, text, strlen(text)) : -1;
    if (index >= 0) {
        *ret_index = index;
        return 0;
    }
    struct buf list = BUF_INIT;
    size_t n = 0;
    const char *at = words;
    for (const char *w; (w = words_next(&at, &n));)
        buf_printf(&list, "%s%.*s", list.len ? ", " : "", (int)n, w);
    snprintf(what, sizeof what, "one of %s", list.data ? list.data : words);
    buf_done(&list);
    if (text && nearest_word(text, words, nearest, sizeof nearest))
        return fail_value(node, "expected %s, got \"%.*s\"; did you mean %s?", what, SHOWN_MAX,
                          text, nearest);
    return reader_expected(node, what);
}

int reader_texts(const struct reader_node *node, struct strlist *texts)
{
    int rc = reader_list(node, 0);
    for (size_t i = 0; rc != -EINVAL && i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        const char *text = NULL;
        if (!json_is_string(item.value)) /* an empty argument is one */
            rc = reader_text(&item, &text);
        else
            strlist_add(texts, json_string_value(item.value));
    }
    if (texts->failed)
        node->reader->texts.failed = true;
    return rc;
}

int reader_text_map(const struct reader_node *node)
{
    int rc = reader_object(node);
    for (void *it = rc == 0 ? json_object_iter(node->value) : NULL; it;
         it = json_object_iter_next(node->value, it)) {
        struct reader_node item = {.reader = node->reader,
                                   .parent = node,
                                   .value = json_object_iter_value(it),
                                   .key = json_object_iter_key(it)};
        const char *text = NULL;
        if (!json_is_string(item.value)) /* an empty value is one */
            rc = reader_text(&item, &text);
    }
    return rc;
}

void reader_known(const struct reader_node *object, const char *words)
{
    reader_known_or(object, words, NULL);
}

void reader_known_or(const struct reader_node *object, const char *words,
                     bool (*explain)(const struct reader_node *object, const char *key))
{
    char nearest[NEAREST_WORD_MAX];
    if (object->reader->tolerant)
        return;
    for (void *it = json_object_iter(object->value); it;
         it = json_object_iter_next(object->value, it)) {
        const char *key = json_object_iter_key(it);
        if (words_has(words, key) || (explain && explain(object, key)))
            continue;
        if (nearest_word(key, words, nearest, sizeof nearest))
            reader_unknown_key(object, key, "unknown key; did you mean %s?", nearest);
        else
            reader_unknown_key(object, key, "unknown key; known here: %s", words);
    }
}
