/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/network_policy.h"

#include "jobs/manifests/objects.h"

#define WORKER_LABEL "drarun.dev/worker"

/* Agents answer who has the job's key, and may be dialled from outside (`run --here`); what MPI and
 * NCCL listen on knows no key, so that only workers reach it. */
static json_t *agent_port(void)
{
    return json_pack("{s:s, s:i}", "protocol", "TCP", "port", RENDER_AGENT_PORT);
}

static json_t *has_label(const char *key, const char *operator)
{
    return json_pack("{s:s, s:s}", "key", key, "operator", operator);
}

/* Pods of an Indexed Job have no label of ours that tells their index. Where each worker's pod is
 * made by itself, some may have been made without the policy's label: by a client that might not
 * make the policy, before it died and the launcher made the rest. */
static json_t *workers_of(const struct job_spec *spec)
{
    if (spec->claims == SPEC_CLAIMS_TEMPLATE)
        return json_pack("{s:{s:s, s:s}}", "matchLabels", "drarun.dev/job", spec->name,
                         NETWORK_POLICY_LABEL, NETWORK_POLICY_LABEL_VALUE);
    return json_pack("{s:{s:s}, s:[o]}", "matchLabels", "drarun.dev/job", spec->name,
                     "matchExpressions", has_label(WORKER_LABEL, "Exists"));
}

/* The port as the API server keeps it, TCP being the default. */
static int add_declared_port(json_t *ports, const json_t *declared)
{
    const json_t *number = json_object_get(declared, "containerPort");
    const char *protocol = json_string_value(json_object_get(declared, "protocol"));
    if (!json_is_integer(number))
        return 0;
    json_t *port = json_pack("{s:s, s:O}", "protocol", protocol ? protocol : "TCP", "port", number);
    for (size_t i = 0; port && i < json_array_size(ports); i++)
        if (json_equal(json_array_get(ports, i), port)) {
            json_decref(port);
            return 0;
        }
    return json_array_append_new(ports, port);
}

/* The agent's, and those on which the template's containers say that they serve somebody. */
static json_t *open_ports(const struct job_spec *spec)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const json_t *container, *declared;
    json_t *ports = json_pack("[o]", agent_port());
    int rc = ports ? 0 : -1;
    for (size_t l = 0; l < 2 * spec->role_count; l++) {
        const json_t *pod = spec_role_pod(&spec->roles[l / 2]);
        size_t i, j;
        json_array_foreach(json_object_get(pod, lists[l % 2]), i, container)
        {
            json_array_foreach(json_object_get(container, "ports"), j, declared)
            {
                if (rc == 0)
                    rc = add_declared_port(ports, declared);
            }
        }
    }
    if (rc < 0) {
        json_decref(ports);
        return NULL;
    }
    return ports;
}

/* Pods of `selected` are reached by those of `from`, and on these ports by everybody. Takes all
 * three. */
static json_t *ingress(json_t *selected, json_t *from, json_t *ports)
{
    return json_pack("{s:o, s:[s], s:[{s:[{s:o}]}, {s:o}]}", "podSelector", selected, "policyTypes",
                     "Ingress", "ingress", "from", "podSelector", from, "ports", ports);
}

static json_t *with_spec_take(json_t *policy, json_t *spec)
{
    if (json_object_set_new(policy, "spec", spec) == 0)
        return policy;
    json_decref(policy);
    return NULL;
}

json_t *network_policy_of_job(const struct job_spec *spec, const struct render_options *options)
{
    json_t *policy = object_new(spec, options, "networking.k8s.io/v1", "NetworkPolicy",
                                json_sprintf("%s-w", spec->name), true);
    return with_spec_take(policy, ingress(workers_of(spec), workers_of(spec), open_ports(spec)));
}

json_t *network_policy_of_namespace(const char *name, const char *namespace)
{
    json_t *policy =
        json_pack("{s:s, s:s, s:{s:s, s:s*, s:{s:s}}}", "apiVersion", "networking.k8s.io/v1",
                  "kind", "NetworkPolicy", "metadata", "name", name, "namespace", namespace,
                  "labels", "app.kubernetes.io/name", "drarun");
    json_t *without = json_pack("{s:[o, o]}", "matchExpressions", has_label(WORKER_LABEL, "Exists"),
                                has_label(NETWORK_POLICY_LABEL, "DoesNotExist"));
    json_t *workers = json_pack("{s:[o]}", "matchExpressions", has_label(WORKER_LABEL, "Exists"));
    return with_spec_take(policy, ingress(without, workers, json_pack("[o]", agent_port())));
}
