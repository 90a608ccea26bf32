/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/mig_minors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

size_t mig_minors_parse(const char *text, int32_t gpu, int32_t gi, int32_t ci,
                        uint32_t ret_minors[2])
{
    char wanted[2][64];
    size_t count = 0;
    snprintf(wanted[0], sizeof wanted[0], "gpu%d/gi%d/access ", gpu, gi);
    snprintf(wanted[1], sizeof wanted[1], "gpu%d/gi%d/ci%d/access ", gpu, gi, ci);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        for (size_t i = 0; i < ARRAY_LEN(wanted) && count < 2; i++) {
            size_t len = strlen(wanted[i]);
            size_t digits =
                strncmp(line, wanted[i], len) == 0 ? strspn(line + len, "0123456789") : 0;
            if (digits > 0 && digits < 8)
                ret_minors[count++] = (uint32_t)strtoul(line + len, NULL, 10);
        }
    return count;
}
