/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/config.h"

#include <stdlib.h>

#include "lib/kube/config_private.h"

static void free_exec(struct exec_spec *spec)
{
    if (!spec)
        return;
    free(spec->api_version);
    free(spec->command);
    strlist_done(&spec->args);
    strlist_done(&spec->env);
    free(spec->install_hint);
    free(spec);
}

void kube_config_free(struct kube_config *config)
{
    if (!config)
        return;
    free(config->name);
    free(config->namespace_);
    free(config->server);
    free(config->tls_server_name);
    free(config->proxy_url);
    kept_file_done(&config->ca);
    kept_file_done(&config->certificate);
    kept_file_done(&config->key);
    kept_file_done(&config->token);
    kept_file_done(&config->provided);
    free(config->provided_user);
    json_decref(config->cluster_extension);
    free(config->as);
    free(config->as_uid);
    strlist_done(&config->as_groups);
    strlist_done(&config->as_extra);
    free_exec(config->exec);
    free(config);
}

const char *kube_config_namespace(const struct kube_config *config)
{
    return config->namespace_;
}

const char *kube_config_server(const struct kube_config *config)
{
    return config->server;
}

const char *kube_config_name(const struct kube_config *config)
{
    return config->name;
}
