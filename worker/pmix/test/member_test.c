/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a socket is, among real processes. */
#include "worker/pmix/member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/proctree.h"
#include "lib/base/test/skip.h"

#define NOBODY 65534

/* What the processes of a test tell it. */
static struct shared {
    volatile uint64_t inode;
    volatile pid_t holder;
    volatile int error;
} * shared;

static pid_t other_rank;

static bool is_rank(pid_t pid, void *arg)
{
    return pid == other_rank || pid == *(pid_t *)arg;
}

static void hold_socket(void)
{
    struct stat facts;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fstat(fd, &facts) < 0)
        _exit(1);
    shared->holder = getpid();
    shared->inode = facts.st_ino;
    for (;;)
        pause();
}

/* A process that has a socket, so many forks below the one that is returned; orphan: the one above
 * it has ended. */
static pid_t start(int depth, bool orphan, bool secret)
{
    shared->inode = 0;
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < depth; i++) {
            pid_t child = fork();
            if (child > 0 && orphan && i == depth - 1)
                _exit(0);
            while (child > 0)
                pause();
            setsid();
        }
        if (secret)
            prctl(PR_SET_DUMPABLE, 0);
        hold_socket();
    }
    while (shared->inode == 0)
        usleep(1000);
    return pid;
}

static void end_all(void)
{
    do
        proctree_signal(getpid(), SIGKILL, NULL, NULL);
    while (waitpid(-1, NULL, 0) > 0);
}

static enum membership of(pid_t rank)
{
    return member_of(rank, shared->inode, is_rank, &rank);
}

static void the_rank_itself_and_what_it_started(void **state)
{
    (void)state;
    for (int depth = 0; depth < 4; depth++) {
        pid_t pid = start(depth, false, false);
        assert_int_equal(of(pid), MEMBER_YES);
        end_all();
    }
}

static void deeper_than_the_quick_way_goes(void **state)
{
    (void)state;
    pid_t pid = start(40, false, false);
    assert_int_equal(of(pid), MEMBER_YES);
    end_all();
}

static void orphans_are_the_jobs(void **state)
{
    (void)state;
    pid_t pid = start(1, true, false);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(proctree_parent(shared->holder), getpid());
    assert_int_equal(of(-1), MEMBER_YES);
    assert_int_equal(of(getppid()), MEMBER_YES); /* any rank's */
    end_all();
}

static void another_ranks_is_not(void **state)
{
    (void)state;
    other_rank = start(2, false, false);
    pid_t own = fork();
    if (own == 0)
        for (;;)
            pause();
    assert_int_equal(of(own), MEMBER_NO);
    assert_int_equal(of(other_rank), MEMBER_YES);
    assert_int_equal(member_of(-1, shared->inode, NULL, NULL), MEMBER_YES);
    end_all();
    other_rank = 0;
}

/* Of the same user, and not below us. */
static void who_was_not_started_here_is_not(void **state)
{
    (void)state;
    struct stat facts;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    shared->holder = 0;
    pid_t own = fork();
    if (own == 0) {
        close(fd);
        shared->holder = getpid();
        for (;;)
            pause();
    }
    while (shared->holder == 0)
        usleep(1000);
    assert_int_equal(fstat(fd, &facts), 0);
    shared->inode = facts.st_ino;
    assert_int_equal(of(own), MEMBER_NO);
    assert_int_equal(of(-1), MEMBER_NO);
    close(fd);
    end_all();
}

/* A process that shows its descriptors to root alone. */
static void unreadable_is_unknown(void **state)
{
    (void)state;
    int status = 0;
    if (geteuid() != 0)
        skip_for("needs root");
    pid_t agent = fork();
    if (agent == 0) {
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(100);
        prctl(PR_SET_DUMPABLE, 1);
        pid_t pid = start(0, false, true);
        int found = (int)of(pid);
        kill(pid, SIGKILL);
        _exit(found);
    }
    assert_int_equal(waitpid(agent, &status, 0), agent);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), MEMBER_UNKNOWN);
}

/* Below us or not. */
static void a_neighbour_is_of_our_user_and_namespaces(void **state)
{
    (void)state;
    start(2, false, false);
    assert_int_equal(member_neighbour(shared->inode), shared->holder);
    end_all();
    assert_int_equal(member_neighbour(shared->inode), -1);
}

/* flags: of clone(2). A user namespace cannot be entered by unshare(2) with more than one thread,
 * and the thread sanitizer adds one. */
static void hold_socket_after(int (*change)(void), unsigned long flags)
{
    shared->inode = 0;
    long pid = flags ? syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL) : fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (change && change() < 0) {
            shared->error = errno;
            shared->inode = 1; /* of no socket */
            pause();
        }
        hold_socket();
    }
    while (shared->inode == 0)
        usleep(1000);
}

static int become_another_user(void)
{
    return setuid(NOBODY);
}

static int keep_a_number(void)
{
    return setresuid(NOBODY, 0, 0);
}

static void others_are_no_neighbours(void **state)
{
    static const struct {
        int (*change)(void);
        unsigned long flags;
    } others[] = {{become_another_user, 0}, {keep_a_number, 0}, {NULL, CLONE_NEWUSER}};
    (void)state;
    if (geteuid() != 0)
        skip_for("needs root");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hold_socket_after(others[i].change, others[i].flags);
        assert_int_equal(shared->error, 0);
        assert_int_equal(member_neighbour(shared->inode), -1);
        end_all();
    }
}

/* What a failed case leaves would hold the test's output open. */
static int leave_nothing(void **state)
{
    (void)state;
    end_all();
    return 0;
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || proctree_adopt_orphans() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_rank_itself_and_what_it_started, leave_nothing),
        cmocka_unit_test_teardown(deeper_than_the_quick_way_goes, leave_nothing),
        cmocka_unit_test_teardown(orphans_are_the_jobs, leave_nothing),
        cmocka_unit_test_teardown(another_ranks_is_not, leave_nothing),
        cmocka_unit_test_teardown(who_was_not_started_here_is_not, leave_nothing),
        cmocka_unit_test_teardown(unreadable_is_unknown, leave_nothing),
        cmocka_unit_test_teardown(a_neighbour_is_of_our_user_and_namespaces, leave_nothing),
        cmocka_unit_test_teardown(others_are_no_neighbours, leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
