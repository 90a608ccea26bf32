/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/watch_event.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

void watch_decoder_done(struct watch_decoder *d)
{
    buf_done(&d->rest);
}

static enum watch_event_type type_of(const char *word)
{
    static const struct {
        const char *word;
        enum watch_event_type type;
    } types[] = {{"ADDED", WATCH_ADDED},
                 {"MODIFIED", WATCH_MODIFIED},
                 {"DELETED", WATCH_DELETED},
                 {"BOOKMARK", WATCH_BOOKMARK},
                 {"ERROR", WATCH_ERROR}};
    for (size_t i = 0; word && i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].word, word) == 0)
            return types[i].type;
    return 0;
}

static int decode(const char *line, size_t length, enum watch_event_type *ret_type,
                  json_t **ret_object, struct drarun_error *err)
{
    json_error_t where;
    json_t *event = json_loadb(line, length, 0, &where);
    if (!event)
        return json_error_code(&where) == json_error_out_of_memory
                   ? error_set(err, ENOMEM, "out of memory")
                   : error_kind(err, DRARUN_ERR_CLUSTER, EPROTO,
                                "an event of the watch is no JSON: %s at byte %d", where.text,
                                where.position);
    const char *word = json_string_value(json_object_get(event, "type"));
    enum watch_event_type type = type_of(word);
    json_t *object = json_object_get(event, "object");
    int rc = 1;
    if (!type || !json_is_object(object)) {
        rc = error_kind(err, DRARUN_ERR_CLUSTER, EPROTO,
                        "an event of the watch has type \"%.40s\" %s object", word ? word : "",
                        object ? "and an" : "without an");
    } else {
        *ret_type = type;
        *ret_object = json_incref(object);
    }
    json_decref(event);
    return rc;
}

static bool is_blank(const char *text, size_t length)
{
    while (length && strchr(" \t\r\n", text[length - 1]) && text[length - 1])
        length--;
    return length == 0;
}

int watch_decoder_next(struct watch_decoder *d, const char **bytes, size_t *length,
                       enum watch_event_type *ret_type, json_t **ret_object,
                       struct drarun_error *err)
{
    while (*length > 0) {
        const char *end = memchr(*bytes, '\n', *length);
        size_t part = end ? (size_t)(end - *bytes) + 1 : *length;
        const char *line = *bytes;
        size_t line_length = part;
        if (d->rest.len + part > WATCH_EVENT_MAX)
            return error_kind(err, DRARUN_ERR_CLUSTER, EFBIG,
                              "an event of the watch is larger than %zu bytes", WATCH_EVENT_MAX);
        if (!end || d->rest.len > 0) {
            buf_add(&d->rest, *bytes, part);
            if (d->rest.failed)
                return error_set(err, ENOMEM, "out of memory");
            line = d->rest.data;
            line_length = d->rest.len;
        }
        *bytes += part;
        *length -= part;
        if (!end)
            return 0;
        int rc =
            is_blank(line, line_length) ? 0 : decode(line, line_length, ret_type, ret_object, err);
        buf_reset(&d->rest);
        if (rc)
            return rc;
    }
    return 0;
}
