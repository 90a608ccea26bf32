/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and orders to the kernel over netlink, in any network namespace, on libnl. What the
 * kernel says about a refusal (its extended acknowledgement) is the error's text. */
#ifndef DRARUN_ATTACH_NETLINK_H
#define DRARUN_ATTACH_NETLINK_H

#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

struct netlink {
    struct nl_sock *sock;
    int code;       /* errno of the last refusal */
    char said[160]; /* and the kernel's words, or "" */
};

/* protocol: NETLINK_ROUTE, NETLINK_RDMA. ns: -1 for the caller's own; a socket stays in the
 * namespace that it was made in. */
int netlink_open(struct netlink *n, int ns, int protocol, struct drarun_error *err);
void netlink_done(struct netlink *n); /* also of one that is all zero */

/* A request with its fixed header; NULL when out of memory, which the calls below take. */
struct nl_msg *netlink_message(int type, int flags, const void *head, size_t len);
/* Attributes. What they cannot hold is a bug of ours: a message has a page. */
void netlink_put(struct nl_msg *msg, int type, const void *data, size_t len);
void netlink_put_u32(struct nl_msg *msg, int type, uint32_t value);
void netlink_put_text(struct nl_msg *msg, int type, const char *text);

/* Sends an order and waits until it is carried out; -errno as the kernel said. Takes msg. */
int netlink_do_take(struct netlink *n, struct nl_msg *msg, struct drarun_error *err);
/* Sends a question (flags: NLM_F_DUMP for lists) and calls fn for each answer. Takes msg. A list
 * that changed meanwhile is asked for again: fn may see an item twice. */
typedef void (*netlink_fn)(struct nlmsghdr *answer, void *arg);
int netlink_ask_take(struct netlink *n, struct nl_msg *msg, netlink_fn fn, void *arg,
                     struct drarun_error *err);

/* Whether the kernel (from Linux 5.0) heeds what a list's question has in its header. */
void netlink_strict(struct netlink *n, bool on);

/* News of links come to this socket from now on: only for netlink_wait. */
int netlink_follow_links(struct netlink *n, struct drarun_error *err);
/* Waits for news until a time of clock_ms() and drops them: 1, or 0 when the time has come. */
int netlink_wait(struct netlink *n, int64_t until_ms);

#endif
