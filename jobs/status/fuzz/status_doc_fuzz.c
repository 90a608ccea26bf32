/* SPDX-License-Identifier: Apache-2.0 */
/* Any text in the ConfigMap NAME-status: every verb and the next launcher read it. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/status/metrics.h"
#include "jobs/status/status_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *doc, *empty = json_object();
    struct gang gang;
    struct buf text = BUF_INIT;
    if (status_doc_parse((const char *)data, size, &doc, NULL) == 0) {
        json_t *merged = status_doc_merge(doc, empty), *again = status_doc_merge(doc, doc);
        gang_init(&gang, 1, 1000);
        gang_load(&gang, status_doc_gang(doc));
        status_doc_row(doc, false, false, INT64_C(1700000000000), &text);
        status_doc_render(doc, false, INT64_C(1700000000000), &text);
        status_doc_render(merged, true, INT64_C(1700000000000), &text);
        metrics_text(doc, INT64_C(1700000000000), &text);
        json_decref(again);
        json_decref(merged);
        json_decref(doc);
    }
    buf_done(&text);
    json_decref(empty);
    return 0;
}
