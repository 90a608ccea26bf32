/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/slices/publishing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/discover.h"
#include "lib/kube/object.h"

#define RETRY_MS 2000
#define RETRY_MAX_MS 60000

struct publishing {
    struct publishing_options options;
    struct kube_discovery *discovery; /* under way */
    struct kube_call *call;           /* under way: the Node */
    struct event *retry;
    int64_t retry_ms;
    char version[16], node_uid[64]; /* "": not known yet; node_uid: for new publishers */
    struct node_devices wanted;     /* until the publishers are there */
    bool have_wanted;
    struct publisher *publishers[PUBLISHING_DRIVERS_MAX];
    size_t count;
};

static void start(struct publishing *p);

/* ---- the publishers ---- */

static int add_publisher(struct publishing *p, const char *driver, const char *devices_of,
                         struct drarun_error *err)
{
    if (!driver)
        return 0;
    const struct publisher_options options = {
        .base = p->options.base,
        .client = p->options.client,
        .version = p->version,
        .owner = {.node = p->options.node, .node_uid = p->node_uid, .driver = driver},
        .agent = p->options.agent && *p->options.agent ? p->options.agent : NULL,
        .devices_of = devices_of,
        .held = p->options.held,
        .arg = p->options.arg,
    };
    int rc = publisher_new(&options, &p->publishers[p->count], err);
    p->count += rc == 0;
    return rc;
}

static int hand_over(struct publishing *p, struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && p->have_wanted && i < p->count; i++)
        rc = publisher_want(p->publishers[i], &p->wanted, err);
    if (rc < 0)
        return rc;
    node_devices_done(&p->wanted);
    p->have_wanted = false;
    return 0;
}

static void drop_publishers(struct publishing *p)
{
    while (p->count > 0)
        publisher_free(p->publishers[--p->count]);
}

/* ---- what must be known first ---- */

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    start(arg);
}

static void fail(struct publishing *p, const char *text)
{
    struct timeval after = timeval_from_ms(p->retry_ms);
    log_error("nothing is published yet: %s", text);
    evtimer_add(p->retry, &after);
    p->retry_ms = p->retry_ms * 2 < RETRY_MAX_MS ? p->retry_ms * 2 : RETRY_MAX_MS;
}

static void on_node(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct publishing *p = arg;
    struct drarun_error own = {0};
    p->call = NULL;
    if (err) {
        fail(p, err->text);
        return;
    }
    snprintf(p->node_uid, sizeof p->node_uid, "%s", kube_uid(answer->body));
    int rc = add_publisher(p, p->options.gpu_driver, NODE_DRIVER_GPU, &own);
    if (rc == 0)
        rc = add_publisher(p, p->options.nic_driver, NODE_DRIVER_NIC, &own);
    if (rc == 0)
        rc = hand_over(p, &own);
    if (rc < 0) {
        drop_publishers(p);
        fail(p, own.text);
    }
}

static void on_served(const struct kube_served *served, const struct drarun_error *err, void *arg)
{
    struct publishing *p = arg;
    struct drarun_error own = {0};
    size_t length = 0;
    p->discovery = NULL;
    if (err) {
        fail(p, err->text);
        return;
    }
    const char *version = kube_serves_one_of(served, "resource.k8s.io", PUBLISHING_VERSIONS,
                                             "resourceslices", &length);
    if (!version) {
        kube_discover_forget(p->options.client); /* it may by the next try */
        fail(p, "the API server serves no resourceslices of resource.k8s.io (" PUBLISHING_VERSIONS
                "): it needs Kubernetes 1.34 or later with Dynamic Resource Allocation");
        return;
    }
    snprintf(p->version, sizeof p->version, "%.*s", (int)length, version);
    const struct kube_target node = {.resource = &kube_nodes, .name = p->options.node};
    if (kube_get(p->options.client, &node, on_node, p, &p->call, &own) < 0)
        fail(p, own.text);
}

static void start(struct publishing *p)
{
    struct drarun_error err = {0};
    if (kube_discover(p->options.client, on_served, p, &p->discovery, &err) < 0)
        fail(p, err.text);
}

/* ---- life ---- */

int publishing_new(const struct publishing_options *options, struct publishing **ret_publishing,
                   struct drarun_error *err)
{
    struct publishing *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, ENOMEM, "publishing: out of memory");
    p->options = *options;
    p->retry_ms = RETRY_MS;
    p->retry = evtimer_new(options->base, on_retry, p);
    if (!p->retry) {
        publishing_free(p);
        return error_set(err, ENOMEM, "publishing: out of memory");
    }
    start(p);
    *ret_publishing = p;
    return 0;
}

void publishing_free(struct publishing *p)
{
    if (!p)
        return;
    if (p->discovery)
        kube_discover_cancel(p->discovery);
    kube_call_cancel(p->call);
    drop_publishers(p);
    if (p->retry)
        event_free(p->retry);
    node_devices_done(&p->wanted);
    free(p);
}

int publishing_want(struct publishing *p, const struct node_devices *devices,
                    struct drarun_error *err)
{
    int rc = 0;
    if (p->count == 0) {
        node_devices_done(&p->wanted);
        rc = node_devices_copy(devices, &p->wanted, err);
        p->have_wanted = rc == 0;
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < p->count; i++)
        rc = publisher_want(p->publishers[i], devices, err);
    return rc;
}

void publishing_held_changed(struct publishing *p)
{
    for (size_t i = 0; i < p->count; i++)
        publisher_held_changed(p->publishers[i]);
}

const char *publishing_version(const struct publishing *publishing)
{
    return publishing->version;
}

void publishing_count(const struct publishing *p, struct publisher_counts *ret_counts)
{
    struct publisher_counts sum = {0}, one;
    for (size_t i = 0; i < p->count; i++) {
        publisher_count(p->publishers[i], &one);
        sum.writes += one.writes;
        sum.failures += one.failures;
        sum.restored += one.restored;
    }
    *ret_counts = sum;
}
