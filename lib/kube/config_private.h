/* SPDX-License-Identifier: Apache-2.0 */
/* What a chosen context comes to. Private to lib/kube. */
#ifndef DRARUN_KUBE_CONFIG_PRIVATE_H
#define DRARUN_KUBE_CONFIG_PRIVATE_H

#include <jansson.h>
#include "lib/base/strlist.h"
#include "lib/kube/config.h"
#include "lib/kube/kept_file.h"

enum exec_interactive { EXEC_NEVER = 1, EXEC_IF_AVAILABLE, EXEC_ALWAYS };

struct exec_spec { /* a credential plugin */
    char *api_version;
    char *command; /* with a slash: absolute; else looked up in PATH */
    struct strlist args, env;
    char *install_hint;
    enum exec_interactive interactive;
    bool provide_cluster;
};

struct kube_config {
    char *name;
    char *namespace_;
    char *server;                      /* "https://host:port/prefix", without a slash at its end */
    char *tls_server_name, *proxy_url; /* NULL: none */
    bool insecure;
    struct kept_file ca, certificate, key; /* PEM */
    struct kept_file token;                /* surrounding white space does not count */
    /* With a token of an OIDC provider: the kubeconfig, into which kubectl writes the next one, and
     * the user in it. NULL: none, or it cannot be read again. */
    struct kept_file provided;
    char *provided_user;
    json_t *cluster_extension; /* of client.authentication.k8s.io/exec, for provideClusterInfo */
    char *as, *as_uid;
    struct strlist as_groups;
    struct strlist as_extra; /* in turns the name of a header and what it says */
    struct exec_spec *exec;  /* NULL: none */
    int64_t exec_ms;         /* its deadline; 0: the usual one */
};

#endif
