/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves out the lines that begin with some words, and holds nothing back but what may yet be these
 * words. Pure. */
#ifndef DRARUN_LAUNCHER_BENCH_LINE_HIDE_H
#define DRARUN_LAUNCHER_BENCH_LINE_HIDE_H

#include <stdbool.h>
#include <stddef.h>

struct line_hide {
    const char *begins; /* NULL: everything is shown */
    void (*show)(void *arg, const char *data, size_t length);
    void *arg;
    size_t same;       /* bytes of the present line that are like `begins`, and are held back */
    bool shown, hides; /* of the present line: it is none of them; it is one */
};

void line_hide_add(struct line_hide *hide, const char *data, size_t length);
/* Nothing follows, but perhaps another text: what was held back is shown. */
void line_hide_end(struct line_hide *hide);

#endif
