/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/exchange.h"

#include <string.h>

bool exchange_is_pair(const char *own, const char *other)
{
    unsigned fields = 1, different = 0;
    for (;;) {
        size_t length = strcspn(own, ":"), others = strcspn(other, ":");
        different += length != others || memcmp(own, other, length) != 0;
        own += length;
        other += others;
        if (*own != *other) /* one has more fields */
            return false;
        if (!*own)
            return fields > 1 && different == 1;
        own++;
        other++;
        fields++;
    }
}

bool exchange_calls(const char *own, const char *other)
{
    return exchange_is_pair(own, other) && strcmp(own, other) > 0;
}

bool exchange_answers(const char *own, const char *other)
{
    return exchange_is_pair(own, other) && strcmp(own, other) < 0;
}

void exchange_name_answer(struct buf *out, const char *key, const pmix_proc_t *caller)
{
    buf_printf(out, "%s for %s.%u", key, caller->nspace, caller->rank);
}
