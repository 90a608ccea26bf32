/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/import/ranks.h"
#include "lib/base/cleanup.h"

static void spreads_as_the_launcher_does(void **state)
{
    static const struct {
        struct import_ranks asked;
        uint64_t workers, each;
        const char *error; /* NULL: none */
    } cases[] = {
        {{.workers = 2, .slots = 4}, 2, 4, NULL},
        {{.workers = 2}, 2, 0, NULL},
        {{.workers = 2, .slots = 4, .ranks = 8}, 2, 4, NULL},
        {{.workers = 2, .slots = 4, .ranks = 2}, 1, 2, NULL},
        {{.workers = 2, .slots = 4, .ranks = 2, .by_node = true}, 2, 1, NULL},
        {{.workers = 4, .slots = 4, .ranks = 8}, 2, 4, NULL},
        {{.workers = 4, .slots = 4, .ranks = 8, .by_node = true}, 4, 2, NULL},
        {{.workers = 4, .slots = 4, .ranks = 2, .by_node = true}, 2, 1, NULL},
        {{.workers = 2, .slots = 4, .ranks = 5}, 0, 0, "fill 1 workers with 4 each and leave 1"},
        {{.workers = 2, .slots = 4, .ranks = 5, .by_node = true},
         0,
         0,
         "cannot be divided among 2"},
        {{.workers = 2, .slots = 1, .ranks = 4}, 0, 0, "more than 2 workers with 1 slots hold"},
        {{.workers = 2, .slots = 1, .ranks = 4, .may_exceed = true}, 2, 2, NULL},
        {{.workers = 2, .slots = 1, .ranks = 5, .may_exceed = true}, 0, 0, "cannot be divided"},
        {{.workers = 2, .slots = 8, .each = 2}, 2, 2, NULL},
        {{.workers = 2, .slots = 8, .each = 2, .ranks = 2}, 1, 2, NULL},
        {{.workers = 2, .ranks = 16, .each = 8}, 2, 8, NULL},
        {{.workers = 3, .ranks = 16, .each = 8}, 2, 8, NULL},
        {{.workers = 2, .ranks = 16}, 2, 8, NULL},
        {{.workers = 3, .ranks = 16}, 0, 0, "16 ranks cannot be divided among 3 workers"},
        {{.workers = 4, .ranks = 8, .nodes = 2}, 2, 4, NULL},
        {{.workers = 2, .nodes = 4}, 0, 0, "4 nodes are asked for, and there are 2"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t workers = 0, each = 0;
        struct drarun_error err = {0};
        int rc = import_spread(&cases[i].asked, &workers, &each, &err);
        if ((rc < 0) != (cases[i].error != NULL) || workers != cases[i].workers ||
            each != cases[i].each || (rc < 0 && !strstr(err.text, cases[i].error)))
            fail_msg("case %zu: %d, %d x %d, %s", i, rc, (int)workers, (int)each, err.text);
        assert_int_equal(rc < 0 ? (int)err.kind : 0, rc < 0 ? DRARUN_ERR_SPEC : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spreads_as_the_launcher_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
