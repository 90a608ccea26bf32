/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as YAML and as JSON; what was taken must survive being written and read again, and
 * every member must have a place. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/doc/doc.h"
#include "lib/doc/value.h"
#include "lib/doc/yaml_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const struct doc *doc, const json_t *value)
{
    json_t *child = NULL;
    const char *key = NULL;
    size_t i = 0;
    value_foreach(value, key, child)
    {
        if (!doc_member_place(doc, value, key, NULL).line)
            abort();
        check_places(doc, child);
    }
    json_array_foreach(value, i, child)
    {
        if (!doc_item_place(doc, value, i).line)
            abort();
        check_places(doc, child);
    }
}

static void check_written(const json_t *value)
{
    struct buf out = BUF_INIT;
    struct doc *again = NULL;
    if (yaml_write(value, &out, NULL) < 0 ||
        doc_parse("again", out.data, out.len, DOC_FORMAT_YAML, NULL, &again, NULL) < 0 ||
        doc_count(again) != 1 || !json_equal(doc_root(again, 0), value))
        abort();
    doc_free(again);
    buf_done(&out);
}

static void check(const char *text, size_t size, enum doc_format format)
{
    static const struct doc_limits limits = {1 << 20, 32, 1000};
    struct doc *doc = NULL;
    struct drarun_error err = {0};
    if (doc_parse("fuzz", text, size, format, &limits, &doc, &err) < 0) {
        if (!err.text[0])
            abort();
        return;
    }
    for (size_t i = 0; i < doc_count(doc); i++) {
        check_places(doc, doc_root(doc, i));
        if (format == DOC_FORMAT_YAML) /* JSON's 2.0 comes back as 2 */
            check_written(doc_root(doc, i));
    }
    doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check((const char *)data, size, DOC_FORMAT_YAML);
    check((const char *)data, size, DOC_FORMAT_JSON);
    return 0;
}
