/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/unconst.h"
#include "worker/modes/beside.h"

static char folder[] = "/tmp/beside_test.XXXXXX";
static uint32_t rank; /* no job's */
static pid_t pid;     /* of its process */
static struct drarun_error *err;

/* A process with the rank's environment, in the folder, on one CPU. */
static int set_up(void **state)
{
    (void)state;
    int done[2];
    char byte, own[32];
    err = mmap(NULL, sizeof *err, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (err == MAP_FAILED || !mkdtemp(folder) || pipe2(done, O_CLOEXEC) < 0)
        return -1;
    rank = UINT32_MAX - (uint32_t)getpid();
    snprintf(own, sizeof own, "DRARUN_RANK=%u", rank);
    if ((pid = fork()) == 0) {
        cpu_set_t all, one;
        const char *argv[] = {"sleep", "1000", NULL},
                   *env[] = {own,      "PMIX_RANK=7", "PMI_RANK=8", "PMIXER=9",
                             "EMPTY=", "HERE=x",      NULL};
        CPU_ZERO(&one);
        for (int cpu = 0; sched_getaffinity(0, sizeof all, &all) == 0 && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &all)) {
                CPU_SET(cpu, &one);
                break;
            }
        sched_setaffinity(0, sizeof one, &one);
        if (chdir(folder) == 0)
            execve("/bin/sleep", unconst(argv), unconst(env));
        _exit(1);
    }
    close(done[1]);
    return pid < 0 || read(done[0], &byte, 1) != 0 || close(done[0]); /* executed */
}

static int tear_down(void **state)
{
    (void)state;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return rmdir(folder);
}

/* What a command beside a rank writes; input: its standard input. */
static void beside(uint32_t of, const char *const *argv, const char *input, char *text, size_t size)
{
    int out[2], in[2], status;
    size_t length = 0;
    assert_int_equal(pipe(out) | pipe(in), 0);
    *err = (struct drarun_error){0};
    pid_t command = fork();
    if (command == 0) {
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || close(in[1]) < 0)
            _exit(99);
        beside_exec(of, unconst(argv), err);
        _exit(0);
    }
    close(out[1]), close(in[0]);
    assert_int_equal(write(in[1], input, strlen(input)), strlen(input));
    close(in[1]);
    for (ssize_t n; (n = read(out[0], text + length, size - 1 - length)) > 0; length += (size_t)n)
        ;
    text[length] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(command, &status, 0), command);
    assert_int_equal(status, 0);
}

#define SCRIPT                                                                                     \
    "echo $(pwd -P) $DRARUN_RANK ${PMIX_RANK-no} ${PMI_RANK-no} $PMIXER ${EMPTY-no}- $HERE "       \
    "${HOME-no} $(nproc)"

static void has_the_ranks_place_and_is_no_rank(void **state)
{
    (void)state;
    char text[512], expected[512];
    setenv("HOME", "/root", 1); /* not the rank's */
    beside(rank, (const char *const[]){"sh", "-c", SCRIPT, NULL}, "", text, sizeof text);
    snprintf(expected, sizeof expected, "%s %u no no 9 - x no 1\n", folder, rank);
    assert_string_equal(text, expected);
    beside(rank, (const char *const[]){NULL}, SCRIPT "\n", text, sizeof text); /* a shell */
    assert_string_equal(text, expected);
}

static void failures_are_as_a_shell_says_them(void **state)
{
    (void)state;
    char text[512], expected[512], file[64];
    beside(rank - 1, (const char *const[]){"true", NULL}, "", text, sizeof text);
    snprintf(expected, sizeof expected,
             "rank %u is not visible in this pod: it has not started, has ended, or is another "
             "user's",
             rank - 1);
    assert_string_equal(err->text, expected);
    assert_int_equal(err->kind, DRARUN_ERR_USAGE);
    assert_int_equal(err->code, ENOENT);
    beside(rank, (const char *const[]){"/no/such", NULL}, "", text, sizeof text);
    assert_string_equal(err->text, "cannot execute /no/such: No such file or directory");
    assert_int_equal(err->kind, DRARUN_ERR_NOT_FOUND);
    assert_int_equal(err->code, ENOENT);
    snprintf(file, sizeof file, "%s/plain", folder);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    beside(rank, (const char *const[]){"./plain", NULL}, "", text, sizeof text);
    unlink(file);
    assert_string_equal(err->text, "cannot execute ./plain: Permission denied");
    assert_int_equal(err->kind, DRARUN_ERR_NOT_EXECUTABLE);
    assert_int_equal(err->code, EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_ranks_place_and_is_no_rank),
        cmocka_unit_test(failures_are_as_a_shell_says_them),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
