/* SPDX-License-Identifier: Apache-2.0 */
/* A site's file of known machines: what is taken is complete. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/bench/known.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct doc *doc = NULL;
    struct known known = {0};
    if (doc_parse("fuzz", (const char *)data, size, DOC_FORMAT_GUESS, NULL, &doc, NULL) < 0)
        return 0;
    int rc = doc_count(doc) ? known_read(&known, doc, NULL) : -1;
    for (size_t i = 0; rc == 0 && i < known.count; i++) {
        const struct known_machine *machine = &known.list[i];
        if (!machine->name[0] || !machine->gpu[0] || !machine->gpus)
            abort();
        for (size_t k = 0; k < machine->seen_count; k++)
            if (!machine->seen[k].collective[0] || !(machine->seen[k].low > 0) ||
                machine->seen[k].high < machine->seen[k].low)
                abort();
    }
    known_done(&known);
    doc_free(doc);
    return 0;
}
