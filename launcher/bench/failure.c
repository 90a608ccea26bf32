/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/failure.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/result_json.h"
#include "lib/bench/written.h"
#include "lib/doc/value.h"

void failure_take(const json_t *report, struct result_failure *to)
{
    const json_t *cause = json_object_get(report, "cause");
    const char *kind = value_text(cause, "kind");
    json_int_t status = json_integer_value(json_object_get(report, "status"));
    if (!kind || (strcmp(kind, "exit") == 0 && status == 1))
        return;
    *to = (struct result_failure){.status = (int)status};
    snprintf(to->kind, sizeof to->kind, "%s", kind);
    snprintf(to->text, sizeof to->text, "%s", value_text_or(cause, "text", ""));
}

int failure_append(const json_t *report, const char *file, struct drarun_error *err)
{
    struct result result;
    struct result_lines lines = {.name = file};
    result_init(&result);
    failure_take(report, &result.failure);
    if (!result.failure.kind[0])
        return 0;
    int rc = written_open("--json-lines", file, "ae", &lines.out, err);
    rc = rc < 0 ? rc : result_line_failed(&lines, &result, err);
    return rc < 0 ? rc : written_close(&lines.out, file, err);
}
