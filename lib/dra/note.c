/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "lib/dra/predict_private.h"

void predict_note(struct predict_inventory *inventory, const char *format, ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!inventory->notes.items || !strlist_has(&inventory->notes, text))
        strlist_add(&inventory->notes, text);
}
