/* SPDX-License-Identifier: Apache-2.0 */
/* Where a device was put: the network namespace, and what tells it from any other device there that
 * a pod may make. Kept in a file beside the order, CLAIM-UID.DEVICE.place, on the same tmpfs, so
 * that the device is taken back from there and nowhere else. */
#ifndef DRARUN_ATTACH_PLACE_H
#define DRARUN_ATTACH_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include "plugin/attach/link.h"
#include "plugin/attach/order.h"

struct place {
    uint64_t device, inode; /* of the namespace; inode 0: no place is known */
    uint64_t cookie;        /* which no other namespace of this boot has; 0: an older kernel */
    int index;              /* of the device there; 0: it was on its way */
    char kind[16];          /* as struct link has them */
    int peer, peer_ns;
    int port; /* on its function (port.h), as it was on the host; -1: not known */
};

/* The namespace alone. ns: a descriptor. */
int place_of(int ns, struct place *ret, struct drarun_error *err);
/* Both are the same namespace; false where one is not known. */
bool place_same(const struct place *a, const struct place *b);

/* What there is to know of the device: as it is on the host before it goes, or in the namespace. */
void place_take(struct place *place, const struct link *link, bool arrived);
/* Whether it can be that device, by what a pod does not choose. */
bool place_fits(const struct place *place, const struct link *link);

/* inode 0 where there is no file that can be read: the device was never put anywhere, or by a
 * release that wrote none. */
void place_load(const struct attach_order *order, struct place *ret);
int place_save(const struct attach_order *order, const struct place *place,
               struct drarun_error *err);

#endif
