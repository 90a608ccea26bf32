/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict_private.h"

int predict_minor_parse(const char *version, unsigned *ret_minor)
{
    char *end;
    const char *digits = version + (version[0] == 'v');
    if (strncmp(digits, "1.", 2) != 0 || digits[2] < '0' || digits[2] > '9')
        return -EINVAL;
    unsigned long minor = strtoul(digits + 2, &end, 10);
    if (minor == 0 || minor > 1000 || (*end != '\0' && *end != '.'))
        return -EINVAL;
    *ret_minor = (unsigned)minor;
    return 0;
}

unsigned predict_minor_followed(unsigned minor)
{
    if (minor == 0 || minor > PREDICT_MINOR_NEWEST)
        return PREDICT_MINOR_NEWEST;
    return minor < PREDICT_MINOR_OLDEST ? PREDICT_MINOR_OLDEST : minor;
}

struct predict_rules predict_rules_of(unsigned minor)
{
    bool before_37 = predict_minor_followed(minor) < 37;
    return (struct predict_rules){
        .distinct_from_latest = before_37,
        .losses_stay = before_37,
        .all_needs_room = before_37,
        .counters_everywhere = before_37,
        .use_by_capacity = before_37,
        .counters_by_name = before_37,
        .whole_capacity = before_37,
    };
}
