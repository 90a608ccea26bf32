/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a job spec: a finding with a text, or a spec within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_spec spec;
    struct drarun_error err = {0};
    if (spec_parse("fuzz", (const char *)data, size, &spec, &err) < 0) {
        if (!err.text[0] || err.kind != DRARUN_ERR_SPEC)
            abort();
        return 0;
    }
    if (spec.workers < 1 || spec.workers > SPEC_WORKERS_MAX || spec.role_count < 1 ||
        !spec.roles[0].template || !spec.document || !spec.claims || !spec.network ||
        strlen(spec.name) > 60)
        abort();
    job_spec_done(&spec);
    return 0;
}
