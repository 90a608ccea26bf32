/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/pod_merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/avoid_node.h"
#include "jobs/manifests/network_policy.h"
#include "jobs/spec/node_spread.h"
#include "jobs/manifests/tolerations.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/dra/quantity_read.h"

#define IN_POD POD_MERGE_FOLDER
#define AGENT POD_MERGE_AGENT_PROGRAM

struct merge {
    const struct job_spec *spec;
    const struct spec_role *role; /* of the worker */
    const struct render_options *options;
    int64_t worker;
    json_t *pod;   /* the template's spec */
    json_t *first; /* its first container */
    struct drarun_error *err;
};

#define refuse(m, ...) error_kind((m)->err, DRARUN_ERR_SPEC, EINVAL, __VA_ARGS__)

static int no_memory(struct merge *m)
{
    return error_set(m->err, ENOMEM, "pod: out of memory");
}

/* ---- reaching into the template ---- */

/* The member, made when it is missing. path: of the parent, for messages. */
static int member(struct merge *m, json_t *parent, const char *path, const char *key,
                  json_type type, json_t **ret_member)
{
    json_t *found = json_object_get(parent, key);
    if (found && json_typeof(found) != type)
        return refuse(m, "%s.%s: expected %s", path, key,
                      type == JSON_OBJECT ? "an object" : "a list");
    if (!found) {
        found = type == JSON_OBJECT ? json_object() : json_array();
        if (json_object_set_new(parent, key, found) < 0)
            return no_memory(m);
    }
    *ret_member = found;
    return 0;
}

#define POD_PATH "spec.template.spec"
#define FIRST_PATH POD_PATH ".containers[0]"

/* Adds an item that the list of `holder` may not have yet: its `key` is ours. */
static int add_take(struct merge *m, json_t *holder, const char *path, const char *list_key,
                    const char *key, json_t *item_take, bool at_front)
{
    CLEANUP(json_decrefp) json_t *item = item_take;
    json_t *list = NULL;
    if (!item)
        return no_memory(m);
    int rc = member(m, holder, path, list_key, JSON_ARRAY, &list);
    if (rc < 0)
        return rc;
    const char *value = json_string_value(json_object_get(item, key));
    if (value_find(list, key, value))
        return refuse(m, "%s.%s: drarun adds an entry with %s \"%s\"; rename or drop yours", path,
                      list_key, key, value);
    rc = at_front ? json_array_insert(list, 0, item) : json_array_append(list, item);
    return rc < 0 ? no_memory(m) : 0;
}

static int add_volume_take(struct merge *m, json_t *volume)
{
    return add_take(m, m->pod, POD_PATH, "volumes", "name", volume, false);
}

static int add_mount_take(struct merge *m, json_t *mount)
{
    return add_take(m, m->first, FIRST_PATH, "volumeMounts", "mountPath", mount, false);
}

/* Sets a field that the user left open. */
static int set_default_take(struct merge *m, json_t *object, const char *key, json_t *value_take)
{
    CLEANUP(json_decrefp) json_t *value = value_take;
    if (!value || (!json_object_get(object, key) && json_object_set(object, key, value) < 0))
        return no_memory(m);
    return 0;
}

/* ---- the agent ---- */

static int merge_restart(struct merge *m)
{
    const json_t *policy = json_object_get(m->pod, "restartPolicy");
    const char *text = json_string_value(policy);
    if (policy && (!text || strcmp(text, "Never") != 0))
        return refuse(m,
                      POD_PATH ".restartPolicy: expected Never, got \"%.40s\": a worker that ended "
                               "cannot join its job again; see spec.restarts",
                      text ? text : "(no text)");
    int rc = set_default_take(m, m->pod, "restartPolicy", json_string("Never"));
    /* a token is a volume, which costs a third of a second, and the agent asks the API nothing */
    if (rc == 0)
        rc = set_default_take(m, m->pod, "automountServiceAccountToken", json_false());
    if (rc == 0) /* a variable for each Service would go into every rank */
        rc = set_default_take(m, m->pod, "enableServiceLinks", json_false());
    return rc;
}

/* What the first container asks for of CPU and memory. It runs before it, so the pod asks for no
 * more; without it a pod would be Burstable whose containers have limits equal to their requests
 * (no CPUs of its own then, from the static CPU manager), and quotas would refuse it. */
static json_t *resources_of_first(const struct merge *m)
{
    static const char *const parts[] = {"requests", "limits"}, *const names[] = {"cpu", "memory"};
    const json_t *resources = json_object_get(m->first, "resources");
    json_t *copy = json_object();
    for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
        const json_t *part = json_object_get(resources, parts[p]);
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            json_t *amount = json_object_get(part, names[n]);
            json_t *into = amount ? json_object_get(copy, parts[p]) : NULL;
            if (amount && !into) {
                into = json_object();
                json_object_set_new(copy, parts[p], into);
            }
            if (amount)
                json_object_set(into, names[n], amount);
        }
    }
    if (json_object_size(copy) > 0)
        return copy;
    json_decref(copy);
    return NULL;
}

static const char *install_option(const struct merge *m)
{
    if (m->worker == POD_MERGE_FOREIGN)
        return "--install-drarun";
    return spec_role_wants_bench(m->role) ? "--install-bench" : "--install";
}

/* Of the ranks' container, or else of the pod. */
static const json_t *security_field(const struct merge *m, const char *key)
{
    const json_t *own = json_object_get(json_object_get(m->first, "securityContext"), key);
    return own ? own : json_object_get(json_object_get(m->pod, "securityContext"), key);
}

/* Of what brings the agent, which never runs as root: the user that the ranks' container names,
 * since a policy of the cluster may want certain users; 0: that of the pod or of our image. */
static json_int_t agent_user(const struct merge *m)
{
    const json_t *pod = json_object_get(json_object_get(m->pod, "securityContext"), "runAsUser");
    const json_t *own = json_object_get(json_object_get(m->first, "securityContext"), "runAsUser");
    if (json_integer_value(own) > 0)
        return json_integer_value(own);
    return json_is_integer(pod) && json_integer_value(pod) == 0 ? OBJECT_USER : 0;
}

/* The agent puts itself into the volume, or drarun, as images without a shell have no cp. Where its
 * image is for another architecture, runc writes that to the log alone: the pod's status shall have
 * it. */
static json_t *init_container(const struct merge *m, const char *image)
{
    return json_pack("{s:s, s:s, s:[s, s, s], s:o*, s:[{s:s, s:s}], s:o, s:s}", "name",
                     POD_MERGE_AGENT_CONTAINER, "image", image, "command", "/bin/drarun-worker",
                     install_option(m), IN_POD "/bin", "resources", resources_of_first(m),
                     "volumeMounts", "name", POD_MERGE_AGENT_VOLUME, "mountPath", IN_POD,
                     "securityContext", object_security(agent_user(m)), "terminationMessagePolicy",
                     "FallbackToLogsOnError");
}

static int merge_agent_files(struct merge *m)
{
    const char *image = m->options->image ? m->options->image : RENDER_IMAGE;
    if (m->options->agent && spec_role_wants_bench(m->role))
        return refuse(m, FIRST_PATH ".command: a claim brings the agent without drarun-bench; "
                                    "leave DRARUN_AGENT out");
    if (m->options->agent)
        return 0;
    json_t *source = m->options->image_volume
                         ? json_pack("{s:s, s:{s:s, s:s}}", "name", POD_MERGE_AGENT_VOLUME, "image",
                                     "reference", image, "pullPolicy", "IfNotPresent")
                         : json_pack("{s:s, s:{}}", "name", POD_MERGE_AGENT_VOLUME, "emptyDir");
    int rc = add_volume_take(m, source);
    if (rc == 0)
        rc = add_mount_take(m, json_pack("{s:s, s:s, s:b}", "name", POD_MERGE_AGENT_VOLUME,
                                         "mountPath", IN_POD, "readOnly", 1));
    if (rc == 0 && !m->options->image_volume)
        rc =
            add_take(m, m->pod, POD_PATH, "initContainers", "name", init_container(m, image), true);
    return rc;
}

static bool on_host_network(const struct merge *m)
{
    return json_object_get(m->pod, "hostNetwork") == json_true();
}

static int check_network(struct merge *m)
{
    if (on_host_network(m) && m->role->nics.class)
        return refuse(m,
                      POD_PATH ".hostNetwork: a claimed NIC is moved into the pod's own network, "
                               "which this pod has not; drop hostNetwork or the NICs");
    return 0;
}

uint16_t pod_merge_agent_port(const struct job_spec *spec, uint32_t worker)
{
    const json_t *pod = spec_role_pod(spec_role_of(spec, worker));
    bool alone = spec->claims == SPEC_CLAIMS_TEMPLATE || /* on its node: check_one_port */
                 json_object_get(pod, "hostNetwork") != json_true();
    return (uint16_t)(RENDER_AGENT_PORT + (alone ? 0 : worker));
}

/* The pods of an Indexed Job have one template, and with it one port. */
static int check_one_port(struct merge *m)
{
    if (m->worker != POD_MERGE_INDEXED || m->spec->workers < 2)
        return 0;
    int spread = node_spread_of(m->spec, m->role, false, m->err);
    if (spread != NODE_SPREAD_NONE)
        return spread < 0 ? spread : 0;
    return refuse(m,
                  POD_PATH ".hostNetwork: all pods of an Indexed Job listen on one port, so each "
                           "needs a node of its own: set " NODE_SPREAD_KEY ": node; or drop "
                           "hostNetwork%s",
                  m->spec->queue ? ", or the queue, which needs an Indexed Job"
                                 : ", or set spec.devices.claims: direct");
}

/* Two jobs on a node of the host's network: the declared port keeps them apart. */
static int merge_port(struct merge *m, json_int_t port)
{
    if (!on_host_network(m))
        return 0;
    int rc = check_one_port(m);
    if (rc == 0)
        rc = check_network(m);
    if (rc < 0)
        return rc;
    return add_take(m, m->first, FIRST_PATH, "ports", "name",
                    json_pack("{s:s, s:I}", "name", "drarun-agent", "containerPort", port), false);
}

static int add_variable(struct merge *m, const char *name, json_t *value_take)
{
    return add_take(m, m->first, FIRST_PATH, "env", "name",
                    json_pack("{s:s, s:o}", "name", name, "value", value_take), false);
}

/* Which worker of which job it is: the agent serves nobody who wants another one. An Indexed Job
 * tells the index itself. Names of job and node are for its log. */
static int merge_identity(struct merge *m)
{
    int rc = 0;
    if (m->options->owner_uid)
        rc = add_variable(m, "DRARUN_JOB", json_string(m->options->owner_uid));
    if (rc == 0)
        rc = add_variable(m, "DRARUN_JOB_NAME", json_string(m->spec->name));
    if (rc == 0)
        rc = add_take(m, m->first, FIRST_PATH, "env", "name",
                      json_pack("{s:s, s:{s:{s:s}}}", "name", "DRARUN_NODE", "valueFrom",
                                "fieldRef", "fieldPath", "spec.nodeName"),
                      false);
    if (rc == 0)
        rc = add_variable(m, "DRARUN_ATTEMPT", json_sprintf("%u", m->options->attempt));
    if (rc == 0 && m->worker != POD_MERGE_INDEXED)
        rc = add_variable(m, "DRARUN_WORKER", json_sprintf("%" PRId64, m->worker));
    return rc;
}

/* The first container runs the agent; its command and args are what the ranks run, and the launcher
 * reads them from the spec. */
static int merge_agent(struct merge *m)
{
    json_int_t port = pod_merge_agent_port(m->spec, m->worker > 0 ? (uint32_t)m->worker : 0);
    int rc = merge_agent_files(m);
    if (rc == 0)
        rc = merge_port(m, port);
    if (rc == 0)
        rc = add_take(m, m->first, FIRST_PATH, "env", "name",
                      object_key_variable(m->spec, m->options), false);
    if (rc < 0)
        return rc;
    rc = merge_identity(m);
    if (rc < 0)
        return rc;
    json_object_del(m->first, "args");
    json_t *command = json_pack("[s, s, o, s, s]", AGENT, "--listen",
                                json_sprintf(":%" JSON_INTEGER_FORMAT, port), "--pod",
                                m->options->keep_s ? "--keep" : "--once");
    return json_object_set_new(m->first, "command", command) < 0 ? no_memory(m) : 0;
}

/* drarun without an agent: what the user wants of NCCL is the container's, where drarun finds it.
 */
static int merge_foreign(struct merge *m)
{
    int rc = check_network(m);
    if (rc == 0)
        rc = merge_agent_files(m);
    for (size_t i = 0; rc == 0 && i < m->role->nccl_env.count; i++) {
        const char *entry = m->role->nccl_env.items[i], *value = strchr(entry, '=') + 1;
        cleanup_free char *name = strndup(entry, (size_t)(value - 1 - entry));
        rc = name ? add_variable(m, name, json_string(value)) : no_memory(m);
    }
    return rc;
}

/* ---- devices ---- */

/* Is a claim of the pod listed by one of its containers? */
static bool is_listed(const json_t *pod, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i;
        json_t *container;
        json_array_foreach(json_object_get(pod, lists[l]), i, container)
        {
            const json_t *resources = json_object_get(container, "resources");
            if (value_find(json_object_get(resources, "claims"), "name", name))
                return true;
        }
    }
    return false;
}

static int list_claim(struct merge *m, const char *name)
{
    json_t *resources = NULL, *list = NULL;
    int rc = member(m, m->first, FIRST_PATH, "resources", JSON_OBJECT, &resources);
    if (rc == 0)
        rc = member(m, resources, FIRST_PATH ".resources", "claims", JSON_ARRAY, &list);
    /* the user may have listed ours already, perhaps with the one request that he wants */
    if (rc < 0 || value_find(list, "name", name))
        return rc;
    return json_array_append_new(list, json_pack("{s:s}", "name", name)) < 0 ? no_memory(m) : 0;
}

/* A claim that no container lists gets no CDI edit: its devices would never reach the pod. */
static int list_forgotten(struct merge *m)
{
    size_t i;
    json_t *claim;
    int rc = 0;
    json_array_foreach(json_object_get(m->pod, "resourceClaims"), i, claim)
    {
        const char *name = json_string_value(json_object_get(claim, "name"));
        if (rc == 0 && name && !is_listed(m->pod, name))
            rc = list_claim(m, name);
    }
    return rc;
}

static int add_claim(struct merge *m, const char *name, const char *source, json_t *object_take)
{
    int rc = add_take(m, m->pod, POD_PATH, "resourceClaims", "name",
                      json_pack("{s:s, s:o}", "name", name, source, object_take), false);
    return rc < 0 ? rc : list_claim(m, name);
}

/* The user's claims, of one name in every pod. */
static int merge_shared(struct merge *m)
{
    const json_t *list = json_object_get(m->pod, "resourceClaims");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->role->shared.count; i++) {
        const char *claim = m->role->shared.items[i];
        char name[32];
        snprintf(name, sizeof name, POD_MERGE_SHARED "%zu", i);
        if (value_find(list, "resourceClaimName", claim))
            return refuse(
                m, POD_PATH ".resourceClaims: %s is also in spec.devices.shared: drop one", claim);
        rc = add_claim(m, name, "resourceClaimName", json_string(claim));
    }
    return rc;
}

/* The scheduler allocates claims, and a pod with a node of its own passes it by. */
static int check_node(struct merge *m)
{
    const char *node = json_string_value(json_object_get(m->pod, "nodeName"));
    if (!node || !*node || json_array_size(json_object_get(m->pod, "resourceClaims")) == 0)
        return 0;
    return refuse(m,
                  POD_PATH ".nodeName: the scheduler never sees a pod with a nodeName, so nothing "
                           "allocates its claims; use nodeSelector: {kubernetes.io/hostname: "
                           "%.253s}, if that is the node's label",
                  node);
}

static int merge_claims(struct merge *m)
{
    int rc = 0;
    bool template = m->worker < 0;
    if (claims_wanted_by(m->role))
        rc = add_claim(m, POD_MERGE_CLAIM,
                       template ? "resourceClaimTemplateName" : "resourceClaimName",
                       template ? json_sprintf("%s-w", m->spec->name)
                                : json_sprintf("%s-w-%" PRId64, m->spec->name, m->worker));
    if (rc == 0 && m->spec->compute_domain) {
        CLEANUP(json_decrefp) json_t *domain = NULL;
        json_t *name = NULL;
        rc = claims_compute_domain(m->spec, &domain, &name, m->err);
        if (rc == 0)
            rc = add_claim(m, POD_MERGE_CHANNEL, "resourceClaimTemplateName", name);
    }
    if (rc == 0)
        rc = merge_shared(m);
    if (rc == 0)
        rc = check_node(m);
    return rc < 0 ? rc : list_forgotten(m);
}

/* Another container that would have the CPUs of the claim, too, NULL: none. The driver starts one
 * container with them. */
static const char *other_holder(const struct merge *m)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i, k;
        json_t *container, *claim;
        json_array_foreach(json_object_get(m->pod, lists[l]), i, container)
        {
            const json_t *resources = json_object_get(container, "resources");
            json_array_foreach(json_object_get(resources, "claims"), k, claim)
            {
                if (container != m->first &&
                    strcmp(value_text_or(claim, "name", ""), POD_MERGE_CLAIM) == 0 &&
                    strcmp(value_text_or(claim, "request", "cpu"), "cpu") == 0)
                    return value_text_or(container, "name", "?");
            }
        }
    }
    return NULL;
}

/* The container's own number of them, which the scheduler and the kubelet count by: dra-driver-cpu
 * wants it equal to the claim's. */
static int match_cpus(struct merge *m, const char *kind)
{
    json_t *resources = NULL, *amounts = NULL;
    struct cel_quantity own, wanted;
    char path[120], count[16];
    snprintf(path, sizeof path, FIRST_PATH ".resources.%s", kind);
    snprintf(count, sizeof count, "%u", m->role->cpu_count);
    int rc = member(m, m->first, FIRST_PATH, "resources", JSON_OBJECT, &resources);
    if (rc == 0)
        rc = member(m, resources, FIRST_PATH ".resources", kind, JSON_OBJECT, &amounts);
    if (rc < 0)
        return rc;
    const json_t *given = json_object_get(amounts, "cpu");
    if (!given)
        return json_object_set_new(amounts, "cpu", json_string(count)) < 0 ? no_memory(m) : 0;
    if (quantity_read(given, path, &own, m->err) < 0 ||
        cel_quantity_parse(count, strlen(count), &wanted) < 0)
        return -EINVAL;
    if (cel_quantity_compare(&own, &wanted) != 0)
        return refuse(m,
                      "%s.cpu: spec.devices.cpus claims %s, and both must be one number: drop one",
                      path, count);
    return 0;
}

static int merge_cpus(struct merge *m)
{
    if (!m->role->cpus.class)
        return 0;
    const char *other = other_holder(m);
    if (other)
        return refuse(m,
                      POD_PATH ".containers: %s lists the claim " POD_MERGE_CLAIM
                               " with its CPUs, which the driver gives to one container: name the "
                               "request that it needs, as request: gpu-0",
                      other);
    if (json_object_get(m->pod, "resources")) /* the pod's own say it for all containers */
        return 0;
    int rc = match_cpus(m, "requests");
    return rc < 0 ? rc : match_cpus(m, "limits");
}

/* Devices of a device plugin: a limit, which is their request too. */
static int merge_resource(struct merge *m, const struct spec_devices *devices)
{
    if (!devices->resource || devices->count == 0)
        return 0;
    char count[16];
    json_t *resources = NULL, *limits = NULL;
    snprintf(count, sizeof count, "%u", devices->count);
    int rc = member(m, m->first, FIRST_PATH, "resources", JSON_OBJECT, &resources);
    if (rc == 0)
        rc = member(m, resources, FIRST_PATH ".resources", "limits", JSON_OBJECT, &limits);
    if (rc < 0)
        return rc;
    const json_t *own = json_object_get(limits, devices->resource);
    bool same = json_is_string(own) ? strcmp(json_string_value(own), count) == 0
                                    : json_integer_value(own) == devices->count;
    if (own && !same)
        return refuse(m, FIRST_PATH ".resources.limits[\"%s\"]: spec.devices asks for %s; drop one",
                      devices->resource, count);
    return own || json_object_set_new(limits, devices->resource, json_string(count)) == 0
               ? 0
               : no_memory(m);
}

static int merge_tolerations(struct merge *m)
{
    struct toleration more[TOLERATIONS_MAX];
    size_t count = tolerations_of(m->spec, m->role, more);
    json_t *list = NULL;
    if (count == 0)
        return 0;
    int rc = member(m, m->pod, POD_PATH, "tolerations", JSON_ARRAY, &list);
    if (rc < 0)
        return rc;
    json_t *merged = tolerations_merge(list, more, count);
    return merged && json_object_set_new(m->pod, "tolerations", merged) == 0 ? 0 : no_memory(m);
}

/* ---- what RDMA and NCCL need of a container ---- */

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}

/* A capability of the container reaches processes of root, and files that have it of their own
 * unless privileges must not grow. */
static bool reaches_nobody(const struct merge *m, const json_t *security)
{
    bool root = json_integer_value(security_field(m, "runAsUser")) == 0 &&
                security_field(m, "runAsNonRoot") != json_true();
    return !root && json_object_get(security, "allowPrivilegeEscalation") == json_false();
}

/* Registered memory is locked memory. Who drops the capability by its name does without: the
 * preflight looks at the limit. */
static int merge_ipc_lock(struct merge *m)
{
    json_t *security = NULL, *capabilities = NULL, *add = NULL;
    if (!m->role->nics.class && !m->role->nics.resource)
        return 0;
    int rc = member(m, m->first, FIRST_PATH, "securityContext", JSON_OBJECT, &security);
    if (rc < 0 || json_object_get(security, "privileged") == json_true() ||
        reaches_nobody(m, security))
        return rc;
    rc = member(m, security, FIRST_PATH ".securityContext", "capabilities", JSON_OBJECT,
                &capabilities);
    if (rc < 0 || has_text(json_object_get(capabilities, "drop"), "IPC_LOCK"))
        return rc;
    rc = member(m, capabilities, FIRST_PATH ".securityContext.capabilities", "add", JSON_ARRAY,
                &add);
    if (rc < 0 || has_text(add, "IPC_LOCK") || has_text(add, "ALL"))
        return rc;
    return json_array_append_new(add, json_string("IPC_LOCK")) < 0 ? no_memory(m) : 0;
}

/* A container's own has 64 MiB, which NCCL and MPI outgrow; in memory it is bounded by the pod's.
 */
static int merge_shm(struct merge *m)
{
    if (m->options->agent ||
        value_find(json_object_get(m->first, "volumeMounts"), "mountPath", "/dev/shm"))
        return 0;
    int rc = add_volume_take(m, json_pack("{s:s, s:{s:s}}", "name", POD_MERGE_SHM_VOLUME,
                                          "emptyDir", "medium", "Memory"));
    return rc < 0 ? rc
                  : add_mount_take(m, json_pack("{s:s, s:s}", "name", POD_MERGE_SHM_VOLUME,
                                                "mountPath", "/dev/shm"));
}

/* Programs and libraries of the node's, which all pods of it load: no job may change them. Device
 * folders are opened for writing. */
static bool is_read_only(const struct machine_mount *mount)
{
    return strncmp(mount->host, "/dev/", 5) != 0;
}

/* Where the user mounts something himself, his stays. */
static int merge_machine(struct merge *m)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < MACHINE_MOUNTS_MAX; i++) {
        const struct machine_mount *mount = &m->role->machine.mounts[i];
        if (!mount->name ||
            value_find(json_object_get(m->first, "volumeMounts"), "mountPath", mount->pod))
            continue;
        rc = add_volume_take(m, json_pack("{s:s, s:{s:s, s:s}}", "name", mount->name, "hostPath",
                                          "path", mount->host, "type", "Directory"));
        if (rc == 0)
            rc = add_mount_take(m, json_pack("{s:s, s:s, s:b}", "name", mount->name, "mountPath",
                                             mount->pod, "readOnly", is_read_only(mount)));
    }
    return rc;
}

/* ---- metadata ---- */

static int add_pair(struct merge *m, json_t *own_pairs, const char *kind, const char *key,
                    json_t *value_take)
{
    CLEANUP(json_decrefp) json_t *value = value_take;
    const json_t *own = json_object_get(own_pairs, key);
    if (!value)
        return no_memory(m);
    if (own && !json_equal(own, value))
        return refuse(m,
                      "spec.template.metadata.%s[\"%s\"]: drarun or metadata.%s sets \"%s\"; "
                      "drop yours",
                      kind, key, kind, json_string_value(value));
    return json_object_set(own_pairs, key, value) < 0 ? no_memory(m) : 0;
}

static int add_metadata(struct merge *m, json_t *metadata, const char *kind, const json_t *values)
{
    json_t *own = NULL, *value;
    const char *key;
    int rc = member(m, metadata, "spec.template.metadata", kind, JSON_OBJECT, &own);
    value_foreach(values, key, value)
    {
        if (rc == 0)
            rc = add_pair(m, own, kind, key, json_incref(value));
    }
    return rc;
}

/* The attempt ends with the first worker that is moved. Who may be moved says so himself. */
static int add_stay(struct merge *m, json_t *metadata)
{
    CLEANUP(json_decrefp) json_t *stay = object_stay_annotations();
    json_t *annotations = NULL;
    int rc = stay ? member(m, metadata, "spec.template.metadata", "annotations", JSON_OBJECT,
                           &annotations)
                  : no_memory(m);
    if (rc < 0)
        return rc;
    return json_object_update_missing(annotations, stay) < 0 ? no_memory(m) : 0;
}

static int merge_metadata(struct merge *m, json_t *template)
{
    json_t *metadata = NULL;
    int rc = member(m, template, "spec.template", "metadata", JSON_OBJECT, &metadata);
    if (rc == 0 && (json_object_get(metadata, "name") || json_object_get(metadata, "namespace")))
        return refuse(m, "spec.template.metadata: workers are called NAME-w-I and live in the "
                         "job's namespace; drop name and namespace");
    CLEANUP(json_decrefp) json_t *labels = object_labels(m->spec, m->options);
    if (rc == 0 && !labels)
        return no_memory(m);
    if (rc == 0 && m->worker >= 0 &&
        json_object_set_new(labels, "drarun.dev/worker", json_sprintf("%" PRId64, m->worker)) < 0)
        return no_memory(m);
    if (rc == 0 && m->worker != POD_MERGE_FOREIGN && !m->options->shared_policy &&
        json_object_set_new(labels, NETWORK_POLICY_LABEL, json_string(NETWORK_POLICY_LABEL_VALUE)) <
            0)
        return no_memory(m);
    if (rc == 0)
        rc = add_metadata(m, metadata, "labels", labels);
    if (rc == 0 && m->spec->annotations)
        rc = add_metadata(m, metadata, "annotations", m->spec->annotations);
    return rc < 0 || m->worker == POD_MERGE_FOREIGN ? rc : add_stay(m, metadata);
}

/* One worker per node, where that is wanted and the template does not see to it. */
static int merge_spread(struct merge *m, const json_t *template)
{
    json_t *labels = json_object_get(json_object_get(template, "metadata"), "labels");
    int rc = node_spread_of(m->spec, m->role, m->worker == POD_MERGE_FOREIGN, m->err);
    if (rc != NODE_SPREAD_BY_SPEC)
        return rc < 0 ? rc : 0;
    rc = add_pair(m, labels, "labels", NODE_SPREAD_LABEL, json_string(NODE_SPREAD_LABEL_VALUE));
    return rc < 0 ? rc : node_spread_add(m->pod, labels, m->err);
}

/* A suspended job's pods wait at the gate, which the launcher opens; those of a Job do not exist.
 */
static int merge_suspend(struct merge *m)
{
    if (!(m->spec->suspend || m->options->suspended) || m->worker < 0)
        return 0;
    return add_take(m, m->pod, POD_PATH, "schedulingGates", "name",
                    json_pack("{s:s}", "name", "drarun.dev/suspended"), false);
}

static int merge_gang(struct merge *m)
{
    if (!object_has_pod_group(m->spec, m->options))
        return 0;
    json_t *group = json_pack("{s:o}", "podGroupName", json_sprintf("%s-w", m->spec->name));
    return json_object_set_new(m->pod, "schedulingGroup", group) < 0 ? no_memory(m) : 0;
}

static int find_first(struct merge *m, json_t *template)
{
    int rc = member(m, template, "spec.template", "spec", JSON_OBJECT, &m->pod);
    if (rc < 0)
        return rc;
    m->first = json_array_get(json_object_get(m->pod, "containers"), 0);
    if (!json_is_object(m->first))
        return refuse(m, POD_PATH ".containers: expected a list of at least one container");
    return 0;
}

int pod_merge(const struct job_spec *spec, const struct render_options *options, int64_t worker,
              json_t **ret_template, struct drarun_error *err)
{
    typedef int (*step_fn)(struct merge *);
    static const step_fn ours[] = {
        merge_restart, merge_agent,   merge_claims, merge_ipc_lock,    merge_shm,
        merge_machine, merge_suspend, merge_gang,   merge_tolerations,
    };
    static const step_fn foreign[] = {
        merge_foreign, merge_claims, merge_ipc_lock, merge_shm, merge_machine, merge_tolerations,
    };
    bool is_ours = worker != POD_MERGE_FOREIGN;
    size_t steps = is_ours ? ARRAY_LEN(ours) : ARRAY_LEN(foreign);
    const struct spec_role *role = spec_role_of(spec, worker >= 0 ? (uint32_t)worker : 0);
    CLEANUP(json_decrefp) json_t *template = json_deep_copy(role->template);
    struct merge m = {spec, role, options, worker, NULL, NULL, err};
    if (role->template && !template)
        return no_memory(&m);
    if (!json_is_object(template))
        return refuse(&m, "spec.template: expected an object");
    int rc = find_first(&m, template);
    if (rc == 0)
        rc = merge_metadata(&m, template);
    if (rc == 0)
        rc = merge_spread(&m, template);
    if (rc == 0) /* before what brings the agent, which asks for as much as the first container */
        rc = merge_cpus(&m);
    for (size_t i = 0; rc == 0 && i < steps; i++)
        rc = (is_ours ? ours : foreign)[i](&m);
    if (rc == 0)
        rc = merge_resource(&m, &role->gpus);
    if (rc == 0)
        rc = merge_resource(&m, &role->nics);
    if (rc == 0)
        rc = avoid_nodes(m.pod, options->avoid, options->avoid_count, err);
    if (rc == 0)
        *ret_template = TAKE_PTR(template);
    return rc;
}
