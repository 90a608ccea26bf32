/* SPDX-License-Identifier: Apache-2.0 */
/* A file of /etc/cdi, which anybody's tool may have written, as YAML or JSON. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/doc/doc.h"
#include "plugin/prepare/nvidia_cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct node_device device = {.kind = NODE_DEVICE_GPU};
    struct buf why = BUF_INIT;
    char id[32] = ""; /* smaller than names may be */
    snprintf(device.gpu.uuid, sizeof device.gpu.uuid, "GPU-a");
    if (doc_parse("x", (const char *)data, size, DOC_FORMAT_GUESS, NULL, &doc, NULL) < 0)
        return 0;
    struct nvidia_cdi *cdi = nvidia_cdi_take(TAKE_PTR(doc));
    if (cdi && nvidia_cdi_find(cdi, &device, id, sizeof id, &why) &&
        strncmp(id, NVIDIA_CDI_KIND "=", strlen(NVIDIA_CDI_KIND) + 1) != 0)
        abort();
    nvidia_cdi_free(cdi);
    buf_done(&why);
    return 0;
}
