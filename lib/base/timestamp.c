/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/timestamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Exactly so many digits at *at, which moves on. */
static bool digits(const char **at, int count, int *ret_value)
{
    int value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret_value = value;
    return true;
}

static bool literal(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

static bool date_and_time(const char **at, struct tm *tm)
{
    if (!digits(at, 4, &tm->tm_year) || !literal(at, '-') || !digits(at, 2, &tm->tm_mon) ||
        !literal(at, '-') || !digits(at, 2, &tm->tm_mday) || !literal(at, 'T') ||
        !digits(at, 2, &tm->tm_hour) || !literal(at, ':') || !digits(at, 2, &tm->tm_min) ||
        !literal(at, ':') || !digits(at, 2, &tm->tm_sec))
        return false;
    bool valid = tm->tm_mon >= 1 && tm->tm_mon <= 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31 &&
                 tm->tm_hour <= 23 && tm->tm_min <= 59 && tm->tm_sec <= 60;
    tm->tm_year -= 1900;
    tm->tm_mon--;
    return valid;
}

/* Milliseconds of ".123456"; further digits are dropped. */
static bool fraction(const char **at, int *ret_ms)
{
    int scale = 100;
    *ret_ms = 0;
    if (**at != '.')
        return true;
    (*at)++;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++, scale /= 10)
        *ret_ms += (**at - '0') * scale;
    return true;
}

/* Minutes of "Z" or "+01:00". */
static bool zone(const char **at, int *ret_minutes)
{
    int hours, minutes;
    *ret_minutes = 0;
    if (literal(at, 'Z'))
        return true;
    int sign = **at == '-' ? -1 : 1;
    if (!(literal(at, '+') || literal(at, '-')) || !digits(at, 2, &hours) || !literal(at, ':') ||
        !digits(at, 2, &minutes))
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

bool timestamp_parse(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0};
    int ms, minutes;
    if (!text || !date_and_time(&text, &tm) || !fraction(&text, &ms) || !zone(&text, &minutes) ||
        *text)
        return false;
    *ret_ms = ((int64_t)timegm(&tm) - (int64_t)minutes * 60) * 1000 + ms;
    return true;
}

void timestamp_format(int64_t ms, char *text, size_t size)
{
    int64_t part = ((ms % 1000) + 1000) % 1000;
    time_t seconds = (time_t)((ms - part) / 1000);
    struct tm tm;
    char whole[32];
    if (!gmtime_r(&seconds, &tm) || strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        whole[0] = '\0';
    snprintf(text, size, "%s.%03dZ", whole, (int)part);
}

void duration_format(int64_t ms, char *text, size_t size)
{
    int64_t s = ms / 1000;
    if (ms < 1000)
        snprintf(text, size, "%" PRId64 " ms", ms < 0 ? 0 : ms);
    else if (s < 60)
        snprintf(text, size, "%" PRId64 " s", s);
    else if (s < 3600)
        snprintf(text, size, s % 60 ? "%" PRId64 " min %" PRId64 " s" : "%" PRId64 " min", s / 60,
                 s % 60);
    else if (s < 86400)
        snprintf(text, size, s / 60 % 60 ? "%" PRId64 " h %" PRId64 " min" : "%" PRId64 " h",
                 s / 3600, s / 60 % 60);
    else
        snprintf(text, size, s / 3600 % 24 ? "%" PRId64 " d %" PRId64 " h" : "%" PRId64 " d",
                 s / 86400, s / 3600 % 24);
}
