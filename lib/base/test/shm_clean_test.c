/* SPDX-License-Identifier: Apache-2.0 */
/* What is removed, and above all what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/shm_clean.h"
#include "lib/base/test/skip.h"

struct fixture {
    char dir[64];
    int fd;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    /* the real thing is a tmpfs */
    strcpy(f->dir, "/dev/shm/shm_clean_test.XXXXXX"); // NOLINT: it fits
    if (!mkdtemp(f->dir)) {
        strcpy(f->dir, "/tmp/shm_clean_test.XXXXXX"); // NOLINT: it fits
        assert_non_null(mkdtemp(f->dir));
    }
    f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = f;
    return f->fd < 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    close(f->fd);
    int rc = tree_remove(AT_FDCWD, f->dir);
    free(f);
    return rc;
}

static int make(struct fixture *f, const char *name)
{
    int fd = openat(f->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    return fd;
}

static void make_left(struct fixture *f, const char *name)
{
    close(make(f, name));
}

static bool is_there(struct fixture *f, const char *name)
{
    return faccessat(f->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void removes_what_the_job_left(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {
        "vader_segment.node.0.a.1", "sm_segment.node.0.b.2", "mpich_shar_tmpAbCdEf",
        "Intel_MPI_aB3dE6",         "ucx_shm_posix_12ab",    "nccl-XyZ123",
    };
    static const char *const users[] = {"database",    "my-nccl-x",         "nccl-debug.host.7.log",
                                        "nccl-a.log0", "Intel_MPI_results", "mpich_notes"};
    make_left(f, "nccl-before");
    struct shm_clean *shm = shm_clean_begin_in(f->dir);
    assert_non_null(shm);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make_left(f, names[i]);
    for (size_t i = 0; i < ARRAY_LEN(users); i++)
        make_left(f, users[i]);
    assert_int_equal(shm_clean_run(shm), ARRAY_LEN(names));
    assert_int_equal(shm_clean_run(shm), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_false(is_there(f, names[i]));
    assert_true(is_there(f, "nccl-before"));
    for (size_t i = 0; i < ARRAY_LEN(users); i++)
        assert_true(is_there(f, users[i]));
    shm_clean_free(shm);
}

static void leaves_what_is_open(void **state)
{
    struct fixture *f = *state;
    struct shm_clean *shm = shm_clean_begin_in(f->dir);
    int fd = make(f, "nccl-opened");
    assert_int_equal(shm_clean_run(shm), 0);
    close(fd);
    fd = openat(f->fd, "nccl-opened", O_RDONLY);
    assert_int_equal(shm_clean_run(shm), 0);
    close(fd);
    assert_int_equal(shm_clean_run(shm), 1);
    shm_clean_free(shm);
}

/* By another process, which holds no descriptor any more. */
static void leaves_what_is_mapped(void **state)
{
    struct fixture *f = *state;
    struct shm_clean *shm = shm_clean_begin_in(f->dir);
    static const int protections[] = {PROT_READ, PROT_READ | PROT_WRITE};
    for (size_t i = 0; i < ARRAY_LEN(protections); i++) {
        int ready[2];
        char byte;
        assert_int_equal(pipe(ready), 0);
        int fd = make(f, "mpich_shm_1a_7");
        if (protections[i] == PROT_READ) {
            close(fd);
            fd = openat(f->fd, "mpich_shm_1a_7", O_RDONLY);
        }
        pid_t pid = fork();
        if (pid == 0) {
            void *map = mmap(NULL, 4096, protections[i], MAP_SHARED, fd, 0);
            close(fd);
            if (map == MAP_FAILED || write(ready[1], "", 1) != 1)
                _exit(1);
            pause();
            _exit(0);
        }
        close(fd);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(shm_clean_run(shm), 0);
        assert_true(is_there(f, "mpich_shm_1a_7"));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(shm_clean_run(shm), 1);
        close(ready[0]);
        close(ready[1]);
    }
    shm_clean_free(shm);
}

static void follows_no_link_and_waits_for_none(void **state)
{
    struct fixture *f = *state;
    make_left(f, "victim");
    struct shm_clean *shm = shm_clean_begin_in(f->dir);
    assert_int_equal(symlinkat("victim", f->fd, "nccl-linked"), 0);
    assert_int_equal(mkfifoat(f->fd, "nccl-pipes1", 0600), 0);
    assert_int_equal(mkdirat(f->fd, "nccl-folder", 0700), 0);
    assert_int_equal(shm_clean_run(shm), 0);
    assert_true(is_there(f, "victim"));
    assert_true(is_there(f, "nccl-linked"));
    shm_clean_free(shm);
}

static void leaves_what_others_own(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip_for("needs root");
    struct shm_clean *shm = shm_clean_begin_in(f->dir);
    make_left(f, "nccl-others");
    assert_int_equal(fchownat(f->fd, "nccl-others", 12345, 12345, 0), 0);
    assert_int_equal(shm_clean_run(shm), 0);
    assert_true(is_there(f, "nccl-others"));
    shm_clean_free(shm);
}

#define CLEANERS 4
#define LEFT 200

/* As the agents of one machine do: none may take another's look at a file for its use. */
static void cleaners_side_by_side_leave_nothing(void **state)
{
    struct fixture *f = *state;
    struct shm_clean *shm = shm_clean_begin_in(f->dir);
    char name[32];
    int begin[2], total = 0;
    assert_int_equal(pipe(begin), 0);
    for (int i = 0; i < LEFT; i++) {
        snprintf(name, sizeof name, "nccl-%06d", i);
        make_left(f, name);
    }
    pid_t pids[CLEANERS];
    for (int i = 0; i < CLEANERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char byte;
            close(begin[1]);
            _exit(read(begin[0], &byte, 1) == 0 ? shm_clean_run(shm) : 255);
        }
    }
    close(begin[0]);
    close(begin[1]); /* all go at once */
    for (int i = 0; i < CLEANERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        total += WEXITSTATUS(status);
    }
    assert_int_equal(total, LEFT);
    shm_clean_free(shm);
}

static void each_session_has_a_directory_of_its_own(void **state)
{
    static const struct {
        const char *session, *shm;
    } table[] = {
        {"/tmp/drarun-a.1.0", "/dev/shm/drarun-a.1.0"},
        {"drarun-a.1.0", "/dev/shm/drarun-a.1.0"},
        {"/dev/shm/drarun-a.1.0", "/dev/shm/drarun-a.1.0/shm"}, /* not the session's itself */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char path[128];
        shm_clean_dir(table[i].session, path, sizeof path);
        assert_string_equal(path, table[i].shm);
    }
}

static void nothing_to_look_at(void **state)
{
    (void)state;
    assert_null(shm_clean_begin_in("/no/such/directory"));
    assert_int_equal(shm_clean_run(NULL), 0);
    shm_clean_free(NULL);
    struct shm_clean *shm = shm_clean_begin();
    assert_int_equal(shm_clean_run(shm), 0);
    shm_clean_free(shm);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(removes_what_the_job_left),
        TEST(leaves_what_is_open),
        TEST(leaves_what_is_mapped),
        TEST(follows_no_link_and_waits_for_none),
        TEST(leaves_what_others_own),
        TEST(cleaners_side_by_side_leave_nothing),
        TEST(each_session_has_a_directory_of_its_own),
        TEST(nothing_to_look_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
