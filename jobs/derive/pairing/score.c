/* SPDX-License-Identifier: Apache-2.0 */
/* How good an allocation is against the NICs' speed (docs/design/011-derivation.md, "Score"). */
#include "jobs/derive/plan_private.h"

/* Measured: SYS 0.45 to 0.64, a chip-to-chip path without GPUDirect 79.7 of 96.1 GB/s; the others
 * are estimates. */
static double weight(const struct nccl_use *use)
{
    double w = use->path == NCCL_PATH_SYS ? 0.5 : use->path == NCCL_PATH_PHB ? 0.7 : 1.0;
    double without = use->path == NCCL_PATH_P2C ? 0.8 : 0.7;
    return use->gdr || w < without ? w : without;
}

double score_worker(const struct plan_worker *worker, bool arm)
{
    const struct nccl_result *r = worker->result;
    uint32_t sharing[NCCL_NICS_MAX] = {0};
    double nominal = 0, total = 0, crossing = 0;
    if (!r)
        return -1;
    for (size_t n = 0; n < worker->nic_count; n++)
        nominal = worker->nics[n].gbs > nominal ? worker->nics[n].gbs : nominal;
    for (size_t g = 0; g < worker->gpu_count; g++)
        for (size_t i = 0; i < r->count[g]; i++)
            sharing[r->use[g][i].nic]++;
    for (size_t g = 0; g < worker->gpu_count; g++) {
        double sum = 0;
        for (size_t i = 0; i < r->count[g]; i++) {
            const struct nccl_use *use = &r->use[g][i];
            sum += weight(use) * worker->nics[use->nic].gbs / sharing[use->nic];
        }
        sum = sum < nominal ? sum : nominal;
        /* a GPU's NICs are of one class: its local ones */
        if (r->count[g] > 0 && r->use[g][0].path == NCCL_PATH_SYS)
            crossing += sum;
        else
            total += sum;
    }
    if (!arm && crossing > worker->model->inter_socket)
        crossing = worker->model->inter_socket;
    return (total + crossing) / (nominal * (double)worker->gpu_count);
}
