// SPDX-License-Identifier: Apache-2.0
// Functions of strings: CEL's own and those of cel-go's ext/strings.go. Positions count code
// points.
#include <string.h>

#include "lib/cel/eval.h"
#include "lib/cel/function.h"
#include "lib/cel/list.h"
#include "lib/cel/regex.h"
#include "lib/cel/utf8.h"

static bool all_strings(const struct cel_value *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (args[i].kind != CEL_STRING)
            return false;
    return true;
}

/* Byte offset of the first occurrence at or behind `from`, or len. */
static size_t find(const struct cel_text *text, const struct cel_text *part, size_t from)
{
    const char *found;

    if (part->len == 0)
        return from;
    found = from < text->len ? memmem(text->data + from, text->len - from, part->data, part->len)
                             : NULL;
    return found ? (size_t)(found - text->data) : text->len;
}

static struct cel_value part_of(const struct cel_text *text, size_t begin, size_t end)
{
    return cel_string(text->data + begin, end - begin);
}

CEL_FUNCTION(cel_contains)
{
    (void)eval;
    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    return cel_bool(args[1].text.len == 0 ||
                    find(&args[0].text, &args[1].text, 0) < args[0].text.len);
}

CEL_FUNCTION(cel_starts_with)
{
    const struct cel_text *text = &args[0].text, *part = &args[1].text;

    (void)eval;
    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    return cel_bool(part->len <= text->len && memcmp(text->data, part->data, part->len) == 0);
}

CEL_FUNCTION(cel_ends_with)
{
    const struct cel_text *text = &args[0].text, *part = &args[1].text;

    (void)eval;
    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    return cel_bool(part->len <= text->len &&
                    memcmp(text->data + text->len - part->len, part->data, part->len) == 0);
}

CEL_FUNCTION(cel_matches)
{
    const struct cel_regex *regex = call->regex;
    struct drarun_error why = {0};
    int rc;

    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    if (!regex &&
        cel_regex_compile(eval->arena, args[1].text.data, args[1].text.len, &regex, &why) < 0)
        return cel_errorf(eval->arena, "%s", why.text);
    rc = cel_regex_search(eval->arena, regex, args[0].text.data, args[0].text.len);
    return rc < 0 ? cel_error("out of memory") : cel_bool(rc > 0);
}

static struct cel_value out_of_range(struct cel_eval *eval, int64_t index)
{
    return cel_errorf(eval->arena, "index out of range: %lld", (long long)index);
}

CEL_FUNCTION(cel_char_at)
{
    const struct cel_text *text = &args[0].text;
    size_t begin, end;

    (void)count;
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_INT)
        return cel_no_overload(call->name);
    if (args[1].integer < 0 || (uint64_t)args[1].integer > cel_size(&args[0]))
        return out_of_range(eval, args[1].integer);
    begin = end = cel_utf8_offset(text->data, text->len, (size_t)args[1].integer);
    if (end < text->len)
        cel_utf8_next(text->data, text->len, &end);
    return part_of(text, begin, end);
}

CEL_FUNCTION(cel_index_of)
{
    const struct cel_text *text = &args[0].text;
    int64_t from = count > 2 ? args[2].integer : 0, size;
    size_t found;

    if (args[0].kind == CEL_LIST && count == 2)
        return cel_list_index(args[0].list, &args[1], false);
    if (!all_strings(args, 2) || (count > 2 && args[2].kind != CEL_INT))
        return cel_no_overload(call->name);
    size = (int64_t)cel_size(&args[0]);
    if (from < 0)
        return out_of_range(eval, from);
    if (args[1].text.len == 0)
        return cel_int(from < size ? from : size);
    if (from >= size)
        return cel_int(-1);
    found = find(text, &args[1].text, cel_utf8_offset(text->data, text->len, (size_t)from));
    return cel_int(found == text->len ? -1 : (int64_t)cel_utf8_count(text->data, found));
}

/* The last occurrence that begins at or before the code point `from`. */
static int64_t find_last(const struct cel_text *text, const struct cel_text *part, int64_t from)
{
    int64_t last = -1, index = 0;

    for (size_t at = 0; at + part->len <= text->len && index <= from; index++) {
        if (memcmp(text->data + at, part->data, part->len) == 0)
            last = index;
        if (at == text->len)
            break;
        cel_utf8_next(text->data, text->len, &at);
    }
    return last;
}

CEL_FUNCTION(cel_last_index_of)
{
    int64_t size, from;

    if (args[0].kind == CEL_LIST && count == 2)
        return cel_list_index(args[0].list, &args[1], true);
    if (!all_strings(args, 2) || (count > 2 && args[2].kind != CEL_INT))
        return cel_no_overload(call->name);
    size = (int64_t)cel_size(&args[0]);
    if (args[1].text.len == 0 && count == 2)
        return cel_int(size);
    if (args[0].text.len < args[1].text.len && count == 2)
        return cel_int(-1);
    from = count > 2 ? args[2].integer : size - 1;
    if (from < 0)
        return out_of_range(eval, from);
    if (args[1].text.len == 0)
        return cel_int(from < size ? from : size);
    return cel_int(from >= size ? -1 : find_last(&args[0].text, &args[1].text, from));
}

static struct cel_value take_text(struct cel_eval *eval, struct buf *text)
{
    char *copy = text->failed ? NULL : cel_arena_copy(eval->arena, text->data, text->len);
    struct cel_value result = cel_string(copy, text->len);

    buf_done(text);
    return result;
}

CEL_FUNCTION(cel_join)
{
    struct buf text = BUF_INIT;

    if (args[0].kind != CEL_LIST || (count > 1 && args[1].kind != CEL_STRING))
        return cel_no_overload(call->name);
    if (!all_strings(args[0].list->items, args[0].list->count))
        return cel_error("join: an item is not a string");
    for (size_t i = 0; i < args[0].list->count; i++) {
        const struct cel_text *item = &args[0].list->items[i].text;
        if (i && count > 1)
            buf_add(&text, args[1].text.data, args[1].text.len);
        buf_add(&text, item->data, item->len);
        if (text.len > eval->arena->limit) {
            eval->arena->failed = true;
            break;
        }
    }
    return take_text(eval, &text);
}

CEL_FUNCTION(cel_change_case)
{
    char from = call->name[0] == 'l' ? 'A' : 'a', to = from == 'A' ? 'a' : 'A';
    char *copy;

    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    copy = cel_arena_copy(eval->arena, args[0].text.data, args[0].text.len);
    for (size_t i = 0; copy && i < args[0].text.len; i++)
        if (copy[i] >= from && copy[i] < from + 26)
            copy[i] = (char)(copy[i] - from + to);
    return cel_string(copy, args[0].text.len);
}

/* Where the search goes on behind a match; an empty one moves by a code point. */
static size_t step_over(const struct cel_text *text, size_t at, size_t part)
{
    if (part == 0 && at < text->len)
        cel_utf8_next(text->data, text->len, &at);
    return at + part;
}

CEL_FUNCTION(cel_replace)
{
    const struct cel_text *text = &args[0].text, *old = &args[1].text, *new = &args[2].text;
    struct buf out = BUF_INIT;
    int64_t left = count > 3 ? args[3].integer : -1;
    size_t done = 0, at = 0;

    if (!all_strings(args, 3) || (count > 3 && args[3].kind != CEL_INT))
        return cel_no_overload(call->name);
    // an empty pattern stands before each code point and at the end
    while (left != 0 && (at = find(text, old, at)) <= text->len) {
        if (old->len && at == text->len)
            break;
        buf_add(&out, text->data + done, at - done);
        buf_add(&out, new->data, new->len);
        done = at + old->len;
        left -= left > 0;
        if (at == text->len || out.len > eval->arena->limit)
            break;
        at = step_over(text, at, old->len);
    }
    if (out.len > eval->arena->limit)
        eval->arena->failed = true;
    buf_add(&out, text->data + done, text->len - done);
    return take_text(eval, &out);
}

/* The pieces of text, at most `most` where that is not negative. */
static size_t split_into(const struct cel_text *text, const struct cel_text *separator,
                         int64_t most, struct cel_value *out)
{
    size_t pieces = 0, begin = 0, end = 0;

    while (most < 0 || (int64_t)pieces + 1 < most) {
        end = separator->len ? find(text, separator, begin) : step_over(text, begin, 0);
        if (end >= text->len)
            break;
        if (out)
            out[pieces] = part_of(text, begin, end);
        pieces++;
        begin = end + separator->len;
    }
    if (separator->len == 0 && begin >= text->len)
        return pieces; // nothing is left behind the last code point
    if (out)
        out[pieces] = part_of(text, begin, text->len);
    return pieces + 1;
}

CEL_FUNCTION(cel_split)
{
    int64_t most = count > 2 ? args[2].integer : -1;
    struct cel_list *list;
    struct cel_value result;

    if (!all_strings(args, 2) || (count > 2 && args[2].kind != CEL_INT))
        return cel_no_overload(call->name);
    result = cel_list_new(eval->arena,
                          most ? split_into(&args[0].text, &args[1].text, most, NULL) : 0, &list);
    if (result.kind == CEL_LIST && most)
        split_into(&args[0].text, &args[1].text, most, list->items);
    return result;
}

CEL_FUNCTION(cel_substring)
{
    const struct cel_text *text = &args[0].text;
    int64_t begin = args[1].integer, size, end;

    if (args[0].kind != CEL_STRING || args[1].kind != CEL_INT ||
        (count > 2 && args[2].kind != CEL_INT))
        return cel_no_overload(call->name);
    size = (int64_t)cel_size(&args[0]);
    end = count > 2 ? args[2].integer : size;
    if (begin < 0 || begin > size)
        return out_of_range(eval, begin);
    if (end < begin || end > size)
        return out_of_range(eval, end);
    return part_of(text, cel_utf8_offset(text->data, text->len, (size_t)begin),
                   cel_utf8_offset(text->data, text->len, (size_t)end));
}

/* Unicode's White_Space. */
static bool is_space(uint32_t c)
{
    return (c >= 0x9 && c <= 0xd) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

CEL_FUNCTION(cel_trim)
{
    const struct cel_text *text = &args[0].text;
    size_t begin = text->len, end = 0;

    (void)eval;
    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    for (size_t at = 0; at < text->len;) {
        size_t here = at;
        if (is_space(cel_utf8_next(text->data, text->len, &at)))
            continue;
        begin = here < begin ? here : begin;
        end = at;
    }
    return begin < end ? part_of(text, begin, end) : cel_string("", 0);
}

CEL_FUNCTION(cel_quote)
{
    static const char special[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    struct buf text = BUF_INIT;

    if (!all_strings(args, count))
        return cel_no_overload(call->name);
    buf_add_str(&text, "\"");
    for (size_t i = 0; i < args[0].text.len; i++) {
        char c = args[0].text.data[i];
        const char *found = c ? strchr(special, c) : NULL;
        if (found)
            buf_add(&text, (char[]){'\\', letters[found - special]}, 2);
        else
            buf_add(&text, &c, 1);
    }
    buf_add_str(&text, "\"");
    return take_text(eval, &text);
}
