/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/kube/call.h"
#include "lib/kube/client_private.h"
#include "lib/kube/proxy.h"
#include "lib/kube/served.h"

/* With tls-server-name the URL carries that name, which is what libcurl verifies and asks for by
 * SNI, while CONNECT_TO and the Host header keep the server's own. */
static bool rename_host(struct kube_client *client, const char *server, const char *tls_name)
{
    const char *host = strstr(server, "://") + 3;
    size_t scheme = (size_t)(host - server);
    size_t length = strcspn(host, "/");
    const char *colon = memrchr(host, ':', length), *bracket = memrchr(host, ']', length);
    bool has_port = colon && (!bracket || colon > bracket);
    size_t name = has_port ? (size_t)(colon - host) : length;
    return asprintf(&client->url, "%.*s%s%s", (int)scheme, server, tls_name, host + name) >= 0 &&
           asprintf(&client->connect_to, "::%.*s:", (int)name, host) >= 0 &&
           (client->host_header = strndup(host, length));
}

static bool set_url(struct kube_client *client)
{
    const struct kube_config *config = client->config;
    if (config->tls_server_name)
        return rename_host(client, config->server, config->tls_server_name);
    return (client->url = strdup(config->server));
}

/* One that the kubeconfig names leads to every host: NO_PROXY has no say then, as in kubectl. */
static bool set_proxy(struct kube_client *client)
{
    const struct kube_config *config = client->config;
    struct proxy_variables variables;
    proxy_read_variables(&variables);
    client->proxy = config->proxy_url ? proxy_for_curl(config->proxy_url)
                                      : proxy_of(config->server, &variables);
    return client->proxy;
}

int kube_client_new(struct event_base *base, const struct kube_config *config,
                    struct kube_client **ret_client, struct drarun_error *err)
{
    CLEANUP(kube_client_freep) struct kube_client *client = calloc(1, sizeof *client);
    if (!client)
        return error_set(err, ENOMEM, "out of memory");
    client->base = base;
    client->config = config;
    client->ping_ms = KUBE_PING_MS;
    TAILQ_INIT(&client->line);
    TAILQ_INIT(&client->calls);
    if (!set_url(client) || !set_proxy(client))
        return error_set(err, ENOMEM, "out of memory");
    int rc = transport_new(base, &client->transport, err);
    if (rc == 0)
        rc = refusals_new(&client->refusals, err);
    if (rc == 0)
        rc = credentials_new(base, config, &client->credentials, err);
    if (rc == 0)
        *ret_client = TAKE_PTR(client);
    return rc;
}

void kube_client_free(struct kube_client *client)
{
    if (!client)
        return;
    while (!TAILQ_EMPTY(&client->calls))
        kube_call_cancel(TAILQ_FIRST(&client->calls));
    transport_free(client->transport);
    credentials_free(client->credentials);
    unanswered_done(&client->unanswered);
    served_free(client->served);
    refusals_free(client->refusals);
    free(client->url);
    free(client->connect_to);
    free(client->host_header);
    free(client->proxy);
    free(client);
}

int64_t kube_client_now(const struct kube_client *client)
{
    return client->date_ms ? client->date_ms + clock_ms() - client->dated_ms : 0;
}

void kube_client_count(const struct kube_client *client, struct kube_client_counts *ret_counts)
{
    *ret_counts = client->counts;
    ret_counts->connections = transport_connections(client->transport);
}
