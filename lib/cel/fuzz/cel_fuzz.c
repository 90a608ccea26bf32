// SPDX-License-Identifier: Apache-2.0
// An expression of anyone's over a device of anyone's: no crash, no leak, and an end. The input is
// the expression; behind a NUL byte the device as JSON may follow.
#include <stdlib.h>
#include <string.h>

#include "lib/cel/cel.h"

static const char DEVICE[] =
    "{\"attributes\": {\"model\": {\"string\": \"H100\"}, \"index\": {\"int\": 3},"
    " \"version\": {\"version\": \"12.4.1\"}, \"dra.net/rdma\": {\"bool\": true},"
    " \"tags\": {\"strings\": [\"a\", \"b\"]}}, \"capacity\": {\"memory\": {\"value\": \"80Gi\"}}}";

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    cleanup_free char *text = calloc(1, size + 1);
    struct drarun_error err = {0};
    struct cel_program *program;
    struct cel_device *device;
    json_t *json = NULL;
    size_t len;
    bool match;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    len = strlen(text);
    if (len < size)
        json = json_loadb(text + len + 1, size - len - 1, 0, NULL);
    if (!json)
        json = json_loads(DEVICE, 0, NULL);
    device = cel_device_new("gpu.example.com", json, &err);
    program = cel_compile(text, &err);
    if (program && device) {
        cel_eval_device(program, device, &match, &err);
        for (size_t i = 0; i < cel_term_count(program); i++)
            cel_eval_term(program, i, device, &match, NULL);
    }
    cel_program_free(program);
    cel_device_free(device);
    json_decref(json);
    return 0;
}
