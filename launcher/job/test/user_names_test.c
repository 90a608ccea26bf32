/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/job/user_names.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"

struct fixture {
    char base[64], folder[128]; /* folder: where names are */
    struct user_names *one, *two;
};

/* What another process does before the next lock is asked for, and how many exclusive ones were. */
static void (*before_lock)(struct fixture *f);
static struct fixture *locking;
static unsigned exclusive_locks;

static int lock_file(int fd, int operation)
{
    return (int)syscall(SYS_flock, fd, operation);
}

/* In the C library's place. */
int flock(int fd, int operation)
{
    if (before_lock)
        TAKE_PTR(before_lock)(locking);
    exclusive_locks += (operation & LOCK_EX) != 0;
    return lock_file(fd, operation);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->base, sizeof f->base, "/tmp/names.XXXXXX");
    if (!mkdtemp(f->base))
        return -1;
    snprintf(f->folder, sizeof f->folder, "%s/drarun-%u", f->base, geteuid());
    unsetenv("XDG_RUNTIME_DIR");
    setenv("TMPDIR", f->base, 1);
    f->one = user_names_new();
    f->two = user_names_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    user_names_free(f->one);
    user_names_free(f->two);
    int rc = rmdir(f->base); /* nothing is left */
    free(f);
    return rc;
}

static int publish(struct user_names *names, const char *service, const char *value)
{
    return user_names_publish(names, service, value, strlen(value), false, NULL, NULL);
}

static void assert_found(const char *service, const char *value)
{
    char job[USER_NAMES_JOB_SIZE];
    struct buf out = BUF_INIT;
    struct drarun_error err = {0};
    assert_int_equal(user_names_lookup(service, &out, job, &err), 0);
    assert_string_equal(out.data, value);
    buf_done(&out);
}

static int look(const char *service)
{
    char job[USER_NAMES_JOB_SIZE];
    struct buf out = BUF_INIT;
    int rc = user_names_lookup(service, &out, job, NULL);
    buf_done(&out);
    return rc;
}

static unsigned count_files(const char *path)
{
    unsigned count = 0;
    const struct dirent *entry;
    cleanup_dir DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    return count;
}

static void test_others_see_it(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(look("ocean"), -ENOENT);
    assert_int_equal(access(f->folder, F_OK), -1); /* nobody has published */
    assert_int_equal(publish(f->one, "ocean", "port 1"), 0);
    assert_found("ocean", "port 1");
    assert_found("ocean", "port 1");
    assert_int_equal(look("ocea"), -ENOENT);
    assert_int_equal(publish(f->one, "a\nb=\x01 \xc3\xa4/..", ""), 0);
    assert_int_equal(look("a\nb=\x01 \xc3\xa4/.."), 0);
}

static void test_a_name_exists_once(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    assert_int_equal(publish(f->one, "ocean", "2"), -EEXIST);
    assert_int_equal(publish(f->two, "ocean", "2"), -EEXIST);
    user_names_unpublish(f->two, "ocean"); /* not its own */
    assert_found("ocean", "1");
    user_names_unpublish(f->one, "ocean");
    assert_int_equal(look("ocean"), -ENOENT);
    assert_int_equal(publish(f->two, "ocean", "2"), 0);
    assert_found("ocean", "2");
}

static void test_names_go_with_the_job(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    assert_int_equal(publish(f->two, "air", "2"), 0);
    user_names_free(TAKE_PTR(f->one));
    assert_int_equal(look("ocean"), -ENOENT);
    assert_found("air", "2");
    assert_int_equal(count_files(f->folder), 2);
    user_names_free(TAKE_PTR(f->two));
    assert_int_equal(access(f->folder, F_OK), -1);
}

/* A job that publishes and is killed. */
static void leave_a_name(const char *service)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct user_names *names = user_names_new();
        byte = (char)publish(names, service, "dead");
        _exit(write(ends[1], &byte, 1) == 1 ? pause() : 1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
}

static void test_names_of_a_killed_job(void **state)
{
    struct fixture *f = *state;
    leave_a_name("ocean");
    assert_int_equal(count_files(f->folder), 2);
    assert_int_equal(look("ocean"), -ENOENT);
    assert_int_equal(count_files(f->folder), 1); /* who looks removes */
    leave_a_name("air");
    assert_int_equal(publish(f->one, "air", "alive"), 0);
    assert_found("air", "alive");
    assert_int_equal(count_files(f->folder), 2);
    leave_a_name("ice"); /* as does who comes */
    assert_int_equal(publish(f->two, "fire", "1"), 0);
    assert_int_equal(count_files(f->folder), 4);
}

static int publish_once(struct user_names *names, const char *service, const char *value,
                        const char *reader)
{
    return user_names_publish(names, service, value, strlen(value), true, reader, NULL);
}

static void test_a_name_for_one_lookup(void **state)
{
    struct fixture *f = *state;
    char job[USER_NAMES_JOB_SIZE] = "";
    struct buf out = BUF_INIT;
    assert_int_equal(publish_once(f->one, "ocean", "1", NULL), 0);
    assert_int_equal(publish_once(f->two, "ocean", "2", NULL), -EEXIST);
    assert_int_equal(user_names_lookup("ocean", &out, job, NULL), 0);
    assert_string_equal(job, user_names_job(f->one, NULL));
    assert_string_equal(out.data, "1");
    assert_int_equal(look("ocean"), -ENOENT);
    assert_int_equal(publish_once(f->two, "ocean", "2", NULL), 0);
    user_names_unpublish(f->one, "ocean"); /* it was read, and is another's now */
    assert_found("ocean", "2");
    buf_done(&out);
}

static void meet_another(struct fixture *f)
{
    assert_found("ocean", "1");
    assert_int_equal(publish_once(f->one, "ocean", "2", NULL), 0);
}

/* Each of two lookups gets another one, whenever the second comes. */
static void test_names_for_one_lookup_each(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(publish_once(f->one, "ocean", "1", NULL), 0);
    locking = f;
    before_lock = meet_another;
    assert_found("ocean", "2");
    assert_null(before_lock);
    assert_int_equal(look("ocean"), -ENOENT);
}

/* The name's file, locked as by another process. */
static int hold(const struct fixture *f, const char *service)
{
    char file[SHA256_TEXT_SIZE], path[sizeof f->folder + sizeof file];
    sha256_text(service, strlen(service), file);
    snprintf(path, sizeof path, "%s/%s", f->folder, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lock_file(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

/* As by a job of an earlier release, which locks all names when it comes. */
static void test_name_that_is_locked(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    int held = hold(f, "ocean");
    assert_found("ocean", "1");
    user_names_unpublish(f->one, "ocean");
    assert_int_equal(look("ocean"), -ENOENT);
    assert_int_equal(publish(f->one, "ocean", "2"), 0);
    close(held);
    held = hold(f, "ocean");
    user_names_free(TAKE_PTR(f->one));
    assert_int_equal(access(f->folder, F_OK), -1);
    close(held);
}

/* By a lookup, which may end before it has removed the name. */
static void test_name_for_one_lookup_that_is_locked(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(publish_once(f->one, "ocean", "1", NULL), 0);
    int held = hold(f, "ocean");
    assert_int_equal(look("ocean"), -EAGAIN);
    user_names_unpublish(f->one, "ocean");
    close(held);
    assert_int_equal(publish_once(f->one, "air", "2", NULL), 0);
    held = hold(f, "air");
    assert_int_equal(look("air"), -EAGAIN);
    close(held);
    assert_found("air", "2");
    user_names_free(TAKE_PTR(f->one));
    assert_int_equal(access(f->folder, F_OK), -1);
}

/* Others could not remove them meanwhile. */
static void test_job_that_comes_locks_no_names(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    assert_int_equal(publish_once(f->one, "air", "2", NULL), 0);
    exclusive_locks = 0;
    assert_int_equal(publish(f->two, "ice", "3"), 0);
    assert_int_equal(exclusive_locks, 1); /* of its own */
}

/* It may be read after its job has ended, unless that job's reader has, too. */
static void test_a_name_for_one_job(void **state)
{
    struct fixture *f = *state;
    const char *reader = user_names_job(f->two, NULL);
    assert_non_null(reader);
    assert_int_equal(publish_once(f->one, "ocean", "1", reader), 0);
    assert_int_equal(publish_once(f->one, "air", "2", reader), 0);
    user_names_free(TAKE_PTR(f->one));
    assert_found("ocean", "1");
    assert_int_equal(look("ocean"), -ENOENT);
    f->one = user_names_new();
    assert_int_equal(publish(f->one, "fire", "3"), 0); /* who comes leaves it alone */
    assert_int_equal(count_files(f->folder), 4);
    user_names_free(TAKE_PTR(f->two)); /* and takes with it what it has not read */
    assert_int_equal(look("air"), -ENOENT);
    assert_int_equal(count_files(f->folder), 2);
}

static void test_how_a_job_ends(void **state)
{
    struct fixture *f = *state;
    char job[USER_NAMES_JOB_SIZE];
    assert_non_null(user_names_job(f->one, NULL));
    snprintf(job, sizeof job, "%s", user_names_job(f->two, NULL));
    cleanup_close int well = user_names_open_job(f->one, job);
    assert_true(well >= 0);
    assert_int_equal(user_names_state(well), USER_NAMES_LIVES);
    user_names_leave(f->two);
    assert_int_equal(user_names_state(well), USER_NAMES_LIVES);
    assert_true(user_names_is_alive(f->one, job));
    user_names_free(f->two);
    assert_int_equal(user_names_state(well), USER_NAMES_LEFT);
    assert_int_equal(user_names_open_job(f->one, job), -ENOENT);
    assert_false(user_names_is_alive(f->one, job));
    f->two = user_names_new();
    snprintf(job, sizeof job, "%s", user_names_job(f->two, NULL));
    cleanup_close int badly = user_names_open_job(f->one, job);
    user_names_free(f->two);
    assert_int_equal(user_names_state(badly), USER_NAMES_DIED);
    f->two = user_names_new();
}

static void count(void *arg)
{
    ++*(unsigned *)arg;
}

/* What other jobs do comes at once; a clock comes, too. */
static void test_watch(void **state)
{
    struct fixture *f = *state;
    struct event_base *base = event_base_new();
    unsigned changes = 0, before;
    assert_non_null(user_names_job(f->one, NULL));
    assert_int_equal(user_names_watch(f->one, base, count, &changes, NULL), 0);
    assert_int_equal(user_names_watch(f->one, base, count, &changes, NULL), 0);
    assert_int_equal(publish(f->two, "ocean", "1"), 0);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_true(changes > 0);
    before = changes;
    user_names_free(TAKE_PTR(f->two));
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_true(changes > before);
    before = changes;
    event_base_loop(base, EVLOOP_ONCE); /* a second */
    assert_true(changes > before);
    user_names_unwatch(f->one);
    assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 1); /* nothing is left */
    event_base_free(base);
}

static void test_limits(void **state)
{
    struct fixture *f = *state;
    static char value[USER_NAMES_VALUE_MAX + 1];
    char service[32];
    assert_int_equal(user_names_publish(f->one, "long", value, sizeof value, false, NULL, NULL),
                     -EMSGSIZE);
    assert_int_equal(user_names_publish(f->one, "long", value, sizeof value - 1, false, NULL, NULL),
                     0);
    for (unsigned i = 1; i < USER_NAMES_MAX; i++) {
        snprintf(service, sizeof service, "name %u", i);
        assert_int_equal(publish(f->one, service, "1"), 0);
    }
    assert_int_equal(publish(f->one, "one more", "1"), -EDQUOT);
    user_names_unpublish(f->one, "name 7");
    assert_int_equal(publish_once(f->one, "one more", "1", NULL), 0);
    assert_int_equal(publish(f->one, "another", "1"), -EDQUOT);
    assert_found("one more", "1"); /* what was read counts no more */
    assert_int_equal(publish(f->one, "another", "1"), 0);
    assert_found("name 16383", "1");
}

static void test_another_version_is_no_name(void **state)
{
    struct fixture *f = *state;
    char path[512];
    const struct dirent *entry;
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    cleanup_dir DIR *dir = opendir(f->folder);
    while ((entry = readdir(dir)))
        if (strlen(entry->d_name) == 64)
            snprintf(path, sizeof path, "%s/%s", f->folder, entry->d_name);
    static const char *const texts[] = {"",
                                        "drarun-name 2 0 1\nx",
                                        "drarun-name 1 0123456789abcdef 5 on\nocean",
                                        "drarun-name 1 0123456789abcdef 5 to \nocean",
                                        "drarun-name 1 0123456789abcdef 5toa",
                                        "drarun-name 1 0123456789abcdef",
                                        "drarun-name 1 0123456789abcdef 9\nocean"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(
            file_replace(path, texts[i], strlen(texts[i]), 0600, FILE_AFTER_ANYTHING, NULL), 0);
        assert_int_equal(look("ocean"), -ENOENT);
        assert_int_equal(publish(f->two, "ocean", "2"), -EEXIST);
    }
}

/* A directory in which another user could put names is refused. */
static void test_directory_of_others(void **state)
{
    struct fixture *f = *state;
    struct drarun_error err = {0};
    assert_int_equal(mkdir(f->folder, 0755), 0);
    assert_int_equal(user_names_publish(f->one, "ocean", "1", 1, false, NULL, &err), -EPERM);
    assert_non_null(strstr(err.text, "other users may use it (mode 755): run chmod 700"));
    assert_int_equal(look("ocean"), -EPERM);
    assert_int_equal(rmdir(f->folder), 0);
    assert_int_equal(symlink("/", f->folder), 0);
    assert_int_equal(user_names_publish(f->one, "ocean", "1", 1, false, NULL, &err), -EPERM);
    assert_non_null(strstr(err.text, "expected a directory that is not a link: remove it"));
    assert_int_equal(unlink(f->folder), 0);
    assert_int_equal(chmod(f->base, 0777), 0);
    assert_int_equal(user_names_publish(f->one, "ocean", "1", 1, false, NULL, &err), -EPERM);
    assert_int_equal(chmod(f->base, 0700), 0);
    if (geteuid() > 0)
        return;
    assert_int_equal(mkdir(f->folder, 0700), 0);
    assert_int_equal(chown(f->folder, 12, 12), 0);
    assert_int_equal(user_names_publish(f->one, "ocean", "1", 1, false, NULL, &err), -EPERM);
    assert_non_null(strstr(err.text, "belongs to user 12, expected user 0: remove it"));
    assert_int_equal(rmdir(f->folder), 0);
}

static void test_directory_of_the_login(void **state)
{
    struct fixture *f = *state;
    char login[128], names[160];
    snprintf(login, sizeof login, "%s/login", f->base);
    snprintf(names, sizeof names, "%s/drarun", login);
    assert_int_equal(mkdir(login, 0700), 0);
    setenv("XDG_RUNTIME_DIR", login, 1);
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    assert_int_equal(count_files(names), 2);
    assert_int_equal(access(f->folder, F_OK), -1);
    assert_found("ocean", "1");
    user_names_free(TAKE_PTR(f->one));
    assert_int_equal(chmod(login, 0770), 0); /* no login's */
    f->one = user_names_new();
    assert_int_equal(publish(f->one, "ocean", "1"), 0);
    assert_int_equal(count_files(f->folder), 2);
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(rmdir(login), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_others_see_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_name_exists_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_go_with_the_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_of_a_killed_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_name_for_one_lookup, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_for_one_lookup_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_name_that_is_locked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_name_for_one_lookup_that_is_locked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_comes_locks_no_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_name_for_one_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_a_job_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_watch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_version_is_no_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_of_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_of_the_login, set_up, tear_down),
    };
    umask(022); /* the tests compare modes, whatever umask the caller has */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
