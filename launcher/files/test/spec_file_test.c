/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/files/spec_file.h"

/* The document is what reaches a launcher in the cluster. */
static void reports_bindings_for_a_command_line(void **state)
{
    static const char *const texts[] = {
        "image: i\ncommand: [c]\nworkers: 3\n",
        "image: i\nreportBindings: false\nroles:\n- {name: a, command: [p]}\n"
        "- {name: b, command: [q], workers: 2}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct drarun_spec *spec = NULL;
        assert_int_equal(spec_text_load("job.yaml", texts[i], strlen(texts[i]), &spec), 0);
        assert_false(spec->job.report_bindings);
        assert_int_equal(spec_report_bindings(&spec->job, NULL), 0);
        assert_true(spec->job.report_bindings);
        const json_t *keys = json_object_get(spec->job.document, "spec");
        assert_true(json_is_true(json_object_get(keys, "reportBindings")));
        assert_int_equal(spec->job.workers, 3);
        assert_string_equal(spec->job.name, "job");
        drarun_spec_free(spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports_bindings_for_a_command_line)};
    return cmocka_run_group_tests_name("spec_file", tests, NULL, NULL);
}
