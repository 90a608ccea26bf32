/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/metrics.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"

static void on_request(void *arg, struct buf *out)
{
    struct lead *lead = arg;
    bool told = lead->doc && status_doc_exit(lead->doc) >= 0;
    CLEANUP(json_decrefp)
    json_t *doc = told ? json_incref(lead->doc) : lead_document(lead, NULL);
    if (doc)
        metrics_text(doc, lead_now(), out);
}

void lead_serve_metrics(struct lead *lead)
{
    struct drarun_error err = {0};
    int32_t port = lead->options->metrics_port;
    if (port <= 0 || lead->metrics)
        return;
    if (metrics_server_new(lead->cluster->base, (uint16_t)port, on_request, lead, &lead->metrics,
                           &err) < 0)
        log_note("metrics are not served: %s; DRARUN_METRICS=PORT sets another port, "
                 "DRARUN_METRICS=off turns them off",
                 err.text);
}
