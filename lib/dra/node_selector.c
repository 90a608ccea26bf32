/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/node_selector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/doc/value.h"

static bool among(const json_t *values, const char *value)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        const char *text = json_string_value(json_array_get(values, i));
        if (text && strcmp(text, value) == 0)
            return true;
    }
    return false;
}

static bool whole_number(const char *text, long long *ret_number)
{
    char *end = NULL;
    errno = 0;
    *ret_number = text ? strtoll(text, &end, 10) : 0;
    return text && text[0] && !*end && errno == 0;
}

/* value: NULL where the node has no such label. 1, 0 or -EINVAL. */
static int requirement(const json_t *wanted, const char *value)
{
    const char *operator= value_text_or(wanted, "operator", "");
    const json_t *values = json_object_get(wanted, "values");
    long long have, limit;
    if (strcmp(operator, "In") == 0)
        return value && among(values, value);
    if (strcmp(operator, "NotIn") == 0)
        return !value || !among(values, value);
    if (strcmp(operator, "Exists") == 0)
        return value != NULL;
    if (strcmp(operator, "DoesNotExist") == 0)
        return value == NULL;
    bool greater = strcmp(operator, "Gt") == 0;
    if (!greater && strcmp(operator, "Lt") != 0)
        return -EINVAL;
    return whole_number(value, &have) &&
           whole_number(json_string_value(json_array_get(values, 0)), &limit) &&
           (greater ? have > limit : have < limit);
}

static int term_matches(const json_t *term, const char *node, const json_t *labels)
{
    const json_t *fields = json_object_get(term, "matchFields");
    const json_t *expressions = json_object_get(term, "matchExpressions");
    if (json_array_size(fields) + json_array_size(expressions) == 0)
        return 0;
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        if (strcmp(value_text_or(field, "key", ""), "metadata.name") != 0)
            return -EINVAL;
        int rc = requirement(field, node);
        if (rc <= 0)
            return rc;
    }
    if (json_array_size(expressions) > 0 && !labels)
        return -EAGAIN;
    for (size_t i = 0; i < json_array_size(expressions); i++) {
        const json_t *expression = json_array_get(expressions, i);
        const json_t *value = json_object_get(labels, value_text_or(expression, "key", ""));
        int rc = requirement(expression, json_string_value(value));
        if (rc <= 0)
            return rc;
    }
    return 1;
}

int node_selector_matches(const json_t *selector, const char *node, const json_t *labels)
{
    const json_t *terms = json_object_get(selector, "nodeSelectorTerms");
    int answer = 0;
    for (size_t i = 0; i < json_array_size(terms); i++) {
        int rc = term_matches(json_array_get(terms, i), node, labels);
        if (rc == 1 || rc == -EINVAL)
            return rc;
        answer = rc < 0 ? rc : answer;
    }
    return answer;
}
