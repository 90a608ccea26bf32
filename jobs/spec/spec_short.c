/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec_short.h"

#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/spec/pod_schema.h"
#include "jobs/spec/spec_fields.h"
#include "lib/base/cleanup.h"

static const char *const of_container[] = {"image",   "command",   "args", "workingDir",
                                           "envFrom", "resources", NULL};
static const char *const of_container_made[] = {"env", "volumes", NULL};
static const char *const of_pod[] = {"tolerations",        "nodeSelector",  "priorityClassName",
                                     "serviceAccountName", "schedulerName", NULL};
static const char *const of_pod_made[] = {"imagePullSecrets", NULL};
static const char *const of_metadata[] = {"labels", "annotations", NULL};

const struct spec_volume_source spec_volume_sources[SPEC_VOLUME_SOURCES] = {
    {"shm", NULL, NULL},
    {"persistentVolumeClaim", "PersistentVolumeClaimVolumeSource", "claimName"},
    {"hostPath", "HostPathVolumeSource", "path"},
    {"configMap", "ConfigMapVolumeSource", "name"},
    {"secret", "SecretVolumeSource", "secretName"},
    {"emptyDir", "EmptyDirVolumeSource", "sizeLimit"},
    {"nfs", "NFSVolumeSource", NULL},
    {"csi", "CSIVolumeSource", NULL},
    {"ephemeral", "EphemeralVolumeSource", NULL},
    {"projected", "ProjectedVolumeSource", NULL},
    {"downwardAPI", "DownwardAPIVolumeSource", NULL},
    {"image", "ImageVolumeSource", NULL},
};
#define VOLUME_KEYS                                                                                \
    "name mountPath readOnly subPath shm persistentVolumeClaim hostPath configMap secret "         \
    "emptyDir nfs csi ephemeral projected downwardAPI image"

/* ---- checks ---- */

void spec_read_text(const struct reader_node *node, void *field)
{
    const char *text;
    (void)field;
    reader_text(node, &text);
}

void spec_read_words(const struct reader_node *node, void *field)
{
    (void)field;
    pod_schema_check(node, "[string]");
}

void spec_check_placeholder(const struct reader_node *command)
{
    const char *program = json_string_value(json_array_get(command->value, 0));
    if (program && json_array_size(command->value) == 1 && strcmp(program, SPEC_PLACEHOLDER) == 0)
        reader_fail(command, SPEC_PLACEHOLDER " stands in place of the ranks' program, which "
                                              "drarun import did not find: write that program "
                                              "here");
}

void spec_read_command(const struct reader_node *node, void *field)
{
    if (reader_list(node, 1) < 0)
        return;
    spec_read_words(node, field);
    spec_check_placeholder(node);
}

static void read_variable(const struct reader_node *map, const char *name)
{
    struct reader_node item;
    int64_t number;
    if (!reader_get(map, name, &item))
        return;
    if (!k8s_is_env_name(name))
        reader_fail_key(map, name, "expected the name of a variable: A-Z, a-z, 0-9 and _");
    else if (json_is_object(item.value))
        pod_schema_check(&item, "EnvVarSource");
    else if (json_is_boolean(item.value))
        reader_expected(&item, "a text, a whole number (put it in quotes), or a source such as "
                               "{secretKeyRef: {name: NAME, key: KEY}}");
    else if (!json_is_string(item.value) && !reader_whole(item.value, &number))
        reader_expected(&item, "a text, a whole number, or a source such as "
                               "{secretKeyRef: {name: NAME, key: KEY}}");
}

/* A map, or the API's list. */
void spec_read_env(const struct reader_node *node, void *field)
{
    (void)field;
    if (json_is_array(node->value)) {
        pod_schema_check(node, "[EnvVar]");
        return;
    }
    if (!json_is_object(node->value)) {
        reader_expected(node, "a mapping of names to values, or a list as of a container");
        return;
    }
    for (void *it = json_object_iter(node->value); it; it = json_object_iter_next(node->value, it))
        read_variable(node, json_object_iter_key(it));
}

void spec_read_env_from(const struct reader_node *node, void *field)
{
    (void)field;
    pod_schema_check(node, "[EnvFromSource]");
}

void spec_read_resources(const struct reader_node *node, void *field)
{
    (void)field;
    pod_schema_check(node, "ResourceRequirements");
}

void spec_read_tolerations(const struct reader_node *node, void *field)
{
    (void)field;
    pod_schema_check(node, "[Toleration]");
}

void spec_read_text_map(const struct reader_node *node, void *field)
{
    (void)field;
    pod_schema_check(node, "{string}");
}

/* Names, or the API's objects. */
void spec_read_pull_secrets(const struct reader_node *node, void *field)
{
    (void)field;
    if (reader_list(node, 0) < 0)
        return;
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        const char *text;
        if (json_is_string(item.value))
            reader_text(&item, &text);
        else if (json_is_object(item.value))
            pod_schema_check(&item, "LocalObjectReference");
        else
            reader_expected(&item, "the name of a Secret");
    }
}

static void read_source(const struct reader_node *volume, const struct spec_volume_source *source)
{
    struct reader_node node;
    const char *text;
    if (!reader_get(volume, source->key, &node))
        return;
    bool amount = !source->type || (source->member && strcmp(source->member, "sizeLimit") == 0);
    if (amount && !json_is_object(node.value))
        pod_schema_check(&node, "quantity");
    else if (!source->type)
        reader_expected(&node, "a quantity such as 16Gi");
    else if (source->member && json_is_string(node.value))
        reader_text(&node, &text);
    else
        pod_schema_check(&node, source->type);
}

static void read_mount_path(const struct reader_node *volume)
{
    struct reader_node node;
    const char *path = NULL;
    bool given = reader_get(volume, "mountPath", &node);
    if (json_object_get(volume->value, "shm")) {
        if (given)
            reader_fail_key(volume, "mountPath",
                            "shm is always at " SPEC_SHM_PATH ": leave it out");
    } else if (!given) {
        reader_missing(volume, "mountPath is missing: where the volume is in the container");
    } else if (reader_text(&node, &path) == 0 && (*path != '/' || strchr(path, ':'))) {
        reader_expected(&node, "an absolute path without a colon");
    }
}

static void read_volume(const struct reader_node *volume)
{
    struct reader_node node;
    size_t count = 0;
    const char *text;
    bool truth;
    if (reader_object(volume) < 0)
        return;
    reader_known(volume, VOLUME_KEYS);
    read_mount_path(volume);
    if (reader_get(volume, "name", &node) && reader_text(&node, &text) == 0 && !k8s_is_label(text))
        reader_expected(&node, "a DNS label (a-z, 0-9 and inner -, at most 63)");
    if (reader_get(volume, "subPath", &node))
        reader_text(&node, &text);
    if (reader_get(volume, "readOnly", &node))
        reader_bool(&node, &truth);
    for (size_t i = 0; i < SPEC_VOLUME_SOURCES; i++) {
        count += json_object_get(volume->value, spec_volume_sources[i].key) != NULL;
        read_source(volume, &spec_volume_sources[i]);
    }
    if (count != 1)
        reader_fail(volume,
                    "expected one source, got %zu: persistentVolumeClaim, hostPath, "
                    "configMap, secret, emptyDir, shm, nfs, csi, ephemeral, projected, "
                    "downwardAPI or image",
                    count);
}

static bool is_text_of(const json_t *item, const char *key, const char *text)
{
    const char *own = json_string_value(json_object_get(item, key));
    return own && strcmp(own, text) == 0;
}

/* The API takes a name and a path once. */
static void refuse_second(const struct reader_node *list, size_t at, const char *key)
{
    struct reader_node item = reader_item(list, at);
    const char *text = json_string_value(json_object_get(item.value, key));
    for (size_t i = 0; text && i < at; i++)
        if (is_text_of(json_array_get(list->value, i), key, text)) {
            reader_fail_key(&item, key, "a second volume with the %s \"%.60s\"", key, text);
            return;
        }
}

void spec_read_volumes(const struct reader_node *node, void *field)
{
    bool shm = false;
    (void)field;
    if (reader_list(node, 0) < 0)
        return;
    if (json_array_size(node->value) > SPEC_VOLUMES_MAX) {
        reader_fail(node, "more than %d volumes", SPEC_VOLUMES_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        read_volume(&item);
        refuse_second(node, i, "name");
        refuse_second(node, i, "mountPath");
        if (shm && json_object_get(item.value, "shm"))
            reader_fail_key(&item, "shm", "a second shm");
        shm |= json_object_get(item.value, "shm") != NULL;
    }
}

/* Keys of a Job, an MPIJob, a PyTorchJob, a TrainJob or a JobSet, and where a DraJob has them: in
 * the same mapping, or by its path from the root where a role has no such key. */
static const struct {
    const char *theirs, *ours;
} elsewhere[] = {
    {"activeDeadlineSeconds", "spec.timeouts: {total: 600s}"},
    {"backoffLimit", "spec.restarts"},
    {"completions", "workers"},
    {"maxRestarts", "spec.restarts"},
    {"nprocPerNode", "ranksPerWorker"},
    {"numNodes", "workers"},
    {"numProcPerNode", "ranksPerWorker"},
    {"parallelism", "workers"},
    {"replicas", "workers"},
    {"slotsPerWorker", "ranksPerWorker"},
};

bool spec_explain_key(const struct reader_node *spec, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
        if (strcmp(elsewhere[i].theirs, key) != 0)
            continue;
        reader_unknown_key(spec, key, "unknown key; in a DraJob it is %s", elsewhere[i].ours);
        return true;
    }
    bool pod = pod_schema_has("PodSpec", key), container = pod_schema_has("Container", key);
    if (strcmp(key, "volumeMounts") == 0)
        reader_unknown_key(spec, key,
                           "a mount is part of its volume: volumes: "
                           "[{persistentVolumeClaim: NAME, mountPath: /PATH}]");
    else if (pod && container)
        reader_unknown_key(
            spec, key,
            "not part of the short form: put it into template.spec.containers[0].%s (for "
            "the container) or template.spec.%s (for the pod)",
            key, key);
    else if (pod || container)
        reader_unknown_key(spec, key, "not part of the short form: put it into template.spec.%s%s",
                           container ? "containers[0]." : "", key);
    return pod || container;
}

/* ---- the template ---- */

static bool has_any(const json_t *spec, const char *const keys[])
{
    for (; *keys; keys++)
        if (json_object_get(spec, *keys))
            return true;
    return false;
}

static json_t *containers_of(const json_t *spec)
{
    const json_t *template = json_object_get(spec, "template");
    return json_object_get(json_object_get(template, "spec"), "containers");
}

/* One called so is the worker's. Without one, what the short form has no image and no command for
 * is the template's first. */
const char *spec_short_container(const json_t *spec)
{
    const json_t *list = containers_of(spec);
    const char *first = json_string_value(json_object_get(json_array_get(list, 0), "name"));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_text_of(json_array_get(list, i), "name", SPEC_CONTAINER))
            return SPEC_CONTAINER;
    bool own = json_object_get(spec, "image") || json_object_get(spec, "command");
    return first && !own ? first : SPEC_CONTAINER;
}

static int copy_members(const json_t *from, const char *const keys[], json_t *to)
{
    int rc = 0;
    for (; *keys; keys++)
        if (json_object_get(from, *keys))
            rc |= json_object_set(to, *keys, json_object_get(from, *keys));
    return rc;
}

static json_t *variable(const char *name, json_t *value)
{
    if (json_is_object(value))
        return json_pack("{s:s, s:O}", "name", name, "valueFrom", value);
    int64_t number = 0;
    json_t *text = json_is_string(value)          ? json_incref(value)
                   : reader_whole(value, &number) ? json_sprintf("%lld", (long long)number)
                                                  : json_string("");
    return json_pack("{s:s, s:o}", "name", name, "value", text);
}

static int add_env(const json_t *spec, json_t *container)
{
    json_t *env = json_object_get(spec, "env"), *value, *list;
    const char *name;
    int rc = 0;
    if (!json_is_object(env))
        return env ? json_object_set(container, "env", env) : 0;
    list = json_array();
    json_object_foreach(env, name, value) rc |= json_array_append_new(list, variable(name, value));
    return json_object_set_new(container, "env", list) | rc;
}

/* {SOURCE: {..}}, or NULL. */
static json_t *volume_source(const json_t *volume)
{
    for (size_t i = 0; i < SPEC_VOLUME_SOURCES; i++) {
        const struct spec_volume_source *source = &spec_volume_sources[i];
        json_t *value = json_object_get(volume, source->key);
        if (!value)
            continue;
        if (!source->type)
            return json_pack("{s:{s:s, s:O}}", "emptyDir", "medium", "Memory", "sizeLimit", value);
        if (source->member && !json_is_object(value))
            return json_pack("{s:{s:O}}", source->key, source->member, value);
        return json_pack("{s:O}", source->key, value);
    }
    return json_object();
}

static int add_volume(const json_t *volume, size_t at, json_t *volumes, json_t *mounts)
{
    static const char *const of_mount[] = {"mountPath", "readOnly", "subPath", NULL};
    bool shm = json_object_get(volume, "shm");
    json_t *made = volume_source(volume), *given = json_object_get(volume, "name");
    json_t *name = json_is_string(given) ? json_incref(given)
                   : shm                 ? json_string(SPEC_SHM_NAME)
                                         : json_sprintf("volume-%zu", at);
    json_t *mount = json_pack("{s:O}", "name", name);
    int rc = json_object_set_new(made, "name", name);
    rc |= copy_members(volume, of_mount, mount);
    if (shm)
        rc |= json_object_set_new(mount, "mountPath", json_string(SPEC_SHM_PATH));
    rc |= json_array_append_new(volumes, made);
    return json_array_append_new(mounts, mount) | rc;
}

static int add_volumes(const json_t *spec, json_t *pod, json_t *container)
{
    const json_t *list = json_object_get(spec, "volumes");
    if (json_array_size(list) == 0)
        return 0;
    json_t *volumes = json_array(), *mounts = json_array(), *volume;
    int rc = json_object_set_new(pod, "volumes", volumes);
    rc |= json_object_set_new(container, "volumeMounts", mounts);
    size_t i;
    json_array_foreach(list, i, volume)
    {
        if (rc == 0 && json_is_object(volume))
            rc = add_volume(volume, i, volumes, mounts);
    }
    return rc;
}

static int add_pull_secrets(const json_t *spec, json_t *pod)
{
    json_t *list = json_object_get(spec, "imagePullSecrets"), *item;
    size_t i;
    if (!json_is_array(list))
        return 0;
    json_t *objects = json_array();
    int rc = json_object_set_new(pod, "imagePullSecrets", objects);
    json_array_foreach(list, i, item)
    {
        rc |= json_is_string(item)
                  ? json_array_append_new(objects, json_pack("{s:O}", "name", item))
                  : json_array_append(objects, item);
    }
    return rc;
}

/* NULL when out of memory. */
static json_t *short_form(const json_t *spec)
{
    CLEANUP(json_decrefp) json_t *pod = json_object();
    CLEANUP(json_decrefp) json_t *metadata = json_object();
    CLEANUP(json_decrefp)
    json_t *container = json_pack("{s:s}", "name", spec_short_container(spec));
    bool own = has_any(spec, of_container) || has_any(spec, of_container_made);
    int rc = copy_members(spec, of_container, container);
    rc |= copy_members(spec, of_pod, pod) | copy_members(spec, of_metadata, metadata);
    rc |= add_env(spec, container) | add_pull_secrets(spec, pod);
    rc |= add_volumes(spec, pod, container);
    if (own || json_array_size(containers_of(spec)) == 0)
        rc |= json_object_set_new(pod, "containers", json_pack("[O]", container));
    if (rc != 0)
        return NULL;
    bool wanted = json_object_size(metadata) > 0 || /* in front, as people write it */
                  json_object_get(json_object_get(spec, "template"), "metadata");
    return json_pack("{s:O*, s:O}", "metadata", wanted ? metadata : NULL, "spec", pod);
}

/* The template, its first container called the worker's where it has no name. */
static json_t *named(const json_t *spec)
{
    json_t *template = json_object_get(spec, "template");
    json_t *first = json_array_get(containers_of(spec), 0);
    if (!json_is_object(first) || json_object_get(first, "name"))
        return json_incref(template);
    for (size_t i = 1; i < json_array_size(containers_of(spec)); i++)
        if (is_text_of(json_array_get(containers_of(spec), i), "name", SPEC_CONTAINER))
            return json_incref(template);
    json_t *copy = json_copy(template), *pod = json_copy(json_object_get(template, "spec"));
    json_t *list = json_copy(containers_of(spec)), *container = json_copy(first);
    int rc = json_object_set_new(container, "name", json_string(SPEC_CONTAINER));
    rc |= json_array_set_new(list, 0, container);
    rc |= json_object_set_new(pod, "containers", list);
    rc |= json_object_set_new(copy, "spec", pod);
    if (rc != 0)
        json_decref(TAKE_PTR(copy));
    return copy;
}

json_t *spec_short_template(const json_t *spec)
{
    CLEANUP(json_decrefp) json_t *base = short_form(spec);
    if (!base || !json_is_object(json_object_get(spec, "template")))
        return TAKE_PTR(base);
    CLEANUP(json_decrefp) json_t *patch = named(spec);
    return patch ? pod_schema_merge("PodTemplateSpec", base, patch) : NULL;
}

int spec_short_expand(json_t *spec)
{
    static const char *const *const all[] = {of_container, of_container_made, of_pod, of_pod_made,
                                             of_metadata};
    json_t *template = spec_short_template(spec);
    if (!template || json_object_set_new(spec, "template", template) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (const char *const *key = all[i]; *key; key++)
            json_object_del(spec, *key);
    return 0;
}
