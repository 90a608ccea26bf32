/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/warning.h"

#include <string.h>

#include "lib/base/buf.h"

/* A quoted-string; *at: behind its first quote, then behind its last. False: it has no end. */
static bool read_quoted(const char **at, struct buf *out)
{
    const char *p = *at;
    for (; *p && *p != '"'; p++) {
        p += *p == '\\' && p[1];
        buf_add(out, p, 1);
    }
    *at = p + (*p == '"');
    return *p == '"';
}

/* Behind code and agent, at the text; NULL: it is no warning. */
static const char *find_text(const char *p)
{
    size_t code = strspn(p, "0123456789");
    if (code != 3 || p[code] != ' ')
        return NULL;
    p += code + 1;
    size_t agent = strcspn(p, " \"");
    return agent > 0 && strncmp(p + agent, " \"", 2) == 0 ? p + agent + 2 : NULL;
}

void warning_add_texts(const char *value, struct strlist *out)
{
    const char *p = value + strspn(value, " ");
    while (*p && (p = find_text(p))) {
        struct buf text = BUF_INIT;
        bool whole = read_quoted(&p, &text);
        if (whole && text.len > 0)
            strlist_add(out, text.data);
        out->failed |= text.failed;
        buf_done(&text);
        p += strspn(p, " ,");
    }
}
