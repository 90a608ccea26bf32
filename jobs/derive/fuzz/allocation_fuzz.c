/* SPDX-License-Identifier: Apache-2.0 */
/* {"slices": ..., "claims": [...], "probe": ..., "labels": {...}} of any shape must end in a plan,
 * a refusal or an error. */
#include <stddef.h>
#include <stdint.h>

#include "jobs/derive/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void derive(json_t *document, const struct slices *slices, const struct profiles *profiles)
{
    struct plan_worker_input workers[2];
    struct plan plan;
    for (size_t i = 0; i < 2; i++)
        workers[i] = (struct plan_worker_input){.claims = json_object_get(document, "claims"),
                                                .probe = json_object_get(document, "probe")};
    struct plan_input in = {.network = SPEC_NETWORK_ANY,
                            .slices = slices,
                            .node_labels = json_object_get(document, "labels"),
                            .profiles = profiles,
                            .workers = workers,
                            .worker_count = 2};
    if (plan_build(&in, &plan, NULL) < 0)
        return;
    json_decref(plan_to_json(&plan, true));
    plan_done(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profiles profiles;
    struct slices slices;
    json_t *document = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    if (!document)
        return 0;
    if (profiles_builtin(&profiles, NULL) == 0) {
        json_t *list = json_object_get(document, "slices");
        if (list && slices_read(list, &slices, NULL) == 0) {
            derive(document, &slices, &profiles);
            slices_done(&slices);
        }
        profiles_done(&profiles);
    }
    json_decref(document);
    return 0;
}
