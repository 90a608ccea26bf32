/* SPDX-License-Identifier: Apache-2.0 */
/* {"slices", "classes", "nodes", "allocated", "rules", "claim", "minor"} of any shape must end in a
 * prediction or an error. */
#include <stddef.h>
#include <stdint.h>

#include "lib/dra/predict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slices slices;
    struct prediction prediction;
    json_t *document = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    json_t *list = json_object_get(document, "slices");
    if (list && slices_read(list, &slices, NULL) == 0) {
        const struct predict_cluster cluster = {
            .slices = &slices,
            .classes = json_object_get(document, "classes"),
            .node_labels = json_object_get(document, "labels"),
            .claims = json_object_get(document, "allocated"),
            .taint_rules = json_object_get(document, "rules"),
            .minor = (unsigned)json_integer_value(json_object_get(document, "minor"))};
        if (predict(json_object_get(document, "claim"), 3, &cluster, &prediction, NULL) == 0)
            prediction_done(&prediction);
        slices_done(&slices);
    }
    json_decref(document);
    return 0;
}
