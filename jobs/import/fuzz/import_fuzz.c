/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as manifests: refused with a text, or a job. */
#include <stdint.h>
#include <stdlib.h>

#include "jobs/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct doc *doc = NULL;
    struct reader notes;
    struct drarun_error err = {0};
    const struct import_options options = {0};
    json_t *job = NULL, *classes = NULL;
    if (doc_parse("fuzz", (const char *)data, size, DOC_FORMAT_GUESS, NULL, &doc, NULL) < 0)
        return 0;
    reader_init(&notes, doc, true);
    notes.max = READER_MAX;
    int rc = import_job(&notes, 1, &options, &job, &classes, &err);
    if (rc < 0 ? !err.text[0] : !json_is_object(job))
        abort();
    json_decref(job);
    json_decref(classes);
    reader_done(&notes);
    doc_free(doc);
    return 0;
}
