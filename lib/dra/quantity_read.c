/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/quantity_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"

const char *quantity_text(const json_t *value, char number[QUANTITY_NUMBER])
{
    if (json_is_integer(value))
        snprintf(number, QUANTITY_NUMBER, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, QUANTITY_NUMBER, "%.15g", json_real_value(value));
    else
        return json_string_value(value);
    return number;
}

int quantity_read(const json_t *value, const char *where, struct cel_quantity *ret_quantity,
                  struct drarun_error *err)
{
    char number[QUANTITY_NUMBER];
    const char *text = quantity_text(value, number);
    if (!text || cel_quantity_parse(text, strlen(text), ret_quantity) < 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: expected a quantity of at most 38 digits, as 80Gi, got %.40s", where,
                          text ? text : "something else");
    return 0;
}
