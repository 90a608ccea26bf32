/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/object.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

static const struct kube_write plain_write;
static const struct kube_delete plain_delete;

struct parts { /* of a request that is being built */
    struct buf path, query, what;
};

static void parts_done(struct parts *p)
{
    buf_done(&p->path);
    buf_done(&p->query);
    buf_done(&p->what);
}

static void parts_begin(struct parts *p, const char *verb, const struct kube_target *target)
{
    kube_path(target, &p->path);
    kube_target_describe(verb, target, &p->what);
}

/* Without a name the path is the collection's; servers and proxies take "." and ".." out of it. */
static bool is_segment(const char *name)
{
    return name && *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int check_named(const char *verb, const struct kube_target *target, struct drarun_error *err)
{
    if (is_segment(target->name) && (!target->namespace_ || is_segment(target->namespace_)))
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s %s \"%s\" in namespace \"%s\": not the name of an object, nothing was "
                      "sent to the API server",
                      verb, target->resource->plural, target->name ? target->name : "",
                      target->namespace_ ? target->namespace_ : "");
}

static int start(struct kube_client *client, struct parts *p, struct kube_request *request,
                 kube_call_fn fn, void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    if (p->path.failed || p->query.failed || p->what.failed)
        return error_set(err, ENOMEM, "out of memory");
    request->path = p->path.data;
    request->query = p->query.data;
    request->what = p->what.data;
    return kube_call_start(client, request, fn, arg, ret_call, err);
}

static int get(struct kube_client *client, const struct kube_target *target, bool urgent,
               kube_call_fn fn, void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    CLEANUP(parts_done) struct parts parts = {0};
    struct kube_request request = {.method = "GET", .urgent = urgent};
    int rc = check_named("get", target, err);
    if (rc < 0)
        return rc;
    parts_begin(&parts, "get", target);
    return start(client, &parts, &request, fn, arg, ret_call, err);
}

int kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
             void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    return get(client, target, false, fn, arg, ret_call, err);
}

int kube_get_urgently(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                      void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    return get(client, target, true, fn, arg, ret_call, err);
}

static void add_write(struct parts *p, const struct kube_write *options)
{
    kube_query_add(&p->query, "fieldManager", options->manager ? options->manager : "drarun");
    kube_query_add(&p->query, "fieldValidation", "Strict");
    kube_query_add(&p->query, "force", options->force ? "true" : NULL);
    kube_query_add(&p->query, "dryRun", options->dry_run ? "All" : NULL);
}

static int write_object(struct kube_client *client, const char *verb,
                        const struct kube_target *target, struct kube_request request,
                        const struct kube_write *options, kube_call_fn fn, void *arg,
                        struct kube_call **ret_call, struct drarun_error *err)
{
    CLEANUP(parts_done) struct parts parts = {0};
    options = options ? options : &plain_write;
    int rc = check_named(verb, target, err);
    if (rc < 0)
        return rc;
    parts_begin(&parts, verb, target);
    add_write(&parts, options);
    request.repeat |= options->repeat;
    request.urgent = options->urgent;
    request.timeout_ms = options->timeout_ms;
    return start(client, &parts, &request, fn, arg, ret_call, err);
}

int kube_create(struct kube_client *client, const struct kube_target *target, const json_t *object,
                const struct kube_write *options, kube_call_fn fn, void *arg,
                struct kube_call **ret_call, struct drarun_error *err)
{
    CLEANUP(parts_done) struct parts parts = {0};
    struct kube_request request = {.method = "POST", .body = object};
    struct kube_target named = *target, collection = *target;
    options = options ? options : &plain_write;
    named.name = *kube_name(object) ? kube_name(object) : NULL;
    if (!target->subresource) /* "pods/x/eviction" has a name, "pods" has none */
        collection.name = NULL;
    kube_path(&collection, &parts.path);
    kube_target_describe("create", &named, &parts.what);
    add_write(&parts, options);
    request.repeat = options->repeat;
    request.urgent = options->urgent;
    request.timeout_ms = options->timeout_ms;
    return start(client, &parts, &request, fn, arg, ret_call, err);
}

int kube_apply(struct kube_client *client, const struct kube_target *target, const json_t *object,
               const struct kube_write *options, kube_call_fn fn, void *arg,
               struct kube_call **ret_call, struct drarun_error *err)
{
    struct kube_request request = {.method = "PATCH",
                                   .body = object,
                                   .content_type = "application/apply-patch+yaml",
                                   .repeat = true};
    struct kube_target named = *target;
    if (!named.name)
        named.name = kube_name(object);
    return write_object(client, "apply", &named, request, options, fn, arg, ret_call, err);
}

int kube_replace(struct kube_client *client, const struct kube_target *target, const json_t *object,
                 const struct kube_write *options, kube_call_fn fn, void *arg,
                 struct kube_call **ret_call, struct drarun_error *err)
{
    struct kube_request request = {.method = "PUT", .body = object};
    struct kube_target named = *target;
    if (!named.name)
        named.name = kube_name(object);
    return write_object(client, "update", &named, request, options, fn, arg, ret_call, err);
}

int kube_merge_patch(struct kube_client *client, const struct kube_target *target,
                     const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                     void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    struct kube_request request = {
        .method = "PATCH", .body = patch, .content_type = "application/merge-patch+json"};
    return write_object(client, "patch", target, request, options, fn, arg, ret_call, err);
}

int kube_json_patch(struct kube_client *client, const struct kube_target *target,
                    const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    struct kube_request request = {
        .method = "PATCH", .body = patch, .content_type = "application/json-patch+json"};
    return write_object(client, "patch", target, request, options, fn, arg, ret_call, err);
}

static json_t *delete_options(const struct kube_delete *options)
{
    json_t *body = json_pack("{s:s, s:s}", "apiVersion", "v1", "kind", "DeleteOptions");
    if (options->propagation)
        json_object_set_new(body, "propagationPolicy", json_string(options->propagation));
    if (options->now)
        json_object_set_new(body, "gracePeriodSeconds", json_integer(0));
    if (options->uid || options->resource_version) {
        json_t *conditions = json_pack("{s:s*, s:s*}", "uid", options->uid, "resourceVersion",
                                       options->resource_version);
        json_object_set_new(body, "preconditions", conditions);
    }
    return body;
}

int kube_delete_all(struct kube_client *client, const struct kube_target *target,
                    const struct kube_select *select, const struct kube_delete *options,
                    kube_call_fn fn, void *arg, struct kube_call **ret_call,
                    struct drarun_error *err)
{
    CLEANUP(parts_done) struct parts parts = {0};
    options = options ? options : &plain_delete;
    json_t *body = delete_options(options);
    if (!body)
        return error_set(err, ENOMEM, "out of memory");
    struct kube_request request = {
        .method = "DELETE", .body = body, .timeout_ms = options->timeout_ms};
    parts_begin(&parts, "delete", target);
    if (select) {
        kube_query_add(&parts.query, "labelSelector", select->labels);
        kube_query_add(&parts.query, "fieldSelector", select->fields);
    }
    int rc = start(client, &parts, &request, fn, arg, ret_call, err);
    json_decref(body);
    return rc;
}

int kube_delete(struct kube_client *client, const struct kube_target *target,
                const struct kube_delete *options, kube_call_fn fn, void *arg,
                struct kube_call **ret_call, struct drarun_error *err)
{
    int rc = check_named("delete", target, err);
    return rc < 0 ? rc : kube_delete_all(client, target, NULL, options, fn, arg, ret_call, err);
}

static const char *metadata(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return text ? text : "";
}

const char *kube_name(const json_t *object)
{
    return metadata(object, "name");
}

const char *kube_namespace(const json_t *object)
{
    return metadata(object, "namespace");
}

const char *kube_uid(const json_t *object)
{
    return metadata(object, "uid");
}

const char *kube_resource_version(const json_t *object)
{
    return metadata(object, "resourceVersion");
}

int64_t kube_created_ms(const json_t *object)
{
    int64_t created = 0;
    const json_t *metadata = json_object_get(object, "metadata");
    return timestamp_parse(value_text(metadata, "creationTimestamp"), &created) ? created : 0;
}

int64_t kube_written_ms(const json_t *object, const char *manager)
{
    const json_t *fields = json_object_get(json_object_get(object, "metadata"), "managedFields");
    const json_t *entry;
    int64_t last = 0;
    size_t i;
    json_array_foreach(fields, i, entry)
    {
        const char *of = value_text(entry, "manager");
        int64_t at = 0;
        bool counts = !manager || (of && strcmp(of, manager) == 0);
        if (counts && timestamp_parse(value_text(entry, "time"), &at) && at > last)
            last = at;
    }
    return last;
}

bool kube_is_owned_by(const json_t *object, const char *uid)
{
    const json_t *metadata = json_object_get(object, "metadata");
    return value_find(json_object_get(metadata, "ownerReferences"), "uid", uid) != NULL;
}

bool kube_is_terminating(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "deletionTimestamp") != NULL;
}

const json_t *kube_condition(const json_t *object, const char *type)
{
    const json_t *status = json_object_get(object, "status");
    return value_find(json_object_get(status, "conditions"), "type", type);
}

bool kube_has_condition(const json_t *object, const char *type)
{
    return strcmp(value_text_or(kube_condition(object, type), "status", ""), "True") == 0;
}
