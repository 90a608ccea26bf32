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

int duration_parse(const char *what, const char *text, int64_t *ret_ms, struct drarun_error *err)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
    char *end = NULL;
    double value = isdigit((unsigned char)text[0]) ? strtod(text, &end) : -1;
    for (size_t i = 0; end && i < ARRAY_LEN(units); i++) {
        double ms = value * units[i].ms;
        if (strcmp(end, units[i].unit) == 0 && ms >= 0 && ms <= 10 * 365 * 8.64e7) {
            *ret_ms = (int64_t)ms;
            return 0;
        }
    }
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s: expected a duration such as 90s, 1.5m or 2h, got \"%s\"", what, text);
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
