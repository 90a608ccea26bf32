/* SPDX-License-Identifier: Apache-2.0 */
/* Several Pods that form one job, the usual form of NCCL tests without a controller: alike but for
 * their names, and what goes with a name. */
#include <ctype.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "lib/doc/value.h"

#define PATH_MAX_LENGTH 256

struct comparison {
    const struct reader_node *first, *other; /* the Pods */
    const char *first_name, *other_name;
    struct strlist *own;
    struct drarun_error *err;
};

/* A pod's own: its name in DNS, its node; labels, by which a Service finds it. */
static bool may_differ(const char *path)
{
    static const char *const own[] = {"spec.hostname", "spec.subdomain", "spec.nodeName",
                                      "spec.nodeSelector.kubernetes.io/hostname"};
    static const char labels[] = "metadata.labels.";
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(path, own[i]) == 0)
            return true;
    return strcmp(path, "metadata.labels") == 0 || strncmp(path, labels, strlen(labels)) == 0;
}

/* Each rank gets its own values of such variables, whatever stands here. */
static bool is_set_anew(const struct reader_node *a, const struct reader_node *b)
{
    const char *name = json_is_object(a->value) ? import_text(a, "name") : "";
    return *name && json_is_object(b->value) && strcmp(name, import_text(b, "name")) == 0 &&
           import_variable(name, import_text(a, "value")) != IMPORT_VARIABLE_OTHER &&
           import_variable(name, import_text(b, "value")) != IMPORT_VARIABLE_OTHER;
}

static int differs(struct comparison *c, const struct reader_node *at, const char *path)
{
    if (!may_differ(path)) {
        return import_refuse_at(at, c->err,
                                "%s of %s is not that of %s (%s:%u): the workers of a job are "
                                "alike; make them equal, or import one of both",
                                path, c->other_name, c->first_name, doc_name(c->first->reader->doc),
                                import_place(c->first).line);
    }
    if (!strlist_has(c->own, path)) {
        strlist_add(c->own, path);
        reader_fail(at, "left out: it differs from that of %s, and workers are alike",
                    c->first_name);
    }
    return 0;
}

static int compare(struct comparison *c, const struct reader_node *a, const struct reader_node *b,
                   const char *path);

static int compare_members(struct comparison *c, const struct reader_node *a,
                           const struct reader_node *b, const char *path)
{
    const struct reader_node *sides[] = {a, b};
    char inner[PATH_MAX_LENGTH];
    const char *key = NULL;
    json_t *value = NULL;
    int rc = 0;
    for (size_t side = 0; rc == 0 && side < 2; side++)
        json_object_foreach(sides[side]->value, key, value)
        {
            struct reader_node in_a, in_b;
            bool has_a = reader_get(a, key, &in_a), has_b = reader_get(b, key, &in_b);
            snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
            if (side == 1 && has_a) /* compared already */
                continue;
            if (has_a && has_b)
                rc = compare(c, &in_a, &in_b, inner);
            else if (has_a || has_b)
                rc = differs(c, has_b ? &in_b : b, inner);
            if (rc < 0)
                break;
        }
    return rc;
}

static int compare_items(struct comparison *c, const struct reader_node *a,
                         const struct reader_node *b, const char *path)
{
    char inner[PATH_MAX_LENGTH];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(a->value); i++) {
        struct reader_node in_a = reader_item(a, i), in_b = reader_item(b, i);
        snprintf(inner, sizeof inner, "%s[%zu]", path, i);
        if (!is_set_anew(&in_a, &in_b))
            rc = compare(c, &in_a, &in_b, inner);
    }
    return rc;
}

/* Editors put a line end behind a file's last line, or do not: a script is the same. */
static bool is_same_text(const json_t *a, const json_t *b)
{
    const char *one = json_string_value(a), *two = json_string_value(b);
    size_t n = 0;
    while (one && two && one[n] && one[n] == two[n])
        n++;
    return one && two && one[n + strspn(one + n, " \n")] == '\0' &&
           two[n + strspn(two + n, " \n")] == '\0';
}

/* Where a pod's list of volumes has this name, from 1; 0: nowhere. */
static size_t volume_number(const struct reader_node *pod, const char *name)
{
    const json_t *spec = json_object_get(pod->value, "spec");
    size_t i;
    json_t *volume;
    json_array_foreach(json_object_get(spec, "volumes"), i, volume)
    {
        if (name && strcmp(value_text_or(volume, "name", ""), name) == 0)
            return i + 1;
    }
    return 0;
}

/* A volume's name is the pod's own affair, as long as its mounts say the same. */
static bool is_same_volume(const struct comparison *c, const json_t *a, const json_t *b,
                           const char *path)
{
    static const char volumes[] = "spec.volumes[";
    bool is_volume = strncmp(path, volumes, strlen(volumes)) == 0;
    const char *last = is_volume ? strchr(path, ']') : strrchr(path, '.');
    bool is_name = last && strcmp(last, is_volume ? "].name" : ".name") == 0 &&
                   (is_volume || strstr(path, "].volumeMounts["));
    size_t number = volume_number(c->first, json_string_value(a));
    return is_name && number > 0 && number == volume_number(c->other, json_string_value(b));
}

static int compare(struct comparison *c, const struct reader_node *a, const struct reader_node *b,
                   const char *path)
{
    if (json_equal(a->value, b->value) || is_same_text(a->value, b->value) ||
        is_same_volume(c, a->value, b->value, path))
        return 0;
    if (json_is_object(a->value) && json_is_object(b->value))
        return compare_members(c, a, b, path);
    if (json_is_array(a->value) && json_array_size(a->value) == json_array_size(b->value) &&
        json_is_array(b->value))
        return compare_items(c, a, b, path);
    return differs(c, b, path);
}

/* The member of a member; {0} where there is none. */
static bool find_part(const struct reader_node *pod, const char *outer, const char *inner,
                      struct reader_node *parent, struct reader_node *ret_part)
{
    return reader_get(pod, outer, parent) && json_is_object(parent->value) &&
           reader_get(parent, inner, ret_part);
}

/* One Pod may have no labels at all. */
static int compare_metadata(struct comparison *c, const char *key)
{
    struct reader_node parent_a, parent_b, a, b;
    char path[PATH_MAX_LENGTH];
    bool has_a = find_part(c->first, "metadata", key, &parent_a, &a);
    bool has_b = find_part(c->other, "metadata", key, &parent_b, &b);
    snprintf(path, sizeof path, "metadata.%s", key);
    if (has_a && has_b)
        return compare(c, &a, &b, path);
    return has_a || has_b ? differs(c, has_b ? &b : c->other, path) : 0;
}

int import_compare_pods(const struct reader_node *first, const struct reader_node *other,
                        const char *first_name, const char *other_name, struct strlist *own,
                        struct drarun_error *err)
{
    static const char *const keys[] = {"namespace", "labels", "annotations"};
    struct comparison c = {first, other, first_name, other_name, own, err};
    struct reader_node a, b;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(keys); i++)
        rc = compare_metadata(&c, keys[i]);
    if (rc < 0)
        return rc;
    if (!reader_get(first, "spec", &a) || !reader_get(other, "spec", &b))
        return differs(&c, other, "spec");
    return compare(&c, &a, &b, "spec");
}

void import_remove_own(const struct strlist *own, json_t *template)
{
    static const char *const holders[][2] = {{"metadata", "labels"}, {"spec", "nodeSelector"}};
    json_t *spec = json_object_get(template, "spec");
    json_t *metadata = json_object_get(template, "metadata");
    for (size_t i = 0; i < own->count; i++) {
        const char *path = own->items[i];
        const char *last = strchr(path, '.') + 1;
        json_object_del(strncmp(path, "spec", strlen("spec")) == 0 ? spec : metadata, last);
        for (size_t k = 0; k < ARRAY_LEN(holders); k++) {
            json_t *holder = json_object_get(template, holders[k][0]);
            size_t length = strlen(holders[k][1]);
            if (strncmp(last, holders[k][1], length) != 0 || last[length] != '.')
                continue;
            json_object_del(json_object_get(holder, holders[k][1]), last + length + 1);
            if (json_object_size(json_object_get(holder, holders[k][1])) == 0)
                json_object_del(holder, holders[k][1]);
        }
    }
    if (json_object_size(json_object_get(template, "metadata")) == 0)
        json_object_del(template, "metadata");
}

void import_common_name(char *name, const char *other)
{
    size_t n = 0;
    while (name[n] && name[n] == other[n])
        n++;
    if (name[n] || other[n])
        while (n > 0 && (name[n - 1] == '-' || isdigit((unsigned char)name[n - 1])))
            n--;
    if (n > 0)
        name[n] = '\0';
}
