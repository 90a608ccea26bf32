/* SPDX-License-Identifier: Apache-2.0 */
/* What a credential plugin is told and what it answers (client.authentication.k8s.io/v1 and
 * v1beta1; client-go, plugin/pkg/client/auth/exec/exec.go). Pure. Private to lib/kube. */
#ifndef DRARUN_KUBE_EXEC_ANSWER_H
#define DRARUN_KUBE_EXEC_ANSWER_H

#include <stdint.h>
#include "lib/kube/config_private.h"

struct exec_credential {
    char *token;                 /* NULL: none */
    struct buf certificate, key; /* PEM; both or none */
    int64_t expires_s;           /* since 1970; 0: it does not */
};

/* Wipes it. */
void exec_credential_done(struct exec_credential *credential);

/* The value of KUBERNETES_EXEC_INFO, malloc'ed; NULL without memory. */
char *exec_info(const struct kube_config *config, bool interactive);

/* Errors have kind DRARUN_ERR_CLUSTER and never show the answer. */
int exec_answer_read(const char *text, size_t length, const char *api_version,
                     struct exec_credential *ret_credential, struct drarun_error *err);

/* "2026-11-21T15:00:00Z", with a fraction or an offset: seconds since 1970; -EINVAL. */
int time_from_rfc3339(const char *text, int64_t *ret_s);

#endif
