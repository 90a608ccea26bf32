/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/kube/warning.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(strlist_done) struct strlist texts = STRLIST_INIT;
    cleanup_free char *value = strndup((const char *)data, size);
    if (value)
        warning_add_texts(value, &texts);
    return 0;
}
