/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec_words.h"

#include "jobs/spec/spec.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/expand.h"

static void add_texts(const json_t *texts, struct strlist *list)
{
    size_t i;
    json_t *text;
    json_array_foreach(texts, i, text)
        strlist_add(list, json_string_value(text) ? json_string_value(text) : "");
}

size_t spec_words_add(const struct spec_role *role, const struct strlist *given,
                      struct strlist *argv)
{
    const json_t *container = spec_role_container(role);
    size_t before = argv->count;
    add_texts(json_object_get(container, "command"), argv);
    if (!given || given->count == 0)
        add_texts(json_object_get(container, "args"), argv);
    size_t own = argv->count - before;
    if (given)
        strlist_add_all(argv, given->items);
    return own;
}

void spec_words_env(const struct spec_role *role, struct strlist *env)
{
    CLEANUP(strlist_done) struct strlist own = STRLIST_INIT;
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(spec_role_container(role), "env"), i, each)
    {
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        const char *name = json_string_value(json_object_get(each, "name"));
        const char *value = json_string_value(json_object_get(each, "value"));
        if (!name || json_object_get(each, "valueFrom"))
            continue;
        expand_text_env(value ? value : "", &own, &text);
        own.failed |= text.failed;
        env_set(&own, name, text.data ? text.data : "");
    }
    strlist_add_all(env, own.items);
    env->failed |= own.failed;
}

json_t *spec_words_literal(const char *text)
{
    CLEANUP(buf_done) struct buf escaped = BUF_INIT;
    expand_escape(text, &escaped);
    return escaped.failed ? NULL : json_string(escaped.data);
}
