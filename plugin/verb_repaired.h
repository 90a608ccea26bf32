/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun-plugin repaired`: tells the running plugin that GPUs with Xids work again. */
#ifndef DRARUN_PLUGIN_VERB_REPAIRED_H
#define DRARUN_PLUGIN_VERB_REPAIRED_H

/* argv[0] is the verb. The exit status. */
int verb_repaired(int argc, char **argv);

#endif
