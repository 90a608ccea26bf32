/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/survey.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/kube/list.h"

static void on_listed(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct survey *survey = arg;
    survey->listing = NULL;
    survey->came[survey->asked] = true;
    if (err)
        log_verbose("%s: %s", survey->without, err->text);
    else
        survey->items[survey->asked] = json_incref(json_object_get(answer->body, "items"));
}

bool survey_read(struct survey *survey, enum survey_kind kind, bool metadata_only,
                 const char *without)
{
    static const struct kube_resource *const kinds[] = {[SURVEY_SLICES] = &kube_resource_slices,
                                                        [SURVEY_CLASSES] = &kube_device_classes,
                                                        [SURVEY_NODES] = &kube_nodes};
    struct kube_resource resource = *kinds[kind];
    struct drarun_error err = {0};
    const struct kube_target target = {.resource = &resource};
    const struct kube_select select = {.metadata_only = metadata_only};
    if (survey->listing || survey->came[kind])
        return survey->came[kind];
    if (strcmp(resource.group, "resource.k8s.io") == 0)
        resource.version = cluster_claims_version(survey->cluster);
    survey->asked = kind;
    survey->without = without;
    if (kube_list(survey->cluster->client, &target, &select, on_listed, survey, &survey->listing,
                  &err) == 0)
        return false;
    log_verbose("%s: %s", without, err.text);
    survey->came[kind] = true;
    return true;
}

void survey_done(struct survey *survey)
{
    kube_list_cancel(TAKE_PTR(survey->listing));
    for (size_t i = 0; i < ARRAY_LEN(survey->items); i++)
        json_decref(TAKE_PTR(survey->items[i]));
}
