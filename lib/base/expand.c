/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/expand.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

/* at: "$(...". Returns where the text goes on. */
static const char *add_reference(const char *at, expand_look_up_fn look_up, void *context,
                                 struct buf *out)
{
    const char *end = strchr(at, ')');
    if (!end) {
        buf_add(out, at, 2);
        return at + 2;
    }
    cleanup_free char *name = strndup(at + 2, (size_t)(end - at - 2));
    const char *value = name ? look_up(context, name) : NULL;
    out->failed |= !name;
    if (value)
        buf_add_str(out, value);
    else
        buf_add(out, at, (size_t)(end + 1 - at));
    return end + 1;
}

void expand_text(const char *text, expand_look_up_fn look_up, void *context, struct buf *out)
{
    buf_add(out, "", 0);
    while (*text) {
        size_t plain = strcspn(text, "$");
        buf_add(out, text, plain);
        text += plain;
        if (strncmp(text, "$(", 2) == 0) {
            text = add_reference(text, look_up, context, out);
        } else if (*text) {
            buf_add_str(out, "$");
            text += text[1] == '$' ? 2 : 1;
        }
    }
}

static const char *look_up_env(void *context, const char *name)
{
    return env_get(context, name);
}

void expand_text_env(const char *text, const struct strlist *env, struct buf *out)
{
    expand_text(text, look_up_env, unconst(env), out);
}

/* What expand_text makes another text of, where the variable exists. */
static bool is_replaced(const char *text)
{
    size_t name = strncmp(text, "$(", 2) == 0 ? strspn(text + 2, NAME_CHARACTERS) : 0;
    return strncmp(text, "$$", 2) == 0 || (name > 0 && text[2 + name] == ')');
}

/* The length of what stays as it is at the beginning of a text that is not replaced: a byte, or all
 * up to the end of what has the form of a reference, as "$(( $(nproc)". */
static size_t kept_length(const char *text)
{
    const char *end = strncmp(text, "$(", 2) == 0 ? strchr(text, ')') : NULL;
    return end ? (size_t)(end + 1 - text) : 1;
}

bool expand_refers(const char *text)
{
    while (*text && !is_replaced(text))
        text += kept_length(text);
    return *text;
}

void expand_escape(const char *text, struct buf *out)
{
    buf_add(out, "", 0);
    while (*text) {
        bool replaced = is_replaced(text);
        size_t length = replaced ? 1 : kept_length(text);
        if (replaced)
            buf_add_str(out, "$");
        buf_add(out, text, length);
        text += length;
    }
}
