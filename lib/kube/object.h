/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the API on a target. As kube_call_start for fn, arg, ret_call and err. Objects and
 * options are borrowed for the call alone. options may be NULL. Where a verb is for one object, a
 * target without its name, or with one that is no part of a path, is refused: -EINVAL. */
#ifndef DRARUN_KUBE_OBJECT_H
#define DRARUN_KUBE_OBJECT_H

#include "lib/kube/call.h"
#include "lib/kube/resource.h"

struct kube_select {
    const char *labels; /* labelSelector; NULL: all */
    const char *fields; /* fieldSelector; NULL: all */
    bool metadata_only; /* PartialObjectMetadata, without what the objects say */
    bool older;         /* of lists: as the API server's cache has them, at once. It answers other
                           lists once its cache is known to be up to date, for which it asks etcd ten
                           times a second */
    /* For lists of what anybody may have written, in a program that has a limit of memory: */
    void (*trim)(json_t *object); /* removes what is not read, page by page; implies small_pages.
                                     Not of kube_list_pages */
    bool small_pages;             /* KUBE_SMALL_PAGE bytes at most, unless one object is larger */
};

struct kube_write {
    const char *manager; /* fieldManager; NULL: "drarun" */
    bool force;          /* apply: take fields over from other managers */
    bool dry_run;
    bool repeat; /* create, patches: may be sent again (kube_request.repeat); apply always is */
    bool urgent; /* kube_request.urgent */
    int64_t timeout_ms;
};

struct kube_delete {
    const char *propagation; /* "Background", "Foreground", "Orphan"; NULL: the server's default */
    const char *uid;         /* preconditions: 409 when they do not hold */
    const char *resource_version;
    bool now; /* gracePeriodSeconds 0 */
    int64_t timeout_ms;
};

int kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
             void *arg, struct kube_call **ret_call, struct drarun_error *err);
/* With kube_request.urgent. */
int kube_get_urgently(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                      void *arg, struct kube_call **ret_call, struct drarun_error *err);
/* target->name is not looked at: the object's metadata has it. */
int kube_create(struct kube_client *client, const struct kube_target *target, const json_t *object,
                const struct kube_write *options, kube_call_fn fn, void *arg,
                struct kube_call **ret_call, struct drarun_error *err);
/* Server-side apply. */
int kube_apply(struct kube_client *client, const struct kube_target *target, const json_t *object,
               const struct kube_write *options, kube_call_fn fn, void *arg,
               struct kube_call **ret_call, struct drarun_error *err);
int kube_replace(struct kube_client *client, const struct kube_target *target, const json_t *object,
                 const struct kube_write *options, kube_call_fn fn, void *arg,
                 struct kube_call **ret_call, struct drarun_error *err);
int kube_merge_patch(struct kube_client *client, const struct kube_target *target,
                     const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                     void *arg, struct kube_call **ret_call, struct drarun_error *err);
/* RFC 6902: a list of operations; a failed "test" is a 422. */
int kube_json_patch(struct kube_client *client, const struct kube_target *target,
                    const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
/* 404 is the caller's to take for done. */
int kube_delete(struct kube_client *client, const struct kube_target *target,
                const struct kube_delete *options, kube_call_fn fn, void *arg,
                struct kube_call **ret_call, struct drarun_error *err);
int kube_delete_all(struct kube_client *client, const struct kube_target *target,
                    const struct kube_select *select, const struct kube_delete *options,
                    kube_call_fn fn, void *arg, struct kube_call **ret_call,
                    struct drarun_error *err);

/* Parts of an object; borrowed, "" when absent. */
const char *kube_name(const json_t *object);
const char *kube_namespace(const json_t *object);
const char *kube_uid(const json_t *object);
const char *kube_resource_version(const json_t *object);
/* When it was created, in ms since 1970 by the server's clock; 0: not known, or it is NULL. */
int64_t kube_created_ms(const json_t *object);
/* When the server last took a write of it, likewise, to the second: metadata.managedFields, which
 * watches leave out. manager: of this one; NULL: of any. */
int64_t kube_written_ms(const json_t *object, const char *manager);
/* One of its ownerReferences has this uid. NULL objects and uids own nothing. */
bool kube_is_owned_by(const json_t *object, const char *uid);
/* It was deleted, and goes once its finalizers are done or its containers have ended. */
bool kube_is_terminating(const json_t *object);
/* Of its status; borrowed. NULL: it has none of this type. */
const json_t *kube_condition(const json_t *object, const char *type);
/* It has one of this type, whose status is "True". */
bool kube_has_condition(const json_t *object, const char *type);

#endif
