/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/log_place.h"

#include <ctype.h>
#include <string.h>

#define NS_PER_S 1000000000

/* Nanoseconds since 1970; negative: no time. */
static int64_t parse(const char *text, size_t length)
{
    char copy[64];
    int64_t ms = 0, fraction = 0;
    if (length >= sizeof copy)
        return -1;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!timestamp_parse(copy, &ms) || ms < 0)
        return -1;
    const char *point = strchr(copy, '.');
    int64_t unit = NS_PER_S / 10;
    for (const char *c = point ? point + 1 : ""; isdigit((unsigned char)*c); c++, unit /= 10)
        fraction += (*c - '0') * unit;
    return ms / 1000 * NS_PER_S + fraction;
}

bool log_place_pass(struct log_place *place, const char *text, size_t length)
{
    int64_t ns = parse(text, length);
    if (ns < 0)
        return true;
    if (place->again && ns < place->last_ns)
        return false;
    if (place->again && ns == place->last_ns && place->skipped < place->count) {
        place->skipped++;
        return false;
    }
    place->again = false;
    place->count = ns == place->last_ns ? place->count + 1 : 1;
    place->last_ns = ns;
    return true;
}

const char *log_place_resume(struct log_place *place, char text[TIMESTAMP_SIZE])
{
    if (place->last_ns == 0)
        return NULL;
    place->again = true;
    place->skipped = 0;
    timestamp_format(place->last_ns / NS_PER_S * 1000, text, TIMESTAMP_SIZE);
    return text;
}
