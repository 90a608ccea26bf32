/* SPDX-License-Identifier: Apache-2.0 */
/* The port of MASTER_PORT: rank 0 binds it later, or never, so nobody else may come by it
 * meanwhile. */
#ifndef DRARUN_LAUNCHER_MASTER_PORT_H
#define DRARUN_LAUNCHER_MASTER_PORT_H

#include <stdint.h>

#define MASTER_PORT_DEFAULT 29500 /* torch.distributed's */

/* A TCP port that is free on this machine, of those that the kernel gives to nobody by itself
 * (ip_local_port_range in ip-sysctl.rst): a process that binds port 0 or connects does not get it,
 * not even this job's own agent. Not the default, which other programs take, nor the one named
 * outer, MASTER_PORT of the job that this one runs in, or NULL. Where the kernel gives all of them,
 * one that is free now. */
uint16_t master_port_pick(const char *outer);

/* The same of another machine, whose ports nobody here can try: any, so that two jobs whose rank 0
 * is there do not meet. */
uint16_t master_port_draw(const char *outer);

#endif
