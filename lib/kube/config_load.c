/* SPDX-License-Identifier: Apache-2.0 */
/* Of a pod's service account, or of kubeconfigs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/number.h"
#include "lib/kube/config_private.h"
#include "lib/kube/kubeconfig.h"

/* "https://10.96.0.1:443"; an IPv6 address in brackets */
static int service_url(struct kube_config *config, struct drarun_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    int64_t number = 0;
    if (!host || !*host || !port || !*port)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this "
                          "is no pod; name a kubeconfig");
    int rc = number_parse("KUBERNETES_SERVICE_PORT", port, 1, 65535, &number, err);
    if (rc < 0)
        return rc;
    bool v6 = strchr(host, ':') != NULL;
    if (asprintf(&config->server, "https://%s%s%s:%d", v6 ? "[" : "", host, v6 ? "]" : "",
                 (int)number) < 0) {
        config->server = NULL;
        return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

static int account_file(struct kept_file *file, const char *dir, const char *name,
                        struct drarun_error *err)
{
    if (asprintf(&file->path, "%s/%s", dir, name) < 0) {
        file->path = NULL;
        return error_set(err, ENOMEM, "out of memory");
    }
    return kept_file_refresh(file, err);
}

/* The namespace's file may be absent: then "default", as client-go has it. NULL: out of memory. */
static char *account_namespace(const char *dir)
{
    struct kept_file file = {0};
    char *found = NULL;
    int rc = account_file(&file, dir, "namespace", NULL);
    if (rc == 0)
        found = strndup(file.content.data, strcspn(file.content.data, " \n"));
    else if (rc != -ENOMEM)
        found = strdup("default");
    kept_file_done(&file);
    return found;
}

int kube_config_in_cluster(const struct kube_config_choice *choice, struct kube_config **ret_config,
                           struct drarun_error *err)
{
    CLEANUP(kube_config_freep) struct kube_config *config = calloc(1, sizeof *config);
    const char *dir =
        choice && choice->in_cluster_in ? choice->in_cluster_in : KUBE_SERVICE_ACCOUNT;
    if (!config)
        return error_set(err, ENOMEM, "out of memory");
    int rc = service_url(config, err);
    if (rc == 0)
        rc = account_file(&config->token, dir, "token", err);
    if (rc == 0)
        rc = account_file(&config->ca, dir, "ca.crt", err);
    if (rc < 0)
        return error_prefix(err, "the pod's service account");
    config->name = strdup("the pod's service account");
    config->namespace_ =
        choice && choice->namespace_ ? strdup(choice->namespace_) : account_namespace(dir);
    if (!config->name || !config->namespace_)
        return error_set(err, ENOMEM, "out of memory");
    *ret_config = TAKE_PTR(config);
    return 0;
}

static bool in_pod(void)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    return host && *host;
}

int kube_config_load(const struct kube_config_choice *choice, struct kube_config **ret_config,
                     struct drarun_error *err)
{
    static const struct kube_config_choice none;
    struct kubeconfig files = {0};
    choice = choice ? choice : &none;
    int rc = kubeconfig_open(&files, choice->path, err);
    if (rc == 0 && files.count == 0 && !choice->context && in_pod())
        rc = kube_config_in_cluster(choice, ret_config, err);
    else if (rc == 0)
        rc = kubeconfig_choose(&files, choice, ret_config, err);
    kubeconfig_done(&files);
    return rc;
}
