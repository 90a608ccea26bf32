/* SPDX-License-Identifier: Apache-2.0 */
/* drarun_env_derive for one who tells the warnings of what is refused, too. */
#ifndef DRARUN_LAUNCHER_API_ENV_H
#define DRARUN_LAUNCHER_API_ENV_H

#include "drarun/env.h"

/* A refusal is an env, of which only env_refusal and drarun_env_warning may be asked. */
int env_build(const struct drarun_env_options *options, struct drarun_env **ret_env,
              struct drarun_error *err);
/* 0, or -EINVAL with the words of the refusal. */
int env_refusal(const struct drarun_env *env, struct drarun_error *err);

#endif
