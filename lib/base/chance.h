/* SPDX-License-Identifier: Apache-2.0 */
/* Chance: for the pauses and the length of watches of thousands of processes, which must not come
 * back to a server in step; for names and ports that others must not have. */
#ifndef DRARUN_BASE_CHANCE_H
#define DRARUN_BASE_CHANCE_H

/* In [0, 1), another in each process: drawn from the kernel each time, which is cheap beside a
 * request. Any thread. */
double chance_draw(void);

#endif
