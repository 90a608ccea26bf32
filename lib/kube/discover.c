/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/discover.h"

#include <stdlib.h>
#include <errno.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/kube/call.h"
#include "lib/kube/client_private.h"
#include "lib/kube/served.h"

#define ACCEPT                                                                                     \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                        \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

struct kube_discovery {
    struct kube_client *client;
    kube_discover_fn fn;
    void *arg;
    struct event *known; /* for an answer that is there already */
    struct kube_call *calls[2];
    struct kube_served *served; /* being gathered */
};

static void discovery_free(struct kube_discovery *d)
{
    for (size_t i = 0; i < ARRAY_LEN(d->calls); i++)
        kube_call_cancel(d->calls[i]);
    if (d->known)
        event_free(d->known);
    served_free(d->served);
    free(d);
}

void kube_discover_cancel(struct kube_discovery *discovery)
{
    if (discovery)
        discovery_free(discovery);
}

static void discovery_end(struct kube_discovery *d, const struct drarun_error *err)
{
    struct kube_client *client = d->client;
    kube_discover_fn fn = d->fn;
    void *arg = d->arg;
    if (!err && d->served) {
        served_free(client->served);
        client->served = TAKE_PTR(d->served);
        client->served_until_ms = clock_ms() + KUBE_SERVED_MS;
    }
    if (err && client->served)
        err = NULL;
    discovery_free(d);
    fn(err ? NULL : client->served, err, arg);
}

static void on_known(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    discovery_end(arg, NULL);
}

static void on_answer(struct kube_discovery *d, size_t which, const struct kube_answer *answer,
                      const struct drarun_error *err)
{
    struct drarun_error why = {0};
    d->calls[which] = NULL;
    if (err)
        why = *err;
    else
        served_add(d->served, answer->body, &why);
    if (why.code)
        discovery_end(d, &why);
    else if (!d->calls[1 - which])
        discovery_end(d, NULL);
}

static void on_core(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    on_answer(arg, 0, answer, err);
}

static void on_groups(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    on_answer(arg, 1, answer, err);
}

static int ask(struct kube_discovery *d, struct drarun_error *err)
{
    struct kube_request core = {
        .method = "GET", .path = "/api", .accept = ACCEPT, .what = "discovery of the core"};
    struct kube_request groups = {
        .method = "GET", .path = "/apis", .accept = ACCEPT, .what = "discovery of the groups"};
    if (!(d->served = served_new()))
        return error_set(err, ENOMEM, "out of memory");
    int rc = kube_call_start(d->client, &core, on_core, d, &d->calls[0], err);
    return rc < 0 ? rc : kube_call_start(d->client, &groups, on_groups, d, &d->calls[1], err);
}

void kube_discover_forget(struct kube_client *client)
{
    client->served_until_ms = 0;
}

int kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                  struct kube_discovery **ret_discovery, struct drarun_error *err)
{
    struct kube_discovery *d = calloc(1, sizeof *d);
    struct timeval now = {0};
    int rc = 0;
    if (!d)
        return error_set(err, ENOMEM, "out of memory");
    *d = (struct kube_discovery){.client = client, .fn = fn, .arg = arg};
    if (!client->served || clock_ms() >= client->served_until_ms)
        rc = ask(d, err);
    else if (!(d->known = event_new(client->base, -1, 0, on_known, d)) ||
             event_add(d->known, &now) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc < 0)
        discovery_free(d);
    else if (ret_discovery)
        *ret_discovery = d;
    return rc;
}
