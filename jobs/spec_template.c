/* SPDX-License-Identifier: Apache-2.0 */
/* The pod of a worker: the short form, or what must be in a whole template. */
#include <string.h>

#include "jobs/spec_fields.h"

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
    if (!raw->image || raw->command.count == 0)
        return;
    raw->s.template = short_form(raw);
    if (!raw->s.template)
        spec->reader->texts.failed = true;
}
