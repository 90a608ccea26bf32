/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a simple command as POSIX sh splits them (2.2 quoting, 2.3 tokens); nothing is expanded.
 */
#include <string.h>

#include "jobs/import_parts.h"
#include "lib/base/buf.h"

/* What a quote holds; p behind it, or NULL when it is open. */
static const char *quoted(const char *p, struct buf *word)
{
    char quote = *p++;
    for (; *p && *p != quote; p++) {
        if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`\n", p[1])) {
            p++;
            if (*p == '\n')
                continue;
        }
        buf_add(word, p, 1);
    }
    return *p ? p + 1 : NULL;
}

static const char *one_word(const char *p, struct buf *word)
{
    buf_add(word, "", 0);
    while (p && *p && !strchr(" \t\n;|&", *p)) {
        if (*p == '\'' || *p == '"') {
            p = quoted(p, word);
        } else if (*p == '\\' && p[1] == '\n') {
            p += 2;
        } else {
            p += *p == '\\' && p[1];
            buf_add(word, p++, 1);
        }
    }
    return p;
}

bool shell_words(const char **text, struct strlist *words)
{
    const char *p = *text;
    for (;;) {
        while (*p == ' ' || *p == '\t' || (*p == '\\' && p[1] == '\n'))
            p += *p == '\\' ? 2 : 1;
        if (*p == '#')
            p += strcspn(p, "\n");
        if (!*p || strchr("\n;|&", *p))
            break;
        struct buf word = BUF_INIT;
        p = one_word(p, &word);
        if (p)
            strlist_add(words, word.data ? word.data : "");
        buf_done(&word);
        if (!p)
            return false;
    }
    *text = *p ? p + 1 : p;
    return true;
}
