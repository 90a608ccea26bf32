/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/profile/profile_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/value.h"

static bool has_attribute(const char *key, bool (*match)(const char *value, const void *arg),
                          const void *arg, const void *node)
{
    const struct inventory *inventory = node;
    for (size_t i = 0; i < inventory->node_device_count; i++) {
        const struct device *d = &inventory->node_devices[i];
        const char *text = value_text(json_object_get(d->slice->attributes, key), "string");
        if (d->kind == DEVICE_NIC && text && text[0] && match(text, arg))
            return true;
    }
    return false;
}

static const struct profile *detect(const struct plan_input *in, const struct inventory *inventory,
                                    char *ret_fact, size_t size)
{
    const struct inventory_nic *nic = inventory_first_rdma(inventory);
    const json_t *labels =
        inventory->node ? json_object_get(in->node_labels, inventory->node) : NULL;
    const struct profile_facts facts = {
        .labels = labels,
        .has_attribute = has_attribute,
        .node = inventory,
        .link_layer = nic ? nic->link_layer : NULL,
        .ibdev = nic ? nic->ibdev : NULL,
        .arch = value_text(labels, "kubernetes.io/arch"),
        .product = value_text(json_array_get(inventory->probe.gpus, 0), "product"),
        .files = inventory->probe.files,
    };
    return profiles_detect(in->profiles, &facts, ret_fact, size);
}

/* The worker has what the profile carries data on. */
static bool fits(const struct profile *profile, const struct inventory *inventory)
{
    if (profile->data == PROFILE_NO_DATA)
        return true;
    return profile->data == PROFILE_NETDEV ? inventory->nic_count > 0
                                           : inventory_first_rdma(inventory) != NULL;
}

int profile_choose(const struct plan_input *input, const struct inventory *inventory,
                   struct plan_notes *notes, struct profile_choice *ret_choice,
                   struct drarun_error *err)
{
    const char *wanted = input->profile;
    const struct profile *profile = NULL;
    char fact[256] = "";
    if (wanted && strcmp(wanted, "auto") != 0) {
        profile = profiles_find(input->profiles, wanted);
        if (!profile)
            return error_kind(err, DRARUN_ERR_SPEC, ENOENT, "no profile \"%.60s\"", wanted);
        snprintf(fact, sizeof fact, "%s", input->profile_fact ? input->profile_fact : "asked for");
    } else {
        profile = detect(input, inventory, fact, sizeof fact);
    }
    if (!profile || !fits(profile, inventory)) {
        profile = profiles_find(input->profiles, "socket");
        snprintf(fact, sizeof fact, "no RDMA NIC");
    }
    *ret_choice = (struct profile_choice){profile, plan_notes_text(notes, "%s", fact)};
    return 0;
}
