/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/load.h"

/* Slices of thousands of nodes. */
static const struct doc_limits limits = {
    .size = (size_t)1 << 30, .depth = DOC_DEPTH_MAX, .aliased = DOC_ALIASED_MAX};

static const char *kind_of(const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    return kind ? kind : "";
}

static void collect(json_t *object, const char *kind, json_t *objects, const char **ret_other)
{
    json_t *items = json_object_get(object, "items"), *item;
    size_t i;
    if (strcmp(kind_of(object), kind) == 0)
        json_array_append(objects, object);
    else if (json_is_array(items))
        json_array_foreach(items, i, item) collect(item, kind, objects, ret_other);
    else
        *ret_other = kind_of(object);
}

static int read_file(const char *file, const char *kind, bool required, json_t *objects,
                     struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    size_t before = json_array_size(objects);
    const char *other = "";
    int rc = doc_load(file, &limits, &doc, err);
    for (size_t i = 0; rc == 0 && i < doc_count(doc); i++)
        collect(doc_root(doc, i), kind, objects, &other);
    if (rc == 0 && required && json_array_size(objects) == before)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected objects of kind %s%s%s", file,
                          kind, other[0] ? ", got " : ", got none", other);
    return rc;
}

int cluster_files_read(const struct strlist *files, const char *kind, bool required,
                       json_t *objects, struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < files->count; i++)
        rc = read_file(files->items[i], kind, required, objects, err);
    return rc;
}

json_t *cluster_node_labels(const json_t *nodes)
{
    json_t *all = json_object();
    for (size_t i = 0; all && i < json_array_size(nodes); i++) {
        const json_t *meta = json_object_get(json_array_get(nodes, i), "metadata");
        const char *name = json_string_value(json_object_get(meta, "name"));
        json_t *labels = json_object_get(meta, "labels");
        if (name && labels)
            json_object_set(all, name, labels);
    }
    return all;
}
