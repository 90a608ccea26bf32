/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/api/picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "launcher/api/text.h"
#include "launcher/topo/view.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static bool is_at(const struct topo_host *host, size_t pci, uint64_t address)
{
    if (pci == TOPO_NONE || host->pci[pci].place.addr_unknown)
        return false;
    const struct pci_addr *a = &host->pci[pci].place.addr;
    return address == ((uint64_t)a->domain << 16 | (uint64_t)a->bus << 8 |
                       (uint64_t)a->device << 3 | a->function);
}

static size_t gpu_at(const struct topo_view *view, uint64_t address)
{
    for (size_t i = 0; i < view->host->gpu_count; i++)
        if (is_at(view->host, view->host->gpus[i].pci, address))
            return i;
    return TOPO_NONE;
}

static size_t nic_at(const struct topo_view *view, uint64_t address)
{
    for (size_t i = 0; i < view->nic_count; i++)
        if (is_at(view->host, view->nics[i].pci, address))
            return i;
    return TOPO_NONE;
}

static enum topo_path path_named(const char *name)
{
    for (int path = 0; path < TOPO_PATH_COUNT; path++)
        if (strcmp(topo_path_name((enum topo_path)path), name) == 0)
            return (enum topo_path)path;
    return TOPO_PATH_UNKNOWN;
}

/* False: a device's address is not known, so that it is not found in the picture. */
static bool link_of(const struct topo_view *view, const struct plan_worker *worker, size_t gpu,
                    const struct nccl_use *use, struct view_link *ret_link)
{
    struct view_link link = {gpu_at(view, worker->gpus[gpu].device.pci),
                             nic_at(view, worker->nics[use->nic].found.device.pci),
                             path_named(nccl_path_name(use->path))};
    if (link.gpu == TOPO_NONE || link.nic == TOPO_NONE)
        return false;
    if (worker->model->facts[gpu][use->nic] == PAIR_BY_ROOT && use->path == NCCL_PATH_PIX)
        link.path = TOPO_PATH_ROOT; /* as drarun topo draws it */
    if (link.path == TOPO_PATH_UNKNOWN)
        link.path = view_path(view, link.gpu, link.nic);
    *ret_link = link;
    return true;
}

/* In place of those that the view found itself, unless there are none or not all can be drawn. */
static int take_links(const struct plan_worker *worker, struct topo_view *view,
                      struct drarun_error *err)
{
    size_t count = 0, all = 0;
    for (size_t g = 0; worker->result && g < worker->gpu_count; g++)
        all += worker->result->count[g];
    if (all == 0)
        return 0;
    struct view_link *links = calloc(all, sizeof *links);
    if (!links)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t g = 0; g < worker->gpu_count; g++)
        for (size_t i = 0; i < worker->result->count[g]; i++)
            count += link_of(view, worker, g, &worker->result->use[g][i], &links[count]);
    if (count < all) {
        free(links);
        return 0;
    }
    free(view->links);
    view->links = links;
    view->link_count = count;
    return 0;
}

static size_t rails_told(const json_t *fabric, uint32_t worker)
{
    size_t count = 0;
    for (uint32_t r = 0; r < fabric_rail_count(fabric); r++)
        count += fabric_opened(fabric, worker, r) != FABRIC_NONE;
    return count;
}

static char worse(char a, char b)
{
    static const char order[] = {FABRIC_FAILED, FABRIC_UNREACHED, FABRIC_UNKNOWN};
    for (size_t i = 0; i < sizeof order; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return b;
}

/* A rail is a place in the plan's list of NICs: it is known which is which where none is missing.
 */
static int take_fabric(const struct plan_worker *worker, uint32_t index, const json_t *fabric,
                       struct topo_view *view, struct drarun_error *err)
{
    cleanup_free struct fabric_rail *rails = NULL;
    cleanup_free char *states = calloc(view->nic_count + 1, 1);
    size_t count = 0;
    if (!states || fabric_rails(worker, &rails, &count) < 0)
        return error_set(err, ENOMEM, "out of memory");
    view->fabric = fabric;
    view->worker = index;
    if (count != rails_told(fabric, index))
        return 0;
    for (size_t r = 0; r < count; r++) {
        const struct device *device = rails[r].nic ? &rails[r].nic->device : &rails[r].left->device;
        size_t nic = nic_at(view, device->pci);
        if (nic != TOPO_NONE)
            states[nic] = worse(states[nic], fabric_state(fabric, index, (uint32_t)r));
    }
    view->nic_states = TAKE_PTR(states);
    return 0;
}

int picture_of_worker(struct topo_host *host, const struct plan_worker *worker,
                      const struct view_job *job, const json_t *fabric, char **ret_svg,
                      struct drarun_error *err)
{
    struct topo_view view;
    struct buf svg = BUF_INIT;
    for (size_t i = 0; worker->plugin_gpus > 0 && i < host->gpu_count; i++)
        host->gpus[i].usable = TOPO_UNKNOWN;
    int rc = topo_view_make(host, &view, err);
    if (rc < 0)
        return rc;
    view.job = job;
    rc = take_links(worker, &view, err);
    if (rc == 0 && fabric)
        rc = take_fabric(worker, job->worker, fabric, &view, err);
    if (rc == 0)
        topo_svg(&view, &svg);
    free(view.nic_states);
    topo_view_done(&view);
    char *text = text_take(&svg);
    if (rc == 0 && !text)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_svg = text;
    else
        free(text);
    return rc;
}
