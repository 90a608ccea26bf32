/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"

static char place[64]; /* a directory of each test's own, and the current one */

static int enter(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "/tmp/file-test-XXXXXX");
    return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : tree_remove(AT_FDCWD, place);
}

static void put(const char *path, const char *text)
{
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static void assert_content(const char *path, const char *text)
{
    struct buf got = BUF_INIT;
    assert_int_equal(file_read(AT_FDCWD, path, 100, &got, NULL), 0);
    assert_int_equal(got.len, strlen(text));
    assert_string_equal(got.data, text);
    buf_done(&got);
}

static void test_read(void **state)
{
    struct buf got = BUF_INIT;
    struct drarun_error err = {0};
    (void)state;
    put("five", "12345");
    buf_add_str(&got, "<"); /* what is there stays, and does not count */
    assert_int_equal(file_read(AT_FDCWD, "five", 5, &got, &err), 0);
    assert_string_equal(got.data, "<12345");
    assert_int_equal(file_read(AT_FDCWD, "five", 4, &got, &err), -EFBIG);
    assert_string_equal(err.text, "read five: larger than 4 bytes");
    assert_int_equal(file_read(AT_FDCWD, "none", 4, &got, &err), -ENOENT);
    assert_string_equal(err.text, "open none: No such file or directory");
    assert_int_equal(symlink("five", "link"), 0);
    assert_int_equal(file_read(AT_FDCWD, "link", 5, &got, &err), -ELOOP);
    cleanup_close int fd = open("five", O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 3, SEEK_SET), 3);
    buf_reset(&got);
    assert_int_equal(fd_read_all(fd, "five", 2, &got, &err), 0);
    assert_string_equal(got.data, "45");
    buf_done(&got);
}

static void on_alarm(int signo)
{
    (void)signo;
}

/* Signals cut a blocking write short; every byte arrives in order all the same. */
static void test_short_writes(void **state)
{
    enum { LENGTH = 1 << 20 };
    int ends[2], status;
    unsigned char *bytes = malloc(LENGTH);
    (void)state;
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (unsigned char)(i % 251);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t reader = fork();
    if (reader == 0) {
        unsigned char piece[8192];
        size_t at = 0;
        ssize_t n;
        close(ends[1]);
        while ((n = read(ends[0], piece, sizeof piece)) > 0) {
            for (ssize_t i = 0; i < n; i++)
                if (piece[i] != (at + (size_t)i) % 251)
                    _exit(1);
            at += (size_t)n;
            usleep(200);
        }
        _exit(at == LENGTH ? 0 : 2);
    }
    close(ends[0]);
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    assert_int_equal(fd_write_all(ends[1], bytes, LENGTH), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    close(ends[1]);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_int_equal(fd_write_all(-1, bytes, 1), -EBADF);
    free(bytes);
}

static void test_replace(void **state)
{
    struct drarun_error err = {0};
    struct stat st;
    (void)state;
    put("a", "old");
    assert_int_equal(file_replace("a", "new", 3, 0640, FILE_AFTER_WHOLE, &err), 0);
    assert_content("a", "new");
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(file_replace("no/a", "new", 3, 0640, FILE_AFTER_ANYTHING, &err), -ENOENT);
    assert_string_equal(err.text, "write no/a: No such file or directory");
    /* a failure leaves nothing beside it */
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(file_replace("folder", "new", 3, 0640, FILE_AFTER_ANYTHING, &err), -EISDIR);
    assert_int_equal(unlink("a"), 0);
    assert_int_equal(rmdir("folder"), 0);
    assert_int_equal(rmdir(place), 0);
    assert_int_equal(mkdir(place, 0700) | chdir(place), 0);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode;
}

static void test_what_a_user_names(void **state)
{
    char text[8] = "";
    (void)state;
    mode_t before = umask(027);
    assert_int_equal(file_write_named("file", "text", 4, NULL), 0);
    umask(before);
    assert_int_equal(mode_of("file"), S_IFREG | 0640);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(file_write_named("pipe", "text", 4, NULL), -ENXIO);
    cleanup_close int reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(file_write_named("pipe", "text", 4, NULL), 0);
    assert_int_equal(read(reader, text, sizeof text), 4);
    assert_string_equal(text, "text");
    assert_int_equal(mode_of("pipe"), S_IFIFO | 0600);
    assert_int_equal(file_write_named("/dev/full", "text", 4, NULL), -ENOSPC);

    /* a descriptor's file keeps what was written to it */
    char itself[40];
    cleanup_close int fd = open("output", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", fd);
    assert_int_equal(write(fd, "out", 3), 3);
    assert_int_equal(file_write_named(itself, "text", 4, NULL), 0);
    assert_int_equal(pread(fd, text, sizeof text, 0), 7);
    assert_memory_equal(text, "outtext", 7);
    assert_int_equal(unlink("output"), 0);
    assert_true(file_is_plain("file") && file_is_plain("none") && file_is_plain("/dev/shm/none"));
    assert_false(file_is_plain("pipe") || file_is_plain("/dev/stdout") ||
                 file_is_plain("/dev/null") || file_is_plain("/proc/self/fd/1"));
}

/* A pipe's reader that goes in the middle ends the writing, and not this process. */
static void test_reader_that_goes(void **state)
{
    enum { LENGTH = 1 << 20 };
    static char text[LENGTH];
    struct drarun_error err = {0};
    int status = -1;
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        struct pollfd readable = {.fd = reader, .events = POLLIN};
        _exit(poll(&readable, 1, 60000) == 1 && read(reader, text, 100) == 100 ? 0 : 1);
    }
    close(reader);
    assert_int_equal(file_write_named("pipe", text, LENGTH, &err), -EPIPE);
    assert_string_equal(err.text, "write pipe: nobody reads it any more");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct sigaction now;
    assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
}

/* Of more than one piece, and not of whole ones. */
static void test_copy(void **state)
{
    enum { LENGTH = 20001 };
    static char text[LENGTH + 1];
    struct drarun_error err = {0};
    struct stat st;
    (void)state;
    for (size_t i = 0; i < LENGTH; i++)
        text[i] = (char)('a' + i % 23);
    put("from", text);
    assert_false(file_same("from", "to"));
    assert_int_equal(file_copy("from", "to", 0751, &err), 0);
    assert_true(file_same("from", "to"));
    assert_int_equal(stat("to", &st), 0);
    assert_int_equal(st.st_size, LENGTH);
    assert_int_equal(st.st_mode & 0777, 0751);
    text[LENGTH - 1]++; /* the last byte alone */
    put("to", text);
    assert_false(file_same("from", "to"));
    text[LENGTH - 1] = '\0'; /* shorter by that byte */
    put("from", text);
    assert_false(file_same("from", "to"));
    assert_false(file_same("to", "from"));
    assert_int_equal(file_copy("from", "to", 0600, &err), 0); /* over one that is there */
    assert_true(file_same("from", "to"));
    put("from", "");
    put("to", "");
    assert_true(file_same("from", "to"));
    assert_int_equal(file_copy("none", "to", 0600, &err), -ENOENT);
    assert_string_equal(err.text, "open none: No such file or directory");
    assert_int_equal(symlink("from", "link"), 0);
    assert_int_equal(file_copy("link", "to", 0600, &err), -ELOOP);
    assert_false(file_same("link", "to"));
    /* a failure leaves nothing beside it */
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(file_copy("folder", "copy", 0600, &err), -EISDIR);
    assert_string_equal(err.text, "read folder: Is a directory");
    assert_int_equal(file_copy("from", "folder", 0600, &err), -EISDIR);
    assert_string_equal(err.text, "write folder: Is a directory");
    assert_int_equal(unlink("from") | unlink("to") | unlink("link"), 0);
    assert_int_equal(rmdir("folder"), 0);
    assert_int_equal(rmdir(place), 0);
    assert_int_equal(mkdir(place, 0700) | chdir(place), 0);
}

static void test_remove_with_temporaries(void **state)
{
    static const char *const names[] = {"a", "a.abcdef", "a.abcde", "a.abcdefg", "ab", "a-abcdef"};
    static const bool stays[] = {false, false, true, true, true, true};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        put(names[i], "x");
    assert_int_equal(file_remove_atomic("a", NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(access(names[i], F_OK) == 0, stays[i]);
    assert_int_equal(file_remove_atomic("a", NULL), 0);
    assert_int_equal(file_remove_atomic("none/a", NULL), 0);
}

static void test_directories(void **state)
{
    struct stat st;
    char made[64];
    (void)state;
    assert_int_equal(dirs_make_parents("x/y/z", 0700, NULL), 0);
    assert_int_equal(access("x/y", F_OK), 0);
    assert_int_equal(access("x/y/z", F_OK), -1);
    assert_int_equal(dirs_make("x/y/z", 0750, NULL), 0);
    assert_int_equal(stat("x/y/z", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    assert_int_equal(dirs_make("x/y/z", 0700, NULL), 0);
    assert_int_equal(dir_check_own("x", NULL), 0);
    assert_int_equal(chmod("x", 0777), 0);
    assert_int_equal(dir_check_own("x", NULL), -EPERM);
    setenv("TMPDIR", place, 1);
    assert_int_equal(dir_make_temporary("name", made, sizeof made, NULL), 0);
    assert_memory_equal(made, place, strlen(place));
    assert_memory_equal(made + strlen(place), "/name-", 6);
    assert_int_equal(dir_make_temporary("name", made, strlen(place) + 12, NULL), -ENAMETOOLONG);
    assert_int_equal(dir_make_temporary("name", made, strlen(place) + 13, NULL), 0);
    setenv("TMPDIR", "relative", 1);
    assert_int_equal(dir_make_temporary("name", made, sizeof made, NULL), 0);
    assert_memory_equal(made, "/tmp/name-", 10);
    assert_int_equal(rmdir(made), 0);
    unsetenv("TMPDIR");
}

static void test_directories_that_cannot_be_made(void **state)
{
    struct drarun_error err = {0};
    char path[PATH_MAX + 1], made[64], expected[128];
    (void)state;
    put("file", "");
    assert_int_equal(dirs_make("file", 0700, &err), 0); /* whatever is there */
    assert_int_equal(dirs_make("file/x", 0700, &err), -ENOTDIR);
    assert_string_equal(err.text, "make file/x: Not a directory");
    assert_int_equal(dirs_make("file/x/y", 0700, &err), -ENOTDIR);
    assert_string_equal(err.text, "make file/x: Not a directory");
    assert_int_equal(dirs_make_parents("file/x", 0700, &err), 0);
    for (size_t i = 0; i < PATH_MAX; i++)
        path[i] = i % 2 ? '/' : '.';
    path[PATH_MAX] = '\0';
    assert_int_equal(dirs_make_parents(path, 0700, &err), -ENAMETOOLONG);
    assert_non_null(strstr(err.text, "./././"));
    path[PATH_MAX - 1] = '\0';
    assert_int_equal(dirs_make_parents(path, 0700, &err), 0);
    assert_int_equal(dirs_make_parents("/", 0700, &err), 0);
    assert_int_equal(dirs_make("/tmp", 0700, &err), 0);
    setenv("TMPDIR", "/no/such", 1);
    assert_int_equal(dir_make_temporary("name", made, sizeof made, &err), -ENOENT);
    assert_string_equal(err.text, "cannot make a directory in /no/such: No such file or directory");
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_string_equal(made, "");
    unsetenv("TMPDIR");
    assert_int_equal(dir_check_own("none", &err), -ENOENT);
    assert_string_equal(err.text, "none: No such file or directory");
    assert_int_equal(dir_check_own("file", &err), -EPERM);
    assert_string_equal(err.text, "file: expected a directory that is not a link: remove it");
    assert_int_equal(symlink(".", "link"), 0);
    assert_int_equal(dir_check_own("link", &err), -EPERM);
    for (unsigned bit = 1; bit <= 0400; bit <<= 1) {
        assert_int_equal(chmod(place, 0700 | bit), 0);
        bool others = bit == 0020 || bit == 0002;
        assert_int_equal(dir_check_own(place, &err), others ? -EPERM : 0);
        if (!others)
            continue;
        snprintf(expected, sizeof expected,
                 "%s: others may write it (mode %o): chmod go-w, or remove it", place, 0700 | bit);
        assert_string_equal(err.text, expected);
    }
    assert_int_equal(chmod(place, 0700), 0);
}

static void test_tree_remove_follows_no_link(void **state)
{
    (void)state;
    assert_int_equal(dirs_make("tree/below/more", 0700, NULL), 0);
    assert_int_equal(dirs_make("kept", 0700, NULL), 0);
    put("kept/file", "x");
    put("tree/below/file", "x");
    assert_int_equal(symlink("../../kept", "tree/below/link"), 0);
    assert_int_equal(tree_remove(AT_FDCWD, "tree"), 0);
    assert_int_equal(access("tree", F_OK), -1);
    assert_content("kept/file", "x");
    assert_int_equal(tree_remove(AT_FDCWD, "tree"), 0);
}

/* As a rank may leave it: deeper than a path can say, and than descriptors can be open. */
static void test_tree_remove_of_any_depth(void **state)
{
    (void)state;
    struct rlimit before, few;
    int at = AT_FDCWD;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(mkdir("tree", 0700), 0);
    at = openat(at, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; depth < 3000; depth++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        if (depth % 100 == 0)
            assert_int_equal(mkdirat(at, "e", 0700) | mkdirat(at, "e/f", 0700) |
                                 symlinkat("/", at, "e/link"),
                             0);
        int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(below >= 0);
        close(at);
        at = below;
    }
    close(at);
    few = (struct rlimit){16, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = tree_remove(AT_FDCWD, "tree");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, 0);
    assert_int_equal(access("tree", F_OK), -1);
}

/* The path of the only entry of a folder. */
static void only_entry(const char *folder, char *path, size_t size)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *each; (each = readdir(dir));) {
        if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0)
            continue;
        snprintf(path, size, "%s/%s", folder, each->d_name);
        count++;
    }
    closedir(dir);
    assert_int_equal(count, 1);
}

/* What cannot be removed is told, and the rest goes; it may have another name then. */
static void test_tree_remove_of_what_it_may_not(void **state)
{
    char left[300], below[320];
    (void)state;
    if (geteuid() == 0)
        skip_for("is root, who may remove everything");
    assert_int_equal(dirs_make("tree/locked/below", 0700, NULL), 0);
    assert_int_equal(dirs_make("tree/other/below", 0700, NULL), 0);
    assert_int_equal(chmod("tree/locked", 0500), 0);
    assert_int_equal(tree_remove(AT_FDCWD, "tree"), -EACCES);
    only_entry("tree", left, sizeof left);
    snprintf(below, sizeof below, "%s/below", left);
    assert_int_equal(access(below, F_OK), 0);
    assert_int_equal(chmod(left, 0700), 0);
}

static void test_flags(void **state)
{
    int fd = open("/dev/null", O_RDONLY); // NOLINT: to be set by the functions under test
    (void)state;
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    assert_int_equal(fd_set_cloexec(fd) | fd_set_nonblock(fd), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    assert_int_equal(fd_set_cloexec(-1), -EBADF);
    assert_int_equal(fd_set_nonblock(-1), -EBADF);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(test_read),
        IN_PLACE(test_short_writes),
        IN_PLACE(test_replace),
        IN_PLACE(test_what_a_user_names),
        IN_PLACE(test_reader_that_goes),
        IN_PLACE(test_copy),
        IN_PLACE(test_remove_with_temporaries),
        IN_PLACE(test_directories),
        IN_PLACE(test_directories_that_cannot_be_made),
        IN_PLACE(test_tree_remove_follows_no_link),
        IN_PLACE(test_tree_remove_of_any_depth),
        IN_PLACE(test_tree_remove_of_what_it_may_not),
        IN_PLACE(test_flags),
    };
    umask(022); /* the tests compare modes, whatever umask the caller has */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
