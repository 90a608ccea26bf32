/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/api/text.h"

#include "launcher/cli/verb.h"

char *text_take(struct buf *text)
{
    char *taken = buf_take(text);
    buf_done(text);
    return taken;
}

char *text_of_json_take(json_t *json)
{
    struct buf text = BUF_INIT;
    verb_add_json_take(json, &text);
    return text_take(&text);
}
