/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to discovery, decoded: {group: {version: {plural: true} or null}}, null where the
 * answer says nothing about resources. Pure. Private to lib/kube; discover.h is the front. */
#ifndef DRARUN_KUBE_SERVED_H
#define DRARUN_KUBE_SERVED_H

#include <jansson.h>
#include "lib/kube/discover.h"

struct kube_served {
    json_t *groups;
};

struct kube_served *served_new(void);
void served_free(struct kube_served *served);
/* Adds what an APIGroupDiscoveryList, an APIGroupList or an APIVersions says. */
int served_add(struct kube_served *served, const json_t *answer, struct drarun_error *err);

#endif
