/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/netlink.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "plugin/attach/netns.h"

#define ANSWER_S 5 /* the kernel answers at once; but no wait is without an end */
#define TRIES 5    /* of a list that changes while it is read */

/* libnl gives the refusal alone; its message's header, which says what follows, stands before it.
 */
static int on_refusal(struct sockaddr_nl *from, struct nlmsgerr *refusal, void *arg)
{
    struct netlink *n = arg;
    struct nlmsghdr *head = (struct nlmsghdr *)((char *)refusal - NLMSG_HDRLEN);
    size_t known = sizeof *refusal;
    (void)from;
    n->code = -refusal->error;
    if (!(head->nlmsg_flags & NLM_F_CAPPED))
        known += refusal->msg.nlmsg_len - NLMSG_HDRLEN;
    if (head->nlmsg_flags & NLM_F_ACK_TLVS && head->nlmsg_len > NLMSG_HDRLEN + known) {
        struct nlattr *said =
            nla_find((struct nlattr *)((char *)refusal + known),
                     (int)(head->nlmsg_len - NLMSG_HDRLEN - known), NLMSGERR_ATTR_MSG);
        if (said)
            snprintf(n->said, sizeof n->said, "%.*s", nla_len(said), (const char *)nla_data(said));
    }
    return NL_STOP;
}

static void set_options(struct netlink *n)
{
    int fd = nl_socket_get_fd(n->sock), one = 1;
    struct timeval limit = {.tv_sec = ANSWER_S};
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof one);
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    /* with auto-ack a question's acknowledgement stays queued, and the next call reads that */
    nl_socket_disable_auto_ack(n->sock);
    nl_socket_disable_seq_check(n->sock);
    nl_socket_modify_err_cb(n->sock, NL_CB_CUSTOM, on_refusal, n);
}

int netlink_open(struct netlink *n, int ns, int protocol, struct drarun_error *err)
{
    int back = -1, rc = netns_enter(ns, &back, err);
    if (rc < 0)
        return rc;
    *n = (struct netlink){.sock = nl_socket_alloc()};
    if (!n->sock) {
        rc = error_set(err, ENOMEM, "netlink: out of memory");
    } else if (nl_connect(n->sock, protocol) < 0) {
        rc = error_set(err, errno ? errno : EPROTO, "netlink: %s", strerror(errno));
        netlink_done(n);
    } else {
        set_options(n);
    }
    netns_leave(back);
    return rc;
}

void netlink_done(struct netlink *n)
{
    if (n->sock)
        nl_socket_free(n->sock);
    n->sock = NULL;
}

struct nl_msg *netlink_message(int type, int flags, const void *head, size_t len)
{
    struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);
    if (msg && len && nlmsg_append(msg, unconst(head), len, NLMSG_ALIGNTO) < 0) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

void netlink_put(struct nl_msg *msg, int type, const void *data, size_t len)
{
    if (msg && nla_put(msg, type, (int)len, data) < 0)
        abort();
}

void netlink_put_u32(struct nl_msg *msg, int type, uint32_t value)
{
    netlink_put(msg, type, &value, sizeof value);
}

void netlink_put_text(struct nl_msg *msg, int type, const char *text)
{
    netlink_put(msg, type, text, strlen(text) + 1);
}

static int refused(const struct netlink *n, int nl_code, struct drarun_error *err)
{
    if (n->code && n->said[0])
        return error_set(err, n->code, "%s (%s)", strerror(n->code), n->said);
    if (n->code)
        return error_set(err, n->code, "%s", strerror(n->code));
    return error_set(err, EIO, "netlink: %s", nl_geterror(nl_code));
}

static int send_msg(struct netlink *n, struct nl_msg *msg, struct drarun_error *err)
{
    n->code = 0;
    n->said[0] = '\0';
    if (!msg)
        return error_set(err, ENOMEM, "netlink: out of memory");
    int rc = nl_send_auto(n->sock, msg);
    return rc < 0 ? error_set(err, EIO, "netlink: %s", nl_geterror(rc)) : 0;
}

int netlink_do_take(struct netlink *n, struct nl_msg *msg, struct drarun_error *err)
{
    if (msg)
        nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_ACK;
    int rc = send_msg(n, msg, err);
    if (rc == 0) {
        int got = nl_wait_for_ack(n->sock);
        rc = got < 0 ? refused(n, got, err) : 0;
    }
    nlmsg_free(msg);
    return rc;
}

struct question {
    netlink_fn fn;
    void *arg;
};

static int on_answer(struct nl_msg *msg, void *arg)
{
    const struct question *question = arg;
    question->fn(nlmsg_hdr(msg), question->arg);
    return NL_OK;
}

int netlink_ask_take(struct netlink *n, struct nl_msg *msg, netlink_fn fn, void *arg,
                     struct drarun_error *err)
{
    struct question question = {fn, arg};
    int rc = 0, got = -NLE_DUMP_INTR;
    nl_socket_modify_cb(n->sock, NL_CB_VALID, NL_CB_CUSTOM, on_answer, &question);
    for (int i = 0; rc == 0 && got == -NLE_DUMP_INTR && i < TRIES; i++) {
        rc = send_msg(n, msg, err);
        got = rc < 0 ? 0 : nl_recvmsgs_default(n->sock);
    }
    if (rc == 0 && got < 0)
        rc = refused(n, got, err);
    nl_socket_modify_cb(n->sock, NL_CB_VALID, NL_CB_DEFAULT, NULL, NULL);
    nlmsg_free(msg);
    return rc;
}

void netlink_strict(struct netlink *n, bool on)
{
    int value = on;
    setsockopt(nl_socket_get_fd(n->sock), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &value,
               sizeof value);
}

int netlink_follow_links(struct netlink *n, struct drarun_error *err)
{
    int rc = nl_socket_add_membership(n->sock, RTNLGRP_LINK);
    return rc < 0 ? error_set(err, EIO, "news of links: %s", nl_geterror(rc)) : 0;
}

int netlink_wait(struct netlink *n, int64_t until_ms)
{
    char dropped[8192];
    int64_t left = until_ms - clock_ms();
    struct pollfd fd = {.fd = nl_socket_get_fd(n->sock), .events = POLLIN};
    if (left <= 0 || poll(&fd, 1, (int)left) == 0)
        return 0;
    while (recv(fd.fd, dropped, sizeof dropped, MSG_DONTWAIT) > 0)
        continue;
    return 1;
}
