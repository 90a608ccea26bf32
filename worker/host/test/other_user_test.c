/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/test/skip.h"
#include "worker/host/other_user.h"

#define NOBODY 65534u

/* A process whose child is another user, as a shell's under su: in a user namespace where NOBODY is
 * called `inside`, unless that is 0; its child is negative where it could have none. */
static pid_t start(uid_t inside, pid_t *ret_child)
{
    int up[2], down[2], done[2];
    char path[48], map[64];
    assert_int_equal(pipe(up) | pipe(down) | pipe(done), 0);
    pid_t root = fork();
    assert_true(root >= 0);
    if (root == 0) {
        /* unshare(2) would do for one thread, and the thread sanitizer adds one; so do the calls of
         * the C library, which want all threads to follow */
        long child =
            inside ? syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        pid_t none = -1;
        if (child < 0 && write(up[1], &none, sizeof none) != sizeof none)
            _exit(1);
        if (child == 0) {
            char byte = 'x';
            pid_t own = getpid();
            uid_t user = inside ? inside : NOBODY;
            if (write(up[1], &own, sizeof own) != sizeof own || read(down[0], &byte, 1) != 1 ||
                syscall(SYS_setresuid, user, user, user) < 0)
                byte = 'f';
            if (write(done[1], &byte, 1) == 1)
                pause();
        }
        pause();
        _exit(0);
    }
    char byte = 'f';
    assert_int_equal(read(up[0], ret_child, sizeof *ret_child), sizeof *ret_child);
    if (*ret_child < 0) { /* no user namespaces here */
        for (int i = 0; i < 2; i++)
            close(up[i]), close(down[i]), close(done[i]);
        return root;
    }
    if (inside) {
        snprintf(path, sizeof path, "/proc/%d/uid_map", (int)*ret_child);
        int n = snprintf(map, sizeof map, "0 0 1\n%u %u 1\n", (unsigned)inside, NOBODY);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, map, (size_t)n), n);
        close(fd);
    }
    assert_int_equal(write(down[1], "g", 1), 1);
    assert_int_equal(read(done[0], &byte, 1), 1);
    for (int i = 0; i < 2; i++)
        close(up[i]), close(down[i]), close(done[i]);
    assert_int_equal(byte, 'g');
    return root;
}

static void end(pid_t root, pid_t child)
{
    kill(child, SIGKILL);
    kill(root, SIGKILL);
    waitpid(root, NULL, 0);
}

static void need_root(void)
{
    if (geteuid() != 0)
        skip_for("needs root"); /* nobody else can become another user */
}

static void program_alone_has_changed_its_user(void **state)
{
    (void)state;
    need_root();
    struct buf text = BUF_INIT;
    char want[128];
    pid_t child = 0, root = start(0, &child);
    assert_false(other_user_explain(root, 4242, &text));
    assert_int_equal(text.len, 0);
    assert_true(other_user_explain(root, NOBODY, &text));
    snprintf(want, sizeof want, "its process %d runs as user 65534, and only processes of user 0,",
             (int)child);
    assert_memory_equal(text.data, want, strlen(want));
    assert_non_null(strstr(text.data, "start the job as user 65534 (in a pod: "));
    buf_done(&text);
    end(root, child);
}

static void program_is_in_another_user_namespace(void **state)
{
    (void)state;
    need_root();
    struct buf text = BUF_INIT;
    char want[128];
    pid_t child = 0, root = start(1000, &child);
    if (child < 0) {
        end(root, root);
        skip_for("no user namespaces here");
    }
    assert_true(other_user_explain(root, NOBODY, &text));
    snprintf(want, sizeof want,
             "its process %d is in another user namespace, as user 1000 there, which is user 65534 "
             "here, and only processes of user 0,",
             (int)child);
    assert_memory_equal(text.data, want, strlen(want));
    assert_non_null(strstr(text.data, "map user 0 to the program's user in its uid_map"));
    buf_done(&text);
    end(root, child);
}

static void gone_process_is_nobodys(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    assert_false(other_user_explain(gone, geteuid(), &text));
    buf_done(&text);
}

static void crowd_makes_one_search(void **state)
{
    struct other_users users = {0};
    (void)state;
    assert_true(other_users_may_search(&users, 64, NOBODY, 5000));
    other_users_note_strange(&users, NOBODY, 5000);
    for (int64_t now = 5000; now < 5000 + OTHER_USER_STRANGE_MS; now++)
        assert_false(other_users_may_search(&users, 64, NOBODY, now));
    assert_true(other_users_may_search(&users, 64, 7, 5001)); /* a rank's, perhaps */
    assert_true(other_users_may_search(&users, 64, NOBODY, 5000 + OTHER_USER_STRANGE_MS));

    /* nor do many users */
    unsigned searches = users.searches;
    for (uid_t uid = 100; uid < 2000; uid++)
        if (other_users_may_search(&users, 64, uid, 9000))
            other_users_note_strange(&users, uid, 9000), searches++;
    assert_int_equal(searches, OTHER_USER_SEARCHES + 2 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_alone_has_changed_its_user),
        cmocka_unit_test(program_is_in_another_user_namespace),
        cmocka_unit_test(gone_process_is_nobodys),
        cmocka_unit_test(crowd_makes_one_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
