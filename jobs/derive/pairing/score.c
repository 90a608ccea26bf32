/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/pairing/score.h"

/* Measured: SYS 0.45 to 0.64, a chip-to-chip path without GPUDirect 79.7 of 96.1 GB/s; the others
 * are estimates. */
static double weight(const struct nccl_use *use)
{
    double w = use->path == NCCL_PATH_SYS ? 0.5 : use->path == NCCL_PATH_PHB ? 0.7 : 1.0;
    double without = use->path == NCCL_PATH_P2C ? 0.8 : 0.7;
    return use->gdr || w < without ? w : without;
}

double score_of(const struct devices *devices, const struct nccl_model *model,
                const struct nccl_result *result, bool arm)
{
    uint32_t sharing[NCCL_NICS_MAX] = {0};
    double nominal = 0, total = 0, crossing = 0;
    for (size_t n = 0; n < devices->nic_count; n++)
        nominal = devices->nics[n].gbs > nominal ? devices->nics[n].gbs : nominal;
    for (size_t g = 0; g < devices->gpu_count; g++)
        for (size_t i = 0; i < result->count[g]; i++)
            sharing[result->use[g][i].nic]++;
    for (size_t g = 0; g < devices->gpu_count; g++) {
        double sum = 0;
        for (size_t i = 0; i < result->count[g]; i++) {
            const struct nccl_use *use = &result->use[g][i];
            sum += weight(use) * devices->nics[use->nic].gbs / sharing[use->nic];
        }
        sum = sum < nominal ? sum : nominal;
        /* a GPU's NICs are of one class: its local ones */
        if (result->count[g] > 0 && result->use[g][0].path == NCCL_PATH_SYS)
            crossing += sum;
        else
            total += sum;
    }
    if (!arm && crossing > model->inter_socket)
        crossing = model->inter_socket;
    return (total + crossing) / (nominal * (double)devices->gpu_count);
}
