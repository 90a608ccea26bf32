/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a role learn of the roles (docs/design/039-roles.md): variables of its program.
 */
#ifndef DRARUN_LAUNCHER_ROLE_ENV_H
#define DRARUN_LAUNCHER_ROLE_ENV_H

#include "drarun/error.h"
#include "jobs/spec/spec.h"
#include "lib/base/strlist.h"

/* Adds "NAME=VALUE" to env: DRARUN_ROLE, and for each role of the job DRARUN_HOSTS_ROLE with the
 * addresses of its workers, unless these are too many for a variable. Nothing for a document
 * without `roles`. hosts: by worker, an address at which the others reach it. -ENOMEM. */
int role_env_add(const struct job_spec *spec, const struct spec_role *role,
                 const char *const *hosts, struct strlist *env, struct drarun_error *err);

/* Logs a line that names the roles whose addresses role_env_add leaves out, if there are such. */
int role_env_tell(const struct job_spec *spec, const char *const *hosts, struct drarun_error *err);

#endif
