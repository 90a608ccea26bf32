/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/value.h"

const char *value_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *value_text_or(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = value_text(object, key);
    return text && text[0] ? text : otherwise;
}

json_t *value_of_text(const char *text)
{
    return text && text[0] ? json_string(text) : json_null();
}
