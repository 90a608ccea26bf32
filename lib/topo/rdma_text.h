/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of /sys/class/infiniband. Pure. */
#ifndef DRARUN_TOPO_RDMA_TEXT_H
#define DRARUN_TOPO_RDMA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/topo/host.h"

/* "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)": Mb/s; 0 for anything else. */
uint32_t rdma_rate_parse(const char *text);
/* Of the same, its lanes (4) and the speed of one ("NDR"); false, and nothing written, for anything
 * else. */
bool rdma_lanes_parse(const char *text, uint32_t *ret_lanes, char *ret_speed, size_t size);

/* "fe80:0000:0000:0000:0202:c9ff:fe00:0001": eight groups of four digits. */
bool gid_parse(const char *text, uint8_t ret_bytes[16]);
bool gid_is_zero(const uint8_t bytes[16]);
/* The IPv4 address of a RoCE GID (::ffff:a.b.c.d) as text, else the GID as IPv6. */
void gid_format(const uint8_t bytes[16], char text[48]);

/* "IB/RoCE v1" is what the kernel writes for both: which one, the port's link says. */
enum topo_gid_type gid_type_parse(const char *text, enum topo_link link);

/* The inverse of topo_gid_type_name; UNKNOWN for NULL and for anything else. */
enum topo_gid_type gid_type_find(const char *name);

/* "4: ACTIVE": the word after the number goes to ret_state (size bytes, cut). */
enum topo_tri rdma_state_parse(const char *text, char *ret_state, size_t size);
/* "5: LinkUp": the word after the number goes to ret_state (size bytes, cut); "" for anything else.
 */
void rdma_phys_state_parse(const char *text, char *ret_state, size_t size);
enum topo_link rdma_link_parse(const char *text);

#endif
