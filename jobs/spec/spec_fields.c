/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec_fields.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/binding.h"
#include "jobs/spec/k8s_name.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/base/signal_name.h"
#include "lib/cel/cel.h"
#include "lib/cel/quantity.h"

#define RANKS_PER_WORKER_MAX 4096
#define SELECTORS_MAX 32 /* resource.k8s.io: of a request */
#define SELECTOR_BYTES_MAX 10240
#define TOLERATIONS_MAX 16 /* likewise */
#define RESTARTS_MAX 1000
#define CPU_COUNT_MAX 4096
#define CPU_GROUPS_MAX 16
#define CAPACITIES_MAX 32 /* of a device, with its attributes */
#define AMOUNT_MAX 64     /* bytes; more than any quantity needs */

#define TABLE(fields)                                                                              \
    {                                                                                              \
        fields, ARRAY_LEN(fields)                                                                  \
    }

/* A number, or "all". */
static void read_device_count(const struct reader_node *node, void *field)
{
    struct spec_devices *d = field;
    const char *text = json_string_value(node->value);
    int64_t count = 0;
    if (text && strcmp(text, "all") == 0) {
        d->all = true;
        return;
    }
    if (!json_is_number(node->value))
        reader_expected(node, "an integer of at least 1, or the word all");
    else if (reader_integer(node, 1, SPEC_DEVICES_MAX, &count) == 0)
        d->count = (uint32_t)count;
}

static void add_selector(const struct reader_node *node, struct strlist *selectors)
{
    struct drarun_error err = {0};
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    /* what lib/cel has not may still be known to the API server */
    if (strlen(text) > SELECTOR_BYTES_MAX)
        reader_fail(node, "longer than the %d bytes that Kubernetes allows", SELECTOR_BYTES_MAX);
    else if (cel_admit(text, &err) < 0 && err.code != EOPNOTSUPP)
        reader_fail(node, "the API server would reject it: %s", err.text);
    else
        strlist_add(selectors, text);
    node->reader->texts.failed |= selectors->failed || err.code == ENOMEM;
}

/* An expression, or a list of them. */
static void read_selector(const struct reader_node *node, void *field)
{
    struct strlist *selectors = field;
    if (json_is_string(node->value)) {
        add_selector(node, selectors);
        return;
    }
    if (!json_is_array(node->value) || json_array_size(node->value) == 0) {
        reader_expected(node, "a CEL expression or a list of them");
        return;
    }
    if (json_array_size(node->value) > SELECTORS_MAX)
        reader_fail(node, "more than the %d selectors that Kubernetes allows", SELECTORS_MAX);
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        add_selector(&item, selectors);
    }
    node->reader->texts.failed |= selectors->failed;
}

/* A quantity as text, which the API server reads: a new reference; NULL: a finding. */
static json_t *read_amount(const struct reader_node *node)
{
    const char *text = json_string_value(node->value);
    struct cel_quantity quantity;
    int64_t number = 0;
    if (text && strlen(text) <= AMOUNT_MAX && isdigit((unsigned char)text[text[0] == '.']) &&
        cel_quantity_parse(text, strlen(text), &quantity) != -EINVAL)
        return json_incref(node->value);
    if (json_is_number(node->value) && reader_whole(node->value, &number) && number >= 0)
        return json_sprintf("%" PRId64, number);
    reader_expected(node, "a quantity that isn't negative, such as 40Gi or 8");
    return NULL;
}

static void read_capacity(const struct reader_node *node, void *field)
{
    json_t *amounts = json_object();
    if (!amounts || reader_object(node) < 0) {
        node->reader->texts.failed |= !amounts;
        json_decref(amounts);
        return;
    }
    if (json_object_size(node->value) == 0 || json_object_size(node->value) > CAPACITIES_MAX)
        reader_fail(node,
                    "expected 1 to %d capacities with the amount of each device, such as "
                    "memory: 40Gi",
                    CAPACITIES_MAX);
    for (void *it = json_object_iter(node->value); it;
         it = json_object_iter_next(node->value, it)) {
        const char *name = json_object_iter_key(it);
        struct reader_node item;
        if (!k8s_is_device_name(name))
            reader_fail_key(node, name,
                            "expected a capacity's name as the driver publishes it, such as "
                            "memory or dra.cpu/cpu");
        else if (reader_get(node, name, &item)) {
            json_t *amount = read_amount(&item);
            node->reader->texts.failed |= amount && json_object_set_new(amounts, name, amount) < 0;
        }
    }
    *(json_t **)field = amounts;
}

static void read_match(const struct reader_node *node, void *field)
{
    struct strlist *match = field;
    if (reader_list(node, 1) < 0)
        return;
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        const char *text = json_string_value(item.value);
        if (!text || !strchr(text, '/') || !k8s_is_qualified(text))
            reader_expected(&item, "an attribute such as resource.kubernetes.io/pcieRoot");
        else
            strlist_add(match, text);
    }
    node->reader->texts.failed |= match->failed;
}

static void read_shared(const struct reader_node *node, void *field)
{
    struct strlist *shared = field;
    if (reader_list(node, 1) < 0)
        return;
    if (json_array_size(node->value) > SPEC_SHARED_MAX)
        reader_fail(node, "more than %d claims", SPEC_SHARED_MAX);
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i), claim;
        const char *name = NULL;
        if (reader_object(&item) < 0)
            continue;
        reader_known(&item, "claim");
        if (!reader_get(&item, "claim", &claim))
            reader_missing(&item, "claim is missing: the name of a ResourceClaim");
        else if (reader_text(&claim, &name) < 0)
            continue;
        else if (!k8s_is_subdomain(name))
            reader_expected(&claim, "the name of a ResourceClaim");
        else if (strlist_has(shared, name))
            reader_fail(&claim, "is given twice");
        else
            strlist_add(shared, name);
    }
    node->reader->texts.failed |= shared->failed;
}

/* Numbers are taken too: NCCL's variables are full of them. */
static void read_env(const struct reader_node *node, void *field)
{
    struct strlist *env = field;
    int64_t number = 0;
    if (reader_object(node) < 0)
        return;
    for (void *it = json_object_iter(node->value); it;
         it = json_object_iter_next(node->value, it)) {
        const char *name = json_object_iter_key(it);
        struct reader_node item;
        if (!reader_get(node, name, &item))
            continue;
        if (!k8s_is_env_name(name))
            reader_fail_key(node, name, "expected the name of a variable: A-Z, a-z, 0-9 and _");
        else if (json_is_string(item.value))
            strlist_addf(env, "%s=%s", name, json_string_value(item.value));
        else if (json_is_boolean(item.value))
            reader_expected(&item, "a text or a whole number (put it in quotes)");
        else if (reader_whole(item.value, &number))
            strlist_addf(env, "%s=%" PRId64, name, number);
        else
            reader_expected(&item, "a text or a whole number");
    }
    node->reader->texts.failed |= env->failed;
}

static void read_bind(const struct reader_node *node, void *field)
{
    struct drarun_error err = {0};
    struct bind_policy policy;
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    if (bind_parse(text, &policy, &err) < 0)
        reader_fail(node, "%s", err.text);
    else
        *(const char **)field = text;
}

static void read_domain(const struct reader_node *node, void *field)
{
    struct reader_node channel, mode, nodes;
    int64_t count = 0;
    int index = 0;
    if (reader_object(node) < 0)
        return;
    reader_known(node, "channel numNodes");
    if (reader_get(node, "numNodes", &nodes))
        reader_integer(&nodes, 0, SPEC_WORKERS_MAX, &count);
    if (reader_get(node, "channel", &channel) && reader_object(&channel) == 0) {
        reader_known(&channel, "allocationMode");
        if (reader_get(&channel, "allocationMode", &mode))
            reader_choice(&mode, "Single All", &index);
    }
    *(json_t **)field = json_incref(node->value);
}

/* resource.k8s.io's DeviceToleration. */
static void check_device_toleration(const struct reader_node *node)
{
    struct reader_node at, value;
    const char *key = NULL;
    int64_t seconds = 0;
    int equal = 1;
    if (reader_object(node) < 0)
        return;
    reader_known(node, "key operator value effect tolerationSeconds");
    if (reader_get(node, "key", &at) && reader_text(&at, &key) == 0 && !k8s_is_qualified(key))
        reader_expected(&at, "the key of a taint, such as example.com/degraded");
    if (reader_get(node, "operator", &at))
        reader_choice(&at, "Exists Equal", &equal);
    if (reader_get(node, "effect", &at))
        reader_choice(&at, "NoSchedule NoExecute", &(int){0});
    if (reader_get(node, "tolerationSeconds", &at))
        reader_integer(&at, INT32_MIN, INT32_MAX, &seconds);
    bool valued = reader_get(node, "value", &value);
    if (valued && !json_is_string(value.value))
        reader_expected(&value, "a text");
    else if (equal == 0 && valued)
        reader_fail(&value, "Exists matches any value: leave it out, or use operator: Equal");
    if (equal == 1 && !json_object_get(node->value, "key"))
        reader_missing(node, "key is missing: operator: Exists without one is for every taint");
}

static void read_device_tolerations(const struct reader_node *node, void *field)
{
    if (reader_list(node, 1) < 0)
        return;
    if (json_array_size(node->value) > TOLERATIONS_MAX)
        reader_fail(node, "more than the %d tolerations that Kubernetes allows", TOLERATIONS_MAX);
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        check_device_toleration(&item);
    }
    *(json_t **)field = json_incref(node->value);
}

static void read_tolerations(const struct reader_node *node, void *field)
{
    if (json_is_array(node->value))
        *(json_t **)field = json_incref(node->value);
    spec_read_tolerations(node, NULL);
}

static void read_resources(const struct reader_node *node, void *field)
{
    if (json_is_object(node->value))
        *(json_t **)field = json_incref(node->value);
    spec_read_resources(node, NULL);
}

/* The list alone: spec_check reads each role over what the top says. */
static void read_roles(const struct reader_node *node, void *field)
{
    (void)field;
    if (reader_list(node, 1) < 0)
        return;
    if (json_array_size(node->value) > SPEC_ROLES_MAX)
        reader_fail(node, "at most %d roles, got %zu", SPEC_ROLES_MAX,
                    json_array_size(node->value));
}

static void read_world(const struct reader_node *node, void *field)
{
    int index;
    if (reader_choice(node, "shared own", &index) == 0)
        *(bool *)field = index == 1;
}

static void read_object(const struct reader_node *node, void *field)
{
    (void)field;
    reader_object(node);
}

/* What is of the whole job and was put into a role. */
static bool explain_role_key(const struct reader_node *role, const char *key)
{
    for (size_t i = 0; i < spec_fields.count; i++) {
        if (strcmp(spec_fields.list[i].key, key) != 0)
            continue;
        reader_unknown_key(role, key, "applies to the whole job: put it into spec.%s", key);
        return true;
    }
    return spec_explain_key(role, key);
}

#define AT(member) offsetof(struct spec_raw, member)
#define OF_DEVICES(member) offsetof(struct spec_devices, member)
#define OF_ROLE(member) offsetof(struct spec_role, member)
#define OF_TIMEOUTS(member) offsetof(struct spec_timeouts, member)
#define OF_LAUNCHER(member) offsetof(struct spec_launcher, member)

#define OF_CHOICE(member) offsetof(struct spec_choice, member)

static const struct field gpu_choice_list[] = {
    {"class", FIELD_TEXT, OF_CHOICE(class)},
    {"profile", FIELD_TEXT, OF_CHOICE(profile)},
    {"selector", FIELD_CALL, OF_CHOICE(selectors), .read = read_selector},
    {"capacity", FIELD_CALL, OF_CHOICE(capacity), .read = read_capacity},
    {"tolerations", FIELD_CALL, OF_CHOICE(tolerations), .read = read_device_tolerations},
};
static const struct field_table gpu_choice_fields = TABLE(gpu_choice_list);

static const struct field nic_choice_list[] = {
    {"class", FIELD_TEXT, OF_CHOICE(class)},
    {"selector", FIELD_CALL, OF_CHOICE(selectors), .read = read_selector},
    {"capacity", FIELD_CALL, OF_CHOICE(capacity), .read = read_capacity},
    {"tolerations", FIELD_CALL, OF_CHOICE(tolerations), .read = read_device_tolerations},
};
static const struct field_table nic_choice_fields = TABLE(nic_choice_list);

static void read_choices(const struct reader_node *node, const struct field_table *fields,
                         struct spec_devices *d)
{
    size_t count = json_array_size(node->value);
    if (reader_list(node, 1) < 0)
        return;
    if (count > SPEC_CHOICES_MAX) {
        reader_fail(node, "more than the %d choices that Kubernetes allows", SPEC_CHOICES_MAX);
        return;
    }
    d->choices = calloc(count, sizeof *d->choices);
    node->reader->texts.failed |= !d->choices;
    d->choice_count = d->choices ? count : 0;
    for (size_t i = 0; i < d->choice_count; i++) {
        struct reader_node item = reader_item(node, i);
        fields_read(fields, &item, &d->choices[i]);
    }
}

static void read_gpu_choices(const struct reader_node *node, void *field)
{
    read_choices(node, &gpu_choice_fields, field);
}

static void read_nic_choices(const struct reader_node *node, void *field)
{
    read_choices(node, &nic_choice_fields, field);
}

static const struct field nic_list[] = {
    {"count", FIELD_CALL, 0, 1, SPEC_DEVICES_MAX, .read = read_device_count},
    {"class", FIELD_TEXT, OF_DEVICES(class)},
    {"resource", FIELD_TEXT, OF_DEVICES(resource)},
    {"selector", FIELD_CALL, OF_DEVICES(selectors), .read = read_selector},
    {"capacity", FIELD_CALL, OF_DEVICES(capacity), .read = read_capacity},
    {"firstAvailable", FIELD_CALL, 0, .read = read_nic_choices},
    {"match", FIELD_CALL, OF_DEVICES(match), .read = read_match},
    {"tolerations", FIELD_CALL, OF_DEVICES(tolerations), .read = read_device_tolerations},
    {"config", FIELD_OBJECT, OF_DEVICES(config)},
    {"driver", FIELD_TEXT, OF_DEVICES(config_driver)},
};
static const struct field_table nic_fields = TABLE(nic_list);

static const struct field gpu_list[] = {
    {"count", FIELD_CALL, 0, 1, SPEC_DEVICES_MAX, .read = read_device_count},
    {"class", FIELD_TEXT, OF_DEVICES(class)},
    {"profile", FIELD_TEXT, OF_DEVICES(profile)},
    {"resource", FIELD_TEXT, OF_DEVICES(resource)},
    {"selector", FIELD_CALL, OF_DEVICES(selectors), .read = read_selector},
    {"capacity", FIELD_CALL, OF_DEVICES(capacity), .read = read_capacity},
    {"firstAvailable", FIELD_CALL, 0, .read = read_gpu_choices},
    {"match", FIELD_CALL, OF_DEVICES(match), .read = read_match},
    {"tolerations", FIELD_CALL, OF_DEVICES(tolerations), .read = read_device_tolerations},
    {"config", FIELD_OBJECT, OF_DEVICES(config)},
    {"driver", FIELD_TEXT, OF_DEVICES(config_driver)},
};
static const struct field_table gpu_fields = TABLE(gpu_list);

static const struct field cpu_list[] = {
    {"count", FIELD_COUNT, OF_ROLE(cpu_count), 1, CPU_COUNT_MAX},
    {"groups", FIELD_COUNT, OF_ROLE(cpus.count), 1, CPU_GROUPS_MAX, .fallback = "1"},
    {"class", FIELD_TEXT, OF_ROLE(cpus.class)},
    {"selector", FIELD_CALL, OF_ROLE(cpus.selectors), .read = read_selector},
};
static const struct field_table cpu_fields = TABLE(cpu_list);

static const struct field devices_list[] = {
    {"gpus", FIELD_GROUP, OF_ROLE(gpus), .group = &gpu_fields},
    {"nics", FIELD_GROUP, OF_ROLE(nics), .group = &nic_fields},
    {"cpus", FIELD_GROUP, 0, .group = &cpu_fields},
    {"match", FIELD_CALL, OF_ROLE(match), .read = read_match},
    {"shared", FIELD_CALL, OF_ROLE(shared), .read = read_shared},
    {"align", FIELD_CHOICE, OF_ROLE(align), .choices = "required preferred none",
     .fallback = "preferred"},
    {"claims", FIELD_CHOICE, OF_ROLE(claims), .choices = "direct template"}, /* see spec_check */
};
static const struct field_table devices_fields = TABLE(devices_list);

static const struct field placement_list[] = {
    {"spread", FIELD_CHOICE, AT(s.spread), .choices = "node none"}, /* see node_spread_of */
};
static const struct field_table placement_fields = TABLE(placement_list);

static const struct field preflight_list[] = {
    {"fabric", FIELD_CHOICE, AT(s.fabric), .choices = "off open reach"}, /* see spec_check */
};
static const struct field_table preflight_fields = TABLE(preflight_list);

static const struct field mpi_list[] = {
    {"transport", FIELD_CHOICE, AT(s.mpi_transport), .choices = "auto tcp rdma",
     .fallback = "auto"},
};
static const struct field_table mpi_fields = TABLE(mpi_list);

static const struct field nccl_list[] = {
    {"profile", FIELD_TEXT, OF_ROLE(nccl_profile), .fallback = "auto"},
    {"hcaList", FIELD_CHOICE, OF_ROLE(nccl_hca_list), .choices = "auto always never",
     .fallback = "auto"},
    {"version", FIELD_TEXT, OF_ROLE(nccl_version)},
    {"inspector", FIELD_BOOL, OF_ROLE(nccl_inspector), .fallback = "false"},
    {"env", FIELD_CALL, OF_ROLE(nccl_env), .read = read_env},
};
static const struct field_table nccl_fields = TABLE(nccl_list);

static const struct field launcher_list[] = {
    {"resources", FIELD_CALL, OF_LAUNCHER(resources), .read = read_resources},
    {"tolerations", FIELD_CALL, OF_LAUNCHER(tolerations), .read = read_tolerations},
    {"nodeSelector", FIELD_TEXT_MAP, OF_LAUNCHER(node_selector)},
    {"priorityClassName", FIELD_TEXT, OF_LAUNCHER(priority_class)},
    {"annotations", FIELD_TEXT_MAP, OF_LAUNCHER(annotations)},
};
static const struct field_table launcher_fields = TABLE(launcher_list);

static const struct field timeout_list[] = {
    {"queue", FIELD_DURATION, OF_TIMEOUTS(queue), .fallback = "24h"},
    {"nodes", FIELD_DURATION, OF_TIMEOUTS(nodes), .fallback = "30m"},
    {"allocation", FIELD_DURATION, OF_TIMEOUTS(allocation), .fallback = "10m"},
    {"imagePull", FIELD_DURATION, OF_TIMEOUTS(image_pull), .fallback = "30m"},
    {"start", FIELD_DURATION, OF_TIMEOUTS(start), .fallback = "2m"},
    {"total", FIELD_DURATION, OF_TIMEOUTS(total), .fallback = "0"},
    {"agent", FIELD_DURATION, OF_TIMEOUTS(agent)},                          /* see spec_check */
    {"signal", FIELD_CHOICE, OF_TIMEOUTS(signal), .choices = SIGNAL_NAMES}, /* see spec_check */
    {"signalBefore", FIELD_DURATION, OF_TIMEOUTS(signal_before), .fallback = "1m"},
};
static const struct field_table timeout_fields = TABLE(timeout_list);

static const struct field failure_list[] = {
    {"rules", FIELD_CALL, AT(s.failure), .read = spec_read_failure_rules},
    {"restarts", FIELD_COUNT, AT(policy_restarts), 0, RESTARTS_MAX},
    {"infrastructureRestarts", FIELD_COUNT, AT(s.failure.infrastructure_restarts), 0, RESTARTS_MAX},
    {"onRankFailure", FIELD_CHOICE, AT(s.failure.on_rank_failure), .choices = "end continue",
     .fallback = "end"},
};
static const struct field_table failure_fields = TABLE(failure_list);

/* What a role says, and what the top says for the roles that do not. at: of the struct spec_role.
 */
#define ROLE_KEYS(at)                                                                              \
    {"workers", FIELD_COUNT, (at) + OF_ROLE(workers), 1, SPEC_WORKERS_MAX, .fallback = "1"},       \
        {"ranksPerWorker", FIELD_COUNT, (at) + OF_ROLE(ranks_per_worker), 1,                       \
         RANKS_PER_WORKER_MAX},                                                                    \
        {"slots", FIELD_COUNT, (at) + OF_ROLE(slots), 1, RANKS_PER_WORKER_MAX},                    \
        {"devices", FIELD_GROUP, at, .group = &devices_fields},                                    \
        {"nccl", FIELD_GROUP, at, .group = &nccl_fields},                                          \
        {"image", FIELD_CALL, 0, .read = spec_read_text},                                          \
        {"command", FIELD_CALL, 0, .read = spec_read_command},                                     \
        {"args", FIELD_CALL, 0, .read = spec_read_words},                                          \
        {"workingDir", FIELD_CALL, 0, .read = spec_read_text},                                     \
        {"env", FIELD_CALL, 0, .read = spec_read_env},                                             \
        {"envFrom", FIELD_CALL, 0, .read = spec_read_env_from},                                    \
        {"resources", FIELD_CALL, 0, .read = spec_read_resources},                                 \
        {"volumes", FIELD_CALL, 0, .read = spec_read_volumes},                                     \
        {"tolerations", FIELD_CALL, 0, .read = spec_read_tolerations},                             \
        {"nodeSelector", FIELD_CALL, 0, .read = spec_read_text_map},                               \
        {"priorityClassName", FIELD_CALL, 0, .read = spec_read_text},                              \
        {"serviceAccountName", FIELD_CALL, 0, .read = spec_read_text},                             \
        {"imagePullSecrets", FIELD_CALL, 0, .read = spec_read_pull_secrets},                       \
        {"schedulerName", FIELD_CALL, 0, .read = spec_read_text},                                  \
        {"labels", FIELD_CALL, 0, .read = spec_read_text_map},                                     \
        {"annotations", FIELD_CALL, 0, .read = spec_read_text_map},                                \
    {                                                                                              \
        "template", FIELD_CALL, 0, .read = read_object                                             \
    }

static const struct field role_list[] = {
    {"name", FIELD_TEXT, OF_ROLE(name)},
    ROLE_KEYS(0),
};
const struct field_table spec_role_fields = {role_list, ARRAY_LEN(role_list), explain_role_key};

static const struct field spec_list[] = {
    ROLE_KEYS(AT(above)),
    {"roles", FIELD_CALL, 0, .read = read_roles},
    {"success", FIELD_TEXT, AT(success), .fallback = "all"}, /* see spec_check */
    {"world", FIELD_CALL, AT(s.own_worlds), .fallback = "shared", .read = read_world},
    {"oversubscribe", FIELD_BOOL, AT(s.oversubscribe), .fallback = "false"},
    {"bind", FIELD_CALL, AT(s.bind), .fallback = "none", .read = read_bind},
    {"reportBindings", FIELD_BOOL, AT(s.report_bindings), .fallback = "false"},
    {"placement", FIELD_GROUP, 0, .group = &placement_fields},
    {"computeDomain", FIELD_CALL, AT(s.compute_domain), .read = read_domain},
    {"network", FIELD_CHOICE, AT(s.network), .choices = "rdma any"}, /* see spec_check */
    {"onTcpFallback", FIELD_CHOICE, AT(s.on_tcp_fallback), .choices = "report fail",
     .fallback = "report"},
    {"onPreflightWarning", FIELD_CHOICE, AT(s.on_preflight_warning), .choices = "report fail",
     .fallback = "report"},
    {"preflight", FIELD_GROUP, 0, .group = &preflight_fields},
    {"launch", FIELD_CHOICE, AT(s.launch), .choices = "pmix env mpirun", .fallback = "pmix"},
    {"mpi", FIELD_GROUP, 0, .group = &mpi_fields},
    {"launcher", FIELD_GROUP, AT(s.launcher), .group = &launcher_fields},
    {"timeouts", FIELD_GROUP, AT(s.timeouts), .group = &timeout_fields},
    {"hangAfter", FIELD_DURATION, AT(s.hang_after), .fallback = "10m"},
    {"onHang", FIELD_CHOICE, AT(s.on_hang), .choices = "report fail", .fallback = "report"},
    {"restarts", FIELD_COUNT, AT(s.restarts), 0, RESTARTS_MAX, .fallback = "0"},
    {"failurePolicy", FIELD_GROUP, 0, .group = &failure_fields},
    {"ttlSecondsAfterFinished", FIELD_INTEGER, AT(s.ttl_after_finished), 0, INT32_MAX},
    {"suspend", FIELD_BOOL, AT(s.suspend), .fallback = "false"},
    {"managedBy", FIELD_TEXT, AT(s.managed_by), .fallback = SPEC_CONTROLLER},
    {"queue", FIELD_TEXT, AT(s.queue)},
    {"gangScheduling", FIELD_CHOICE, AT(s.gang_scheduling), .choices = "auto never",
     .fallback = "auto"},
};
const struct field_table spec_fields = {spec_list, ARRAY_LEN(spec_list), spec_explain_key};

/* What kubectl get prints beside what was applied. */
static bool explain_added(const struct reader_node *object, const char *key)
{
    static const char added[] =
        "uid resourceVersion generation creationTimestamp managedFields selfLink ownerReferences "
        "finalizers deletionTimestamp deletionGracePeriodSeconds status";
    if (!words_has(added, key))
        return false;
    reader_unknown_key(object, key, "the cluster sets this in a DraJob that is there: take it out");
    return true;
}

static const struct field metadata_list[] = {
    {"name", FIELD_TEXT, AT(s.name)},
    {"generateName", FIELD_TEXT, AT(s.generate_name)},
    {"namespace", FIELD_TEXT, AT(s.namespace)},
    {"labels", FIELD_TEXT_MAP, AT(s.labels)},
    {"annotations", FIELD_TEXT_MAP, AT(s.annotations)},
};
static const struct field_table metadata_fields = {metadata_list, ARRAY_LEN(metadata_list),
                                                   explain_added};

static const struct field document_list[] = {
    {"apiVersion", FIELD_TEXT, AT(api_version), .fallback = SPEC_API_VERSION},
    {"kind", FIELD_TEXT, AT(kind), .fallback = SPEC_KIND},
    {"metadata", FIELD_GROUP, 0, .group = &metadata_fields},
    {"spec", FIELD_GROUP, 0, .group = &spec_fields},
};
const struct field_table spec_document_fields = {document_list, ARRAY_LEN(document_list),
                                                 explain_added};
