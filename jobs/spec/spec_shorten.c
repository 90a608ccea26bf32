/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec_shorten.h"

#include <stdbool.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/spec/spec.h"
#include "jobs/spec/spec_short.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

#define OWN_PREFIX "drarun.dev/"

static bool is_text(const json_t *value)
{
    return json_string_length(value) > 0;
}

static bool is_text_of(const json_t *object, const char *key, const char *text)
{
    const char *own = json_string_value(json_object_get(object, key));
    return own && strcmp(own, text) == 0;
}

static bool is_list(const json_t *value)
{
    return json_array_size(value) > 0;
}

static bool is_words(const json_t *value)
{
    size_t i;
    const json_t *word;
    json_array_foreach(value, i, word)
    {
        if (!json_is_string(word))
            return false;
    }
    return is_list(value);
}

static bool is_map(const json_t *value)
{
    return json_is_object(value);
}

static int move(json_t *from, const char *key, json_t *to)
{
    int rc = json_object_set(to, key, json_object_get(from, key));
    return rc == 0 ? json_object_del(from, key) : rc;
}

/* ---- what the two call alike ---- */

static const struct part {
    const char *key;
    bool (*is_plain)(const json_t *value); /* else the template's place is the better one for what
                                              is wrong with it */
} of_container[] = {{"image", is_text},      {"command", is_words}, {"args", is_words},
                    {"workingDir", is_text}, {"envFrom", is_list},  {"resources", is_map}},
  of_pod[] = {{"tolerations", is_list},
              {"nodeSelector", is_map},
              {"priorityClassName", is_text},
              {"serviceAccountName", is_text},
              {"schedulerName", is_text}};

static int move_parts(json_t *from, const struct part *parts, size_t count, json_t *spec)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const json_t *value = json_object_get(from, parts[i].key);
        if (value && parts[i].is_plain(value))
            rc = move(from, parts[i].key, spec);
    }
    return rc;
}

/* ---- variables ---- */

/* A map has each name once, and no order, of which $(NAME) in a value makes use. */
static bool is_of_map(const json_t *variable, const json_t *map)
{
    const char *name = json_string_value(json_object_get(variable, "name"));
    const json_t *value = json_object_get(variable, "value");
    const json_t *source = json_object_get(variable, "valueFrom");
    if (!name || !k8s_is_env_name(name) || json_object_get(map, name) ||
        json_object_size(variable) != 2)
        return false;
    return json_is_object(source) ||
           (json_is_string(value) && !strstr(json_string_value(value), "$("));
}

/* NULL where the list has to stay one. */
static json_t *map_of(const json_t *list)
{
    CLEANUP(json_decrefp) json_t *map = json_object();
    size_t i;
    const json_t *variable;
    json_array_foreach(list, i, variable)
    {
        const char *name = json_string_value(json_object_get(variable, "name"));
        json_t *value = json_object_get(variable, "value");
        if (!is_of_map(variable, map) ||
            json_object_set(map, name, value ? value : json_object_get(variable, "valueFrom")) < 0)
            return NULL;
    }
    return TAKE_PTR(map);
}

static int move_env(json_t *container, json_t *spec)
{
    json_t *list = json_object_get(container, "env");
    CLEANUP(json_decrefp) json_t *map = NULL;
    if (!is_list(list))
        return 0;
    map = map_of(list);
    int rc = json_object_set(spec, "env", map ? map : list);
    return rc == 0 ? json_object_del(container, "env") : rc;
}

/* ---- volumes ---- */

/* The only mount of the volume, if the short form can say it; NULL: it cannot. */
static const json_t *only_mount(const json_t *mounts, const char *name, size_t *ret_at)
{
    static const char *const known[] = {"mountPath", "readOnly", "subPath"};
    const json_t *found = NULL, *mount;
    size_t i, said = 1;
    json_array_foreach(mounts, i, mount)
    {
        if (!is_text_of(mount, "name", name))
            continue;
        if (found)
            return NULL;
        found = mount;
        *ret_at = i;
    }
    for (i = 0; i < ARRAY_LEN(known); i++)
        said += json_object_get(found, known[i]) != NULL;
    const char *path = json_string_value(json_object_get(found, "mountPath"));
    const json_t *part = json_object_get(found, "subPath");
    bool plain = path && *path == '/' && !strchr(path, ':') && (!part || is_text(part)) &&
                 said == json_object_size(found);
    for (i = 0; plain && i < json_array_size(mounts); i++)
        plain = i == *ret_at || !is_text_of(json_array_get(mounts, i), "mountPath", path);
    return plain ? found : NULL;
}

static bool is_shm(const json_t *source, const json_t *mount)
{
    return is_text_of(source, "medium", "Memory") && json_object_get(source, "sizeLimit") &&
           json_object_size(source) == 2 && is_text_of(mount, "mountPath", SPEC_SHM_PATH) &&
           json_object_size(mount) == 2;
}

/* {NAME: value, mountPath: ..}; NULL: it has no short form. */
static json_t *short_volume(const json_t *volume, const json_t *mount, bool has_shm)
{
    for (size_t i = 0; i < SPEC_VOLUME_SOURCES; i++) {
        const struct spec_volume_source *known = &spec_volume_sources[i];
        json_t *source = json_object_get(volume, known->key);
        if (!known->type || !json_is_object(source) || json_object_size(volume) != 2)
            continue;
        json_t *member = known->member ? json_object_get(source, known->member) : NULL;
        bool amount = known->member && strcmp(known->member, "sizeLimit") == 0;
        bool alone = json_object_size(source) == 1 &&
                     (is_text(member) || (amount && json_is_number(member)));
        json_t *name = json_object_get(volume, "name");
        if (amount && !has_shm && is_shm(source, mount))
            return json_pack("{s:O*, s:O}", "name",
                             is_text_of(volume, "name", SPEC_SHM_NAME) ? NULL : name, "shm",
                             member);
        return json_pack("{s:O, s:O, s:O, s:O*, s:O*}", "name", name, known->key,
                         alone ? member : source, "mountPath", json_object_get(mount, "mountPath"),
                         "readOnly", json_object_get(mount, "readOnly"), "subPath",
                         json_object_get(mount, "subPath"));
    }
    return NULL;
}

static bool is_named_once(const json_t *volumes, const char *name)
{
    size_t count = 0, i;
    const json_t *volume;
    json_array_foreach(volumes, i, volume) count += is_text_of(volume, "name", name);
    return count == 1 && k8s_is_label(name);
}

static int move_volumes(json_t *pod, json_t *container, json_t *spec)
{
    json_t *volumes = json_object_get(pod, "volumes");
    json_t *mounts = json_object_get(container, "volumeMounts");
    CLEANUP(json_decrefp) json_t *list = json_array();
    bool has_shm = false;
    for (size_t i = 0, at = 0; list && i < json_array_size(volumes);) {
        const json_t *volume = json_array_get(volumes, i);
        const char *name = json_string_value(json_object_get(volume, "name"));
        bool own = name && is_named_once(volumes, name);
        const json_t *mount = own ? only_mount(mounts, name, &at) : NULL;
        json_t *made = mount && json_array_size(list) < SPEC_VOLUMES_MAX
                           ? short_volume(volume, mount, has_shm)
                           : NULL;
        if (!made) {
            i++;
            continue;
        }
        has_shm |= json_object_get(made, "shm") != NULL;
        if (json_array_append_new(list, made) < 0)
            return -1;
        json_array_remove(mounts, at);
        json_array_remove(volumes, i);
    }
    if (!is_list(list))
        return list ? 0 : -1;
    if (json_array_size(volumes) == 0)
        json_object_del(pod, "volumes");
    if (json_array_size(mounts) == 0)
        json_object_del(container, "volumeMounts");
    return json_object_set(spec, "volumes", list);
}

/* ---- the container ---- */

/* As "containerName" of a field's source. */
static bool has_reference(const json_t *value, const char *name)
{
    const char *key;
    json_t *each;
    size_t i;
    bool found =
        is_text_of(value, "containerName", name) || is_text_of(value, "targetContainerName", name);
    value_foreach(value, key, each) found |= has_reference(each, name);
    json_array_foreach(value, i, each) found |= has_reference(each, name);
    return found;
}

/* "container.apparmor.security.beta.kubernetes.io/NAME", or
 * "kubectl.kubernetes.io/default-container: NAME". */
static bool has_annotation(const json_t *template, const char *name)
{
    const json_t *metadata = json_object_get(template, "metadata");
    size_t length = strlen(name);
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(metadata, "annotations"), key, value)
    {
        size_t before = strlen(key) > length ? strlen(key) - length : 0;
        if (before > 0 && strcmp(key + before, name) == 0 && strchr("/.", key[before - 1]))
            return true;
        if (strstr(key, "container") &&
            is_text_of(json_object_get(metadata, "annotations"), key, name))
            return true;
    }
    return false;
}

/* Whether a container behind the first one has the name that the short form gives. */
static bool is_taken(const json_t *pod)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        const json_t *list = json_object_get(pod, lists[k]);
        for (size_t i = k == 0 ? 1 : 0; i < json_array_size(list); i++)
            if (is_text_of(json_array_get(list, i), "name", SPEC_CONTAINER))
                return true;
    }
    return false;
}

static bool may_be_renamed(const json_t *template, const json_t *container)
{
    const char *name = json_string_value(json_object_get(container, "name"));
    if (is_taken(json_object_get(template, "spec")))
        return false;
    return !name || strcmp(name, SPEC_CONTAINER) == 0 ||
           (!has_reference(template, name) && !has_annotation(template, name));
}

static int move_container(json_t *template, json_t *spec)
{
    json_t *pod = json_object_get(template, "spec"), *list = json_object_get(pod, "containers");
    json_t *container = json_array_get(list, 0);
    if (!json_is_object(container) || !is_text(json_object_get(container, "image")) ||
        !may_be_renamed(template, container))
        return 0;
    int rc = move_parts(container, of_container, ARRAY_LEN(of_container), spec);
    rc |= move_env(container, spec) | move_volumes(pod, container, spec);
    json_t *name = json_object_get(container, "name");
    if (json_object_size(container) == (name ? 1 : 0))
        rc |= json_array_remove(list, 0);
    else if (name)
        rc |= json_object_set_new(container, "name", json_string(SPEC_CONTAINER));
    if (json_array_size(list) == 0)
        json_object_del(pod, "containers");
    return rc;
}

/* ---- the pod ---- */

/* Names, where nothing else is said. */
static int move_pull_secrets(json_t *pod, json_t *spec)
{
    const json_t *list = json_object_get(pod, "imagePullSecrets"), *item;
    CLEANUP(json_decrefp) json_t *names = json_array();
    size_t i;
    if (!names)
        return -1;
    json_array_foreach(list, i, item)
    {
        if (json_object_size(item) != 1 || !is_text(json_object_get(item, "name")))
            return 0;
        if (json_array_append(names, json_object_get(item, "name")) < 0)
            return -1;
    }
    if (!is_list(names))
        return 0;
    json_object_del(pod, "imagePullSecrets");
    return json_object_set(spec, "imagePullSecrets", names);
}

/* What the short form would refuse stays: it may be a place that a script fills in. */
static int move_words(json_t *metadata, const char *key, bool values, json_t *spec)
{
    json_t *map = json_object_get(metadata, key), *value;
    const char *name;
    if (json_object_size(map) == 0)
        return 0;
    json_object_foreach(map, name, value)
    {
        if (!k8s_is_qualified(name) || strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0 ||
            !json_is_string(value) || (values && !k8s_is_label_value(json_string_value(value))))
            return 0;
    }
    return move(metadata, key, spec);
}

static void drop_if_empty(json_t *holder, const char *key)
{
    const json_t *value = json_object_get(holder, key);
    if (json_is_object(value) && json_object_size(value) == 0)
        json_object_del(holder, key);
}

int spec_shorten(json_t *spec)
{
    json_t *template = json_object_get(spec, "template");
    json_t *pod = json_object_get(template, "spec");
    json_t *metadata = json_object_get(template, "metadata");
    if (!json_is_object(pod))
        return 0;
    int rc = move_container(template, spec);
    rc |= move_parts(pod, of_pod, ARRAY_LEN(of_pod), spec) | move_pull_secrets(pod, spec);
    rc |= move_words(metadata, "labels", true, spec);
    rc |= move_words(metadata, "annotations", false, spec);
    drop_if_empty(template, "metadata");
    drop_if_empty(template, "spec");
    drop_if_empty(spec, "template");
    return rc == 0 ? 0 : -1;
}
