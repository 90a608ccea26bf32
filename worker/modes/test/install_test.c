/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "worker/modes/install.h"

/* An image with the programs, and beside it the volume that they go to. */
static char top[32];
static char self[64]; /* what this program's file is called */

ssize_t __wrap_readlink(const char *path, char *to, size_t size);
ssize_t __real_readlink(const char *path, char *to, size_t size);

ssize_t __wrap_readlink(const char *path, char *to, size_t size)
{
    if (strcmp(path, "/proc/self/exe") != 0)
        return __real_readlink(path, to, size);
    if (!self[0]) {
        errno = EACCES;
        return -1;
    }
    size_t length = strnlen(self, size);
    memcpy(to, self, length);
    return (ssize_t)length;
}

static const char *below(const char *name)
{
    static char paths[4][128];
    static unsigned at;
    char *path = paths[at++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", top, name);
    return path;
}

static void put(const char *name)
{
    int fd = open(below(name), O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, name, strlen(name)), strlen(name));
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s", "/tmp/install_test.XXXXXX");
    if (!mkdtemp(top))
        return -1;
    static const char *const folders[] = {"bin", "lib", "lib/drarun", "volume"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        assert_int_equal(mkdir(below(folders[i]), 0700), 0);
    snprintf(self, sizeof self, "%s/bin/renamed", top);
    put("bin/renamed");
    put("bin/drarun");
    umask(077);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    umask(022);
    return tree_remove(AT_FDCWD, top);
}

/* executable by all, with the source's content */
static void assert_installed(const char *name, const char *source)
{
    struct stat st;
    struct buf text = BUF_INIT;
    assert_int_equal(stat(below(name), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(file_read(AT_FDCWD, below(name), 1000, &text, NULL), 0);
    assert_int_equal(text.len, strlen(source));
    assert_memory_equal(text.data, source, text.len);
    buf_done(&text);
}

static void assert_folder(const char *name)
{
    struct stat st;
    assert_int_equal(stat(below(name), &st), 0);
    assert_int_equal(st.st_mode & 07777, getegid() == 0 ? 0775 : 0755);
}

static void assert_error(const struct drarun_error *err, int code, const char *format, ...)
{
    char expected[512];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    assert_string_equal(err->text, expected);
    assert_int_equal(err->code, code);
    assert_int_equal(err->kind, DRARUN_ERR_USAGE);
}

static void programs_are_for_all_whatever_the_umask(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* again: the same result */
        assert_int_equal(install_program(INSTALL_SELF, below("volume/bin"), NULL), 0);
        assert_int_equal(install_program("drarun", below("volume/bin"), NULL), 0);
        assert_folder("volume/bin");
        assert_installed("volume/bin/" INSTALL_SELF, "bin/renamed");
        assert_installed("volume/bin/drarun", "bin/drarun");
    }
}

static void what_fails_is_named(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    assert_int_equal(install_program(INSTALL_SELF, below("no/bin"), &err), -ENOENT);
    assert_error(&err, ENOENT, "--install: %s/no/bin: No such file or directory", top);
    assert_int_equal(install_program("drarun-x", below("volume"), &err), -ENOENT);
    assert_error(&err, ENOENT, "--install: open %s/bin/drarun-x: No such file or directory", top);
    self[0] = '\0';
    assert_int_equal(install_program(INSTALL_SELF, below("volume"), &err), -EACCES);
    assert_error(&err, EACCES, "--install: /proc/self/exe: Permission denied");
    assert_int_equal(install_program("drarun", below("volume"), &err), -EACCES);
}

static void a_path_has_room_for_the_program(void **state)
{
    (void)state;
    static char dir[PATH_MAX];
    const size_t most = PATH_MAX - 1 - sizeof INSTALL_SELF; /* with a slash and a NUL */
    struct drarun_error err = {0};
    for (size_t i = 0; i <= most; i++)
        dir[i] = i % 2 ? 'x' : '/';
    assert_int_equal(install_program(INSTALL_SELF, dir, &err), -ENAMETOOLONG);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_int_equal(strncmp(err.text, "--install: /x/x", 15), 0);
    dir[most] = '\0';
    assert_int_equal(install_program(INSTALL_SELF, dir, &err), -ENOENT);
}

static void the_benchmark_brings_its_modules(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool module;
    } files[] = {{"bench-a.so", true},    {"bench-nccl.so", true}, {"bench-.so", false},
                 {"bench-a.so.1", false}, {"bench_a.so", false},   {"libdrarun.so", false},
                 {"bench-a.py", false}};
    char from[64], to[64];
    put("bin/drarun-bench");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(from, sizeof from, "lib/drarun/%s", files[i].name);
        put(from);
    }
    for (int k = 0; k < 2; k++)
        assert_int_equal(install_bench(below("volume/bin"), NULL), 0);
    assert_installed("volume/bin/" INSTALL_SELF, "bin/renamed");
    assert_installed("volume/bin/" INSTALL_BENCH, "bin/drarun-bench");
    assert_folder("volume/bin");
    assert_folder("volume/lib");
    assert_folder("volume/lib/drarun");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(from, sizeof from, "lib/drarun/%s", files[i].name);
        snprintf(to, sizeof to, "volume/lib/drarun/%s", files[i].name);
        if (files[i].module)
            assert_installed(to, from);
        else
            assert_int_equal(access(below(to), F_OK), -1);
    }
}

static void an_image_without_the_benchmark(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    assert_int_equal(install_bench(below("volume/bin"), &err), -ENOENT);
    assert_error(
        &err, ENOENT,
        "--install-bench: open %s/bin/drarun-bench: No such file or directory: the image was "
        "packed from a build without DRARUN_BENCH_ANYWHERE; pack it again, and do what "
        "scripts/image says",
        top);
    assert_int_equal(access(below("volume/lib"), F_OK), -1);
    put("bin/drarun-bench");
    assert_int_equal(rmdir(below("lib/drarun")), 0);
    assert_int_equal(install_bench(below("volume/bin"), &err), -ENOENT);
    assert_error(&err, ENOENT, "--install-bench: %s/bin/../lib/drarun/: No such file or directory",
                 top);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(programs_are_for_all_whatever_the_umask), CASE(what_fails_is_named),
        CASE(a_path_has_room_for_the_program),         CASE(the_benchmark_brings_its_modules),
        CASE(an_image_without_the_benchmark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
