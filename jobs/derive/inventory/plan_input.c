/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/plan_input.h"

#define SEVERAL 2 /* GPUs, as good as any number of them */

static enum plan_ranks ranks_of(const struct spec_role *role, char *const argv[])
{
    bool several = role->gpus.all || role->gpus.count > 1;
    return several && spec_role_ranks(role, false, argv, SEVERAL) == 1 ? PLAN_RANKS_POD
                                                                       : PLAN_RANKS_AUTO;
}

/* network is about the roles that ask for NICs; where none does, about all. */
static enum spec_network network_of(const struct job_spec *spec, const struct spec_role *role)
{
    bool others = false;
    for (uint32_t r = 0; r < spec->role_count; r++)
        others |= spec_role_has_nics(&spec->roles[r]);
    return others && !spec_role_has_nics(role) ? SPEC_NETWORK_ANY : spec->network;
}

struct plan_input plan_input_of(const struct job_spec *spec, const struct spec_role *role,
                                char *const argv[])
{
    return (struct plan_input){
        .network = network_of(spec, role),
        .tcp_will_do = spec->network_given && spec->network == SPEC_NETWORK_ANY,
        .ranks = ranks_of(role, argv),
        .mpi = spec->mpi_transport,
        .hca_list = role->nccl_hca_list,
        .plugin_gpus = role->gpus.resource ? role->gpus.count : 0,
        .no_gpus = !role->gpus.all && role->gpus.count == 0,
        .profile = role->nccl_profile,
        .nccl_version = role->nccl_version,
        .user_env = role->nccl_env.items,
    };
}

const char *plan_input_label(const struct plan_input *input, const char *node, const char *key)
{
    const json_t *labels = node ? json_object_get(input->node_labels, node) : NULL;
    return json_string_value(json_object_get(labels, key));
}

const char *plan_input_instance_type(const struct plan_input *input, const char *node)
{
    return plan_input_label(input, node, "node.kubernetes.io/instance-type");
}
