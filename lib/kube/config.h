/* SPDX-License-Identifier: Apache-2.0 */
/* Which API server, as whom, in which namespace: kubeconfig files merged as kubectl merges them
 * (client-go, tools/clientcmd/loader.go: per entry the first file that has it wins, nothing of the
 * later ones is mixed in), or the service account of the pod that we run in.
 *
 * Values in, values out, but for the files that it names, which are read at loading. Errors name
 * file, line, column, context or user, and field; kind DRARUN_ERR_USAGE for a choice that cannot be
 * met (no file, no such context), DRARUN_ERR_SPEC for a file's content. */
#ifndef DRARUN_KUBE_CONFIG_H
#define DRARUN_KUBE_CONFIG_H

#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"

struct kube_config;

struct kube_config_choice {    /* all borrowed for the call; NULL: as kubectl without the option */
    const char *path;          /* --kubeconfig; else $KUBECONFIG (a list), else ~/.kube/config */
    const char *context;       /* --context; else current-context */
    const char *namespace_;    /* --namespace; else the context's, else "default" */
    const char *in_cluster_in; /* for tests: instead of KUBE_SERVICE_ACCOUNT */
    int64_t exec_ms;           /* deadline of a credential plugin; 0: 60 s, at a terminal 300 s */
};

#define KUBE_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* Without any kubeconfig file and without a choice of one, in a pod: its service account, as
 * kubectl does. */
int kube_config_load(const struct kube_config_choice *choice, struct kube_config **ret_config,
                     struct drarun_error *err);
/* The service account alone: for the launcher in its pod. */
int kube_config_in_cluster(const struct kube_config_choice *choice, struct kube_config **ret_config,
                           struct drarun_error *err);
void kube_config_free(struct kube_config *config);
DEFINE_CLEANUP(struct kube_config, kube_config_free)

/* Borrowed until kube_config_free; never NULL. */
const char *kube_config_namespace(const struct kube_config *config);
const char *kube_config_server(const struct kube_config *config);
/* For messages: 'context "prod" of /home/u/.kube/config', or "the pod's service account". */
const char *kube_config_name(const struct kube_config *config);

#endif
