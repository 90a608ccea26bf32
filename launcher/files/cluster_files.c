/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/files/cluster_files.h"

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

struct collection {
    const struct cluster_kind *kinds;
    size_t count;
    char other[64]; /* a kind that is not the first */
};

static void collect(struct collection *c, json_t *object)
{
    json_t *items = json_object_get(object, "items"), *item;
    const char *kind = kind_of(object);
    size_t i, k = 0;
    while (k < c->count && strcmp(kind, c->kinds[k].kind) != 0)
        k++;
    if (k < c->count)
        json_array_append(c->kinds[k].objects, object);
    else if (json_is_array(items))
        json_array_foreach(items, i, item) collect(c, item);
    if (k > 0 && !(k == c->count && items))
        snprintf(c->other, sizeof c->other, "%s", kind);
}

/* One JSON object, as kubectl writes it, without the places that doc_parse keeps: a third of the
 * time for thousands of nodes. NULL when it is anything else. */
static json_t *read_plain(const char *text, size_t length)
{
    size_t start = 0;
    while (start < length && text[start] && strchr(" \t\r\n", text[start]))
        start++;
    return start < length && text[start] == '{'
               ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL)
               : NULL;
}

static int parse(const char *file, const char *text, size_t length, struct collection *c,
                 struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *plain = read_plain(text, length);
    CLEANUP(doc_freep) struct doc *doc = NULL;
    if (plain) {
        collect(c, plain);
        return 0;
    }
    int rc = doc_parse(file, text, length, DOC_FORMAT_GUESS, &limits, &doc, err);
    for (size_t i = 0; rc == 0 && i < doc_count(doc); i++)
        collect(c, doc_root(doc, i));
    return rc;
}

static size_t count_objects(const struct cluster_kind *kinds, size_t count)
{
    size_t objects = 0;
    for (size_t i = 0; i < count; i++)
        objects += json_array_size(kinds[i].objects);
    return objects;
}

/* "Node", "Node or ResourceQuota", "Node, ResourceQuota or LimitRange" */
static void add_kinds(struct buf *out, const struct cluster_kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", kinds[i].kind);
}

/* needed: how many of the kinds make it such a file. */
static int parse_objects(const char *file, const char *text, size_t length,
                         const struct cluster_kind *kinds, size_t count, size_t needed,
                         struct drarun_error *err)
{
    struct collection c = {.kinds = kinds, .count = count};
    size_t before = count_objects(kinds, needed);
    int rc = parse(file, text, length, &c, err);
    if (rc < 0 || count_objects(kinds, needed) > before)
        return rc;
    CLEANUP(buf_done) struct buf names = BUF_INIT;
    add_kinds(&names, kinds, needed);
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected objects of kind %s%s%s", file,
                      names.data ? names.data : "", c.other[0] ? ", got " : ", got none", c.other);
}

int cluster_objects_parse(const char *file, const char *text, size_t length,
                          const struct cluster_kind *kinds, size_t count, struct drarun_error *err)
{
    return parse_objects(file, text, length, kinds, count, 1, err);
}

static int read_files(const char *const *files, const struct cluster_kind *kinds, size_t count,
                      size_t needed, struct drarun_error *err)
{
    int rc = 0;
    for (; rc == 0 && files && *files; files++) {
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        rc = doc_read(*files, &limits, &text, err);
        if (rc == 0)
            rc = parse_objects(*files, text.data ? text.data : "", text.len, kinds, count, needed,
                               err);
    }
    return rc;
}

int cluster_files_read(const char *const *files, const struct cluster_kind *kinds, size_t count,
                       struct drarun_error *err)
{
    return read_files(files, kinds, count, 1, err);
}

int cluster_files_read_any(const char *const *files, const struct cluster_kind *kinds, size_t count,
                           struct drarun_error *err)
{
    return read_files(files, kinds, count, count, err);
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
        else if (name)
            json_object_set_new(all, name, json_object());
    }
    return all;
}
