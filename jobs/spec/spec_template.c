/* SPDX-License-Identifier: Apache-2.0 */
/* The pod of a worker: the short form, or what must be in a whole template. */
#include <errno.h>
#include <string.h>

#include "jobs/spec/spec_fields.h"
#include "lib/cel/quantity.h"

/* NULL when out of memory. */
static json_t *short_form(const struct spec_raw *raw)
{
    json_t *command = json_array();
    for (size_t i = 0; i < raw->command.count; i++)
        if (json_array_append_new(command, json_string(raw->command.items[i])) < 0) {
            json_decref(command);
            return NULL;
        }
    return json_pack("{s:{s:[{s:s, s:s, s:o}]}}", "spec", "containers", "name", SPEC_CONTAINER,
                     "image", raw->image, "command", command);
}

/* The agent takes the place of the image's own entrypoint, so the ranks' program must be named. */
static void check_container(const struct reader_node *container)
{
    struct reader_node node;
    struct strlist words = STRLIST_INIT;
    const char *image = NULL;
    if (reader_object(container) < 0)
        return;
    if (!reader_get(container, "image", &node))
        reader_fail(container, "image is missing");
    else
        reader_text(&node, &image);
    if (!reader_get(container, "command", &node))
        reader_fail(container, "command is missing: the ranks' program must be named, since the "
                               "agent takes the place of the image's entrypoint");
    else if (reader_list(&node, 1) == 0)
        reader_texts(&node, &words);
    if (reader_get(container, "args", &node))
        reader_texts(&node, &words);
    strlist_done(&words);
}

/* The kubelet would say it much later. */
static void check_image(const struct reader_node *holder)
{
    struct reader_node node;
    const char *image = NULL;
    if (!reader_get(holder, "image", &node) || !json_is_string(node.value))
        return;
    image = json_string_value(node.value);
    if (image[strcspn(image, " \t\r\n")])
        reader_expected(&node, "an image: REGISTRY/NAME:TAG");
}

static void check_amounts(const struct reader_node *resources, const char *key)
{
    struct reader_node amounts;
    const char *name;
    json_t *value;
    if (!reader_get(resources, key, &amounts) || !json_is_object(amounts.value))
        return;
    json_object_foreach((json_t *)amounts.value, name, value)
    {
        struct cel_quantity quantity;
        struct reader_node node;
        const char *text = json_string_value(value);
        if (text && cel_quantity_parse(text, strlen(text), &quantity) == -EINVAL &&
            reader_get(&amounts, name, &node))
            reader_expected(&node, "a quantity: 500m, 2, 1Gi");
    }
}

/* What the API server, or a kubelet, would refuse of any container once the job is made. */
static void check_containers(const struct reader_node *pod, const char *key)
{
    struct reader_node list, resources;
    if (!reader_get(pod, key, &list) || !json_is_array(list.value))
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node container = reader_item(&list, i);
        if (!json_is_object(container.value))
            continue;
        check_image(&container);
        if (reader_get(&container, "resources", &resources) && json_is_object(resources.value)) {
            check_amounts(&resources, "limits");
            check_amounts(&resources, "requests");
        }
    }
}

static void check_template(const struct reader_node *template)
{
    struct reader_node spec, containers;
    if (!reader_get(template, "spec", &spec)) {
        reader_fail(template, "spec is missing: a template is a whole PodTemplateSpec");
        return;
    }
    if (reader_object(&spec) < 0)
        return;
    if (!reader_get(&spec, "containers", &containers)) {
        reader_fail(&spec, "containers is missing; its first one runs the ranks");
        return;
    }
    if (reader_list(&containers, 1) < 0)
        return;
    struct reader_node first = reader_item(&containers, 0);
    check_container(&first);
    check_containers(&spec, "containers");
    check_containers(&spec, "initContainers");
}

void spec_check_template(const struct reader_node *spec, struct spec_raw *raw)
{
    struct reader_node node, template;
    bool image = reader_get(spec, "image", &node), command = reader_get(spec, "command", &node);
    if (reader_get(spec, "template", &template)) {
        if (image)
            reader_fail_key(spec, "image", "template has the image already: give one of them");
        if (command)
            reader_fail_key(spec, "command", "template has the command already: give one of them");
        if (json_is_object(template.value))
            check_template(&template);
        return;
    }
    if (!image && !command)
        reader_fail(spec, "image and command are missing (or template in their place)");
    else if (!image)
        reader_fail_key(spec, "command", "image is missing beside it");
    else if (!command)
        reader_fail_key(spec, "image", "command is missing beside it: the ranks' program");
    check_image(spec);
    if (!raw->image || raw->command.count == 0)
        return;
    raw->s.template = short_form(raw);
    if (!raw->s.template)
        spec->reader->texts.failed = true;
}
