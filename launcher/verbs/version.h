/* SPDX-License-Identifier: Apache-2.0 */
/* What this program is, and what it was linked with. */
#ifndef DRARUN_LAUNCHER_VERSION_H
#define DRARUN_LAUNCHER_VERSION_H

/* drarun version [-o text|json|yaml]: words are behind the verb; commit: that of this program, "":
 * not known. The exit status; errors are logged. */
int version_show(int count, char *const words[], const char *commit);

#endif
