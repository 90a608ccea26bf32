/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files in it are looked for beside a folder that does not exist. */
#include <stdint.h>
#include <string.h>

#include "lib/kube/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kubeconfig files = {.searched = strdup("fuzz")};
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    if (files.searched &&
        kubeconfig_add(&files, "/nonexistent/config", (const char *)data, size, &err) == 0 &&
        kubeconfig_choose(&files, &choice, &config, &err) == 0)
        kube_config_free(config);
    kubeconfig_done(&files);
    return 0;
}
