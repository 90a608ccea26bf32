/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb.h"

void verb_help(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "Usage: drarun %s [options]%s%s\n\n%s\n", verb->name,
               verb->arguments ? " " : "", verb->arguments ? verb->arguments : "", verb->summary);
    options_help(verb->options, out);
}
