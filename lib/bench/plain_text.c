/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/plain_text.h"

#include <ctype.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#define ESCAPE '\033'
#define BELL '\007'
#define GUESS 16u /* bytes by which UTF-16 without a mark is known */

void plain_text_done(struct plain_text *plain)
{
    buf_done(&plain->own);
    *plain = (struct plain_text){0};
}

/* Takes the place of the text that it was made of. */
static bool replace_take(struct plain_text *plain, struct buf *with)
{
    buf_done(&plain->own);
    plain->own = *with;
    plain->data = with->data ? with->data : "";
    plain->length = with->len;
    return !with->failed;
}

/* ---- UTF-16 ---- */

enum utf16 { UTF16_NONE = 1, UTF16_LITTLE, UTF16_BIG };

/* Every other byte of English is 0. */
static bool alternates(const unsigned char *text, size_t length, size_t zero)
{
    for (size_t i = 0; i < GUESS && i < length; i++)
        if ((text[i] == 0) != (i % 2 == zero))
            return false;
    return length >= 4;
}

static enum utf16 utf16_find(const unsigned char *text, size_t length, size_t *ret_mark)
{
    bool little = length >= 2 && text[0] == 0xff && text[1] == 0xfe;
    bool big = length >= 2 && text[0] == 0xfe && text[1] == 0xff;
    *ret_mark = little || big ? 2 : 0;
    return little || alternates(text, length, 1) ? UTF16_LITTLE
           : big || alternates(text, length, 0)  ? UTF16_BIG
                                                 : UTF16_NONE;
}

static void add_utf8(struct buf *out, uint32_t code)
{
    char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(first[count] | code);
    buf_add(out, bytes, count);
}

static uint32_t unit_at(const unsigned char *at, bool big)
{
    return big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* A surrogate without its partner becomes U+FFFD, and half a unit at the end is left out. */
static void add_utf16(struct buf *out, const unsigned char *text, size_t length, bool big)
{
    for (size_t i = 0; i + 1 < length; i += 2) {
        uint32_t code = unit_at(text + i, big), low = 0;
        if (code >= 0xd800 && code < 0xdc00 && i + 3 < length)
            low = unit_at(text + i + 2, big);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            i += 2;
        } else if (code >= 0xd800 && code < 0xe000) {
            code = 0xfffd;
        }
        add_utf8(out, code);
    }
}

static bool from_utf16(struct plain_text *plain)
{
    size_t mark;
    const unsigned char *text = (const unsigned char *)plain->data;
    enum utf16 kind = utf16_find(text, plain->length, &mark);
    struct buf out = BUF_INIT;
    if (kind == UTF16_NONE)
        return true;
    add_utf16(&out, text + mark, plain->length - mark, kind == UTF16_BIG);
    return replace_take(plain, &out);
}

/* ---- docker's entries ---- */

struct entry {
    json_t *json;
    const char *log; /* in json; NULL: the line is none */
    size_t length;
    bool is_error; /* of stderr */
};

static struct entry entry_read(const char *line, size_t length)
{
    struct entry entry = {.json = length > 0 && line[0] == '{'
                                      ? json_loadb(line, length, JSON_ALLOW_NUL, NULL)
                                      : NULL};
    const json_t *log = json_object_get(entry.json, "log");
    const char *stream = json_string_value(json_object_get(entry.json, "stream"));
    if (json_is_string(log) && stream) {
        entry.log = json_string_value(log);
        entry.length = json_string_length(log);
        entry.is_error = strcmp(stream, "stderr") == 0;
    }
    return entry;
}

/* Docker cuts lines that are longer than 16 KiB, and entries of the other stream stand between the
 * pieces: of each stream a line is kept until it is whole. */
static void add_entry(struct buf *out, struct buf pending[2], const struct entry *entry)
{
    struct buf *line = &pending[entry->is_error];
    buf_add(line, entry->log, entry->length);
    if (entry->length > 0 && entry->log[entry->length - 1] == '\n') {
        buf_add(out, line->data, line->len);
        buf_reset(line);
    }
}

static bool from_entries(struct plain_text *plain)
{
    const char *end = plain->data + plain->length, *at = plain->data;
    struct buf out = BUF_INIT, pending[2] = {BUF_INIT, BUF_INIT};
    while (at < end && isspace((unsigned char)*at))
        at++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    struct entry entry = entry_read(at, (size_t)((newline ? newline : end) - at));
    bool is_docker = entry.log != NULL;
    json_decref(entry.json);
    for (const char *next; is_docker && at < end; at = next) {
        newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        entry = entry_read(at, (size_t)((newline ? newline : end) - at));
        if (entry.log)
            add_entry(&out, pending, &entry);
        else if (newline || at[0] != '{') /* else an entry that is cut off */
            buf_add(&out, at, (size_t)(next - at));
        json_decref(entry.json);
    }
    for (size_t i = 0; i < 2; i++) {
        if (pending[i].len > 0)
            buf_add(&out, pending[i].data, pending[i].len);
        out.failed = out.failed || pending[i].failed;
        buf_done(&pending[i]);
    }
    return is_docker ? replace_take(plain, &out) : true;
}

/* ---- colours ---- */

static const char *past_parameters(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '?') /* digits and ":;<=>?" */
        at++;
    return at;
}

/* Behind the code that begins at an escape byte: "ESC [ 36 m", "ESC ] 0;title BEL", "ESC ( B". */
static const char *past_escape(const char *at, const char *end)
{
    if (++at == end)
        return at;
    if (*at == '[') {
        at = past_parameters(at + 1, end);
        return at < end && *at >= '@' && *at <= '~' ? at + 1 : at;
    }
    if (*at == ']') {
        while (at < end && *at != BELL && *at != ESCAPE && *at != '\n')
            at++;
        return at < end && *at == BELL ? at + 1 : at;
    }
    if (*at == '\n')
        return at;
    return at + 1 < end && (*at == '(' || *at == ')') ? at + 2 : at + 1;
}

/* "[36m", "[0m": what is left of a code when the escape byte is lost. NULL: it is none. */
static const char *past_remnant(const char *at, const char *end)
{
    const char *behind = at + 1;
    while (behind < end && (isdigit((unsigned char)*behind) || *behind == ';'))
        behind++;
    return behind > at + 1 && behind < end && *behind == 'm' ? behind + 1 : NULL;
}

static bool without_colours(struct plain_text *plain)
{
    const char *end = plain->data + plain->length, *kept = plain->data, *at = plain->data;
    struct buf out = BUF_INIT;
    bool any = false;
    while (at < end) {
        const char *behind = *at == ESCAPE ? past_escape(at, end)
                             : *at == '['  ? past_remnant(at, end)
                                           : NULL;
        if (behind) {
            buf_add(&out, kept, (size_t)(at - kept));
            kept = behind;
            any = true;
        }
        at = behind ? behind : at + 1;
    }
    if (!any)
        return true;
    buf_add(&out, kept, (size_t)(end - kept));
    return replace_take(plain, &out);
}

bool plain_text_of(const char *text, size_t length, struct plain_text *ret)
{
    *ret = (struct plain_text){.data = text, .length = length};
    if (from_utf16(ret) && from_entries(ret) && without_colours(ret))
        return true;
    plain_text_done(ret);
    return false;
}
