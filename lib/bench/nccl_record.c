/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/nccl_record.h"

#include <ctype.h>
#include <string.h>

bool nccl_record_is_host(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

/* Moves *at back over digits and the colon before them. */
static bool back_over_number(const char *begin, const char **at)
{
    const char *end = *at;
    while (*at > begin && isdigit((unsigned char)(*at)[-1]))
        (*at)--;
    if (*at == end || *at == begin || (*at)[-1] != ':')
        return false;
    (*at)--;
    return true;
}

bool nccl_record_host(const char *begin, const char *end, const char **ret_host,
                      const char **ret_host_end)
{
    const char *close = memrchr(begin, ']', (size_t)(end - begin)), *at = close;
    while (at && at > begin && isdigit((unsigned char)at[-1]))
        at--;
    if (!close || at == close || at <= begin || at[-1] != '[')
        return false;
    at--;
    while (at > begin && at[-1] == ' ')
        at--;
    // NOLINTNEXTLINE(misc-redundant-expression): two numbers
    if (!back_over_number(begin, &at) || !back_over_number(begin, &at))
        return false;
    const char *host_end = at;
    while (at > begin && nccl_record_is_host(at[-1]) && host_end - at < NCCL_RECORD_HOST)
        at--;
    *ret_host = at;
    *ret_host_end = host_end;
    return at < host_end;
}
