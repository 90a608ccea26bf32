/* SPDX-License-Identifier: Apache-2.0 */
/* What devlink calls the ports of a NIC's embedded switch, as phys_port_name of an interface in
 * sysfs has it. Pure. */
#ifndef DRARUN_TOPO_PORT_NAME_H
#define DRARUN_TOPO_PORT_NAME_H

#include <stdbool.h>

/* Whether an interface of that name stands for a function of another machine or pod, and is none of
 * the NIC's own: "pf0vf3", "c1pf0sf2", "pf0". "p0" is the wire's own
 * (Documentation/networking/devlink/devlink-port.rst). */
bool port_name_is_representor(const char *name);

#endif
