/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/nccl_within.h"

#include "lib/bench/span.h"

/* "NAME set by environment to VALUE": the value; NULL. */
static const char *set_to(struct span line, const char *name)
{
    const char *at = span_after(line, name);
    return at ? span_after(span_from(line, at), "set by environment to ") : NULL;
}

static bool is_on(const char *value, const char *end)
{
    return value && value < end && *value >= '1' && *value <= '9';
}

void nccl_within_reasons(struct nccl_within *within, const char *line, size_t length)
{
    const struct span all = {line, line + length};
    const char *level = set_to(all, "NCCL_P2P_LEVEL ");
    if (is_on(set_to(all, "NCCL_P2P_DISABLE "), all.end))
        within->p2p_disabled = true;
    if (is_on(set_to(all, "NCCL_SHM_DISABLE "), all.end))
        within->shm_disabled = true;
    if (level && level < all.end &&
        (*level == '0' || span_find(span_from(all, level), "LOC") == level))
        within->p2p_level = true;
    if (span_find(all, "P2P is disabled between ") ||
        span_find(all, "Could not enable P2P between "))
        within->refused = true;
}

void nccl_within_text(const struct nccl_within *within, struct buf *out)
{
    buf_printf(out, "%zu by P2P, %zu by shared memory", within->p2p, within->shm);
    if (within->net > 0)
        buf_printf(out, ", %zu by the network", within->net);
}

bool nccl_within_detours(const struct nccl_within *within)
{
    return within->shm + within->net > 0;
}

bool nccl_within_has_reason(const struct nccl_within *within)
{
    return within->p2p_disabled || within->p2p_level || within->refused;
}

void nccl_within_why(const struct nccl_within *within, struct buf *out)
{
    if (within->p2p_disabled)
        buf_add_str(out, "NCCL_P2P_DISABLE is 1: unset it");
    else if (within->p2p_level)
        buf_add_str(out, "NCCL_P2P_LEVEL allows no P2P: unset it");
    else if (within->refused)
        buf_add_str(out,
                    "the driver refuses P2P between GPUs: disable ACS on the PCIe switches and "
                    "the IOMMU's translation (iommu=pt), or the GPUs have no P2P");
    else
        buf_add_str(out, "no line says why: NCCL_P2P_DISABLE or NCCL_P2P_LEVEL is set, ACS or the "
                         "IOMMU is in the way, or a container does not see the other GPU; "
                         "NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,P2P names the reason");
    if (within->net > 0 && within->shm_disabled)
        buf_add_str(out, "; NCCL_SHM_DISABLE is 1, too, which leaves the network alone");
}
