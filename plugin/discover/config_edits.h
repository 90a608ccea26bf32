/* SPDX-License-Identifier: Apache-2.0 */
/* `edits` of a PluginConfig: what each container that gets a device gets beside it, such as the
 * vendor's libraries that the node has in a directory.
 *
 *     edits:
 *       env: {NCCL_NET: gIB}
 *       mounts:                                    # of the host; it must be there
 *       - {hostPath: /opt/gib, containerPath: /usr/local/gib, options: [ro, rbind]}
 *       deviceNodes:
 *       - {path: /dev/gdrdrv, hostPath: /dev/gdrdrv, permissions: rw}   # hostPath: path by default
 *
 * Kept as CDI's containerEdits (Container Device Interface, SPEC.md 0.6). Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_CONFIG_EDITS_H
#define DRARUN_PLUGIN_DISCOVER_CONFIG_EDITS_H

#include "lib/doc/reader.h"

#define CONFIG_EDITS_MAX 64u /* of one kind */

/* ret_edits: a new reference; NULL stays where something is wrong, which is a finding. */
void config_edits_read(const struct reader_node *node, json_t **ret_edits);

/* Adds them to a device's containerEdits; edits NULL: nothing. False: out of memory. */
bool config_edits_add(const json_t *edits, json_t *container_edits);

#endif
