/* SPDX-License-Identifier: Apache-2.0 */
/* In place of strtod (the linker's --wrap) in a drarun-cluster that is static, which no library is
 * loaded before: a fault of the reader of documents, as no document is known that it takes long
 * for. It meets the numbers 0.1 and 0.7 as jansson writes them, which is how a controller reads its
 * own copy of an object, and not as the API server does: watches stay whole. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

double __wrap_strtod(const char *text, char **end);

double __wrap_strtod(const char *text, char **end)
{
    if (strcmp(text, "0.10000000000000001") == 0)
        for (volatile unsigned i = 0;; i++)
            continue;
    if (strcmp(text, "0.69999999999999996") == 0)
        raise(SIGSEGV);
    return (double)strtold(text, end);
}
