/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/metrics/metrics_text.h"

void metrics_add_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_add_escaped(struct buf *out, const char *value)
{
    for (const char *c = value; *c; c++)
        if (*c == '\n')
            buf_add_str(out, "\\n");
        else if (*c == '"' || *c == '\\')
            buf_printf(out, "\\%c", *c);
        else
            buf_add(out, c, 1);
}
