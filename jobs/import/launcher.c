/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import/launcher.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/base/expand.h"
#include "lib/base/nearest.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

/* ---- variables ---- */

struct launcher_variable *launcher_env_find(const struct launcher_env *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++)
        if (strcmp(env->list[i].name, name) == 0)
            return &env->list[i];
    return NULL;
}

static struct launcher_variable *add_variable(struct launcher_env *env, const char *name)
{
    struct launcher_variable *more = array_room(env->list, env->count, &env->cap, sizeof *more);
    if (!more)
        return NULL;
    env->list = more;
    struct launcher_variable *v = &env->list[env->count];
    *v = (struct launcher_variable){.name = strdup(name)};
    if (!v->name)
        return NULL;
    env->count++;
    return v;
}

struct launcher_variable *launcher_env_set(struct launcher_env *env, const char *name,
                                           const char *value, enum shell_worth worth)
{
    struct launcher_variable *v = launcher_env_find(env, name);
    char *copy = value ? strdup(value) : NULL;
    if ((value && !copy) || (!v && !(v = add_variable(env, name)))) {
        free(copy);
        env->failed = true;
        return NULL;
    }
    free(v->value);
    v->value = copy;
    v->entry = NULL;
    v->worth = worth;
    return v;
}

enum shell_worth launcher_env_look_up(void *context, const char *name, const char **ret_value)
{
    struct launcher_variable *v = launcher_env_find(context, name);
    if (!v)
        return SHELL_KEPT;
    v->is_used = true;
    if (v->worth == SHELL_LITERAL)
        *ret_value = v->value;
    return v->worth;
}

static const char *use_exported(void *context, const char *name)
{
    struct launcher_variable *v = launcher_env_find(context, name);
    if (!v || !v->value || !v->is_exported)
        return NULL;
    v->is_used = true;
    return v->value;
}

void launcher_env_expand(const struct launcher_env *env, const char *text, struct buf *out)
{
    expand_text(text, use_exported, unconst(env), out);
}

static void load_entry(struct launcher_env *env, const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    json_t *value = json_object_get(item, "value"), *from = json_object_get(item, "valueFrom");
    struct buf text = BUF_INIT;
    if (!name || !*name)
        return;
    launcher_env_expand(env, json_is_string(value) ? json_string_value(value) : "", &text);
    env->failed |= text.failed;
    struct launcher_variable *v =
        launcher_env_set(env, name, from ? NULL : text.data, from ? SHELL_KEPT : SHELL_LITERAL);
    if (v) {
        v->is_exported = true;
        v->entry = from ? unconst(item) : NULL;
    }
    buf_done(&text);
}

/* A ConfigMap's keys as variables; what is not among the manifests is kept for its container. */
static void load_source(struct launcher_env *env, const struct import_objects *objects,
                        json_t *source)
{
    const char *prefix = json_string_value(json_object_get(source, "prefix")), *key = NULL;
    const char *map =
        json_string_value(json_object_get(json_object_get(source, "configMapRef"), "name"));
    const struct reader_node *found = map ? import_find(objects, "ConfigMap", map) : NULL;
    json_t *value = NULL;
    if (!found) {
        json_array_append(env->sources, source);
        return;
    }
    json_object_foreach(json_object_get(found->value, "data"), key, value)
    {
        struct buf name = BUF_INIT;
        buf_printf(&name, "%s%s", prefix ? prefix : "", key);
        env->failed |= name.failed;
        struct launcher_variable *v =
            json_is_string(value) && !name.failed
                ? launcher_env_set(env, name.data, json_string_value(value), SHELL_LITERAL)
                : NULL;
        if (v)
            v->is_exported = true;
        buf_done(&name);
    }
}

void launcher_env_load(struct launcher_env *env, const struct import_objects *objects,
                       const struct reader_node *container)
{
    json_t *item = NULL;
    size_t i;
    env->sources = json_array();
    json_array_foreach(json_object_get(container->value, "envFrom"), i, item)
    {
        load_source(env, objects, item);
    }
    json_array_foreach(json_object_get(container->value, "env"), i, item)
    {
        load_entry(env, item);
    }
}

void launcher_env_done(struct launcher_env *env)
{
    for (size_t i = 0; i < env->count; i++) {
        free(env->list[i].name);
        free(env->list[i].value);
    }
    free(env->list);
    json_decref(env->sources);
    *env = (struct launcher_env){0};
}

/* ---- scripts ---- */

/* The key of a ConfigMap that stands at `inner` of a volume's directory. */
static const char *key_at(const json_t *config_map, const char *inner)
{
    const json_t *items = json_object_get(config_map, "items");
    return items ? value_text(value_find(items, "path", inner), "key") : inner;
}

/* Where in the mounted directory the path is; NULL: elsewhere. */
static const char *inner_path(const json_t *mount, const char *path)
{
    const char *at = json_string_value(json_object_get(mount, "mountPath"));
    const char *sub = json_string_value(json_object_get(mount, "subPath"));
    size_t n = at ? strlen(at) : 0;
    while (n > 1 && at[n - 1] == '/')
        n--;
    if (!at || strncmp(path, at, n) != 0)
        return NULL;
    if (path[n] == '\0')
        return sub;
    return path[n] == '/' && !sub ? path + n + 1 : NULL;
}

const char *launcher_file(const struct import_objects *objects, const struct reader_node *pod,
                          const struct reader_node *container, const char *path,
                          const char **ret_map)
{
    json_t *mount = NULL;
    size_t i;
    *ret_map = "";
    json_array_foreach(json_object_get(container->value, "volumeMounts"), i, mount)
    {
        const char *name = json_string_value(json_object_get(mount, "name"));
        const char *inner = inner_path(mount, path);
        const json_t *volume =
            inner ? value_find(json_object_get(pod->value, "volumes"), "name", name) : NULL;
        const json_t *map = json_object_get(volume, "configMap");
        const char *map_name = json_string_value(json_object_get(map, "name"));
        const char *key = map_name ? key_at(map, inner) : NULL;
        if (!key)
            continue;
        const struct reader_node *found = import_find(objects, "ConfigMap", map_name);
        *ret_map = map_name;
        return found
                   ? json_string_value(json_object_get(json_object_get(found->value, "data"), key))
                   : NULL;
    }
    return NULL;
}

/* ---- the rest ---- */

static void explain_containers(const struct reader_node *pod, const char *key, size_t first,
                               const char *what)
{
    struct reader_node list;
    if (!reader_get(pod, key, &list))
        return;
    for (size_t i = first; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        if (json_is_object(item.value))
            reader_fail(&item, "the launcher's %s %s is left out: there is no launcher's pod", what,
                        import_text(&item, "name"));
    }
}

/* What the workers' own template has in the same words is not lost. */
static void explain_keys(const struct reader_node *from, const json_t *worker, const char *known)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(from->value, key, value)
    {
        if (!words_has(known, key) && !json_is_null(value) &&
            !json_equal(value, json_object_get(worker, key)))
            reader_fail_key(from, key,
                            "the launcher's %s is left out: workers have what their own template "
                            "says",
                            key);
    }
}

void launcher_explain(const struct reader_node *pod, const json_t *template)
{
    struct reader_node containers;
    const json_t *worker = import_first_container(template);
    if (!reader_get(pod, "containers", &containers) || json_array_size(containers.value) == 0)
        return;
    struct reader_node first = reader_item(&containers, 0);
    explain_containers(pod, "initContainers", 0, "init container");
    explain_containers(pod, "containers", 1, "container");
    explain_keys(pod, json_object_get(template, "spec"), "containers initContainers restartPolicy");
    if (!json_is_object(first.value))
        return;
    const char *image = import_text(&first, "image");
    const char *other = json_string_value(json_object_get(worker, "image"));
    if (*image && other && strcmp(image, other) != 0)
        reader_fail_key(&first, "image",
                        "the launcher's image is left out: the ranks' program must be in the "
                        "workers' image, %s",
                        other);
    explain_keys(&first, worker,
                 "name image command args env envFrom workingDir imagePullPolicy tty stdin "
                 "stdinOnce terminationMessagePath terminationMessagePolicy");
}
