/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of the command line in bash, zsh and fish, made of the verbs' option tables. Pure. */
#ifndef DRARUN_LAUNCHER_COMPLETION_H
#define DRARUN_LAUNCHER_COMPLETION_H

#include "lib/base/buf.h"

/* Appends the script for "bash", "zsh" or "fish". -EINVAL: another shell. */
int completion_script(const char *shell, struct buf *out);

#endif
