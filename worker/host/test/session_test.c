/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/host/session.h"

static char top[] = "/tmp/session_test.XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof path, "%s/session", top);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(top);
}

static void make(void)
{
    char *made = NULL;
    assert_int_equal(session_make(path, &made, NULL), 0);
    assert_string_equal(made, path);
    free(made);
}

static void only_ours_may_enter(void **state)
{
    (void)state;
    struct stat st;
    mode_t before = umask(0);
    make();
    umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(session_remove(path), 0);
}

static void what_is_there_is_not_taken(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    char *made = NULL;
    assert_int_equal(symlink(top, path), 0);
    assert_int_equal(session_make(path, &made, &err), -EEXIST);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(session_remove(path), 0); /* the link, not what it points to */
    assert_int_equal(access(top, F_OK), 0);
    assert_int_equal(session_make("/no/such/session", &made, &err), -ENOENT);
}

static void removed_with_all_below(void **state)
{
    (void)state;
    char below[128], outside[64];
    snprintf(outside, sizeof outside, "%s/outside", top);
    close(open(outside, O_CREAT | O_WRONLY, 0600));
    make();
    snprintf(below, sizeof below, "%s/a", path);
    assert_int_equal(mkdir(below, 0700), 0);
    snprintf(below, sizeof below, "%s/a/link", path);
    assert_int_equal(symlink(outside, below), 0);
    assert_int_equal(session_remove(path), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(outside, F_OK), 0);
    assert_int_equal(session_remove(path), 0); /* again */
    unlink(outside);
}

static void name_goes_where_there_is_a_place(void **state)
{
    (void)state;
    char *made = NULL, own[64];
    assert_int_equal(setenv("TMPDIR", top, 1), 0);
    assert_string_equal(session_base(), top);
    assert_int_equal(session_make("session", &made, NULL), 0);
    assert_string_equal(made, path);
    assert_int_equal(session_remove(made), 0);
    free(made);
    /* not a directory, then too long for the sockets below */
    setenv("TMPDIR", "/proc/version", 1);
    assert_string_equal(session_base(), "/tmp");
    setenv("TMPDIR", "/tmp/a-name-that-leaves-no-room-for-the-sockets-of-mpi-libraries", 1);
    snprintf(own, sizeof own, "/tmp/drarun-session-test.%d", (int)getpid());
    assert_int_equal(session_make(own + strlen("/tmp/"), &made, NULL), 0);
    assert_string_equal(made, own);
    assert_int_equal(session_remove(made), 0);
    free(made);
    unsetenv("TMPDIR");
}

static void make_below(const char *name, char made[128])
{
    snprintf(made, 128, "%s/%s", top, name);
    assert_int_equal(mkdir(made, 0700), 0);
}

/* A process that marks it and ends without removing anything. */
static void mark_and_die(const char *shm_dir, const char *session_dir)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(session_mark(shm_dir, session_dir) < 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void sweeps_what_killed_owners_left(void **state)
{
    (void)state;
    char sessions[128], session[128], left[128], other[128], used[128], plain[128], empty[128];
    char file[160];
    make_below("sessions", sessions);
    make_below("sessions/drarun-left", session);
    make_below("drarun-left", left);
    mark_and_die(left, session);
    make_below("drarun-other", other); /* names another one's session directory */
    mark_and_die(other, session);
    make_below("drarun-used", used);
    int mark = session_mark(used, "/tmp/drarun-used");
    assert_true(mark >= 0);
    assert_int_equal(session_mark(used, "/tmp/drarun-used"), -1);
    make_below("drarun-plain", plain);
    make_below("drarun-empty", empty); /* its owner has not locked it yet */
    snprintf(file, sizeof file, "%s/owner", empty);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    session_sweep(top);
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(access(session, F_OK), -1);
    assert_int_equal(
        access(other, F_OK) | access(used, F_OK) | access(plain, F_OK) | access(empty, F_OK), 0);
    close(mark);
    session_sweep(top);
    assert_int_equal(access(used, F_OK), -1);
    session_sweep("/no/such");
    for (char *const *at = (char *const[]){sessions, other, plain, empty, NULL}; *at; at++)
        assert_int_equal(session_remove(*at), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_ours_may_enter),
        cmocka_unit_test(what_is_there_is_not_taken),
        cmocka_unit_test(removed_with_all_below),
        cmocka_unit_test(name_goes_where_there_is_a_place),
        cmocka_unit_test(sweeps_what_killed_owners_left),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
