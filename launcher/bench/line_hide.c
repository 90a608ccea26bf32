/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/line_hide.h"

#include <string.h>

static void decide(struct line_hide *hide, char byte)
{
    if (byte == hide->begins[hide->same]) {
        hide->hides = !hide->begins[++hide->same];
        return;
    }
    if (hide->same)
        hide->show(hide->arg, hide->begins, hide->same);
    hide->shown = true;
}

/* Of one line; what is behind its decided beginning goes in one piece. */
static void add_line(struct line_hide *hide, const char *data, size_t length)
{
    size_t at = 0;
    while (at < length && !hide->shown && !hide->hides) {
        decide(hide, data[at]);
        at += !hide->shown;
    }
    if (hide->shown && at < length)
        hide->show(hide->arg, data + at, length - at);
    if (data[length - 1] == '\n') {
        hide->shown = hide->hides = false;
        hide->same = 0;
    }
}

void line_hide_add(struct line_hide *hide, const char *data, size_t length)
{
    if (!hide->begins || !*hide->begins) {
        hide->show(hide->arg, data, length);
        return;
    }
    for (const char *end = data + length, *next; data < end; data = next) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        next = newline ? newline + 1 : end;
        add_line(hide, data, (size_t)(next - data));
    }
}

void line_hide_end(struct line_hide *hide)
{
    if (hide->begins && !hide->shown && !hide->hides && hide->same)
        hide->show(hide->arg, hide->begins, hide->same);
    hide->shown = hide->hides = false;
    hide->same = 0;
}
