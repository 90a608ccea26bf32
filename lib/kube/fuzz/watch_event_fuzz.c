/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte says how large the pieces are in which the rest comes. */
#include <stdint.h>

#include "lib/kube/watch_event.h"
#include "lib/kube/watch_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct watch_decoder decoder = {0};
    struct watch_store store = {0};
    size_t piece = size ? data[0] + 1u : 1;
    int rc = watch_store_init(&store, NULL);
    for (size_t at = 1; at < size && rc >= 0; at += piece) {
        const char *bytes = (const char *)data + at;
        size_t length = size - at < piece ? size - at : piece;
        enum watch_event_type type = 0;
        json_t *object = NULL, *before = NULL;
        while ((rc = watch_decoder_next(&decoder, &bytes, &length, &type, &object, NULL)) > 0) {
            watch_store_put(&store, object, &before, NULL);
            json_decref(before);
            before = NULL;
            json_decref(object);
        }
    }
    watch_store_done(&store);
    watch_decoder_done(&decoder);
    return 0;
}
