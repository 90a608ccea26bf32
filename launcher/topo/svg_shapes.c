/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "launcher/topo/svg_private.h"

void svg_text(struct picture *p, int x, int y, const char *class_name, const char *text)
{
    buf_printf(p->out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class_name);
    for (; *text; text++)
        switch (*text) {
        case '<':
            buf_add_str(p->out, "&lt;");
            break;
        case '>':
            buf_add_str(p->out, "&gt;");
            break;
        case '&':
            buf_add_str(p->out, "&amp;");
            break;
        default:
            buf_add(p->out, text, 1);
        }
    buf_add_str(p->out, "</text>\n");
}

void svg_rect(struct picture *p, int x, int y, int width, int height, const char *class_name)
{
    buf_printf(p->out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"%s\"/>\n", x, y,
               width, height, class_name);
}

/* Cut to what fits a width: a CPU list or a product may be long. */
void svg_fit(char *text, int width, int per_char)
{
    size_t most = (size_t)(width / per_char);
    if (strlen(text) > most && most > 1) {
        text[most - 1] = '~';
        text[most] = '\0';
    }
}

const char *svg_path_class(enum topo_path path)
{
    switch (path) {
    case TOPO_PATH_PIX:
    case TOPO_PATH_SELF:
        return "pix";
    case TOPO_PATH_PXB:
    case TOPO_PATH_P2C:
        return "pxb";
    case TOPO_PATH_PHB:
    case TOPO_PATH_NODE:
        return "node";
    case TOPO_PATH_SYS:
        return "sys";
    default: /* ROOT: one of several */
        return "unsure";
    }
}

/* A square with a sign, which says the same as its colour. */
void svg_cell(struct picture *p, int x, int y, char state)
{
    static const char *const classes[UCHAR_MAX + 1] = {[FABRIC_GOOD] = "good",
                                                       [FABRIC_FAILED] = "bad",
                                                       [FABRIC_UNREACHED] = "bad",
                                                       [FABRIC_UNKNOWN] = "unknown"};
    const char *class_name = classes[(unsigned char)state];
    const char *sign = state == FABRIC_GOOD        ? "&#x2713;"
                       : state == FABRIC_UNKNOWN   ? "?"
                       : state == FABRIC_UNREACHED ? "&#x219b;"
                                                   : "&#x2717;";
    if (!class_name)
        return; /* the worker has no such rail */
    buf_printf(p->out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" "
               "class=\"%s\"/>\n"
               "<text x=\"%d\" y=\"%d\" class=\"sign\">%s</text>\n",
               x, y, CELL, CELL, class_name, x + CELL / 2, y + CELL - 4, sign);
}
