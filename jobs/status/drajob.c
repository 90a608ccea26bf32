/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/drajob.h"

#include <errno.h>
#include <string.h>

#include "jobs/manifests/job_check.h"
#include "jobs/manifests/objects.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define OWN_PREFIX "drarun.dev/"
#define STATUS_VALUES_MAX 1000 /* ours has less than a hundred */
#define KUBECTL_PREFIX "kubectl.kubernetes.io/"
#define APPLYSET_LABEL "applyset.kubernetes.io/part-of"
#define KUEUE_ORIGIN "kueue.x-k8s.io/multikueue-origin"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* By which Kueue finds the copy that it has made in another cluster: on the job's parts it would
 * take each of them for the copy. */
static bool is_kueues(const char *key)
{
    return strcmp(key, KUEUE_ORIGIN) == 0 ||
           strcmp(key, "kueue.x-k8s.io/prebuilt-workload-name") == 0;
}

/* kubectl apply --prune deletes what has the label of its set and is in none of its files, whatever
 * owner it has: the parts of a job are in none. */
static bool is_mark(const char *key)
{
    return is_kueues(key) || strcmp(key, APPLYSET_LABEL) == 0;
}

/* The copy has all labels of its original: the queue is one of the cluster that has that. */
static bool is_mark_of_copy(const char *key)
{
    return is_mark(key) || strcmp(key, OBJECT_QUEUE_LABEL) == 0;
}

/* Annotations that the user's tools and we ourselves put on the object are not the job's. */
static bool is_tools(const char *key)
{
    return begins(key, OWN_PREFIX) || begins(key, KUBECTL_PREFIX) || is_kueues(key);
}

/* The members that are the job's; NULL: none. */
static json_t *without(const json_t *members, bool (*is_foreign)(const char *key))
{
    json_t *kept = json_object(), *value;
    const char *key;
    value_foreach(members, key, value)
    {
        if (!is_foreign(key))
            json_object_set(kept, key, value);
    }
    if (json_object_size(kept) > 0)
        return kept;
    json_decref(kept);
    return NULL;
}

/* What a file would hold. */
static json_t *document(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *labels = json_object_get(metadata, "labels");
    bool copy = json_object_get(labels, KUEUE_ORIGIN);
    json_t *spec = json_copy(json_object_get(object, "spec"));
    if (spec)
        json_object_del(spec, "suspend");
    return json_pack("{s:s, s:s, s:{s:O, s:O*, s:o*, s:o*}, s:o*}", "apiVersion", SPEC_API_VERSION,
                     "kind", SPEC_KIND, "metadata", "name", json_object_get(metadata, "name"),
                     "namespace", json_object_get(metadata, "namespace"), "labels",
                     without(labels, copy ? is_mark_of_copy : is_mark), "annotations",
                     without(json_object_get(metadata, "annotations"), is_tools), "spec", spec);
}

/* Findings know the place in a text that nobody has seen: "NAME:1:20: spec.x: ..". */
static const char *without_place(const char *finding)
{
    const char *at = strstr(finding, ": ");
    return at ? at + 2 : finding;
}

static int say_findings(const struct reader *reader, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < reader->texts.count; i++)
        buf_printf(&text, "%s%s", i ? "\n" : "", without_place(reader->texts.items[i]));
    if (reader->findings > reader->texts.count)
        buf_printf(&text, "\nand %zu more", reader->findings - reader->texts.count);
    int rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s", text.data ? text.data : "?");
    buf_done(&text);
    return rc;
}

static int read_spec(json_t *whole, struct job_spec *ret_spec, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct reader reader;
    cleanup_free char *text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    int rc = doc_parse("DraJob", text, strlen(text), DOC_FORMAT_GUESS, NULL, &doc, err);
    if (rc < 0)
        return rc;
    reader_init(&reader, doc, false);
    rc = job_check(&reader, 0, NULL, NULL, ret_spec, err);
    if (rc < 0 && reader.texts.count > 0)
        rc = say_findings(&reader, err);
    reader_done(&reader);
    return rc;
}

int drajob_spec(const json_t *object, struct job_spec *ret_spec, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *whole = document(object);
    return read_spec(whole, ret_spec, err);
}

json_t *drajob_object(const struct job_spec *spec, const char *namespace)
{
    json_t *object = json_deep_copy(spec->document);
    json_t *metadata = json_object_get(object, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    int rc = metadata ? 0 : -1;
    if (rc == 0 && !annotations)
        rc = json_object_set_new(metadata, "annotations", annotations = json_object());
    if (rc == 0)
        rc = json_object_set_new(annotations, DRAJOB_CLIENT, json_string("true"));
    if (rc == 0)
        rc = json_object_set_new(metadata, "namespace", json_string(namespace));
    if (rc < 0)
        json_decref(TAKE_PTR(object));
    return object;
}

const char *drajob_manager(const json_t *object)
{
    const char *manager =
        json_string_value(json_object_get(json_object_get(object, "spec"), "managedBy"));
    return manager && strcmp(manager, SPEC_CONTROLLER) != 0 ? manager : NULL;
}

bool drajob_is_suspended(const json_t *object)
{
    return json_is_true(json_object_get(json_object_get(object, "spec"), "suspend"));
}

bool drajob_is_of_client(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    return json_object_get(json_object_get(metadata, "annotations"), DRAJOB_CLIENT);
}

/* ---- what a controller keeps of it ---- */

static void trim_devices(json_t *holder)
{
    static const char *const kinds[] = {"gpus", "nics", NULL}, *const count[] = {"count", NULL};
    value_keep_at(holder, "devices", kinds);
    json_t *devices = json_object_get(holder, "devices");
    for (const char *const *kind = kinds; *kind; kind++)
        value_keep_at(devices, *kind, count);
}

void drajob_trim(json_t *object)
{
    static const char *const metadata[] = {"name",
                                           "namespace",
                                           "uid",
                                           "resourceVersion",
                                           "generation",
                                           "creationTimestamp",
                                           "deletionTimestamp",
                                           "annotations",
                                           NULL};
    static const char *const annotations[] = {DRAJOB_CLIENT, NULL};
    static const char *const members[] = {
        "suspend", "managedBy", "ttlSecondsAfterFinished", "workers", "devices", "roles", NULL};
    static const char *const role_members[] = {"workers", "devices", NULL};
    json_t *status = json_object_get(object, "status"), *role;
    size_t i;
    value_keep_at(object, "metadata", metadata);
    value_keep_at(json_object_get(object, "metadata"), "annotations", annotations);
    value_keep_at(object, "spec", members);
    json_t *spec = json_object_get(object, "spec");
    trim_devices(spec);
    json_array_foreach(json_object_get(spec, "roles"), i, role)
    {
        value_keep(role, role_members);
        trim_devices(role);
    }
    if (value_count(status, STATUS_VALUES_MAX) < STATUS_VALUES_MAX)
        return;
    json_object_del(status, "conditions");
    json_object_del(status, "cause");
}
