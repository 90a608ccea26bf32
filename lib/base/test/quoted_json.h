/* SPDX-License-Identifier: Apache-2.0 */
/* For unit tests: JSON that a C string shows legibly. */
#ifndef DRARUN_BASE_TEST_QUOTED_JSON_H
#define DRARUN_BASE_TEST_QUOTED_JSON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "lib/base/cleanup.h"

/* Of a text with ' in place of "; flags: of json_loads. The caller's. Fails the test where it is no
 * JSON. */
static inline json_t *quoted_json(const char *text, size_t flags)
{
    cleanup_free char *copy = strdup(text);
    assert_non_null(copy);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *json = json_loads(copy, flags, NULL);
    if (!json)
        fail_msg("%s", text);
    return json;
}

#endif
