/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/agent_config.h"

#include <stdio.h>
#include <string.h>

#include "lib/cel/quantity.h"

#define BYTES_MAX 9e18

bool agent_config_is(const json_t *parameters)
{
    const char *kind = json_string_value(json_object_get(parameters, "kind"));
    return kind && strcmp(kind, AGENT_OFFER_KIND) == 0;
}

/* Whole bytes, at least one; 0: it is no such quantity. */
static int64_t bytes_of(const json_t *value)
{
    const char *text = json_string_value(value);
    struct cel_quantity quantity;
    int64_t bytes = 0;
    if (json_is_integer(value))
        bytes = json_integer_value(value);
    else if (text && cel_quantity_parse(text, strlen(text), &quantity) == 0 &&
             !cel_quantity_integer(&quantity, &bytes) && cel_quantity_real(&quantity) < BYTES_MAX)
        bytes = (int64_t)cel_quantity_real(&quantity); /* 1.5Gi is no integer to it */
    return bytes > 0 ? bytes : 0;
}

static void read_shm(const struct reader_node *node, struct agent_config *config)
{
    struct reader_node size;
    if (reader_object(node) < 0)
        return;
    reader_known(node, "size");
    config->shm = true;
    if (!reader_get(node, "size", &size))
        return;
    config->shm_bytes = bytes_of(size.value);
    if (config->shm_bytes == 0)
        reader_expected(&size, "a quantity of bytes, as 8Gi");
}

void agent_config_read(const struct reader_node *node, struct agent_config *ret_config)
{
    struct agent_config config = {0};
    struct reader_node member;
    const char *text = NULL;
    int choice;
    if (reader_object(node) < 0)
        return;
    reader_known(node, "apiVersion kind agent sharedMemory");
    if (!reader_get(node, "apiVersion", &member))
        reader_fail_key(node, "apiVersion", "it is missing");
    else
        reader_choice(&member, AGENT_OFFER_API, &choice);
    if (!reader_get(node, "agent", &member))
        reader_fail_key(node, "agent", "it is missing");
    else if (reader_text(&member, &text) == 0 && !agent_offer_valid(text))
        reader_expected(&member, "what nodes publish as " AGENT_OFFER_ATTRIBUTE);
    else if (text)
        snprintf(config.agent, sizeof config.agent, "%s", text);
    if (reader_get(node, "sharedMemory", &member))
        read_shm(&member, &config);
    *ret_config = config;
}

static const json_t *limit_of(const json_t *holder)
{
    return json_object_get(json_object_get(json_object_get(holder, "resources"), "limits"),
                           "memory");
}

static bool is_sidecar(const json_t *container)
{
    const char *policy = json_string_value(json_object_get(container, "restartPolicy"));
    return policy && strcmp(policy, "Always") == 0;
}

/* Those of a list that run at once; 0: one of them has no limit. */
static int64_t sum_of(const json_t *containers, bool sidecars)
{
    int64_t sum = 0;
    size_t i;
    const json_t *container;
    json_array_foreach(containers, i, container)
    {
        if (sidecars && !is_sidecar(container))
            continue;
        int64_t limit = bytes_of(limit_of(container));
        if (limit == 0 || __builtin_add_overflow(sum, limit, &sum))
            return -1;
    }
    return sum;
}

/* Init containers are gone by the time the others run: they may only have more. */
static int64_t most_of_init(const json_t *containers)
{
    int64_t most = 0;
    size_t i;
    const json_t *container;
    json_array_foreach(containers, i, container)
    {
        int64_t limit = bytes_of(limit_of(container));
        if (limit == 0)
            return -1;
        most = limit > most ? limit : most;
    }
    return most;
}

int64_t agent_config_pod_memory(const json_t *pod)
{
    const json_t *spec = json_object_get(pod, "spec");
    int64_t own = bytes_of(limit_of(spec));
    if (own > 0)
        return own;
    int64_t sum = sum_of(json_object_get(spec, "containers"), false);
    int64_t sidecars = sum_of(json_object_get(spec, "initContainers"), true);
    int64_t init = most_of_init(json_object_get(spec, "initContainers"));
    if (sum <= 0 || sidecars < 0 || init < 0 || __builtin_add_overflow(sum, sidecars, &sum))
        return 0;
    return init > sum ? init : sum;
}
