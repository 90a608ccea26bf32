/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/device_class.h"

#include <string.h>

#include "lib/doc/value.h"

const char *device_class_name(const json_t *class)
{
    return value_text_or(json_object_get(class, "metadata"), "name", "");
}

const json_t *device_class_find(const json_t *classes, const char *name)
{
    size_t i;
    json_t *class;
    json_array_foreach(classes, i, class)
    {
        if (strcmp(device_class_name(class), name) == 0)
            return class;
    }
    return NULL;
}
