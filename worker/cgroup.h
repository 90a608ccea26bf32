/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the cgroup that this process is in: version 2 where its controller is there, else
 * version 1. */
#ifndef DRARUN_WORKER_CGROUP_H
#define DRARUN_WORKER_CGROUP_H

#include <stddef.h>

/* Opens a file of the version 2 group, or of the version 1 group of a controller. A descriptor, or
 * -ENOENT when there is none. */
int cgroup_open(const char *controller, const char *v2_file, const char *v1_file);

/* The first word of a file that has one name in both versions. 0 or -errno. */
int cgroup_read_word(const char *controller, const char *file, char *text, size_t size);

#endif
