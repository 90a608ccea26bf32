/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/doc/json_memory.h"

/* Else a sanitizer ends the process itself. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* In a child whose stderr is a pipe: a value that no machine has the memory for. */
static pid_t start_child(int *ret_stderr)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        json_memory_end_without();
        json_decref(json_stringn_nocheck("x", PTRDIFF_MAX));
        _exit(0);
    }
    close(ends[1]);
    *ret_stderr = ends[0];
    return pid;
}

static void ends_with_a_message(void **state)
{
    char said[4096] = "";
    size_t have = 0;
    ssize_t n;
    int from, status;
    pid_t pid = start_child(&from);
    (void)state;
    while (have < sizeof said - 1 && (n = read(from, said + have, sizeof said - 1 - have)) > 0)
        have += (size_t)n;
    close(from);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 70);
    assert_non_null(strstr(said, "out of memory"));
}

static void values_are_made_as_before(void **state)
{
    (void)state;
    json_memory_end_without();
    json_t *value = json_pack("{s:s, s:[i, i]}", "name", "a", "list", 1, 2);
    char *text = json_dumps(value, JSON_COMPACT);
    assert_string_equal(text, "{\"name\":\"a\",\"list\":[1,2]}");
    free(text);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_a_message),
        cmocka_unit_test(values_are_made_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
