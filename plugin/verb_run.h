/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun-plugin run`: the DRA drivers of this node, until a signal ends them. */
#ifndef DRARUN_PLUGIN_VERB_RUN_H
#define DRARUN_PLUGIN_VERB_RUN_H

/* argv[0] is the verb. The exit status. */
int verb_run(int argc, char **argv);

#endif
