/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses with a prefix length, and link-layer addresses, from text and back. Pure. */
#ifndef DRARUN_ATTACH_IP_PREFIX_H
#define DRARUN_ATTACH_IP_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ip_prefix {
    int family;        /* AF_INET or AF_INET6; 0: none */
    uint8_t bits;      /* of the prefix */
    uint8_t bytes[16]; /* network order, the first 4 of IPv4; host bits are kept */
};

#define IP_PREFIX_TEXT 50 /* bytes for ip_prefix_text, with the NUL */

struct hw_addr {
    uint8_t len; /* 6 (Ethernet), 8 or 20 (IP over InfiniBand); 0: none */
    uint8_t bytes[20];
};

#define HW_ADDR_TEXT 60

/* "10.0.0.2/24" or "fd00::2/64": no zone, no leading zeros, nor an IPv4 address in IPv6's clothes.
 */
bool ip_prefix_parse(const char *text, struct ip_prefix *ret_prefix);
/* "10.0.0.2": the prefix is the whole address. */
bool ip_address_parse(const char *text, struct ip_prefix *ret_address);
bool ip_prefix_equal(const struct ip_prefix *a, const struct ip_prefix *b);
size_t ip_prefix_size(const struct ip_prefix *prefix); /* bytes in use: 4 or 16 */
/* The same with its host bits zero, as routes have it. */
struct ip_prefix ip_prefix_network(const struct ip_prefix *prefix);
/* Into out, of IP_PREFIX_TEXT bytes; returns out. */
const char *ip_prefix_text(const struct ip_prefix *prefix, char *out);
const char *ip_address_text(const struct ip_prefix *address, char *out); /* without "/24" */

/* Colons or dashes between bytes, or dots between pairs of them, as Go's net.ParseMAC. */
bool hw_addr_parse(const char *text, struct hw_addr *ret_addr);
bool hw_addr_equal(const struct hw_addr *a, const struct hw_addr *b);
const char *hw_addr_text(const struct hw_addr *addr, char *out); /* "02:00:00:00:00:01" */

#endif
