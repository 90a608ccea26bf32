/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as "HOST:PORT" or "[V6]:PORT", and sockets for them. */
#ifndef DRARUN_WIRE_DIAL_H
#define DRARUN_WIRE_DIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

/* Splits; host is copied without brackets and may come out empty (":7173"). -EINVAL with what was
 * expected, kind DRARUN_ERR_USAGE. */
int address_split(const char *address, char *host, size_t host_size, uint16_t *ret_port,
                  struct drarun_error *err);

/* A numeric address that is each machine's own: 127.0.0.0/8 or ::1. */
bool address_is_loopback(const char *address);

/* The address that this machine has towards a numeric one, with that port, as text. Sends nothing.
 * -errno: there is no way to it, or no room for the text. */
int address_towards(const char *address, uint16_t port, char *text, size_t size);

/* Starts a TCP connection to a numeric address without waiting for it: the descriptor is
 * non-blocking and close-on-exec. No name look-up, so that it never blocks. */
int dial_start(const char *address, int *ret_fd, struct drarun_error *err);

/* A listening socket on a numeric address; non-blocking and close-on-exec. An empty host is all
 * addresses of IPv4 and IPv6. *ret_port is the port in the end, for port 0. */
int listen_on(const char *address, int *ret_fd, uint16_t *ret_port, struct drarun_error *err);

#endif
