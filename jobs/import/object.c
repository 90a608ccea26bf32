/* SPDX-License-Identifier: Apache-2.0 */
/* What is found in a manifest: objects, their names and places, errors at them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "lib/base/error.h"

const char *import_text(const struct reader_node *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object->value, key));
    return text ? text : "";
}

const char *import_name(const struct reader_node *object)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(object->value, "metadata"), "name"));
    return name ? name : "";
}

const struct reader_node *import_find(const struct import_objects *o, const char *kind,
                                      const char *name)
{
    for (size_t i = 0; i < o->count; i++)
        if (strcmp(import_text(&o->nodes[i], "kind"), kind) == 0 &&
            (!name || strcmp(import_name(&o->nodes[i]), name) == 0))
            return &o->nodes[i];
    return NULL;
}

struct doc_place import_place(const struct reader_node *node)
{
    const struct doc *doc = node->reader->doc;
    if (!node->parent)
        return node->root_place;
    if (json_is_object(node->parent->value))
        return doc_member_place(doc, node->parent->value, node->key, NULL);
    return doc_item_place(doc, node->parent->value, node->index);
}

bool import_object(const struct reader_node *from, const char *key, struct reader_node *ret)
{
    return reader_get(from, key, ret) && json_is_object(ret->value);
}

void import_number(struct import *im, const struct reader_node *from, const char *key,
                   const char *as)
{
    struct reader_node node;
    if (!reader_get(from, key, &node))
        return;
    if (json_is_integer(node.value))
        json_object_set(im->job, as, node.value);
    else
        reader_expected(&node, "a whole number");
}

bool import_is_pod(const struct reader_node *object)
{
    return strcmp(import_text(object, "kind"), "Pod") == 0;
}

int import_refuse_at(const struct reader_node *node, struct drarun_error *err, const char *format,
                     ...)
{
    char text[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s:%u: %s", doc_name(node->reader->doc),
                      import_place(node).line, text);
}

int import_refuse(const struct reader_node *object, struct drarun_error *err, const char *format,
                  ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return import_refuse_at(object, err, "the %s %s %s", import_text(object, "kind"),
                            import_name(object), text);
}
