/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's first container brings: GPUs of a device plugin, variables, its program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/ranks/shell_script.h"
#include "jobs/ranks/shell_words.h"
#include "jobs/ranks/wrapper.h"
#include "jobs/spec/spec.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/doc/value.h"

#define GPUS_MAX 128
#define KEY_VARIABLE "DRARUN_KEY" /* of drarun join, and of a job's own pods */

/* Variables that the allocation decides (docs/design/011-derivation.md): a copied value is right on
 * the machine that it was copied from. */
static const char derived[] =
    "NCCL_NET NCCL_IB_HCA NCCL_CROSS_NIC NCCL_NET_GDR_LEVEL NCCL_P2P_NET_CHUNKSIZE "
    "NCCL_P2P_PCI_CHUNKSIZE NCCL_P2P_NVL_CHUNKSIZE NCCL_NVLS_CHUNKSIZE NCCL_IB_ADAPTIVE_ROUTING "
    "NCCL_IB_QPS_PER_CONNECTION NCCL_IB_TC NCCL_IB_FIFO_TC NCCL_IB_GID_INDEX NCCL_IB_MERGE_NICS "
    "NCCL_TUNER_CONFIG_PATH NCCL_TUNER_PLUGIN NCCL_NET_PLUGIN NCCL_SOCKET_IFNAME NCCL_TOPO_FILE "
    "NCCL_MNNVL_ENABLE GLOO_SOCKET_IFNAME UCX_NET_DEVICES";
/* Of these a path is the image's own, whatever the machine. */
static const char plugins[] = "NCCL_TUNER_PLUGIN NCCL_NET_PLUGIN";
static const char rendezvous[] =
    "MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK NODE_RANK NNODES JAX_COORDINATOR_ADDRESS "
    "JAX_NUM_PROCESSES JAX_PROCESS_ID";

json_t *import_first_container(const json_t *template)
{
    return json_array_get(json_object_get(json_object_get(template, "spec"), "containers"), 0);
}

static const char *const gpu_resources[] = {"nvidia.com/gpu",
                                            "amd.com/gpu"}; /* of device plugins */

/* Of the device plugin, or by claim. */
static bool asks_for_devices(const json_t *container)
{
    const json_t *resources = json_object_get(container, "resources");
    const json_t *limits = json_object_get(resources, "limits");
    for (size_t i = 0; i < ARRAY_LEN(gpu_resources); i++)
        if (json_object_get(limits, gpu_resources[i]))
            return true;
    return json_array_size(json_object_get(resources, "claims")) > 0;
}

size_t import_ranks_container(const json_t *pod)
{
    size_t i, found = 0, count = 0;
    json_t *container;
    json_array_foreach(json_object_get(pod, "containers"), i, container)
    {
        if (asks_for_devices(container)) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : 0;
}

json_t *import_child(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value) {
        value = json_object();
        if (json_object_set_new(object, key, value) < 0) /* which frees it */
            return NULL;
    }
    return value;
}

static bool first_container(const struct reader_node *pod, struct reader_node *containers,
                            struct reader_node *ret_first)
{
    if (!reader_get(pod, "containers", containers) || json_array_size(containers->value) == 0)
        return false;
    *ret_first = reader_item(containers, import_ranks_container(pod->value));
    return json_is_object(ret_first->value);
}

static uint32_t quantity(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (json_is_integer(value))
        return (uint32_t)json_integer_value(value);
    unsigned long number = text ? strtoul(text, &end, 10) : 0;
    return end && !*end && number <= GPUS_MAX ? (uint32_t)number : 0;
}

static void take_gpus(const struct reader_node *resources, json_t *container, json_t *spec)
{
    static const char *const parts[] = {"limits", "requests"};
    struct reader_node limits, value;
    if (!reader_get(resources, "limits", &limits))
        return;
    for (size_t i = 0; i < ARRAY_LEN(gpu_resources); i++) {
        if (!reader_get(&limits, gpu_resources[i], &value))
            continue;
        uint32_t count = quantity(value.value);
        if (count == 0) {
            reader_expected(&value, "a number of GPUs");
            continue;
        }
        json_t *devices = import_child(spec, "devices");
        const json_t *gpus = json_object_get(devices, "gpus");
        if (gpus)
            reader_fail(&value,
                        "left out: the container asks for %s, too, and a worker has one kind of "
                        "GPUs",
                        value_text_or(gpus, "resource", "GPUs by claim"));
        else
            json_object_set_new(
                devices, "gpus",
                json_pack("{s:i, s:s}", "count", (int)count, "resource", gpu_resources[i]));
        for (size_t k = 0; k < ARRAY_LEN(parts); k++)
            json_object_del(json_object_get(json_object_get(container, "resources"), parts[k]),
                            gpu_resources[i]);
    }
    for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
        json_t *part = json_object_get(json_object_get(container, "resources"), parts[k]);
        if (part && json_object_size(part) == 0)
            json_object_del(json_object_get(container, "resources"), parts[k]);
    }
    if (json_object_size(json_object_get(container, "resources")) == 0)
        json_object_del(container, "resources");
}

enum import_variable import_variable(const char *name, const char *value)
{
    bool is_path = value && strchr(value, '/') && words_has(plugins, name);
    if (words_has(derived, name))
        return is_path ? IMPORT_VARIABLE_OTHER : IMPORT_VARIABLE_DERIVED;
    bool own = words_has(rendezvous, name);
    return own ? IMPORT_VARIABLE_OWN : IMPORT_VARIABLE_OTHER;
}

/* Switches of demonstrations: each turns off what the allocation was asked for. */
static const struct demonstration {
    const char *name, *value, *off;
} demonstrations[] = {
    {"NCCL_SHM_DISABLE", "1", "shared memory between the ranks of a node"},
    {"NCCL_P2P_DISABLE", "1", "NVLink and PCIe between the GPUs of a node"},
    {"NCCL_NVLS_ENABLE", "0", "NVLink SHARP"},
    {"NCCL_IB_DISABLE", "1", "RDMA: traffic between nodes goes over TCP"},
    {"NCCL_CUMEM_ENABLE", "0", "what NVLS and NVLink between nodes need"},
};

void import_nccl_variable(const struct reader_node *node, const char *name, const char *value,
                          json_t *spec)
{
    json_object_set_new(import_child(import_child(spec, "nccl"), "env"), name, json_string(value));
    for (size_t i = 0; i < ARRAY_LEN(demonstrations); i++)
        if (strcmp(name, demonstrations[i].name) == 0 &&
            strcmp(value, demonstrations[i].value) == 0)
            reader_fail(node,
                        "%s=%s stays in nccl.env: it turns off %s, as demonstrations do; take it "
                        "out for real work",
                        name, value, demonstrations[i].off);
}

/* Whether NCCL's variable moves to nccl.env, where $(NAME) is text: what has one stays where a
 * kubelet replaces it. */
static bool moves(const char *name, const char *value)
{
    return strncmp(name, "NCCL_", strlen("NCCL_")) == 0 && !strstr(value, "$(");
}

/* True when the variable leaves the template. What valueFrom gives is known in the pod alone: that
 * of NCCL's others stays where it is. */
static bool take_variable(const struct reader_node *item, json_t *spec)
{
    const char *name = import_text(item, "name");
    struct reader_node value;
    bool is_known = reader_get(item, "value", &value);
    const char *text = is_known ? import_text(item, "value") : "valueFrom";
    enum import_variable kind = import_variable(name, is_known ? text : NULL);
    if (!is_known && !json_object_get(item->value, "valueFrom"))
        return false;
    if (strcmp(name, KEY_VARIABLE) == 0) {
        reader_fail(item, "%s is left out: drarun makes a key for each job", name);
        return true;
    }
    if (kind == IMPORT_VARIABLE_DERIVED) {
        reader_fail(item,
                    "%s=%s is left out: it is derived from what the worker holds; nccl.env "
                    "would set it all the same",
                    name, text);
        return true;
    }
    if (kind == IMPORT_VARIABLE_OWN) {
        reader_fail(item, "%s=%s is left out: each rank gets its own", name, text);
        return true;
    }
    if (!is_known || !moves(name, text))
        return false;
    if (json_is_string(value.value))
        import_nccl_variable(item, name, text, spec);
    else
        json_object_set(import_child(import_child(spec, "nccl"), "env"), name, value.value);
    return true;
}

/* The entry before `before` that defines the variable and leaves the template; false: none does. */
static bool find_gone(const struct reader_node *env, size_t before, const char *name,
                      size_t *ret_index)
{
    for (size_t i = before; i-- > 0;) {
        struct reader_node item = reader_item(env, i);
        if (!json_is_object(item.value) || strcmp(import_text(&item, "name"), name) != 0)
            continue;
        *ret_index = i;
        const char *text = json_string_value(json_object_get(item.value, "value"));
        return import_variable(name, text) != IMPORT_VARIABLE_OTHER || (text && moves(name, text));
    }
    return false;
}

/* A variable that stands in the list more than once has the last value: true when an earlier one
 * would leave the template. One that stays is the kubelet's to pass over. */
static bool is_passed_over(const struct reader_node *env, size_t at)
{
    struct reader_node item = reader_item(env, at);
    const char *name = import_text(&item, "name");
    const char *text = json_string_value(json_object_get(item.value, "value"));
    if (!text || (import_variable(name, text) == IMPORT_VARIABLE_OTHER && !moves(name, text)))
        return false;
    for (size_t i = at + 1; i < json_array_size(env->value); i++) {
        const char *other = value_text(json_array_get(env->value, i), "name");
        if (!other || strcmp(other, name) != 0)
            continue;
        reader_fail(&item, "%s=%s is left out: the list has %s again, and the last one counts",
                    name, text, name);
        return true;
    }
    return false;
}

/* The value of entry `at`, as the kubelet would expand it, for what leaves the template with a
 * value that is known whole. */
static void expand(const struct reader_node *env, size_t at, struct buf *out)
{
    struct reader_node item = reader_item(env, at);
    const char *text = import_text(&item, "value");
    while (*text) {
        const char *end = strncmp(text, "$(", 2) == 0 ? strchr(text, ')') : NULL;
        cleanup_free char *name = end ? strndup(text + 2, (size_t)(end - text - 2)) : NULL;
        size_t from = 0;
        if (!name || !find_gone(env, at, name, &from)) {
            size_t length = strncmp(text, "$$", 2) == 0 ? 2 : 1;
            buf_add(out, text, length);
            text += length;
            continue;
        }
        struct reader_node gone = reader_item(env, from);
        const char *value = json_string_value(json_object_get(gone.value, "value"));
        if (value && !strstr(value, "$(") && import_variable(name, value) != IMPORT_VARIABLE_OWN) {
            buf_add_str(out, value);
        } else {
            buf_add(out, text, (size_t)(end + 1 - text));
            reader_fail(&item,
                        "%s refers to %s, which is left out, so $(%s) is not replaced: each rank "
                        "has its own %s; let a shell in the command build the value from it",
                        import_text(&item, "name"), name, name, name);
        }
        text = end + 1;
    }
}

static void keep_variable(const struct reader_node *env, size_t at, json_t *kept)
{
    struct reader_node item = reader_item(env, at);
    struct buf text = BUF_INIT;
    if (!strstr(import_text(&item, "value"), "$("))
        return;
    expand(env, at, &text);
    env->reader->texts.failed |= text.failed;
    if (text.data)
        json_object_set_new(kept, "value", json_string(text.data));
    buf_done(&text);
}

static void take_env(const struct reader_node *container, json_t *copy, json_t *spec)
{
    struct reader_node env;
    json_t *kept = json_object_get(copy, "env");
    if (!reader_get(container, "env", &env) || !json_is_array(kept))
        return;
    for (size_t i = json_array_size(env.value); i-- > 0;) {
        struct reader_node item = reader_item(&env, i);
        if (!json_is_object(item.value))
            continue;
        if (is_passed_over(&env, i) || take_variable(&item, spec))
            json_array_remove(kept, i);
        else
            keep_variable(&env, i, json_array_get(kept, i));
    }
    if (json_array_size(kept) == 0)
        json_object_del(copy, "env");
}

/* Keys that would be left out as variables of the container: there is no list without them. */
static void explain_source(const struct reader_node *source, const struct import_objects *objects)
{
    CLEANUP(buf_done) struct buf names = BUF_INIT;
    struct reader_node reference;
    const char *key = NULL;
    json_t *value = NULL;
    const struct reader_node *map =
        import_object(source, "configMapRef", &reference)
            ? import_find(objects, "ConfigMap", import_text(&reference, "name"))
            : NULL;
    if (!map)
        return;
    json_object_foreach(json_object_get(map->value, "data"), key, value)
    {
        char name[256];
        snprintf(name, sizeof name, "%s%s", import_text(source, "prefix"), key);
        if (import_variable(name, json_string_value(value)) != IMPORT_VARIABLE_OTHER)
            buf_printf(&names, "%s%s", names.len ? ", " : "", name);
    }
    source->reader->texts.failed |= names.failed;
    if (names.len)
        reader_fail(source,
                    "the ConfigMap %s gives the ranks %.300s, in place of what is derived from "
                    "what the worker holds or is each rank's own: take that out of it",
                    import_text(&reference, "name"), names.data);
}

static void explain_sources(const struct reader_node *container,
                            const struct import_objects *objects)
{
    struct reader_node list;
    if (!reader_get(container, "envFrom", &list))
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        if (json_is_object(item.value))
            explain_source(&item, objects);
    }
}

void import_container(const struct import_objects *objects, const struct reader_node *pod,
                      json_t *template, json_t *spec)
{
    struct reader_node containers, first, resources;
    if (!first_container(pod, &containers, &first))
        return;
    json_t *copy = import_first_container(template);
    if (reader_get(&first, "resources", &resources) && json_is_object(resources.value))
        take_gpus(&resources, copy, spec);
    take_env(&first, copy, spec);
    explain_sources(&first, objects);
    import_sshd(&first, copy);
}

void import_probes(const struct reader_node *pod, const json_t *template)
{
    static const char *const program[] = {"command", "args"};
    static const char *const keys[] = {"livenessProbe", "startupProbe"};
    const json_t *copy = import_first_container(template);
    struct reader_node containers, first;
    bool replaced = false;
    if (!first_container(pod, &containers, &first))
        return;
    for (size_t i = 0; i < ARRAY_LEN(program); i++) {
        const json_t *own = json_object_get(first.value, program[i]);
        const json_t *now = json_object_get(copy, program[i]);
        replaced |= own != now && !(own && now && json_equal(own, now));
    }
    for (size_t i = 0; replaced && i < ARRAY_LEN(keys); i++)
        if (json_object_get(copy, keys[i]))
            reader_fail_key(
                &first, keys[i],
                "kept, though the program is another one now: the kubelet ends a worker whose "
                "probe fails; remove the probe unless it fits the new program");
}

/* "rdma/ib", "nvidia.com/rdma_shared_device_a", "nvidia.com/mlnxnics", "vpc.amazonaws.com/efa". */
static bool is_rdma(const char *resource)
{
    const char *name = strchr(resource, '/');
    return name &&
           (strstr(resource, "rdma") || strstr(resource, "mlnx") || strcmp(name, "/efa") == 0);
}

/* A claim of GPUs does not show the NICs that a device plugin adds. */
void import_network(const struct reader_node *pod, json_t *spec)
{
    struct reader_node containers, first, resources, limits;
    const char *name = NULL;
    json_t *value = NULL;
    const json_t *devices = json_object_get(spec, "devices");
    if (!first_container(pod, &containers, &first) ||
        !import_object(&first, "resources", &resources) ||
        !import_object(&resources, "limits", &limits) || json_object_get(devices, "nics") ||
        json_object_get(json_object_get(devices, "gpus"), "class"))
        return;
    json_object_foreach(limits.value, name, value)
    {
        if (!is_rdma(name) || json_object_get(spec, "network"))
            continue;
        json_object_set_new(spec, "network", json_string("rdma"));
        reader_fail_key(&limits, name,
                        "these are NICs for RDMA: network is rdma, so that the job does not run "
                        "without; network: any lets it use TCP");
    }
}

/* Why a line of a script that ends in sleep has no place in a job. */
static const char *line_reason(const char *first)
{
    if (words_has("sleep tail wait trap true :", first))
        return "the pod waits for someone to log in";
    if (strstr(first, "sshd") || strstr(first, "container_entry.sh"))
        return "starts sshd, which nothing needs";
    if (strcmp(first, "echo") == 0)
        return "a setting of Open MPI's own launcher";
    if (strcmp(first, "source") == 0 || strcmp(first, ".") == 0)
        return "variables that are derived; the script itself is run where the image has it";
    return "not the ranks' program";
}

#define REPLACED                                                                                   \
    "a worker starts the ranks' program in place of its own command; do it in the image, or in a " \
    "script that starts the program"

static bool mentions_ssh(const struct strlist *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcasestr(words->items[i], "ssh"))
            return true;
    return false;
}

static size_t past_wrappers(const struct strlist *words)
{
    return words->count > 0 ? wrapper_skip(words->items) : 0;
}

/* What a worker runs for the sake of a launcher that logs in, and what only decides whether or how
 * often the script does the rest: nothing of it is missed. */
static bool is_for_login(const struct strlist *words)
{
    static const char waiting[] = "sleep tail wait set trap true : while do for select case test [ "
                                  "[[ exit break continue";
    size_t at = past_wrappers(words);
    return (at < words->count && words_has(waiting, words->items[at])) || mentions_ssh(words);
}

/* own: of a worker whose launcher's program is the ranks'. */
static void explain_script(const struct reader_node *node, const char *script, bool own)
{
    struct shell_script parsed;
    shell_parse(script, &parsed);
    for (size_t i = 0; i < parsed.count; i++) {
        const struct strlist *words = &parsed.commands[i].words;
        if (own && (is_for_login(words) || mentions_ssh(&parsed.commands[i].outputs)))
            continue;
        struct buf first = BUF_INIT, second = BUF_INIT;
        shell_unquote(words->count > 0 ? words->items[0] : "", &first);
        shell_unquote(words->count > 1 ? words->items[1] : "", &second);
        parsed.failed |= first.failed || second.failed;
        if (words->count > 0 && first.data && second.data)
            reader_fail(node, "\"%.40s%s%.60s\" is left out: %s", first.data,
                        words->count > 1 ? " " : "", second.data,
                        own ? REPLACED : line_reason(first.data));
        buf_done(&first);
        buf_done(&second);
    }
    node->reader->texts.failed |= parsed.failed;
    shell_script_done(&parsed);
}

void import_vendor_script(const struct reader_node *pod, const json_t *template)
{
    static const char *const keys[] = {"args", "command"};
    const json_t *container = import_first_container(template);
    struct reader_node containers, first, node;
    if (!first_container(pod, &containers, &first))
        return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        cleanup_free char *kept = json_dumps(json_object_get(container, keys[i]), JSON_ENCODE_ANY);
        if (!kept || !strstr(kept, "set_nccl_env"))
            continue;
        reader_fail(reader_get(&first, keys[i], &node) ? &node : &first,
                    "set_nccl_env.sh stays in the command: drarun already runs the script before "
                    "the ranks if the image has it, and a second run overrides the derived "
                    "variables; remove the line");
        return;
    }
}

void import_words(const json_t *container, struct strlist *words)
{
    static const char *const keys[] = {"command", "args"};
    const json_t *word;
    size_t i;
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        json_array_foreach(json_object_get(container, keys[k]), i, word)
        {
            strlist_add(words, json_is_string(word) ? json_string_value(word) : "");
        }
}

/* The place of the script among the words, as of "tini -- bash -ec SCRIPT"; words->count: there is
 * none. */
static size_t find_script(const struct strlist *words)
{
    struct shell_words shell;
    size_t at = past_wrappers(words);
    bool has_script =
        shell_words_read(strlist_items(words) + at, words->count - at, &shell) && shell.has_script;
    return has_script ? at + shell.options : words->count;
}

static void explain_words(const struct reader_node *node, const struct strlist *words)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    for (size_t i = 0; i < words->count; i++)
        buf_printf(&text, "%s%s", text.len ? " " : "", words->items[i]);
    node->reader->texts.failed |= text.failed;
    if (text.len > 0 && !is_for_login(words))
        reader_fail(node, "\"%.100s\" is left out: " REPLACED, text.data);
}

void import_replaced(const struct reader_node *pod, const json_t *template)
{
    const json_t *now = json_object_get(import_first_container(template), "command");
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    struct reader_node containers, first, node;
    if (!first_container(pod, &containers, &first) ||
        (!reader_get(&first, "args", &node) && !reader_get(&first, "command", &node)) ||
        (strcmp(node.key, "command") == 0 && json_equal(node.value, now)))
        return;
    import_words(first.value, &words);
    node.reader->texts.failed |= words.failed;
    size_t script = words.failed ? words.count : find_script(&words);
    if (script < words.count) {
        size_t before = json_array_size(json_object_get(first.value, "command"));
        reader_get(&first, script < before ? "command" : "args", &node);
        explain_script(&node, words.items[script], true);
    } else if (!words.failed) {
        explain_words(&node, &words);
    }
}

/* ---- pods that wait for someone to log in ---- */

static bool is_program(const char *word, const char *name)
{
    const char *slash = strrchr(word, '/');
    return strcmp(slash ? slash + 1 : word, name) == 0;
}

/* "sleep infinity", "tail -f /dev/null". */
static bool is_endless(const struct strlist *words)
{
    size_t at = past_wrappers(words), count = words->count - at;
    const char *last = count > 1 ? words->items[words->count - 1] : "";
    bool follows = false;
    if (count == 2 && is_program(words->items[at], "sleep"))
        return words_has("inf infinity", last);
    for (size_t i = at + 1; i < words->count; i++)
        follows |= words->items[i][0] == '-' && strpbrk(words->items[i], "fF");
    return follows && is_program(words->items[at], "tail") && strcmp(last, "/dev/null") == 0;
}

static bool is_only(const struct shell_command *command, const char *names)
{
    return command->words.count == 1 && words_has(names, command->words.items[0]);
}

/* Of which nothing but "sleep 60" follows "while true". */
static bool is_loop(const struct shell_script *script, size_t at)
{
    const struct shell_command *commands = script->commands;
    return at > 0 && is_program(commands[at].words.items[0], "sleep") &&
           is_only(&commands[at - 1], "true :") && commands[at - 1].depth == commands[at].depth &&
           (at == 1 || commands[at - 2].depth < commands[at].depth);
}

/* Whether a script ends so: "sleep infinity & wait", "while true; do sleep 60; done". */
static bool script_waits(const struct shell_script *script)
{
    const struct shell_command *commands = script->commands;
    size_t count = script->count;
    if (count > 1 && commands[count - 2].in_background && commands[count - 1].words.count > 0 &&
        strcmp(commands[count - 1].words.items[0], "wait") == 0)
        count--;
    if (count == 0 || commands[count - 1].words.count == 0)
        return false;
    return commands[count - 1].depth == 0 ? is_endless(&commands[count - 1].words)
                                          : is_loop(script, count - 1);
}

/* The same of a text alone, which something else than a shell may run. */
static bool ends_in_sleep(const char *text)
{
    static const char *const ends[] = {"sleep infinity", "sleep inf", "tail -f /dev/null"};
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\n;", text[length - 1]))
        length--;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(ends[i]);
        if (length >= n && memcmp(text + length - n, ends[i], n) == 0 &&
            (length == n || strchr(" \t\n;&|(/", text[length - n - 1])))
            return true;
    }
    return false;
}

/* script: the place of a shell's script among the words, words->count: there is none. */
static bool waits(const struct reader_node *node, const struct strlist *words, size_t script)
{
    struct shell_script parsed = {0};
    if (words->count == 0)
        return false;
    if (script >= words->count)
        return is_endless(words) || ends_in_sleep(words->items[words->count - 1]);
    const char *text = words->items[script];
    bool found = ends_in_sleep(text) || (shell_parse(text, &parsed) && script_waits(&parsed));
    node->reader->texts.failed |= parsed.failed;
    shell_script_done(&parsed);
    return found;
}

/* The script, or the words in a line where there is none. */
static void show_program(const struct strlist *words, size_t script, struct buf *out)
{
    buf_add(out, "", 0);
    if (script < words->count)
        buf_add_str(out, words->items[script]);
    else
        for (size_t i = past_wrappers(words); i < words->count; i++)
            buf_printf(out, "%s%s", out->len ? " " : "", words->items[i]);
}

void import_command(const struct reader_node *pod, json_t *template)
{
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    struct reader_node containers, first, node;
    if (!first_container(pod, &containers, &first))
        return;
    json_t *copy = import_first_container(template);
    import_words(first.value, &words);
    size_t script = words.failed ? words.count : find_script(&words);
    size_t before = json_array_size(json_object_get(first.value, "command"));
    bool in_args = words.count > before && (script >= words.count || script >= before);
    show_program(&words, script, &text);
    first.reader->texts.failed |= words.failed || text.failed;
    if (!reader_get(&first, "command", &node)) {
        reader_fail(&first, "the image's own entrypoint is not known here: put the ranks' program "
                            "in place of " SPEC_PLACEHOLDER);
    } else if (!words.failed && text.data && waits(&node, &words, script)) {
        reader_get(&first, in_args ? "args" : "command", &node);
        explain_script(&node, text.data, false);
        reader_fail(&node, "the ranks' program is not in the manifest: give it behind the file, or "
                           "in place of " SPEC_PLACEHOLDER);
    } else {
        return;
    }
    json_object_set_new(copy, "command", json_pack("[s]", SPEC_PLACEHOLDER));
    json_object_del(copy, "args");
}
