/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/rdma.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "plugin/attach/netlink.h"
#include "plugin/attach/netns.h"
#include "plugin/attach/rdma_lock.h"

#define STEP_MS 20

struct answer {
    const char *name;
    uint32_t index;
    bool found;
    int shared; /* -1: not said */
};

static void on_answer(struct nlmsghdr *message, void *arg)
{
    struct answer *answer = arg;
    struct nlattr *t[RDMA_NLDEV_ATTR_MAX];
    if (nlmsg_parse(message, 0, t, RDMA_NLDEV_ATTR_MAX - 1, NULL) < 0)
        return;
    if (t[RDMA_NLDEV_SYS_ATTR_NETNS_MODE])
        answer->shared = nla_get_u8(t[RDMA_NLDEV_SYS_ATTR_NETNS_MODE]);
    if (answer->name && t[RDMA_NLDEV_ATTR_DEV_NAME] && t[RDMA_NLDEV_ATTR_DEV_INDEX] &&
        strcmp(nla_get_string(t[RDMA_NLDEV_ATTR_DEV_NAME]), answer->name) == 0) {
        answer->index = nla_get_u32(t[RDMA_NLDEV_ATTR_DEV_INDEX]);
        answer->found = true;
    }
}

static int ask(int ns, int command, int flags, struct answer *answer, struct drarun_error *err)
{
    struct netlink n = {0};
    int rc = netlink_open(&n, ns, NETLINK_RDMA, err);
    if (rc == 0)
        rc = netlink_ask_take(
            &n, netlink_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), flags, NULL, 0),
            on_answer, answer, err);
    netlink_done(&n);
    /* no module ib_core: neither the protocol nor a listener */
    if (rc == -EPROTONOSUPPORT || rc == -ECONNREFUSED)
        return error_set(err, ENODEV, "this kernel has no RDMA devices");
    return rc < 0 ? error_prefix(err, "RDMA") : 0;
}

int rdma_shared(struct drarun_error *err)
{
    struct answer answer = {.shared = -1};
    int rc = ask(-1, RDMA_NLDEV_CMD_SYS_GET, 0, &answer, err);
    if (rc == 0 && answer.shared < 0)
        rc = error_set(err, EOPNOTSUPP,
                       "RDMA: the kernel does not say whether namespaces share "
                       "devices");
    return rc < 0 ? rc : answer.shared;
}

int rdma_is_in(int ns, const char *name, struct drarun_error *err)
{
    struct answer answer = {.name = name};
    int rc = ask(ns, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, &answer, err);
    return rc < 0 ? rc : answer.found;
}

int rdma_await(const char *name, int64_t until_ms, struct drarun_error *err)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (;;) {
        int rc = rdma_is_in(-1, name, err);
        if (rc != 0 || clock_ms() >= until_ms)
            return rc;
        nanosleep(&step, NULL);
    }
}

/* The kernel compares the device's namespace with the caller's own, not with the socket's: in any
 * other than `from` it says ENODEV. */
static int move_from_within(uint32_t index, int to, struct drarun_error *err)
{
    struct netlink n = {0};
    struct nl_msg *msg =
        netlink_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SET), 0, NULL, 0);
    netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
    netlink_put_u32(msg, RDMA_NLDEV_NET_NS_FD, (uint32_t)to);
    int rc = netlink_open(&n, -1, NETLINK_RDMA, err);
    if (rc < 0)
        nlmsg_free(msg);
    else
        rc = netlink_do_take(&n, msg, err);
    netlink_done(&n);
    return rc;
}

int rdma_move(int from, int to, const char *name, const char *order_path, struct drarun_error *err)
{
    struct answer answer = {.name = name};
    cleanup_close int own = -1, locked = -1;
    int back = -1, rc = rdma_lock(order_path, RDMA_LOCK_MS, &locked, err);
    rc = rc < 0 ? rc : ask(from, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, &answer, err);
    if (rc == 0 && !answer.found)
        rc = error_set(err, ENODEV, "no RDMA device %s", name);
    rc = rc < 0 ? rc : netns_own(&own, err);
    rc = rc < 0 ? rc : netns_enter(from, &back, err);
    if (rc < 0)
        return rc;
    rc = move_from_within(answer.index, to < 0 ? own : to, err);
    netns_leave(back);
    if (rc == -EOPNOTSUPP)
        return error_set(err, EOPNOTSUPP,
                         "RDMA device %s: its driver cannot move it to another namespace; set the "
                         "node to shared mode (rdma system set netns shared)",
                         name);
    if (rc < 0)
        return error_prefix(err, "move RDMA device %s", name);
    rc = rdma_is_in(to, name, err);
    if (rc == 0)
        rc = error_set(err, EIO, "RDMA device %s: the kernel moved it and does not list it", name);
    return rc < 0 ? rc : 0;
}

/* ---- its character device ---- */

/* The kernel's encoding of a device's number in 64 bits (huge_encode_dev). */
static dev_t decode(uint64_t number)
{
    return makedev((unsigned)((number & 0xfff00) >> 8),
                   (unsigned)((number & 0xff) | ((number >> 12) & 0xfff00)));
}

static void on_node(struct nlmsghdr *message, void *arg)
{
    struct rdma_node *node = arg;
    struct nlattr *t[RDMA_NLDEV_ATTR_MAX];
    if (nlmsg_parse(message, 0, t, RDMA_NLDEV_ATTR_MAX - 1, NULL) < 0 ||
        !t[RDMA_NLDEV_ATTR_CHARDEV] || !t[RDMA_NLDEV_ATTR_CHARDEV_NAME])
        return;
    node->number = decode(nla_get_u64(t[RDMA_NLDEV_ATTR_CHARDEV]));
    snprintf(node->name, sizeof node->name, "%s", nla_get_string(t[RDMA_NLDEV_ATTR_CHARDEV_NAME]));
}

static int verbs_node(struct netlink *n, uint32_t index, struct rdma_node *ret,
                      struct drarun_error *err)
{
    struct rdma_node node = {0};
    struct drarun_error refused = {0};
    struct nl_msg *msg =
        netlink_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV), 0, NULL, 0);
    netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
    netlink_put_text(msg, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
    int rc = netlink_ask_take(n, msg, on_node, &node, &refused);
    if (rc == -EOPNOTSUPP || rc == -EINVAL || (rc == 0 && !node.number))
        return 0;
    if (rc < 0)
        return error_set(err, refused.code, "RDMA: verbs node: %s", refused.text);
    if (!node.name[0] || strchr(node.name, '/') || node.name[0] == '.')
        return error_set(err, EPROTO, "RDMA: a verbs node called \"%s\"", node.name);
    *ret = node;
    return 1;
}

int rdma_verbs_node(int ns, const char *name, struct rdma_node *ret, struct drarun_error *err)
{
    CLEANUP(netlink_done) struct netlink n = {0};
    struct answer answer = {.name = name};
    int rc = ask(ns, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, &answer, err);
    if (rc == 0 && !answer.found)
        rc = error_set(err, ENODEV, "no RDMA device %s", name);
    rc = rc < 0 ? rc : netlink_open(&n, ns, NETLINK_RDMA, err);
    return rc < 0 ? rc : verbs_node(&n, answer.index, ret, err);
}

struct indices {
    uint32_t *list;
    int count, max;
};

static void on_index(struct nlmsghdr *message, void *arg)
{
    struct indices *indices = arg;
    struct nlattr *t[RDMA_NLDEV_ATTR_MAX];
    if (nlmsg_parse(message, 0, t, RDMA_NLDEV_ATTR_MAX - 1, NULL) == 0 &&
        t[RDMA_NLDEV_ATTR_DEV_INDEX] && indices->count < indices->max)
        indices->list[indices->count++] = nla_get_u32(t[RDMA_NLDEV_ATTR_DEV_INDEX]);
}

int rdma_verbs_numbers(int ns, dev_t *ret_numbers, int max, struct drarun_error *err)
{
    CLEANUP(netlink_done) struct netlink n = {0};
    cleanup_free uint32_t *list = calloc((size_t)max, sizeof *list);
    struct indices indices = {list, 0, max};
    struct rdma_node node;
    int count = 0;
    if (!list)
        return error_set(err, ENOMEM, "out of memory");
    int rc = netlink_open(&n, ns, NETLINK_RDMA, err);
    if (rc == 0)
        rc = netlink_ask_take(&n,
                              netlink_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
                                              NLM_F_DUMP, NULL, 0),
                              on_index, &indices, err);
    for (int i = 0; rc >= 0 && i < indices.count; i++) {
        rc = verbs_node(&n, list[i], &node, err);
        rc = rc == -ENODEV ? 0 : rc; /* it has left meanwhile */
        if (rc > 0)
            ret_numbers[count++] = node.number;
    }
    return rc < 0 ? rc : count;
}
