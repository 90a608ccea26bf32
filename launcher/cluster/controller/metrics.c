/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/controller/private.h"
#include "lib/base/error.h"

struct counting {
    const struct controller *c;
    struct drajob_census census;
};

/* Of those that it manages. */
static void add_to_census(const json_t *object, void *arg)
{
    struct counting *counting = arg;
    if (!controller_is_ceded(counting->c, kube_namespace(object)))
        drajob_census_add(&counting->census, object);
}

static void on_request(void *arg, struct buf *out)
{
    const struct controller *c = arg;
    struct counting counting = {.c = c};
    bool leads = c->drajobs && kube_watch_synced(c->drajobs) && !c->lost.code;
    if (leads)
        kube_watch_each(c->drajobs, add_to_census, &counting);
    const struct drajob_metrics metrics = {
        .version = DRARUN_VERSION,
        .instance = c->options->holder,
        .leads = leads,
        .due = controller_count_due(c),
        .ceded = json_object_size(c->ceded),
        .now_ms = controller_now(c),
        .census = leads ? &counting.census : NULL,
        .tally = &c->tally,
    };
    drajob_metrics_text(&metrics, out);
    drajob_census_done(&counting.census);
}

int controller_serve_metrics(struct controller *c, struct drarun_error *err)
{
    int rc = c->options->metrics_port == 0
                 ? 0
                 : metrics_server_new(c->cluster->base, c->options->metrics_port, on_request, c,
                                      &c->metrics, err);
    return rc < 0 ? error_prefix(err, "metrics are not served") : rc;
}
