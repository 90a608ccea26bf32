/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/doc.h"
#include "lib/doc/value.h"

#define GROUP "metadata.resource.k8s.io/"

void metadata_done(struct metadata *metadata)
{
    free(metadata->list);
    *metadata = (struct metadata){0};
}

DEFINE_CLEANUP(struct metadata, metadata_done)

/* ---- shape ---- */

static bool is_known(const json_t *document)
{
    static const char *const versions[] = {GROUP "v1beta1", GROUP "v1alpha1"};
    const char *version = value_text(document, "apiVersion"), *kind = value_text(document, "kind");
    for (size_t i = 0; version && kind && i < ARRAY_LEN(versions); i++)
        if (strcmp(version, versions[i]) == 0 && strcmp(kind, "DeviceMetadata") == 0)
            return true;
    return false;
}

static int wrong(struct drarun_error *err, size_t request, size_t device, const char *expected)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "requests[%zu].devices[%zu]: expected %s",
                      request, device, expected);
}

/* What is left out is legal: a driver may fill it in later. */
static bool is_object_or_none(const json_t *value)
{
    return !value || json_is_null(value) || json_is_object(value);
}

static int check_device(const json_t *device, size_t r, size_t d, struct drarun_error *err)
{
    const json_t *attributes = json_object_get(device, "attributes");
    const char *key;
    json_t *value;
    if (!value_text(device, "driver") || !value_text(device, "pool") || !value_text(device, "name"))
        return wrong(err, r, d, "driver, pool and name");
    if (!is_object_or_none(attributes))
        return wrong(err, r, d, "attributes by name");
    value_foreach(attributes, key, value)
    {
        if (!json_is_object(value))
            return wrong(err, r, d, "an object for each attribute");
    }
    return is_object_or_none(json_object_get(device, "networkData"))
               ? 0
               : wrong(err, r, d, "networkData to be an object");
}

static int check_document(const json_t *document, size_t *ret_devices, struct drarun_error *err)
{
    const json_t *requests = json_object_get(document, "requests");
    size_t r, d, count = 0;
    json_t *request, *device;
    if (requests && !json_is_array(requests))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "requests: expected an array");
    json_array_foreach(requests, r, request)
    {
        const json_t *devices = json_object_get(request, "devices");
        if (!value_text(request, "name") || (devices && !json_is_array(devices)))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "requests[%zu]: expected a name and an array of devices", r);
        json_array_foreach(devices, d, device)
        {
            int rc = check_device(device, r, d, err);
            if (rc < 0)
                return rc;
            count++;
        }
    }
    *ret_devices = count;
    return 0;
}

/* ---- reading ---- */

int metadata_decode(const char *name, const char *text, size_t len, json_t **ret_document,
                    struct drarun_error *err)
{
    static const struct doc_limits limits = {.size = METADATA_SIZE_MAX, .depth = 16};
    CLEANUP(doc_freep) struct doc *doc = NULL;
    size_t devices = 0, i = 0;
    int rc = doc_parse(name, text, len, DOC_FORMAT_JSON, &limits, &doc, err);
    if (rc < 0)
        return rc;
    if (doc_count(doc) == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: is empty", name);
    while (i < doc_count(doc) && !is_known(doc_root(doc, i)))
        i++;
    if (i == doc_count(doc)) {
        const char *version = value_text(doc_root(doc, 0), "apiVersion");
        return error_kind(err, DRARUN_ERR_SPEC, EPROTONOSUPPORT,
                          "%s: expected a DeviceMetadata of " GROUP
                          "v1beta1 or v1alpha1, got %.80s",
                          name, version ? version : "no apiVersion");
    }
    rc = check_document(doc_root(doc, i), &devices, err);
    if (rc < 0)
        return error_prefix(err, "%s", name);
    *ret_document = json_incref(doc_root(doc, i));
    return 0;
}

int metadata_decode_files(json_t *probe, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *files = json_incref(json_object_get(probe, "metadataFiles"));
    const char *path;
    json_t *text;
    if (!files)
        return 0;
    json_t *documents = json_array(), *errors = json_object_get(probe, "metadataErrors");
    errors = json_is_array(errors) ? json_incref(errors) : json_array();
    json_object_foreach(files, path, text)
    {
        struct drarun_error why = {0};
        json_t *document = NULL;
        int rc = json_is_string(text) ? metadata_decode(path, json_string_value(text),
                                                        json_string_length(text), &document, &why)
                                      : error_set(&why, EINVAL, "expected a text");
        if (rc < 0)
            json_array_append_new(errors,
                                  json_sprintf("/" METADATA_FOLDER "/%s: %s", path, why.text));
        else
            json_array_append_new(documents, document);
    }
    json_object_del(probe, "metadataFiles");
    if (json_object_set_new(probe, "metadata", documents) < 0 ||
        json_object_set_new(probe, "metadataErrors", errors) < 0)
        return error_set(err, ENOMEM, "out of memory");
    return 0;
}

static void add_devices(const json_t *document, struct metadata *m)
{
    const char *claim = value_text(json_object_get(document, "metadata"), "name");
    size_t r, d;
    json_t *request, *device;
    json_array_foreach(json_object_get(document, "requests"), r, request)
        json_array_foreach(json_object_get(request, "devices"), d, device)
    {
        const json_t *attributes = json_object_get(device, "attributes");
        const json_t *network = json_object_get(device, "networkData");
        if (metadata_find(m, value_text(device, "driver"), value_text(device, "pool"),
                          value_text(device, "name")))
            continue;
        m->list[m->count++] = (struct metadata_device){
            .slice = {.driver = value_text(device, "driver"),
                      .pool = value_text(device, "pool"),
                      .name = value_text(device, "name"),
                      .attributes = json_is_object(attributes) ? attributes : NULL},
            .claim = claim ? claim : "(no name)",
            .request = value_text(request, "name"),
            .pod_name = value_text(network, "interfaceName"),
            .addressed = json_array_size(json_object_get(network, "ips")) > 0,
        };
    }
}

int metadata_read(const json_t *documents, struct metadata *ret_metadata, struct drarun_error *err)
{
    struct metadata m = {0};
    CLEANUP(metadata_donep) struct metadata *undo = &m;
    size_t i, total = 0, devices = 0;
    json_t *document;
    json_array_foreach(documents, i, document)
    {
        if (!is_known(document))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "metadata[%zu]: expected a DeviceMetadata of a known version", i);
        int rc = check_document(document, &devices, err);
        if (rc < 0)
            return error_prefix(err, "metadata[%zu]", i);
        total += devices;
        if (total > METADATA_DEVICES_MAX)
            return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "metadata: more than %u devices",
                              METADATA_DEVICES_MAX);
    }
    m.list = calloc(total + 1, sizeof *m.list);
    if (!m.list)
        return error_set(err, ENOMEM, "metadata: out of memory");
    json_array_foreach(documents, i, document) add_devices(document, &m);
    undo = NULL;
    *ret_metadata = m;
    return 0;
}

const struct metadata_device *metadata_find(const struct metadata *metadata, const char *driver,
                                            const char *pool, const char *device)
{
    for (size_t i = 0; i < metadata->count; i++) {
        const struct slice_device *slice = &metadata->list[i].slice;
        if (strcmp(slice->name, device) == 0 && strcmp(slice->pool, pool) == 0 &&
            strcmp(slice->driver, driver) == 0)
            return &metadata->list[i];
    }
    return NULL;
}

/* ---- where they are ---- */

static bool is_file_name(const char *text)
{
    return text && text[0] && !strchr(text, '/') && strcmp(text, ".") != 0 &&
           strcmp(text, "..") != 0;
}

void metadata_paths(const json_t *claim, struct strlist *ret_paths)
{
    const json_t *meta = json_object_get(claim, "metadata");
    const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");
    /* a claim made of a template is known in the pod by the name that the pod gives it */
    const char *pod_claim =
        value_text(json_object_get(meta, "annotations"), "resource.kubernetes.io/pod-claim-name");
    const char *name = pod_claim ? pod_claim : value_text(meta, "name");
    size_t i;
    json_t *result;
    json_array_foreach(json_object_get(json_object_get(allocation, "devices"), "results"), i,
                       result)
    {
        const char *driver = value_text(result, "driver"), *request = value_text(result, "request");
        char file[256], part[128];
        if (!driver || !request || strlen(driver) > 128)
            continue;
        size_t length = strcspn(request, "/"); /* without the alternative that was chosen */
        snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : 0), request);
        snprintf(file, sizeof file, "%s" METADATA_SUFFIX, driver);
        if (!is_file_name(name) || !is_file_name(part) || !is_file_name(file))
            continue;
        struct strlist one = STRLIST_INIT;
        strlist_addf(&one, "%s/%s/%s/%s", pod_claim ? "resourceclaimtemplates" : "resourceclaims",
                     name, part, file);
        if (one.count == 1 && !strlist_has(ret_paths, one.items[0]))
            strlist_add(ret_paths, one.items[0]);
        ret_paths->failed |= one.failed;
        strlist_done(&one);
    }
}
