/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/extended_resource.h"

#include <string.h>

#include "lib/doc/value.h"
#include "lib/dra/device_class.h"

#define SINCE_MINOR 36

static const char *of_class(const json_t *class, const char *key)
{
    return value_text_or(json_object_get(class, "metadata"), key, "");
}

static const char *extended_name(const json_t *class)
{
    return value_text(json_object_get(class, "spec"), "extendedResourceName");
}

bool extended_resource_by_class(unsigned minor)
{
    return minor == 0 || minor >= SINCE_MINOR; /* 0: not known, so the newest */
}

/* As ExtendedResourceCache: the newer, and of two of one second the first by name. */
static bool is_preferred(const json_t *class, const json_t *other)
{
    int order = strcmp(of_class(class, "creationTimestamp"), of_class(other, "creationTimestamp"));
    return order > 0 ||
           (order == 0 && strcmp(device_class_name(class), device_class_name(other)) < 0);
}

const char *extended_resource_class(const json_t *classes, const char *resource, unsigned minor)
{
    size_t i, prefix = strlen(EXTENDED_RESOURCE_OF_CLASS);
    bool named = strncmp(resource, EXTENDED_RESOURCE_OF_CLASS, prefix) == 0;
    const json_t *found = NULL;
    json_t *class;
    if (!extended_resource_by_class(minor))
        return NULL;
    json_array_foreach(classes, i, class)
    {
        const char *own = named ? device_class_name(class) : extended_name(class);
        if (own && strcmp(own, resource + (named ? prefix : 0)) == 0 &&
            (!found || is_preferred(class, found)))
            found = class;
    }
    return found ? device_class_name(found) : NULL;
}

const char *extended_resource_name(const json_t *classes, const char *name)
{
    return extended_name(device_class_find(classes, name));
}
