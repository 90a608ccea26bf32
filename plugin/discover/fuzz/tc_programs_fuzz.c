/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of the kernel about filters of an interface. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/discover/tc_programs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[64] = "";
    void *answer = malloc(size ? size : 1); /* aligned, and no byte longer */
    if (!answer)
        return 0;
    memcpy(answer, data, size);
    int found = tc_programs_parse(answer, size, name, sizeof name);
    if (found > 1 || (found == 1 && !memchr(name, '\0', sizeof name)))
        abort();
    free(answer);
    return 0;
}
