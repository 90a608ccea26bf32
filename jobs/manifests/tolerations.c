/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/tolerations.h"

#include <stdbool.h>
#include <string.h>

#include "lib/dra/taint.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define EFFECT "NoSchedule"
#define NVIDIA "nvidia.com/gpu"
#define AMD "amd.com/gpu"

/* Of GPUs by claim: other DeviceClasses than AMD's are for NVIDIA's, as all that is derived. */
static const char *gpu_key(const struct job_spec *spec, const struct spec_role *role)
{
    const struct spec_devices *gpus = &role->gpus;
    bool wanted = gpus->all || gpus->count > 0;
    if (wanted && gpus->resource)
        return gpus->resource;
    if (wanted && gpus->class)
        return strstr(gpus->class, "amd.com") ? AMD : NVIDIA;
    return spec->compute_domain ? NVIDIA : NULL;
}

/* Does an entry of the template tolerate this taint, whatever its value where that is not known? */
static bool covers(const json_t *entry, const struct toleration *taint)
{
    const char *key = value_text_or(entry, "key", "");
    const char *effect = value_text_or(entry, "effect", "");
    const char *value = value_text_or(entry, "value", "");
    bool any = strcmp(value_text_or(entry, "operator", "Equal"), "Exists") == 0;
    if (key[0] ? strcmp(key, taint->key) != 0 : !any)
        return false;
    if (effect[0] && strcmp(effect, EFFECT) != 0)
        return false;
    return any || (taint->value && strcmp(value, taint->value) == 0);
}

static bool is_tolerated(const json_t *list, const struct toleration *taint)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (covers(entry, taint))
            return true;
    }
    return false;
}

size_t tolerations_of(const struct job_spec *spec, const struct spec_role *role,
                      struct toleration ret_list[TOLERATIONS_MAX])
{
    const json_t *own = json_object_get(spec_role_pod(role), "tolerations");
    const struct machine_taint *machine = &role->machine.taint;
    const struct toleration known[] = {
        {gpu_key(spec, role), NULL, "nodes with GPUs"},
        {role->nics.resource, NULL, "nodes with these NICs"},
        {machine->key, machine->value, machine->nodes},
    };
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].key && !is_tolerated(own, &known[i]))
            ret_list[count++] = known[i];
    return count;
}

json_t *tolerations_merge(const json_t *list, const struct toleration *more, size_t count)
{
    CLEANUP(json_decrefp) json_t *merged = list ? json_copy(unconst(list)) : json_array();
    for (size_t i = 0; merged && i < count; i++) {
        json_t *entry =
            json_pack("{s:s, s:s, s:s*, s:s}", "key", more[i].key, "operator",
                      more[i].value ? "Equal" : "Exists", "value", more[i].value, "effect", EFFECT);
        if (!entry || json_array_append_new(merged, entry) < 0)
            return NULL;
    }
    return TAKE_PTR(merged);
}

json_t *tolerations_of_launcher(const json_t *list)
{
    static const char *const keys[] = {"node.kubernetes.io/not-ready",
                                       "node.kubernetes.io/unreachable"};
    CLEANUP(json_decrefp) json_t *merged = list ? json_copy(unconst(list)) : json_array();
    for (size_t i = 0; merged && i < ARRAY_LEN(keys); i++) {
        CLEANUP(json_decrefp)
        json_t *taint = json_pack("{s:s, s:s}", "key", keys[i], "effect", "NoExecute");
        CLEANUP(json_decrefp) json_t *taints = json_pack("[O]", taint);
        if (!taints)
            return NULL;
        if (!taint_repelling(taints, list))
            continue;
        json_t *entry = json_pack("{s:s, s:s, s:s, s:i}", "key", keys[i], "operator", "Exists",
                                  "effect", "NoExecute", "tolerationSeconds", LAUNCHER_TOLERATES_S);
        if (!entry || json_array_append_new(merged, entry) < 0)
            return NULL;
    }
    return TAKE_PTR(merged);
}
