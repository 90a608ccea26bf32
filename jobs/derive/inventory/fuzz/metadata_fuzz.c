/* SPDX-License-Identifier: Apache-2.0 */
/* A device metadata file of any content must end in devices or an error. */
#include <stddef.h>
#include <stdint.h>

#include "jobs/derive/inventory/device.h"
#include "jobs/derive/inventory/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metadata metadata;
    json_t *document = NULL;
    if (metadata_decode("file", (const char *)data, size, &document, NULL) < 0)
        return 0;
    json_t *documents = json_pack("[o]", document);
    if (documents && metadata_read(documents, &metadata, NULL) == 0) {
        for (size_t i = 0; i < metadata.count; i++) {
            struct device device;
            (void)!device_read(&metadata.list[i].slice, &device, NULL);
        }
        metadata_done(&metadata);
    }
    json_decref(documents);
    return 0;
}
