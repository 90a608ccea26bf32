/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/tc_programs.h"

#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/base/cleanup.h"

#define ANSWER_SIZE 32768u /* what the kernel fills at most for a dump */
#define ANSWERS_MAX 1000u

/* An attribute of a list, NULL: it is not in it. The text of such a one need not end in a NUL. */
static const struct rtattr *find(const struct rtattr *list, size_t len, unsigned short type)
{
    const struct rtattr *attr = list;
    for (int left = (int)len; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
        if ((attr->rta_type & NLA_TYPE_MASK) == type)
            return attr;
    return NULL;
}

static bool take_text(const struct rtattr *attr, char *ret_text, size_t size)
{
    if (!attr)
        return false;
    snprintf(ret_text, size, "%.*s", (int)RTA_PAYLOAD(attr), (const char *)RTA_DATA(attr));
    return true;
}

static bool is_program(const struct nlmsghdr *head, char *ret_name, size_t size)
{
    char kind[16] = "";
    if (head->nlmsg_type != RTM_NEWTFILTER || head->nlmsg_len < NLMSG_LENGTH(sizeof(struct tcmsg)))
        return false;
    const struct tcmsg *filter = NLMSG_DATA(head);
    size_t len = head->nlmsg_len - NLMSG_LENGTH(sizeof *filter);
    const struct rtattr *options = find(TCA_RTA(filter), len, TCA_OPTIONS);
    if (!take_text(find(TCA_RTA(filter), len, TCA_KIND), kind, sizeof kind) ||
        strcmp(kind, "bpf") != 0 || !options) /* without options: the head of the list */
        return false;
    if (!take_text(find(RTA_DATA(options), RTA_PAYLOAD(options), TCA_BPF_NAME), ret_name, size))
        snprintf(ret_name, size, "bpf");
    return true;
}

int tc_programs_parse(const void *answer, size_t len, char *ret_name, size_t size)
{
    const struct nlmsghdr *head = answer;
    for (int left = (int)len; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
        if (head->nlmsg_type == NLMSG_DONE || head->nlmsg_type == NLMSG_ERROR)
            return 0;
        if (is_program(head, ret_name, size))
            return 1;
    }
    return -1;
}

static bool find_at(int index, uint32_t hook, char *ret_name, size_t size)
{
    struct {
        struct nlmsghdr head;
        struct tcmsg filter;
    } question = {
        .head = {.nlmsg_len = sizeof question,
                 .nlmsg_type = RTM_GETTFILTER,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .filter = {.tcm_family = AF_UNSPEC,
                   .tcm_ifindex = index,
                   .tcm_parent = TC_H_MAKE(TC_H_CLSACT, hook)},
    };
    const struct timeval patience = {.tv_sec = 1};
    _Alignas(struct nlmsghdr) char answer[ANSWER_SIZE];
    cleanup_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        send(fd, &question, sizeof question, 0) < 0)
        return false;
    for (unsigned i = 0; i < ANSWERS_MAX; i++) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);
        if (n < 0 && errno == EINTR)
            continue;
        int more = n > 0 ? tc_programs_parse(answer, (size_t)n, ret_name, size) : 0;
        if (more >= 0)
            return more > 0;
    }
    return false;
}

bool tc_programs_find(const char *interface, char *ret_name, size_t size)
{
    int index = (int)if_nametoindex(interface);
    return index > 0 && (find_at(index, TC_H_MIN_INGRESS, ret_name, size) ||
                         find_at(index, TC_H_MIN_EGRESS, ret_name, size));
}
