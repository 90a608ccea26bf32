/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/ensure.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct reading {
    const struct ensure *ensure;
    bool *there;
};

static const void *item_at(const struct ensure *ensure, size_t i)
{
    return (const char *)ensure->items + i * ensure->size;
}

static void on_answer(struct nlmsghdr *answer, void *arg)
{
    const struct reading *reading = arg;
    const struct ensure *ensure = reading->ensure;
    if (answer->nlmsg_type != ensure->list - 2) /* RTM_GETx is RTM_NEWx + 2 */
        return;
    for (size_t i = 0; i < ensure->count; i++)
        reading->there[i] = reading->there[i] || ensure->is(ensure, item_at(ensure, i), answer);
}

static int read_all(struct netlink *n, const struct ensure *ensure, bool *there,
                    struct drarun_error *err)
{
    struct reading reading = {ensure, there};
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC}; /* as long as any of the list's own */
    memset(there, 0, ensure->count * sizeof *there);
    int rc = netlink_ask_take(n, netlink_message(ensure->list, NLM_F_DUMP, &head, sizeof head),
                              on_answer, &reading, err);
    return rc < 0 ? error_prefix(err, "%s list", ensure->what) : 0;
}

int ensure_all(struct netlink *n, const struct ensure *ensure, struct drarun_error *err)
{
    char text[ENSURE_TEXT];
    cleanup_free bool *there = calloc(ensure->count + 1, sizeof *there);
    size_t added = 0;
    if (!there)
        return error_set(err, ENOMEM, "%s: out of memory", ensure->what);
    if (ensure->count == 0)
        return 0;
    int rc = read_all(n, ensure, there, err);
    for (size_t i = 0; rc == 0 && i < ensure->count; i++) {
        if (there[i])
            continue;
        added++;
        ensure->text(item_at(ensure, i), text);
        rc = netlink_do_take(n, ensure->add(ensure, item_at(ensure, i)), err);
        if (rc == -EEXIST)
            rc = error_set(err, EEXIST, "another one is in its place");
        if (rc < 0)
            return error_prefix(err, "%s %s", ensure->what, text);
    }
    if (rc == 0 && added)
        rc = read_all(n, ensure, there, err);
    for (size_t i = 0; rc == 0 && i < ensure->count; i++) {
        ensure->text(item_at(ensure, i), text);
        if (!there[i])
            rc = error_set(err, EIO, "%s %s: the kernel took it and does not list it", ensure->what,
                           text);
    }
    return rc;
}
