/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/plain.h"
#include "lib/doc/build.h"

const struct doc_limits doc_limits_default = {DOC_SIZE_MAX, DOC_DEPTH_MAX, DOC_ALIASED_MAX, false};

void doc_free(struct doc *doc)
{
    if (!doc)
        return;
    for (size_t i = 0; i < doc->root_count; i++)
        json_decref(doc->roots[i].value);
    for (size_t i = 0; i < doc->place_cap; i++)
        free(doc->places[i].entries);
    for (size_t i = 0; i < doc->duplicate_count; i++)
        free(doc->duplicates[i].key);
    free(doc->duplicates);
    free(doc->roots);
    free(doc->places);
    free(doc->name);
    free(doc);
}

static int check_bytes(const struct builder *b, const char *text, size_t len,
                       struct drarun_error *err)
{
    struct doc_place at = {1, 1};
    for (size_t i = 0; i < len; at.column++) {
        size_t n = utf8_length((const unsigned char *)text + i, len - i);
        if (n == 0)
            return build_error(b, at, err, "not UTF-8: byte 0x%02x", (unsigned char)text[i]);
        if (text[i] == '\0')
            return build_error(b, at, err, "a NUL byte: this is no text");
        if (text[i] == '\n')
            at = (struct doc_place){at.line + 1, 0};
        i += n;
    }
    return 0;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* A brace and then a quotation mark or nothing begin JSON; YAML flow mappings rarely do so. */
static bool looks_like_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", text[i]))
        i++;
    if (i >= len || text[i] != '{')
        return false;
    for (i++; i < len && strchr(" \t\r\n", text[i]);)
        i++;
    return i < len && (text[i] == '"' || text[i] == '}');
}

int doc_parse(const char *name, const char *text, size_t len, enum doc_format format,
              const struct doc_limits *limits, struct doc **ret_doc, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = calloc(1, sizeof *doc);
    cleanup_free struct builder *b = calloc(1, sizeof *b);
    if (!doc || !b || !(doc->name = strdup(name)))
        return error_set(err, ENOMEM, "out of memory");
    b->doc = doc;
    b->limits = limits ? limits : &doc_limits_default;
    if (len > b->limits->size)
        return error_kind(err, DRARUN_ERR_SPEC, EFBIG, "%s: larger than the limit of %zu bytes",
                          name, b->limits->size);
    int rc = check_bytes(b, text, len, err);
    if (rc < 0)
        return rc;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        text += 3;
        len -= 3;
    }
    if (format == DOC_FORMAT_GUESS && (ends_in(name, ".json") || looks_like_json(text, len)))
        format = DOC_FORMAT_JSON;
    rc = format == DOC_FORMAT_JSON ? json_read(b, text, len, err) : yaml_read(b, text, len, err);
    build_done(b);
    if (rc == 0)
        *ret_doc = TAKE_PTR(doc);
    return rc;
}

const struct doc_duplicate *doc_duplicates(const struct doc *doc, size_t *ret_count)
{
    *ret_count = doc->duplicate_count;
    return doc->duplicates;
}

const char *doc_name(const struct doc *doc)
{
    return doc->name;
}

size_t doc_count(const struct doc *doc)
{
    return doc->root_count;
}

json_t *doc_root(const struct doc *doc, size_t i)
{
    return doc->roots[i].value;
}

struct doc_place doc_root_place(const struct doc *doc, size_t i)
{
    return doc->roots[i].place;
}
