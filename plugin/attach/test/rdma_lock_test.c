/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "plugin/attach/rdma_lock.h"

#define LONG_MS 20000

static char dir[64], order[96], lock[96];

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/rdma-lock-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(order, sizeof order, "%s/order.json", dir);
    snprintf(lock, sizeof lock, "%s/rdma.lock", dir);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    unlink(lock);
    return rmdir(dir);
}

/* A process that has the lock when this returns, until it is killed. */
static pid_t holder(void)
{
    int ready[2], fd = -1;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (rdma_lock(order, LONG_MS, &fd, NULL) == 0 && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    int fd = -1;
    pid_t pid = holder();
    int64_t began = clock_ms();
    assert_int_equal(rdma_lock(order, 300, &fd, &err), -ETIMEDOUT);
    assert_int_equal(fd, -1);
    assert_true(clock_ms() - began >= 290);
    assert_non_null(strstr(err.text, "for 0.3 s"));
    assert_non_null(strstr(err.text, lock));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void it_ends_with_its_process(void **state)
{
    (void)state;
    cleanup_close int fd = -1;
    pid_t pid = holder();
    pid_t killer = fork();
    if (killer == 0) {
        usleep(100000);
        _exit(kill(pid, SIGKILL) < 0);
    }
    assert_int_equal(rdma_lock(order, LONG_MS, &fd, NULL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(waitpid(killer, NULL, 0), killer);
}

static void the_file_is_ours(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    struct stat st;
    int fd = -1;
    assert_int_equal(symlink("/etc/passwd", lock), 0);
    assert_int_equal(rdma_lock(order, 100, &fd, &err), -ELOOP);
    assert_non_null(strstr(err.text, "is a link"));
    unlink(lock);
    assert_int_equal(mkfifo(lock, 0600), 0);
    assert_int_equal(rdma_lock(order, 100, &fd, &err), -EPERM);
    unlink(lock);
    assert_int_equal(rdma_lock(order, 100, &fd, &err), 0);
    close(fd);
    assert_int_equal(stat(lock, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(chmod(lock, 0620), 0);
    assert_int_equal(rdma_lock(order, 100, &fd, &err), -EPERM);
    assert_non_null(strstr(err.text, "nobody else may write"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wait_ends_at_its_deadline, set_up, take_down),
        cmocka_unit_test_setup_teardown(it_ends_with_its_process, set_up, take_down),
        cmocka_unit_test_setup_teardown(the_file_is_ours, set_up, take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
