/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server serves: one request for the core and one for all groups where it offers
 * aggregated discovery (Kubernetes 1.27 and later), else one for the groups, which then says
 * nothing about their resources. Kept by the client for KUBE_SERVED_MS, since a server is upgraded
 * and gets new definitions while a controller runs: until then a second question is answered
 * without asking. */
#ifndef DRARUN_KUBE_DISCOVER_H
#define DRARUN_KUBE_DISCOVER_H

#include <stdbool.h>
#include "lib/kube/client.h"

struct kube_served;

#define KUBE_SERVED_MS (10 * 60 * 1000)

/* err NULL: served is there, borrowed until this client's next kube_discover has its answer or
 * kube_client_free. What was known before is given where the server cannot be asked again. */
typedef void (*kube_discover_fn)(const struct kube_served *served, const struct drarun_error *err,
                                 void *arg);

struct kube_discovery; /* a question under way */
int kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                  struct kube_discovery **ret_discovery, struct drarun_error *err);
void kube_discover_cancel(struct kube_discovery *discovery);
/* The next question is asked: something was not there that the server was known to serve. */
void kube_discover_forget(struct kube_client *client);

/* plural NULL: any resource of it. */
bool kube_serves(const struct kube_served *served, const char *group, const char *version,
                 const char *plural);
/* The first of the versions (separated by spaces) that is served, borrowed from versions with its
 * length; NULL when none is. */
const char *kube_serves_one_of(const struct kube_served *served, const char *group,
                               const char *versions, const char *plural, size_t *ret_length);
/* The first version of the group, in the server's order, that is known to have the resource; NULL:
 * none, or nothing is said about resources. Borrowed from served. */
const char *kube_version_with(const struct kube_served *served, const char *group,
                              const char *plural);

#endif
