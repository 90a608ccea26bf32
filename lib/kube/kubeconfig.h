/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfig files and what a context in them means. Private to lib/kube; config.h is the front. */
#ifndef DRARUN_KUBE_KUBECONFIG_H
#define DRARUN_KUBE_KUBECONFIG_H

#include "lib/base/buf.h"
#include "lib/doc/reader.h"
#include "lib/kube/config.h"

#define KUBECONFIG_FILES_MAX 1000u /* some people have one for each cluster */

struct kubeconfig {
    struct doc *docs[KUBECONFIG_FILES_MAX]; /* those that exist, in the order of the list */
    size_t count;
    char *searched; /* the list, for messages */
};

/* path NULL: $KUBECONFIG, where missing files do not count, or else ~/.kube/config. */
int kubeconfig_open(struct kubeconfig *files, const char *path, struct drarun_error *err);
/* One more from text, for tests and fuzzing; name is its path. */
int kubeconfig_add(struct kubeconfig *files, const char *name, const char *text, size_t length,
                   struct drarun_error *err);
void kubeconfig_done(struct kubeconfig *files);

/* The token that an OIDC provider has given this user, as the text of a kubeconfig has it now.
 * ret_: a new text; -ENOENT: it has none. */
int kubeconfig_provided_token(const struct buf *text, const char *name, const char *user,
                              struct buf *ret_token);

int kubeconfig_choose(const struct kubeconfig *files, const struct kube_config_choice *choice,
                      struct kube_config **ret_config, struct drarun_error *err);

#endif
