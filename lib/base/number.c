/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

int number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret_value,
                 struct drarun_error *err)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool number = end != text && *end == '\0' && !isspace((unsigned char)text[0]);
    if (!number)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected a whole number from %" PRId64 " to %" PRId64 ", got \"%s\"",
                          what, min, max, text);
    if (errno == ERANGE || value < min || value > max)
        return error_kind(err, DRARUN_ERR_USAGE, ERANGE,
                          "%s: expected %" PRId64 " to %" PRId64 ", got %s", what, min, max, text);
    *ret_value = value;
    return 0;
}

bool duration_read(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
    const char *p = text;
    double sum = 0;
    if (strcmp(p, "0") == 0) {
        *ret_ms = 0;
        return true;
    }
    do {
        size_t digits = strspn(p, "0123456789");
        char *end = NULL;
        if (digits == 0 || digits > 12)
            return false;
        double value = strtod(p, &end);
        if (end != p + strspn(p, "0123456789.")) /* "0x10", "1.5e3" */
            return false;
        size_t length = strspn(end, "dhms"), unit = ARRAY_LEN(units);
        for (size_t i = 0; i < ARRAY_LEN(units); i++)
            if (strlen(units[i].unit) == length && strncmp(end, units[i].unit, length) == 0)
                unit = i;
        if (unit == ARRAY_LEN(units))
            return false;
        sum += value * units[unit].ms;
        p = end + length;
    } while (*p);
    if (!(sum <= (double)DURATION_MAX_MS))
        return false;
    *ret_ms = (int64_t)sum;
    return true;
}

/* "90", "1.5": seconds. */
static bool read_bare(const char *text, int64_t *ret_ms)
{
    char *end = NULL;
    double seconds = strtod(text, &end);
    if (!isdigit((unsigned char)text[0]) || text[strspn(text, "0123456789.")] || *end ||
        seconds > (double)DURATION_MAX_MS / 1e3)
        return false;
    *ret_ms = (int64_t)(seconds * 1e3);
    return true;
}

int duration_parse(const char *what, const char *text, int64_t *ret_ms, struct drarun_error *err)
{
    if (read_bare(text, ret_ms) || duration_read(text, ret_ms))
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s: expected a duration such as 90s, 1h30m or 2d, at most 10 years, got "
                      "\"%s\"",
                      what, text);
}

int amount_parse(const char *what, const char *text, double most, const char *unit,
                 double *ret_value, struct drarun_error *err)
{
    char *end;
    double read = strtod(text, &end);
    if (end == text || *end || !(read > 0) || read > most)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected %s above 0, at most %g, got \"%s\"", what, unit, most,
                          text);
    *ret_value = read;
    return 0;
}
