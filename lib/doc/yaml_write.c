/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/yaml_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/doc/yaml_scalar.h"

static int take_bytes(void *data, unsigned char *bytes, size_t size)
{
    struct buf *out = data;
    buf_add(out, bytes, size);
    return !out->failed;
}

static bool emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
    return made && yaml_emitter_emit(emitter, event);
}

static bool emit_plain(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    return emit(emitter, &event,
                yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                             (int)strlen(text), 1, 1, style));
}

static bool emit_text(yaml_emitter_t *emitter, const char *text)
{
    size_t len = strlen(text);
    yaml_scalar_style_t style = YAML_PLAIN_SCALAR_STYLE;
    if (yaml_resolve(text, len).kind != YAML_KIND_TEXT || strcmp(text, "=") == 0 ||
        text[strspn(text, "0123456789-:.+TZtz ")] ==
            '\0') /* dates, times, a value to other readers */
        style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    else if (strchr(text, '\n'))
        style = YAML_LITERAL_SCALAR_STYLE;
    return emit_plain(emitter, text, style);
}

/* The shortest that reads back as the same number, with the point that YAML 1.1 wants. */
static void real_text(double value, char *ret_text, size_t size)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    size_t mantissa = strcspn(text, "e");
    snprintf(ret_text, size, "%.*s%s%s", (int)mantissa, text, strchr(text, '.') ? "" : ".0",
             text + mantissa);
}

static bool emit_number(yaml_emitter_t *emitter, const json_t *value)
{
    char text[64];
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        real_text(json_real_value(value), text, sizeof text);
    return emit_plain(emitter, text, YAML_PLAIN_SCALAR_STYLE);
}

static bool emit_value(yaml_emitter_t *emitter, const json_t *value);

static bool emit_object(yaml_emitter_t *emitter, const json_t *object)
{
    yaml_event_t event;
    const char *key = NULL;
    json_t *value = NULL;
    yaml_mapping_style_t style =
        json_object_size(object) ? YAML_BLOCK_MAPPING_STYLE : YAML_FLOW_MAPPING_STYLE;
    if (!emit(emitter, &event, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style)))
        return false;
    value_foreach(object, key, value)
    {
        if (!emit_text(emitter, key) || !emit_value(emitter, value))
            return false;
    }
    return emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static bool emit_array(yaml_emitter_t *emitter, const json_t *array)
{
    yaml_event_t event;
    json_t *value = NULL;
    size_t i = 0;
    yaml_sequence_style_t style =
        json_array_size(array) ? YAML_BLOCK_SEQUENCE_STYLE : YAML_FLOW_SEQUENCE_STYLE;
    if (!emit(emitter, &event, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style)))
        return false;
    json_array_foreach(array, i, value)
    {
        if (!emit_value(emitter, value))
            return false;
    }
    return emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static bool emit_value(yaml_emitter_t *emitter, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return emit_object(emitter, value);
    case JSON_ARRAY:
        return emit_array(emitter, value);
    case JSON_STRING:
        return emit_text(emitter, json_string_value(value));
    case JSON_INTEGER:
    case JSON_REAL:
        return emit_number(emitter, value);
    case JSON_NULL:
        return emit_plain(emitter, "null", YAML_PLAIN_SCALAR_STYLE);
    default:
        return emit_plain(emitter, json_is_true(value) ? "true" : "false", YAML_PLAIN_SCALAR_STYLE);
    }
}

static bool emit_document(yaml_emitter_t *emitter, const json_t *value)
{
    yaml_event_t event;
    return emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
           emit(emitter, &event,
                yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
           emit_value(emitter, value) &&
           emit(emitter, &event, yaml_document_end_event_initialize(&event, 1)) &&
           emit(emitter, &event, yaml_stream_end_event_initialize(&event));
}

int yaml_write(const json_t *value, struct buf *out, struct drarun_error *err)
{
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter))
        return error_set(err, ENOMEM, "out of memory");
    yaml_emitter_set_output(&emitter, take_bytes, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    int rc = 0;
    if (!emit_document(&emitter, value))
        rc = error_set(err, emitter.error == YAML_EMITTER_ERROR ? EINVAL : ENOMEM, "YAML: %s",
                       emitter.problem && !out->failed ? emitter.problem : "out of memory");
    yaml_emitter_delete(&emitter);
    return rc;
}

const char *yaml_library_version(void)
{
    return yaml_get_version_string();
}
