/* SPDX-License-Identifier: Apache-2.0 */
/* This machine's hwloc topology, read once for all ranks of the agent: each of them would spend
 * some 10 to 20 ms on it. A thread reads it while the ranks are loading their libraries; a job
 * whose ranks end before is not held up. */
#ifndef DRARUN_WORKER_TOPOLOGY_H
#define DRARUN_WORKER_TOPOLOGY_H

#include <hwloc.h>

struct topology;

struct topology *topology_new(void); /* NULL without memory; the others accept NULL */
/* Waits for the thread. */
void topology_free(struct topology *topology);

/* Starts reading; does nothing when it was started. */
void topology_start(struct topology *topology);
/* Starts reading when nobody has, and waits for the end. NULL when it failed: ranks then look for
 * themselves. Borrowed. */
hwloc_topology_t topology_get(struct topology *topology);
/* As topology_get, but the result stays valid for the life of the process: topology_free does not
 * destroy it. For libpmix, which keeps the pointer and is never finalized. */
hwloc_topology_t topology_keep(struct topology *topology);
/* The same as XML; borrowed, NULL when it failed. */
const char *topology_xml(struct topology *topology);
/* Writes the XML to a file, once for each topology, and returns its path; NULL when it failed. The
 * file is below dir. */
const char *topology_file(struct topology *topology, const char *dir);

#endif
