/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that a disk or a newer plugin made of something else. */
#include <stdint.h>
#include <stdlib.h>

#include "plugin/prepare/checkpoint.h"
#include "plugin/prepare/device_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct checkpoint *c = NULL;
    struct drarun_error err = {0};
    struct node_device device;
    if (checkpoint_parse("x", (const char *)data, size, &c, &err) < 0) {
        if (!err.text[0])
            abort();
        return 0;
    }
    if (!c->driver || !c->uid || !c->namespace_ || !c->name || !c->cdi)
        abort();
    for (size_t i = 0; i < c->count; i++) {
        if (!c->devices[i].request || !c->devices[i].pool || !c->devices[i].device)
            abort();
        if (c->devices[i].record && device_record_read(c->devices[i].record, &device) &&
            !device.name[0])
            abort();
    }
    checkpoint_free(c);
    return 0;
}
