/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "lib/kube/exec_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exec_credential credential = {0};
    struct drarun_error err = {0};
    if (exec_answer_read((const char *)data, size, "client.authentication.k8s.io/v1", &credential,
                         &err) == 0)
        exec_credential_done(&credential);
    return 0;
}
