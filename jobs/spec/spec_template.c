/* SPDX-License-Identifier: Apache-2.0 */
/* The pod of a worker: the short form with the template over it, and what the API server, or a
 * kubelet, would refuse of it once the job is made. */
#include <string.h>

#include "jobs/spec/pod_schema.h"
#include "jobs/spec/spec_fields.h"
#include "jobs/spec/spec_short.h"
#include "lib/base/cleanup.h"

/* Where the name begins behind "REGISTRY/", which alone may have upper case. */
static const char *image_name(const char *image)
{
    const char *slash = strchr(image, '/');
    size_t length = slash ? (size_t)(slash - image) : 0;
    for (size_t i = 0; i < length; i++)
        if (strchr(".:", image[i]) || (image[i] >= 'A' && image[i] <= 'Z'))
            return slash + 1;
    return image;
}

/* REGISTRY/NAME:TAG@DIGEST, as container runtimes read it; each part but the name is free here. */
static bool is_image(const char *image)
{
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                      lower[] = "abcdefghijklmnopqrstuvwxyz";
    const char *name = image_name(image);
    size_t length = strcspn(name, ":@");
    for (const char *p = image; *p; p++)
        if (!strchr(lower, *p) && !strchr(upper, *p) && !strchr("0123456789._-/:@[]+", *p))
            return false;
    return !strstr(image, "//") && length > 0 && name[length - 1] != '/' &&
           strcspn(name, upper) >= length;
}

/* The kubelet would say it much later. An empty one is missing. */
static void check_image(const struct reader_node *holder)
{
    struct reader_node node;
    if (!reader_get(holder, "image", &node) || !json_is_string(node.value))
        return;
    const char *image = json_string_value(node.value);
    if (*image && !is_image(image))
        reader_expected(&node, "an image: REGISTRY/NAME:TAG with a NAME in lower case");
}

/* The container of the template's list that has the merged one's name, or the only one without. */
static bool find_container(const struct reader_node *list, const json_t *merged, size_t *ret_at)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        json_t *name = json_object_get(json_array_get(list->value, i), "name");
        if (name ? json_equal(name, json_object_get(merged, "name")) : i == 0) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

/* The agent takes the place of the image's own entrypoint, so the ranks' program must be named.
 * other: the template's first container where the ranks run in another one; or NULL. */
static void check_command(const struct reader_node *at, const json_t *container, const char *other)
{
    const json_t *command = json_object_get(container, "command");
    struct reader_node node;
    if (!command && other)
        reader_missing(
            at,
            "command is missing: with image, the ranks run in a container of "
            "their own, beside %s of the template; if they belong in %s, name it " SPEC_CONTAINER
            " or leave image out",
            other, other);
    else if (!command)
        reader_missing(at, "command is missing: the ranks' program must be named, since the agent "
                           "takes the place of the image's entrypoint");
    else if (reader_get(at, "command", &node) && reader_list(&node, 1) == 0)
        spec_check_placeholder(&node);
}

/* first: its first container runs the ranks. */
static void check_containers(const struct reader_node *spec, const struct reader_node *pod,
                             const json_t *merged, const char *key, bool first)
{
    struct reader_node list;
    size_t i, at;
    json_t *container;
    bool own = reader_get(pod, key, &list) && json_is_array(list.value);
    json_array_foreach(json_object_get(json_object_get(merged, "spec"), key), i, container)
    {
        struct reader_node item;
        bool written = own && find_container(&list, container, &at);
        if (!json_is_object(container))
            continue;
        if (written)
            item = reader_item(&list, at);
        const struct reader_node *place = written ? &item : spec;
        const char *image = json_string_value(json_object_get(container, "image"));
        if (!json_object_get(container, "name"))
            reader_missing(place, "name is missing");
        if (!json_object_get(container, "image") || (image && !*image))
            reader_missing(place, "image is missing");
        if (written)
            check_image(&item);
        if (first && i == 0)
            check_command(place, container,
                          written || !own ? NULL
                                          : json_string_value(json_object_get(
                                                json_array_get(list.value, 0), "name")));
    }
}

/* Without containers in a template. */
static void check_short_form(const struct spec_role_nodes *at)
{
    struct reader_node node;
    bool image = spec_role_get(at, "image", &node), command = spec_role_get(at, "command", &node);
    if (!image && !command)
        reader_missing(at->own, "image and command are missing (or template in their place)");
    else if (!image)
        reader_fail_key(spec_role_holder(at, "command"), "command", "image is missing beside it");
    else if (!command)
        reader_fail_key(spec_role_holder(at, "image"), "image",
                        "command is missing beside it: the ranks' program");
}

/* The role's keys over those of the top; NULL: out of memory. */
static json_t *whole(const struct spec_role_nodes *at)
{
    CLEANUP(json_decrefp) json_t *role = json_object();
    for (size_t i = 0; i < spec_role_fields.count; i++) {
        const char *key = spec_role_fields.list[i].key;
        json_t *value = json_object_get(spec_role_holder(at, key)->value, key);
        if (value && json_object_set(role, key, value) < 0)
            return NULL;
    }
    return json_incref(role);
}

void spec_check_template(const struct spec_role_nodes *at, struct spec_role *role)
{
    CLEANUP(json_decrefp) json_t *merged = whole(at);
    struct reader_node template, pod;
    bool given = spec_role_get(at, "template", &template) && json_is_object(template.value);
    bool podded = given && reader_get(&template, "spec", &pod) && json_is_object(pod.value);
    role->template = spec_short_template(merged);
    if (!role->template)
        at->own->reader->texts.failed = true;
    if (given)
        pod_schema_check(&template, "PodTemplateSpec");
    check_image(spec_role_holder(at, "image"));
    if (podded && json_array_size(json_object_get(pod.value, "containers")) > 0)
        check_containers(at->own, &pod, role->template, "containers", true);
    else
        check_short_form(at);
    if (podded)
        check_containers(at->own, &pod, role->template, "initContainers", false);
}
