/* SPDX-License-Identifier: Apache-2.0 */
/* A claim and, behind a line break, a pod, as an API server might answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/unconst.h"
#include "plugin/prepare/agent_config.h"
#include "plugin/prepare/claimed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_agent(const json_t *parameters)
{
    struct reader reader;
    struct agent_config config = {0};
    reader_init(&reader, NULL, false);
    struct reader_node node = reader_value(&reader, unconst(parameters), NULL);
    agent_config_read(&node, &config);
    if (reader_result(&reader, NULL) == 0 &&
        (!agent_offer_valid(config.agent) || strchr(config.agent, '/') || config.shm_bytes < 0))
        abort();
    reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t first = end ? (size_t)(end - data) : size;
    struct claimed claimed;
    json_error_t where;
    json_t *claim = json_loadb((const char *)data, first, JSON_DECODE_ANY, &where);
    json_t *pod =
        end ? json_loadb((const char *)end + 1, size - first - 1, JSON_DECODE_ANY, &where) : NULL;
    if (claim && claimed_read(claim, "u", "d", "n", &claimed, NULL) == 0) {
        if (!claimed.pod || !claimed.pod_uid || claimed.count == 0)
            abort();
        for (size_t i = 0; i < claimed.count; i++)
            if (!claimed.devices[i].request || !claimed.devices[i].device)
                abort();
        claimed_check_pod(&claimed, pod, "n", NULL);
        if (claimed.agent)
            read_agent(claimed.agent);
        if (agent_config_pod_memory(pod) < 0)
            abort();
        claimed_done(&claimed);
    }
    json_decref(claim);
    json_decref(pod);
    return 0;
}
