/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an order, and so as a configuration; what was taken is written and read as the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/attach/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const struct attach_order *order)
{
    json_t *json = attach_order_json(order);
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text)
        abort();
    json_decref(json);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attach_order order = {0}, again = {0};
    struct drarun_error err = {0};
    if (attach_order_parse("order", (const char *)data, size, &order, &err) < 0) {
        if (!err.text[0])
            abort();
        return 0;
    }
    char *text = text_of(&order);
    if (attach_order_parse("order", text, strlen(text), &again, &err) < 0)
        abort();
    char *second = text_of(&again);
    if (strcmp(text, second) != 0)
        abort();
    free(text);
    free(second);
    attach_order_done(&order);
    attach_order_done(&again);
    return 0;
}
