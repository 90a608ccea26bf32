/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/json_log.h"

#include <jansson.h>
#include <string.h>
#include <sys/time.h>

#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"

void json_log_line(const char *line, size_t length, struct buf *out)
{
    static const char name[] = "drarun: ";
    char now[TIMESTAMP_SIZE];
    struct timeval at;
    gettimeofday(&at, NULL);
    timestamp_format((int64_t)at.tv_sec * 1000 + at.tv_usec / 1000, now, sizeof now);
    if (length > 0 && line[length - 1] == '\n')
        length--;
    if (length >= sizeof name - 1 && memcmp(line, name, sizeof name - 1) == 0) {
        line += sizeof name - 1;
        length -= sizeof name - 1;
    }
    json_t *text = json_stringn(line, length); /* NULL: no UTF-8 */
    CLEANUP(json_decrefp)
    json_t *object = json_pack("{s:s, s:o}", "time", now, "text",
                               text ? text : json_string("(a line that is no UTF-8)"));
    cleanup_free char *written = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (written)
        buf_printf(out, "%s\n", written);
}
