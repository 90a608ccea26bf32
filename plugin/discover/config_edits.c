/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/config_edits.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_path(const char *text)
{
    size_t length = strlen(text);
    return text[0] == '/' && text[1] && !strstr(text, "//") && !strstr(text, "/../") &&
           !strstr(text, "/./") && text[length - 1] != '/' &&
           (length < 3 || strcmp(text + length - 3, "/..") != 0) &&
           strcmp(text + length - 2, "/.") != 0;
}

/* The member, where it is an absolute path; NULL otherwise. */
static const char *path_of(const struct reader_node *object, const char *key, bool needed)
{
    struct reader_node node;
    const char *text = NULL;
    if (!reader_get(object, key, &node)) {
        if (needed)
            reader_fail(object, "expected a member %s", key);
        return NULL;
    }
    if (reader_text(&node, &text) < 0)
        return NULL;
    if (is_path(text))
        return text;
    reader_expected(&node, "an absolute path, without . and ..");
    return NULL;
}

static bool is_variable(const char *name)
{
    return name[0] && !strchr(DIGITS, name[0]) && name[strspn(name, LETTERS DIGITS "_")] == '\0';
}

static void read_env(const struct reader_node *node, json_t *list)
{
    const char *name;
    json_t *value;
    if (reader_text_map(node) < 0)
        return;
    json_object_foreach(node->value, name, value)
    {
        if (is_variable(name))
            json_array_append_new(list, json_sprintf("%s=%s", name, json_string_value(value)));
        else
            reader_fail_key(node, name, "expected a variable's name: letters, digits and _");
    }
}

/* Words of mount(8), which the runtime knows or refuses. */
static json_t *options_of(const struct reader_node *mount)
{
    struct reader_node node;
    if (!reader_get(mount, "options", &node))
        return json_pack("[s, s, s, s]", "ro", "nosuid", "nodev", "rbind");
    if (reader_list(&node, 1) < 0)
        return NULL;
    for (size_t i = 0; i < json_array_size(node.value); i++) {
        struct reader_node item = reader_item(&node, i);
        const char *text = NULL;
        if (reader_text(&item, &text) == 0 && text[strspn(text, LETTERS DIGITS "=-")])
            reader_expected(&item, "an option of mount(8)");
    }
    return json_incref(node.value);
}

static void read_mount(const struct reader_node *item, json_t *list)
{
    if (reader_object(item) < 0)
        return;
    reader_known(item, "hostPath containerPath options");
    const char *host = path_of(item, "hostPath", true);
    const char *container = path_of(item, "containerPath", true);
    CLEANUP(json_decrefp) json_t *options = options_of(item);
    if (host && container && options)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:O}", "hostPath", host, "containerPath",
                                        container, "type", "bind", "options", options));
}

static const char *permissions_of(const struct reader_node *device)
{
    struct reader_node node;
    const char *text = "rw";
    if (reader_get(device, "permissions", &node) && reader_text(&node, &text) == 0 &&
        text[strspn(text, "rwm")])
        reader_expected(&node, "letters of r, w and m");
    return text;
}

static void read_device(const struct reader_node *item, json_t *list)
{
    if (reader_object(item) < 0)
        return;
    reader_known(item, "path hostPath permissions");
    const char *path = path_of(item, "path", true);
    const char *host = path_of(item, "hostPath", false);
    const char *permissions = permissions_of(item);
    if (path)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "path", path, "hostPath",
                                              host ? host : path, "permissions", permissions));
}

static void read_each(const struct reader_node *node, json_t *list,
                      void (*read)(const struct reader_node *item, json_t *list))
{
    if (reader_list(node, 0) < 0)
        return;
    if (json_array_size(node->value) > CONFIG_EDITS_MAX) {
        reader_fail(node, "expected at most %u", CONFIG_EDITS_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        read(&item, list);
    }
}

void config_edits_read(const struct reader_node *node, json_t **ret_edits)
{
    struct reader_node part;
    size_t before = node->reader->findings;
    if (reader_object(node) < 0)
        return;
    reader_known(node, "env mounts deviceNodes");
    CLEANUP(json_decrefp)
    json_t *edits = json_pack("{s:[], s:[], s:[]}", "env", "mounts", "deviceNodes");
    if (reader_get(node, "env", &part))
        read_env(&part, json_object_get(edits, "env"));
    if (reader_get(node, "mounts", &part))
        read_each(&part, json_object_get(edits, "mounts"), read_mount);
    if (reader_get(node, "deviceNodes", &part))
        read_each(&part, json_object_get(edits, "deviceNodes"), read_device);
    if (node->reader->findings == before)
        *ret_edits = TAKE_PTR(edits);
}

static bool add_list(const json_t *list, json_t *edits, const char *key)
{
    if (json_array_size(list) == 0) /* an empty one is not valid CDI */
        return true;
    json_t *there = json_object_get(edits, key);
    if (!there && json_object_set_new(edits, key, there = json_array()) < 0)
        return false;
    return json_array_extend(there, unconst(list)) == 0;
}

bool config_edits_add(const json_t *edits, json_t *container_edits)
{
    const char *key;
    json_t *list;
    bool ok = true;
    value_foreach(edits, key, list) ok = add_list(list, container_edits, key) && ok;
    return ok;
}
