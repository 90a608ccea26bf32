/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/overview.h"

#include "launcher/verbs/verbs.h"

static void add_group(const struct verb_group *group, struct buf *out)
{
    buf_printf(out, "%s\n", group->title);
    for (const struct verb *const *verb = group->verbs; *verb; verb++) {
        bool right = (verb - group->verbs) % 2 == 1;
        buf_printf(out, right || !verb[1] ? "  %-10s %s\n" : "  %-10s %-27s", (*verb)->name,
                   (*verb)->brief ? (*verb)->brief : "");
    }
}

void overview(struct buf *out)
{
    buf_add_str(out, "Usage: drarun [-n N] [OPTIONS] PROGRAM [ARGS]   ranks here, as mpirun and "
                     "srun\n"
                     "       drarun [OPTIONS] VERB [OPTIONS] ...\n");
    for (const struct verb_group *group = verb_groups; group->title; group++)
        add_group(group, out);
    buf_add_str(out,
                "drarun help VERB shows its options; help mpirun, theirs; help CODE, a message\n"
                "Also: version, completion. A program called like a verb: drarun -- wait\n");
}
