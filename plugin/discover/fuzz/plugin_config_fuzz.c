/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the document PluginConfig. What was taken can be used. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/doc/doc.h"
#include "plugin/discover/config.h"
#include "plugin/discover/config_edits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_limits(const struct claim_limits *limits)
{
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < limits->address_count; i++)
        if (!claim_limits_have(limits, &limits->addresses[i]))
            abort();
    claim_limits_list(limits, &text);
    claim_limits_plan(limits, &text);
    buf_done(&text);
}

static void use(const struct discover_config *config)
{
    const json_t *const edits[] = {config->nic_edits, config->gpu_edits};
    if (config->rescan_ms <= 0 || config->name_count > CONFIG_NAME_RULES_MAX)
        abort();
    config_has_prefix(&config->exclude_prefixes, "docker0");
    use_limits(&config->claims);
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        CLEANUP(json_decrefp) json_t *device = json_object();
        if (device && !config_edits_add(edits[i], device))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct discover_config config;
    struct drarun_error err = {0};
    if (doc_parse("plugin.yaml", (const char *)data, size, DOC_FORMAT_GUESS, NULL, &doc, &err) < 0)
        return 0;
    if (discover_config_read(doc, &config, &err) == 0) {
        use(&config);
        discover_config_done(&config);
    } else if (!err.text[0]) {
        abort();
    }
    return 0;
}
