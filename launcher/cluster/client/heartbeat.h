/* SPDX-License-Identifier: Apache-2.0 */
/* How the launcher's pod knows that an allocation's shell is there (docs/design/032-allocation.md):
 * a word on the launcher Job that changes while it is, and a last one. */
#ifndef DRARUN_LAUNCHER_CLUSTER_HEARTBEAT_H
#define DRARUN_LAUNCHER_CLUSTER_HEARTBEAT_H

#define HEARTBEAT_ANNOTATION "drarun.dev/alloc"
#define HEARTBEAT_ENDED "ended"
#define HEARTBEAT_SILENT_S 60 /* by then nobody is there, unless --lost-after says otherwise */
#define HEARTBEAT_TIMES 4     /* as many words come in that time */

#endif
