/* SPDX-License-Identifier: Apache-2.0 */
/* Which of its PCI function's interfaces a network device is: most functions have one, some one for
 * each port of the card. */
#ifndef DRARUN_ATTACH_PORT_H
#define DRARUN_ATTACH_PORT_H

/* The port of a device of the host, from 0; -1: it is not known, or the device stands for a
 * function of another machine or pod (lib/topo/port_name.h). */
int port_of(const char *netdev);

#endif
