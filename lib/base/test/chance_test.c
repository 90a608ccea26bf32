/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/chance.h"
#include "lib/base/cleanup.h"

#define DRAWS 8

static void draw_in_a_process(double draws[DRAWS])
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < DRAWS; i++)
            draws[i] = chance_draw();
        _exit(write(fds[1], draws, sizeof *draws * DRAWS) < 0);
    }
    assert_int_equal(read(fds[0], draws, sizeof *draws * DRAWS), sizeof *draws * DRAWS);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(fds[0]);
    close(fds[1]);
}

static void processes_differ(void **state)
{
    double one[DRAWS], other[DRAWS];
    (void)state;
    draw_in_a_process(one);
    draw_in_a_process(other);
    for (size_t i = 0; i < DRAWS; i++)
        assert_true(one[i] != other[i]);
}

static void draws_fill_their_range(void **state)
{
    int below[10] = {0};
    (void)state;
    for (int i = 0; i < 10000; i++) {
        double draw = chance_draw();
        assert_true(draw >= 0 && draw < 1);
        below[(int)(draw * 10)]++;
    }
    for (size_t i = 0; i < ARRAY_LEN(below); i++)
        assert_in_range(below[i], 800, 1200); /* 6 times the standard deviation of 30 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_differ),
        cmocka_unit_test(draws_fill_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
