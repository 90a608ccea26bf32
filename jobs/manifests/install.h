/* SPDX-License-Identifier: Apache-2.0 */
/* What a namespace needs once, before its first job: the launcher's ServiceAccount with its Role
 * and RoleBinding, and a NetworkPolicy for workers of jobs that have none of their own
 * (docs/design/010-claims.md).
 * Pure.
 */
#ifndef DRARUN_JOBS_INSTALL_H
#define DRARUN_JOBS_INSTALL_H

#include <jansson.h>
#include "lib/base/strlist.h"

#define INSTALL_ACCOUNT "drarun-launcher"
#define INSTALL_USER_ROLE "drarun-user"
#define INSTALL_NETWORK_POLICY "drarun"
#define INSTALL_CONTROLLER "drarun-controller"

/* An array of manifests in the order of creation; the caller's. NULL: out of memory.
 * pull_secrets: of the account's pods, by name; NULL: none. */
json_t *install_manifests(const char *namespace, const struct strlist *pull_secrets);

/* What a Role of the launcher's account, as the API server has it, does not allow of what this
 * version's does: "get resourceclaimtemplates". An older version's stays when programs are
 * replaced. -ENOMEM. */
int install_role_lacks(const json_t *launcher_role, struct strlist *ret_lacking);

/* What people need who submit jobs to the namespace: a Role, which is bound to whom it may concern.
 * As above. */
json_t *install_user_manifests(const char *namespace);

/* The account of a `drarun controller` of this namespace alone, with its Role. As above. */
json_t *install_controller_manifests(const char *namespace, const struct strlist *pull_secrets);

/* What belongs to the whole cluster, and may be missing: a read-only ClusterRole for the devices
 * and its binding to that account. Jobs run without it, and say less of why they wait. */
json_t *install_cluster_manifests(const char *namespace);

#endif
