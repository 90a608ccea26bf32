/* SPDX-License-Identifier: Apache-2.0 */
/* What must be in a namespace's network for one device: read, add what is missing, read again. The
 * kernel's list decides, not whether adding succeeded. */
#ifndef DRARUN_ATTACH_ENSURE_H
#define DRARUN_ATTACH_ENSURE_H

#include <stdbool.h>
#include "plugin/attach/netlink.h"

#define ENSURE_TEXT 160

struct ensure {
    const char *what; /* "address", for messages */
    int list;         /* RTM_GETADDR, ...; answers have the type that comes before it */
    const void *items;
    size_t count, size;
    int index;      /* of the device */
    uint32_t table; /* of the device's VRF, or 0 */
    bool (*is)(const struct ensure *ensure, const void *item, struct nlmsghdr *answer);
    struct nl_msg *(*add)(const struct ensure *ensure, const void *item);
    void (*text)(const void *item, char *out); /* of ENSURE_TEXT bytes */
};

int ensure_all(struct netlink *n, const struct ensure *ensure, struct drarun_error *err);

#endif
