/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a container's configuration, and as its state. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/attach/oci_config.h"
#include "plugin/attach/oci_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oci_config config = {0};
    struct oci_state state = {0};
    struct attach_order order = {.claim_uid = "u", .device = "a"};
    struct drarun_error err = {0};
    if (oci_config_parse("/bundle", (const char *)data, size, &config, &err) == 0) {
        if (config.root[0] != '/')
            abort();
        for (size_t i = 0; i < config.marks.count; i++)
            if (strncmp(config.marks.items[i], ATTACH_MARK, sizeof ATTACH_MARK - 1) != 0)
                abort();
        oci_config_has(&config, &order);
        oci_config_done(&config);
    } else if (!err.text[0]) {
        abort();
    }
    if (oci_state_parse((const char *)data, size, &state, &err) == 0 &&
        (state.pid < 2 || (state.bundle[0] && state.bundle[0] != '/')))
        abort();
    return 0;
}
