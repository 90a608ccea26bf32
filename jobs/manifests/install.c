/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/install.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/network_policy.h"
#include "lib/base/cleanup.h"

#define RBAC "rbac.authorization.k8s.io"

/* namespace: NULL for what belongs to the whole cluster. */
static json_t *object(const char *api_version, const char *kind, const char *name,
                      const char *namespace)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s*, s:{s:s}}}", "apiVersion", api_version, "kind", kind,
                     "metadata", "name", name, "namespace", namespace, "labels",
                     "app.kubernetes.io/name", "drarun");
}

/* Adds a member; NULL when the object, the member or the addition failed. */
static json_t *with_take(json_t *holder, const char *key, json_t *value)
{
    if (json_object_set_new(holder, key, value) == 0)
        return holder;
    json_decref(holder);
    return NULL;
}

/* Words separated by spaces as a list. */
static json_t *words(const char *text)
{
    json_t *list = json_array();
    while (list && *text) {
        size_t len = strcspn(text, " ");
        if (json_array_append_new(list, json_stringn(text, len)) < 0) {
            json_decref(list);
            return NULL;
        }
        text += len + strspn(text + len, " ");
    }
    return list;
}

struct rule {
    const char *group, *resources, *verbs;
};

/* No secret is among them: the launcher's pod gets its job's key as the workers' pods do. */
static const struct rule role[] = {
    /* of one resource each: install_role_lacks */
    {"", "pods", "get list watch create patch deletecollection"},
    {"", "events", "list watch create"},
    {"", "configmaps", "get patch"},
    {"batch", "jobs", "get list watch create patch delete"},
    {"coordination.k8s.io", "leases", "create get update"},
    {"networking.k8s.io", "networkpolicies", "get create"},
    {"resource.k8s.io", "resourceclaims", "get list watch create deletecollection"},
    {"resource.k8s.io", "resourceclaimtemplates", "get create delete"},
    {"resource.nvidia.com", "computedomains", "get create delete"},
    {"scheduling.k8s.io", "podgroups", "get create"},
};

/* Of run, submit, alloc, list, status, describe, logs, wait, cancel and exec, not of run --here,
 * which does what the launcher does. An account that may create pods may read the namespace's
 * secrets through them.
 */
static const struct rule user_role[] = {
    {"", "configmaps", "get list watch create patch delete"},
    {"", "secrets", "create"},
    {"", "serviceaccounts", "get"},
    {"", "pods", "get list watch create delete"},
    {"", "pods/log", "get"},
    {"", "pods/exec", "get create"},
    {"", "pods/portforward", "get create"},
    {"", "events", "list watch"},
    {"batch", "jobs", "get list watch create patch delete"},
    {"coordination.k8s.io", "leases", "get list"},
    {"drarun.dev", "drajobs", "get list watch create patch delete"},
    {"networking.k8s.io", "networkpolicies", "get create"},
    {"resource.k8s.io", "resourceclaims", "get list watch create"},
    {"resource.k8s.io", "resourceclaimtemplates", "get create"},
    {"resource.nvidia.com", "computedomains", "get create"},
    {"scheduling.k8s.io", "podgroups", "get create"},
};

/* Of a controller that looks after one namespace. deploy/controller.yaml has those of one that
 * looks after all; only that may see the devices' classes and slices, by which claims bring the
 * agent. */
static const struct rule controller_role[] = {
    {"drarun.dev", "drajobs", "list watch delete"},
    {"drarun.dev", "drajobs/status", "update"},
    {"batch", "jobs", "get list watch create delete"},
    {"", "configmaps", "get list watch create"},
    {"", "pods", "get list create"},
    {"", "secrets", "create"},
    {"", "serviceaccounts", "get"},
    {"", "events", "create"},
    {"networking.k8s.io", "networkpolicies", "get create"},
    {"resource.k8s.io", "resourceclaims resourceclaimtemplates", "get create"},
    {"resource.nvidia.com", "computedomains", "get create"},
    {"scheduling.k8s.io", "podgroups", "get create"},
    {"coordination.k8s.io", "leases", "get list create update"},
};

static const struct rule cluster_role[] = {
    {"", "nodes", "list"},
    {"resource.k8s.io", "resourceslices deviceclasses devicetaintrules", "list"},
};

static json_t *rules(const struct rule *of, size_t count)
{
    json_t *list = json_array();
    int rc = list ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = json_array_append_new(list, json_pack("{s:[s], s:o, s:o}", "apiGroups", of[i].group,
                                                   "resources", words(of[i].resources), "verbs",
                                                   words(of[i].verbs)));
    if (rc < 0)
        json_decref(list);
    return rc < 0 ? NULL : list;
}

/* Gives this account of the namespace the rights of the role, which is called like it. */
static json_t *bound_take(json_t *binding, const char *kind, const char *account,
                          const char *namespace)
{
    binding =
        with_take(binding, "roleRef",
                  json_pack("{s:s, s:s, s:s}", "apiGroup", RBAC, "kind", kind, "name", account));
    return with_take(binding, "subjects",
                     json_pack("[{s:s, s:s, s:s}]", "kind", "ServiceAccount", "name", account,
                               "namespace", namespace));
}

static json_t *role_of(const char *name, const char *namespace, const struct rule *of, size_t count)
{
    return with_take(object(RBAC "/v1", "Role", name, namespace), "rules", rules(of, count));
}

static json_t *role_binding(const char *account, const char *namespace)
{
    return bound_take(object(RBAC "/v1", "RoleBinding", account, namespace), "Role", account,
                      namespace);
}

/* Secrets are of the account: its pods get them where they name none of their own. */
static json_t *account_of(const char *name, const char *namespace,
                          const struct strlist *pull_secrets)
{
    json_t *account = object("v1", "ServiceAccount", name, namespace);
    if (!pull_secrets || pull_secrets->count == 0)
        return account;
    json_t *list = json_array();
    int rc = list && !pull_secrets->failed ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < pull_secrets->count; i++)
        rc = json_array_append_new(list, json_pack("{s:s}", "name", pull_secrets->items[i]));
    if (rc < 0)
        json_decref(TAKE_PTR(list));
    return with_take(account, "imagePullSecrets", list);
}

json_t *install_manifests(const char *namespace, const struct strlist *pull_secrets)
{
    return json_pack("[o, o, o, o]", account_of(INSTALL_ACCOUNT, namespace, pull_secrets),
                     role_of(INSTALL_ACCOUNT, namespace, role, ARRAY_LEN(role)),
                     role_binding(INSTALL_ACCOUNT, namespace),
                     network_policy_of_namespace(INSTALL_NETWORK_POLICY, namespace));
}

/* Whether a list of a rule has the word. */
static bool names(const json_t *rule, const char *key, const char *word)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(rule, key), i, each)
    {
        const char *name = json_string_value(each);
        if (name && (strcmp(name, word) == 0 || strcmp(name, "*") == 0))
            return true;
    }
    return false;
}

static bool allows(const json_t *of, const char *group, const char *resource, const char *verb)
{
    size_t i;
    json_t *rule;
    json_array_foreach(json_object_get(of, "rules"), i, rule)
    {
        if (!json_object_get(rule, "resourceNames") && names(rule, "apiGroups", group) &&
            names(rule, "resources", resource) && names(rule, "verbs", verb))
            return true;
    }
    return false;
}

int install_role_lacks(const json_t *launcher_role, struct strlist *ret_lacking)
{
    for (size_t i = 0; i < ARRAY_LEN(role); i++) {
        CLEANUP(json_decrefp) json_t *verbs = words(role[i].verbs);
        size_t v;
        json_t *verb;
        if (!verbs)
            return -ENOMEM;
        json_array_foreach(verbs, v, verb)
        {
            const char *name = json_string_value(verb);
            if (!allows(launcher_role, role[i].group, role[i].resources, name))
                strlist_addf(ret_lacking, "%s %s", name, role[i].resources);
        }
    }
    return ret_lacking->failed ? -ENOMEM : 0;
}

json_t *install_user_manifests(const char *namespace)
{
    return json_pack("[o]", role_of(INSTALL_USER_ROLE, namespace, user_role, ARRAY_LEN(user_role)));
}

json_t *install_controller_manifests(const char *namespace, const struct strlist *pull_secrets)
{
    return json_pack(
        "[o, o, o]", account_of(INSTALL_CONTROLLER, namespace, pull_secrets),
        role_of(INSTALL_CONTROLLER, namespace, controller_role, ARRAY_LEN(controller_role)),
        role_binding(INSTALL_CONTROLLER, namespace));
}

json_t *install_cluster_manifests(const char *namespace)
{
    cleanup_free char *name = NULL;
    if (asprintf(&name, "%s-%s", INSTALL_ACCOUNT, namespace) < 0)
        return NULL;
    return json_pack("[o, o]",
                     with_take(object(RBAC "/v1", "ClusterRole", INSTALL_ACCOUNT, NULL), "rules",
                               rules(cluster_role, ARRAY_LEN(cluster_role))),
                     bound_take(object(RBAC "/v1", "ClusterRoleBinding", name, NULL), "ClusterRole",
                                INSTALL_ACCOUNT, namespace));
}
