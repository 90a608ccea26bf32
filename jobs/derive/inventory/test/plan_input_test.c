/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/inventory/plan_input.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

static const struct {
    const char *keys;
    const char *argv[4]; /* none: the spec's */
    enum plan_ranks ranks;
} cases[] = {
    {"command: [app]\ndevices: {gpus: {count: 8}}", {NULL}, PLAN_RANKS_AUTO},
    {"command: [torchrun, t.py]\ndevices: {gpus: {count: 8}}", {NULL}, PLAN_RANKS_POD},
    {"command: [torchrun, t.py]\ndevices: {gpus: {count: all}}", {NULL}, PLAN_RANKS_POD},
    {"command: [torchrun, t.py]\ndevices: {gpus: {count: 1}}", {NULL}, PLAN_RANKS_AUTO},
    {"command: [app]\nranksPerWorker: 1\ndevices: {gpus: {count: 8}}", {NULL}, PLAN_RANKS_POD},
    {"command: [torchrun, t.py]\ndevices: {gpus: {count: 8}}", {"app"}, PLAN_RANKS_AUTO},
    {"command: [app]\ndevices: {gpus: {count: 8}}", {"torchrun", "t.py"}, PLAN_RANKS_POD},
    {"devices: {gpus: {count: 8}}", {"sh", "-c", "torchrun t.py"}, PLAN_RANKS_POD},
    {"devices: {gpus: {count: 8}}", {"sh", "-c", "./app torchrun"}, PLAN_RANKS_AUTO},
    {"ranksPerWorker: 8\ndevices: {gpus: {count: 8}}", {"torchrun", "t.py"}, PLAN_RANKS_AUTO},
};

static void tells_ranks_by_what_starts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        struct drarun_error err = {0};
        struct job_spec spec;
        char *argv[ARRAY_LEN(cases[i].argv) + 1] = {NULL};
        for (size_t w = 0; w < ARRAY_LEN(cases[i].argv); w++)
            argv[w] = unconst(cases[i].argv[w]);
        buf_printf(&text, "image: i\n%s%s\n", cases[i].keys,
                   strstr(cases[i].keys, "command") ? "" : "\ncommand: [app]");
        if (spec_parse("test", text.data, text.len, &spec, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        struct plan_input input = plan_input_of(&spec, &spec.roles[0], argv[0] ? argv : NULL);
        if (input.ranks != cases[i].ranks)
            fail_msg("case %zu: %d", i, (int)input.ranks);
        job_spec_done(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tells_ranks_by_what_starts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
