/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/doc/doc.h"
#include "lib/doc/load.h"
#include "lib/doc/reader.h"
#include "lib/doc/yaml_write.h"

/* The first document as compact JSON, or the error's text. */
static char *read_as(const char *name, const char *text, size_t len)
{
    struct doc *doc = NULL;
    struct drarun_error err = {0};
    if (doc_parse(name, text, len, DOC_FORMAT_GUESS, NULL, &doc, &err) < 0) {
        assert_int_equal(err.kind, DRARUN_ERR_SPEC);
        return strdup(err.text);
    }
    char *out = doc_count(doc) ? json_dumps(doc_root(doc, 0), JSON_ENCODE_ANY | JSON_COMPACT)
                               : strdup("nothing");
    doc_free(doc);
    return out;
}

struct sample {
    const char *name, *text, *expected; /* expected: JSON, or a part of the error */
};

static void check_samples(const struct sample *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *got = read_as(list[i].name, list[i].text, strlen(list[i].text));
        if (!strstr(got, list[i].expected))
            fail_msg("%s\ngave %s\nnot  %s", list[i].text, got, list[i].expected);
        free(got);
    }
}

/* What sigs.k8s.io/yaml 1.6.0 makes of the same scalars. */
static void test_scalars(void **state)
{
    static const struct sample list[] = {
        {"a", "[1, -2, +3, 0x1f, 0o17, 0b101, 017, 1_000, 08]", "[1,-2,3,31,15,5,15,1000,8]"},
        {"a", "[1.5, 1e3, .5, -.5e1, 1., .5_0, ._5, 1_0.5, 1e999, 0x, 1__, _1]",
         "[1.5,1000,0.5,-5,1,0.5,\"._5\",10.5,\"1e999\",\"0x\",1,\"_1\"]"},
        {"a", "[yes, No, on, OFF, y, N, true, False]",
         "[true,false,true,false,true,false,true,false]"},
        {"a", "[~, null, '', ]", "[null,null,\"\"]"},
        {"a", "['yes', \"1\", 2025-01-01, 12:30, 1.2.3, yES, tRue]",
         "[\"yes\",\"1\",\"2025-01-01\",\"12:30\",\"1.2.3\",\"yES\",\"tRue\"]"},
        {"a", "a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\"}"},
        {"a", "{1: a, x: }", "{\"1\":\"a\",\"x\":null}"},
        {"a", "9223372036854775807", "9223372036854775807"},
        {"a", "-9223372036854775808", "-9223372036854775808"},
        {"a", "---\n# nothing\n---\nx: 1\n", "{\"x\":1}"},
        {"a", "", "nothing"},
        {"a", "\xef\xbb\xbfx: 1", "{\"x\":1}"},
        {"a", "x: \"\\u00e4\xf0\x9f\x98\x80\"", "{\"x\":\"\xc3\xa4\xf0\x9f\x98\x80\"}"},
    };
    (void)state;
    check_samples(list, sizeof list / sizeof list[0]);
}

/* Generated scalars with what sigs.k8s.io/yaml made of them. */
static void test_scalars_of_kubernetes(void **state)
{
    char line[256], text[300];
    size_t count = 0;
    (void)state;
    cleanup_file FILE *file = fopen(DATA "/scalars.tsv", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *tab = strchr(line, '\t');
        struct doc *doc = NULL;
        struct drarun_error err = {0};
        if (line[0] == '#' && !count)
            continue;
        assert_non_null(tab);
        snprintf(text, sizeof text, "- %.*s\n", (int)(tab - line), line);
        json_t *expected = json_loads(tab + 1, JSON_DECODE_ANY, NULL);
        if (doc_parse("m", text, strlen(text), DOC_FORMAT_YAML, NULL, &doc, &err) < 0)
            fail_msg("%s: %s", line, err.text);
        json_t *got = json_array_get(doc_root(doc, 0), 0);
        bool same =
            json_is_number(expected)
                ? json_is_number(got) && json_number_value(got) == json_number_value(expected)
                : json_equal(got, expected);
        if (!same)
            fail_msg("%s", line);
        json_decref(expected);
        doc_free(doc);
        count++;
    }
    assert_true(count > 1000);
}

static void test_anchors(void **state)
{
    static const struct sample list[] = {
        {"a", "a: &x {b: 1}\nc: *x\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"a", "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\n",
         "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"b\":3,\"c\":2}}"},
        {"a", "a: &x {b: 1}\nz: &y {b: 2, e: 5}\nd: {b: 3, <<: [*x, *y]}\n",
         "\"d\":{\"b\":3,\"e\":5}}"},
        {"a", "a: &x 1\nb: &x 2\nc: *x\n", "\"c\":2"},
        {"a", "a: &x [*x]", "a:1:8: the anchor &x contains itself"},
        {"a", "a: &x {b: {c: *x}}", "a:1:15: the anchor &x contains itself"},
        {"a", "a: *x", "a:1:4: the alias *x has no anchor before it"},
        {"a", "a: &x 1\n---\nb: *x", "a:3:4: the alias *x has no anchor"},
        {"a", "<<: 3", "a:1:5: expected a mapping, or a list of mappings, behind \"<<\""},
        {"a", "<<: [3]", "nothing but mappings"},
        {"a", "&x a: 1", "an anchor on a key"},
        {"a", "b: &x 1\n*x : 2", "an alias as a key"},
    };
    (void)state;
    check_samples(list, sizeof list / sizeof list[0]);
}

static void test_malformed(void **state)
{
    static const struct sample list[] = {
        {"a", "x: 1\nz: 2\nx: 3\n", "a:3:1: the key \"x\" is given twice, first in line 1"},
        {"a", "x: !!str 1", "a:1:4: tags are not supported"},
        {"a", "x: !foo {}", "tags are not supported"},
        {"a", "x: !!binary YQ==", "tags are not supported"},
        {"a", "x: .inf", "a:1:4: .inf has no form in JSON"},
        {"a", "x: 9223372036854775808", "does not fit 64 bits"},
        {"a", "x: -9223372036854775809", "does not fit 64 bits"},
        {"a", "y: 1", "quote \"y\""},
        {"a", "on: 1", "a:1:1: a key that is a text was expected; quote \"on\""},
        {"a", "~: 1", "a key that is a text was expected"},
        {"a", "1.5: 1", "a key that is a text was expected"},
        {"a", "0x1: 1", "a key that is a text was expected"},
        {"a", "? [a]\n: 1", "expected a key, got a list"},
        {"a", "{{a: 1}: 1}", "expected a key, got a mapping"},
        {"a", "x: [1, 2",
         "a:2:1: YAML: did not find expected ',' or ']' while parsing a flow sequence in line 1"},
        {"a", "x: {a: 1", "YAML: did not find expected ',' or '}'"},
        {"a", "x: 1\n y: 2", "a:2:3: YAML: mapping values are not allowed"},
        {"a", "x:\n\t- 1", "a:2:1: YAML: a tab indents this line: YAML takes spaces alone"},
        {"a", "x: \xc3\xa4\nw:\n  z: 1\n \tu: 2", "a tab indents this line"},
        {"a", "x: \"abc", "YAML: found unexpected end of stream"},
        {"a", "x: 'abc", "YAML: found unexpected end of stream"},
        {"a", "- a\nb: c", "a:2:1: YAML: did not find expected '-' indicator"},
        {"a", "x: @a", "YAML: found character that cannot start any token"},
        {"a", "x: `a", "YAML: found character that cannot start any token"},
        {"a", "x: \"\\q\"", "YAML: found unknown escape character"},
        {"a", "x: \"\\0\"", "this text contains a NUL"},
        {"a", "x: \x01", "YAML: control characters are not allowed"},
        {"a", "x: \x80", "a:1:4: not UTF-8: byte 0x80"},
        {"a", "\nx: \xc3\xa4\xed\xa0\x80", "a:2:5: not UTF-8: byte 0xed"},
        {"a", "x: \xc0\xaf", "not UTF-8"},
        {"a", "x: \xf5\x80\x80\x80", "not UTF-8"},
        {"a", "x: \xe4", "not UTF-8"},
        {"a", "%YAML 3.0\n---\nx: 1", "YAML: found incompatible YAML document"},
        {"a", "]", "YAML: did not find expected node content"},
        {"a", "x: 1\n...\ny", "a:3:1: YAML: did not find expected <document start>"},
    };
    (void)state;
    check_samples(list, sizeof list / sizeof list[0]);
    char *got = read_as("a", "x\0y", 3);
    assert_string_equal(got, "a:1:2: a NUL byte: this is no text");
    free(got);
}

static void test_json(void **state)
{
    static const struct sample list[] = {
        {"a.json", "{\"a\": [1, 2.5, true, null, \"\\ud83d\\ude00\"], \"b\": {}}",
         "{\"a\":[1,2.5,true,null,\"\xf0\x9f\x98\x80\"],\"b\":{}}"},
        {"a.json", "3", "3"},
        {"-", " {\"a\": yes}", "a value, got yes"},
        {"a.json", "{a: 1}", "a.json:1:2: JSON: expected a key in quotation marks, got \"a\""},
        {"a.json", "{\"a\": 1,}", "a.json:1:9: JSON: expected a key in quotation marks, got \"}\""},
        {"a.json", "[1,]", "JSON: expected a value, got \"]\""},
        {"a.json", "[1 2]", "a.json:1:4: JSON: expected \",\" or \"]\", got \"2\""},
        {"a.json", "{\"a\" 1}", "JSON: expected \":\""},
        {"a.json", "[01]", "JSON: expected a value, got 01"},
        {"a.json", "[+1]", "JSON: expected a value, got +1"},
        {"a.json", "[.5]", "expected a value"},
        {"a.json", "[NaN]", "expected a value"},
        {"a.json", "[1e999]", "real number overflow"},
        {"a.json", "[99999999999999999999]", "too big"},
        {"a.json", "['a']", "expected a value"},
        {"a.json", "[\"a", "a.json:1:2: JSON: this text has no end"},
        {"a.json", "[\"a\nb\"]", "unexpected newline"},
        {"a.json", "[\"\\u0000\"]", "expected a value"},
        {"a.json", "[\"\\ud800\"]", "expected a value"},
        {"a.json", "[\"\\x\"]", "expected a value"},
        {"a.json", "// x\n{}", "expected a value"},
        {"a.json", "{\"a\":1}}", "JSON: expected a value, got \"}\""},
        {"a.json", "{\"a\":1,\n\"a\":2}", "a.json:2:1: the key \"a\" is given twice"},
        {"a.json", "{\"a\":", "JSON: expected a value, got the end of the text"},
        {"a.json", "", "nothing"},
        {"a.json", "{\"\xc3\xa4\": x}", "a.json:1:7: "},
    };
    struct doc *doc = NULL;
    (void)state;
    check_samples(list, sizeof list / sizeof list[0]);
    const char *two = "{\"a\": 1}\n{\"a\": 2}\n";
    assert_int_equal(doc_parse("m", two, strlen(two), DOC_FORMAT_GUESS, NULL, &doc, NULL), 0);
    assert_int_equal(doc_count(doc), 2);
    doc_free(doc);
}

/* As kubectl reads it: what came first is gone, with its places, and is told. */
static void test_last_of_duplicates_wins(void **state)
{
    static const char *const texts[] = {"a: {x: [1]}\nb: 2\na: {q: 3}\nb: {b: 1,\n b: 4}\n",
                                        "{\"a\": {\"x\": [1]},\n\"b\": 2,\n\"a\": {\"q\": 3},\n"
                                        "\"b\": {\"b\": 1,\n \"b\": 4}}"};
    struct doc_limits limits = doc_limits_default;
    (void)state;
    limits.last_wins = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct doc *doc = NULL;
        size_t count = 0;
        assert_int_equal(doc_parse(i ? "a.json" : "a", texts[i], strlen(texts[i]), DOC_FORMAT_GUESS,
                                   &limits, &doc, NULL),
                         0);
        char *text = json_dumps(doc_root(doc, 0), JSON_COMPACT);
        assert_string_equal(text, "{\"a\":{\"q\":3},\"b\":{\"b\":4}}");
        free(text);
        const struct doc_duplicate *list = doc_duplicates(doc, &count);
        assert_int_equal(count, 3);
        assert_string_equal(list[0].key, "a");
        assert_int_equal(list[0].first.line, 1);
        assert_int_equal(list[0].at.line, 3);
        assert_int_equal(list[2].at.line, 5);
        assert_int_equal(doc_member_place(doc, doc_root(doc, 0), "a", NULL).line, 3);
        assert_int_equal(doc_member_place(doc, doc_root(doc, 0), "b", NULL).line, 4);
        doc_free(doc);
    }
}

/* What a mapping has already is merged into it again and again, and adds no value. */
static void test_many_merges(void **state)
{
    static const struct {
        size_t keys, merges;
        bool good;
    } rows[] = {{1000, 1000, true}, {20000, 20000, false}};
    struct buf b = BUF_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct doc *doc = NULL;
        struct drarun_error err = {0};
        buf_reset(&b);
        buf_add_str(&b, "a: &a\n");
        for (size_t k = 0; k < rows[i].keys; k++)
            buf_printf(&b, "  k%zu: 1\n", k);
        buf_add_str(&b, "b:\n");
        for (size_t m = 0; m < rows[i].merges; m++)
            buf_add_str(&b, "  <<: *a\n");
        int rc = doc_parse("m", b.data, b.len, DOC_FORMAT_YAML, NULL, &doc, &err);
        assert_int_equal(rc == 0, rows[i].good);
        if (rc == 0)
            assert_int_equal(json_object_size(json_object_get(doc_root(doc, 0), "b")),
                             rows[i].keys);
        else
            assert_string_equal(err.text, "m:20003:3: \"<<\" merges large mappings too often");
        doc_free(doc);
    }
    buf_done(&b);
}

/* Finding the first of two costs a walk over its mapping: not of any number in any size. */
static void test_many_duplicates(void **state)
{
    static const struct {
        size_t mappings, keys;
        bool good;
    } rows[] = {{3000, 3, true}, {1, 2000, true}, {1, 20000, false}};
    struct doc_limits limits = doc_limits_default;
    struct buf b = BUF_INIT;
    (void)state;
    limits.last_wins = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct doc *doc = NULL;
        struct drarun_error err = {0};
        size_t count = 0;
        buf_reset(&b);
        for (size_t m = 0; m < rows[i].mappings; m++)
            for (size_t k = 0; k < 2 * rows[i].keys; k++)
                buf_printf(&b, "%s k%zu: 1\n", k ? " " : "-", k % rows[i].keys);
        int rc = doc_parse("m", b.data, b.len, DOC_FORMAT_YAML, &limits, &doc, &err);
        assert_int_equal(rc == 0, rows[i].good);
        if (rc == 0)
            doc_duplicates(doc, &count);
        else
            assert_non_null(strstr(err.text, "too many keys of large mappings are given twice"));
        assert_int_equal(count, rows[i].good ? rows[i].mappings * rows[i].keys : 0);
        doc_free(doc);
    }
    buf_done(&b);
}

static void test_places(void **state)
{
    static const char text[] = "z: &z {q: 1}\n"
                               "a: 1\nb:\n  - x: true\n    w: true\n  - *z\nc: {<<: *z}\n";
    static const char json[] = "{\"a\": true,\n \"\xc3\xa4\": true, \"b\": [true,\n true]}";
    struct doc *doc = NULL;
    struct doc_place key, at;
    (void)state;
    assert_int_equal(doc_parse("m", text, strlen(text), 0, NULL, &doc, NULL), 0);
    json_t *root = doc_root(doc, 0), *b = json_object_get(root, "b");
    at = doc_member_place(doc, json_array_get(b, 0), "w", &key);
    assert_int_equal(key.line * 100 + key.column, 505);
    assert_int_equal(at.line * 100 + at.column, 508);
    at = doc_item_place(doc, b, 1); /* the alias, and inside what it stands for */
    assert_int_equal(at.line * 100 + at.column, 605);
    at = doc_member_place(doc, json_array_get(b, 1), "q", NULL);
    assert_int_equal(at.line * 100 + at.column, 111);
    at = doc_member_place(doc, json_object_get(root, "c"), "q", &key);
    assert_int_equal(key.line * 100 + key.column, 108);
    at = doc_member_place(doc, root, "none", &key);
    assert_int_equal(key.line + at.line, 0);
    at = doc_item_place(doc, b, 7);
    assert_int_equal(at.line, 0);
    doc_free(doc);
    assert_int_equal(doc_parse("m", json, strlen(json), 0, NULL, &doc, NULL), 0);
    at = doc_member_place(doc, doc_root(doc, 0), "b", &key); /* columns count characters */
    assert_int_equal(key.line * 100 + key.column, 213);
    at = doc_item_place(doc, json_object_get(doc_root(doc, 0), "b"), 1);
    assert_int_equal(at.line * 100 + at.column, 302);
    doc_free(doc);
}

static void expect_error(const struct buf *text, enum doc_format format, const char *part)
{
    struct doc *doc = NULL;
    struct drarun_error err = {0};
    int rc = doc_parse("big", text->data, text->len, format, NULL, &doc, &err);
    if (rc == 0 || !strstr(err.text, part))
        fail_msg("expected \"%s\", got \"%s\"", part, err.text);
}

static void repeat(struct buf *b, const char *text, size_t times)
{
    while (times-- > 0)
        buf_add_str(b, text);
}

static void test_limits(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    repeat(&b, "[", DOC_DEPTH_MAX + 1);
    expect_error(&b, DOC_FORMAT_YAML, "more than 64 lists and mappings");
    expect_error(&b, DOC_FORMAT_JSON, "more than 64 lists and mappings");
    repeat(&b, "[", DOC_SIZE_MAX - 100 - b.len);
    expect_error(&b, DOC_FORMAT_YAML, "more than 64 lists and mappings");
    expect_error(&b, DOC_FORMAT_JSON, "more than 64 lists and mappings");
    repeat(&b, "[", 200);
    expect_error(&b, DOC_FORMAT_YAML, "larger than the limit of 10485760 bytes");
    buf_reset(&b);
    buf_add_str(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"); /* a billion laughs */
    for (int i = 1; i < 9; i++) {
        buf_printf(&b, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++)
            buf_printf(&b, "*a%d,", i - 1);
        buf_add_str(&b, "]\n");
    }
    expect_error(&b, DOC_FORMAT_YAML, "aliases add more than 100000 values");
    buf_reset(&b);
    buf_add_str(&b, "a0: &a0 {x: 1}\n"); /* the same by merges */
    for (int i = 1; i < 40; i++)
        buf_printf(&b, "a%d: &a%d {p%d: *a%d, q%d: *a%d}\n", i, i, i, i - 1, i, i - 1);
    expect_error(&b, DOC_FORMAT_YAML, "aliases add more than 100000 values");
    buf_reset(&b);
    for (int i = 0; i <= 1000; i++)
        buf_printf(&b, "- &a%d 1\n", i);
    expect_error(&b, DOC_FORMAT_YAML, "more than 1000 anchors");
    buf_done(&b);
}

/* Ten million bytes in the forms that cost parsers most. */
static void test_large(void **state)
{
    static const char *const units[] = {"- [{a: 1}]\n", "- 1\n", "- \"a b c d\"\n",
                                        "- aaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbb\n"};
    struct buf b = BUF_INIT;
    struct doc *doc = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t n = (DOC_SIZE_MAX - 64) / strlen(units[i]) / (i < 2 ? 4 : 1);
        buf_reset(&b);
        repeat(&b, units[i], n);
        assert_int_equal(doc_parse("m", b.data, b.len, 0, NULL, &doc, NULL), 0);
        assert_int_equal(json_array_size(doc_root(doc, 0)), n);
        doc_free(doc);
    }
    buf_reset(&b);
    for (int i = 0; i < 100000; i++)
        buf_printf(&b, "k%d: {a: 1}\n", i);
    assert_int_equal(doc_parse("m", b.data, b.len, 0, NULL, &doc, NULL), 0);
    struct doc_place at = doc_member_place(doc, doc_root(doc, 0), "k99999", NULL);
    assert_int_equal(at.line, 100000);
    doc_free(doc);
    buf_reset(&b);
    buf_add_str(&b, "from: &from\n");
    for (int i = 0; i < 99999; i++)
        buf_printf(&b, "  k%d: 1\n", i);
    buf_add_str(&b, "into: {<<: *from}\n");
    assert_int_equal(doc_parse("m", b.data, b.len, 0, NULL, &doc, NULL), 0);
    at = doc_member_place(doc, json_object_get(doc_root(doc, 0), "into"), "k99998", NULL);
    assert_int_equal(at.line, 100000);
    doc_free(doc);
    buf_done(&b);
}

static void test_write(void **state)
{
    static const char *const values[] = {
        "{\"a\":\"yes\",\"b\":\"1\",\"c\":\"0x1\",\"d\":\"~\",\"e\":\"\",\"f\":\"a "
        "b\",\"g\":\"null\"}",
        "[\"x\\ny\\n\",\"x\\n\\n  y\",\"\\n\",\" x\",\"x \",\"x\\t\\n\",\"# x\",\"a: b\",\"- "
        "a\",\"&a\",\"*a\","
        "\"!t\",\"%x\",\"'\",\"\\\"\",\"<<\",\"1e3\",\"2025-01-01\",\"12:30:45\",\"=\",\"\\u0001\","
        "\"\\u0085\"]",
        "[1,-1,true,false,null,1.5,[],{},[[]],{\"x\":{}}]",
        "{\"1\":2,\"on\":3,\"a.b/c\":[{\"x\":1,\"y\":[1,2]},{\"z\":\"\"}]}",
        "[\"\xc3\xa4\xf0\x9f\x98\x80\",\"x\\ny\\n\\n\",\"\\n\\nx\",\"  x\\ny\"]",
    };
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        json_t *value = json_loads(values[i], 0, NULL);
        struct buf out = BUF_INIT;
        struct doc *doc = NULL;
        struct drarun_error err = {0};
        assert_non_null(value);
        assert_int_equal(yaml_write(value, &out, &err), 0);
        if (doc_parse("m", out.data, out.len, DOC_FORMAT_YAML, NULL, &doc, &err) < 0)
            fail_msg("%s\n%s", err.text, out.data);
        if (!json_equal(value, doc_root(doc, 0)))
            fail_msg("%s", out.data);
        doc_free(doc);
        buf_done(&out);
        json_decref(value);
    }
}

/* Around the sizes at which more is read; a small file, which may be kept, takes little. */
static void test_file(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 65534, 65535, 65536, 65537, 200000};
    char path[] = "/tmp/doc-test-XXXXXX";
    (void)state;
    cleanup_close int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct buf text = BUF_INIT, got = BUF_INIT;
        while (text.len < sizes[i])
            buf_printf(&text, "%c", 'a' + (int)(text.len % 23));
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, text.data ? text.data : "", text.len, 0), (int)text.len);
        assert_int_equal(doc_read(path, NULL, &got, NULL), 0);
        assert_int_equal(got.len, text.len);
        assert_memory_equal(got.data, text.data ? text.data : "", text.len);
        if (sizes[i] == 100)
            assert_true(got.cap <= 256);
        buf_done(&text);
        buf_done(&got);
    }
    assert_int_equal(unlink(path), 0);
}

/* A file's name need not be UTF-8, nor plain, and a message may be long. */
static void test_findings(void **state)
{
    struct buf words = BUF_INIT;
    struct doc *doc = NULL;
    struct reader r;
    (void)state;
    for (int i = 0; i < 200; i++)
        buf_printf(&words, "%skey%d", i ? " " : "", i);
    assert_int_equal(doc_parse("a\xff\x1b.yaml", "x: 1\n", 5, 0, NULL, &doc, NULL), 0);
    reader_init(&r, doc, false);
    struct reader_node root = reader_root(&r, 0);
    reader_known(&root, words.data);
    assert_int_equal(r.texts.count, 1);
    const char *text = r.texts.items[0], *begin = "a??.yaml:1:1: x: unknown key; known here: ";
    assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
    assert_string_equal(text + strlen(begin), words.data);
    reader_done(&r);
    doc_free(doc);
    buf_done(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_scalars_of_kubernetes),
        cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_last_of_duplicates_wins),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_many_duplicates),
        cmocka_unit_test(test_many_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
