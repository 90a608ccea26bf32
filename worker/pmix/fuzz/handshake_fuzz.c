/* SPDX-License-Identifier: Apache-2.0 */
/* The first message of whoever connects to the PMIx server's port. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/pmix/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct handshake claim;
    if (size < HANDSHAKE_HEADER)
        return 0;
    size_t length = handshake_length(data);
    if (length != 0 && (length <= HANDSHAKE_HEADER || length > HANDSHAKE_MAX))
        abort();
    uint8_t *exact = malloc(size); /* so that one byte beyond is found */
    if (!exact)
        return 0;
    memcpy(exact, data, size);
    if (handshake_read(exact, size, &claim) == 0) {
        if (claim.client && !claim.named)
            abort();
        if (strnlen(claim.nspace, sizeof claim.nspace) == sizeof claim.nspace)
            abort();
    }
    free(exact);
    return 0;
}
