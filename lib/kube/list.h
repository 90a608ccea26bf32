/* SPDX-License-Identifier: Apache-2.0 */
/* A whole collection, read in pages: all of one moment, also while it changes. */
#ifndef DRARUN_KUBE_LIST_H
#define DRARUN_KUBE_LIST_H

#include "lib/kube/object.h"

#define KUBE_PAGE 500 /* objects a page, at most */
/* Of select->small_pages. The values of a page take up to 28 times as many bytes. */
#define KUBE_SMALL_PAGE ((size_t)2 << 20)

struct kube_listing; /* under way */

/* As kube_call_fn. answer->body: the list with the items of all pages and the metadata of the last
 * one. When a page's token expires half way (410) all is read again, once. Pages that are larger
 * than an answer may be are asked for with fewer objects. The listing is gone when fn returns.
 * select may be NULL. */
int kube_list(struct kube_client *client, const struct kube_target *target,
              const struct kube_select *select, kube_call_fn fn, void *arg,
              struct kube_listing **ret_listing, struct drarun_error *err);
/* The same, but fn is called with each page: more follow while its metadata.continue is not empty
 * (kube_list_has_more). A token that expired is an ESTALE for fn. */
int kube_list_pages(struct kube_client *client, const struct kube_target *target,
                    const struct kube_select *select, kube_call_fn fn, void *arg,
                    struct kube_listing **ret_listing, struct drarun_error *err);
bool kube_list_has_more(const json_t *page);
void kube_list_cancel(struct kube_listing *listing);

#endif
