/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/claim_metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/doc/value.h"
#include "plugin/discover/device_json.h"
#include "plugin/prepare/claim_status.h"

#define FOLDER "/var/run/kubernetes.io/dra-device-attributes"

/* The part of a subrequest is not in the path; the name in the document has it. */
static bool is_request(const json_t *entry, const char *request)
{
    const char *name = value_text(entry, "request");
    size_t main = strcspn(request, "/");
    return name && strlen(name) == main && strncmp(name, request, main) == 0;
}

const json_t *claim_metadata_find(const json_t *list, const char *request)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry) if (is_request(entry, request)) return entry;
    return NULL;
}

static json_t *new_entry(const struct claimed *claimed, const char *request, const char *driver)
{
    char main[64], path[512];
    snprintf(main, sizeof main, "%.*s", (int)strcspn(request, "/"), request);
    snprintf(path, sizeof path, "%s/%s/%s/%s/%s-metadata.json", FOLDER,
             claimed->from_template ? "resourceclaimtemplates" : "resourceclaims",
             claimed->from_template ? claimed->entry : claimed->name, main, driver);
    json_t *document =
        json_pack("{s:s, s:{s:s, s:s, s:s, s:i}, s:[{s:s, s:[]}]}", "kind", "DeviceMetadata",
                  "metadata", "name", claimed->name, "namespace", claimed->namespace_, "uid",
                  claimed->uid, "generation", 1, "requests", "name", request, "devices");
    if (document && claimed->from_template)
        json_object_set_new(document, "podClaimName", json_string(claimed->entry));
    return json_pack("{s:s, s:s, s:o*}", "request", main, "container", path, "document", document);
}

static json_t *device_entry(const struct claimed_device *wanted, const char *driver,
                            const struct node_device *device, const json_t *order)
{
    CLEANUP(json_decrefp) json_t *published = device_json(device);
    json_t *entry =
        json_pack("{s:s, s:s, s:s, s:O*}", "driver", driver, "pool", wanted->pool, "name",
                  wanted->device, "attributes", json_object_get(published, "attributes"));
    json_t *network = entry ? claim_status_network(order) : NULL;
    if (network && json_object_set_new(entry, "networkData", network) < 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

bool claim_metadata_add(json_t *list, const struct claimed *claimed,
                        const struct claimed_device *wanted, const char *driver,
                        const struct node_device *device, const json_t *order)
{
    if (!claimed->entry[0])
        return true;
    const json_t *entry = claim_metadata_find(list, wanted->request);
    if (!entry) {
        json_array_append_new(list, new_entry(claimed, wanted->request, driver));
        entry = claim_metadata_find(list, wanted->request);
    }
    const json_t *request =
        json_array_get(json_object_get(json_object_get(entry, "document"), "requests"), 0);
    return json_array_append_new(json_object_get(request, "devices"),
                                 device_entry(wanted, driver, device, order)) == 0;
}

void claim_metadata_text(const json_t *entry, struct buf *out)
{
    static const char *const versions[] = {"v1beta1", "v1alpha1"};
    CLEANUP(json_decrefp) json_t *document = json_copy(json_object_get(entry, "document"));
    for (size_t i = 0; document && i < ARRAY_LEN(versions); i++) {
        char version[64];
        snprintf(version, sizeof version, "metadata.resource.k8s.io/%s", versions[i]);
        json_object_set_new(document, "apiVersion", json_string(version));
        cleanup_free char *line = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
        if (!line)
            out->failed = true;
        else
            buf_printf(out, "%s\n", line);
    }
    if (!document)
        out->failed = true;
}
