/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun-plugin discover`: prints what this node, or a captured tree, would publish. */
#ifndef DRARUN_PLUGIN_VERB_DISCOVER_H
#define DRARUN_PLUGIN_VERB_DISCOVER_H

/* argv[0] is the verb. The exit status. */
int verb_discover(int argc, char **argv);

#endif
