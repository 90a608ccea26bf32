/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics_server.h"
#include "lib/metrics/metrics_text.h"

#define RETRY_MS 5000

/* ---- text ---- */

static void add_devices(const struct metrics_facts *facts, struct buf *out)
{
    static const char name[] = "drarun_plugin_devices";
    metrics_add_head(out, name, "gauge",
                     "Devices of the node, by driver and whether they have a fault.");
    for (size_t i = 0; i < facts->driver_count; i++) {
        size_t count[2] = {0};
        for (size_t k = 0; k < facts->devices->count; k++) {
            const struct node_device *device = &facts->devices->list[k];
            if (strcmp(node_device_driver(device), facts->drivers[i].devices_of) == 0)
                count[device->fault_count > 0]++;
        }
        buf_printf(out, "%s{driver=\"%s\",fault=\"no\"} %zu\n%s{driver=\"%s\",fault=\"yes\"} %zu\n",
                   name, facts->drivers[i].name, count[0], name, facts->drivers[i].name, count[1]);
    }
}

static void add_claims(const struct metrics_facts *facts, struct buf *out)
{
    metrics_add_head(out, "drarun_plugin_claims", "gauge", "Claims that are prepared.");
    for (size_t i = 0; i < facts->driver_count; i++)
        buf_printf(out, "drarun_plugin_claims{driver=\"%s\"} %zu\n", facts->drivers[i].name,
                   facts->drivers[i].counts.claims);
}

static void add_call(const char *driver, const char *call, uint64_t ok, uint64_t failed,
                     struct buf *out)
{
    static const char name[] = "drarun_plugin_calls_total";
    buf_printf(out, "%s{driver=\"%s\",call=\"%s\",result=\"ok\"} %" PRIu64 "\n", name, driver, call,
               ok);
    buf_printf(out, "%s{driver=\"%s\",call=\"%s\",result=\"error\"} %" PRIu64 "\n", name, driver,
               call, failed);
}

static void add_calls(const struct metrics_facts *facts, struct buf *out)
{
    static const char seconds[] = "drarun_plugin_call_seconds_total";
    metrics_add_head(out, "drarun_plugin_calls_total", "counter",
                     "Calls of the kubelet for a claim.");
    for (size_t i = 0; i < facts->driver_count; i++) {
        const struct metrics_driver *d = &facts->drivers[i];
        add_call(d->name, "prepare", d->counts.prepared, d->counts.not_prepared, out);
        add_call(d->name, "unprepare", d->counts.unprepared, d->counts.not_unprepared, out);
    }
    metrics_add_head(out, seconds, "counter", "How long those calls took together.");
    for (size_t i = 0; i < facts->driver_count; i++) {
        const struct metrics_driver *d = &facts->drivers[i];
        buf_printf(out, "%s{driver=\"%s\",call=\"prepare\"} %.3f\n", seconds, d->name,
                   (double)d->counts.prepare_ms / 1000);
        buf_printf(out, "%s{driver=\"%s\",call=\"unprepare\"} %.3f\n", seconds, d->name,
                   (double)d->counts.unprepare_ms / 1000);
    }
}

static void add_slices(const struct publisher_counts *counts, struct buf *out)
{
    metrics_add_head(out, "drarun_plugin_slice_writes_total", "counter",
                     "Writes of ResourceSlices, by result.");
    buf_printf(out, "drarun_plugin_slice_writes_total{result=\"ok\"} %" PRIu64 "\n",
               counts->writes);
    buf_printf(out, "drarun_plugin_slice_writes_total{result=\"error\"} %" PRIu64 "\n",
               counts->failures);
    metrics_add_head(out, "drarun_plugin_slices_restored_total", "counter",
                     "ResourceSlices that somebody else had changed or deleted.");
    buf_printf(out, "drarun_plugin_slices_restored_total %" PRIu64 "\n", counts->restored);
}

void plugin_metrics_text(const struct metrics_facts *facts, struct buf *out)
{
    metrics_add_head(out, "drarun_plugin_info", "gauge", "Which plugin this is.");
    buf_printf(out, "drarun_plugin_info{version=\"%s\",node=\"%s\"} 1\n", DRARUN_VERSION,
               facts->node);
    add_devices(facts, out);
    add_claims(facts, out);
    add_calls(facts, out);
    add_slices(&facts->slices, out);
}

/* ---- serving ---- */

struct plugin_metrics {
    struct event_base *base;
    struct event *retry;
    struct metrics_server *server; /* NULL: another has the port */
    metrics_facts_fn fn;
    void *arg;
    uint16_t port;
    bool told;
};

static void on_request(void *arg, struct buf *out)
{
    struct plugin_metrics *metrics = arg;
    struct metrics_facts facts = {0};
    metrics->fn(metrics->arg, &facts);
    plugin_metrics_text(&facts, out);
}

static void try_port(evutil_socket_t fd, short what, void *arg)
{
    struct plugin_metrics *metrics = arg;
    const struct timeval after = timeval_from_ms(RETRY_MS);
    struct drarun_error err = {0};
    (void)fd, (void)what;
    if (metrics_server_new(metrics->base, metrics->port, on_request, metrics, &metrics->server,
                           &err) == 0)
        return;
    if (!metrics->told)
        log_note("no metrics yet: %s; it is tried again", err.text);
    metrics->told = true;
    evtimer_add(metrics->retry, &after);
}

int plugin_metrics_new(struct event_base *base, uint16_t port, metrics_facts_fn fn, void *arg,
                       struct plugin_metrics **ret_metrics, struct drarun_error *err)
{
    struct plugin_metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics || !(metrics->retry = evtimer_new(base, try_port, metrics))) {
        free(metrics);
        return error_set(err, ENOMEM, "out of memory");
    }
    metrics->base = base;
    metrics->port = port;
    metrics->fn = fn;
    metrics->arg = arg;
    try_port(-1, 0, metrics);
    *ret_metrics = metrics;
    return 0;
}

void plugin_metrics_free(struct plugin_metrics *metrics)
{
    if (!metrics)
        return;
    metrics_server_free(metrics->server);
    event_free(metrics->retry);
    free(metrics);
}
