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
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/wire/key_file.h"

#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"

static char path[] = "/tmp/key-file-test.XXXXXX";

static void put(const void *bytes, size_t length, mode_t mode)
{
    assert_int_equal(chmod(path, 0600), 0); /* of the last one */
    cleanup_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void check_key(void)
{
    struct tls_key key = {{0}};
    struct drarun_error err = {0};
    if (key_file_read(path, &key, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < TLS_KEY_SIZE; i++)
        assert_int_equal(key.bytes[i], i);
}

static void forms_of_a_key(void **state)
{
    uint8_t raw[TLS_KEY_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (uint8_t)i;
    put(HEX, strlen(HEX), 0600);
    check_key();
    put(HEX "\n", strlen(HEX) + 1, 0400);
    check_key();
    put(raw, sizeof raw, 0600);
    check_key();
}

static void what_is_no_key(void **state)
{
    static const char *const bad[] = {"",      "\n",         HEX "0", HEX "\n\n",
                                      HEX " ", "0" HEX "\n", "-" HEX, "hello world"};
    (void)state;
    for (size_t i = 0; i <= ARRAY_LEN(bad); i++) {
        struct tls_key key, before;
        struct drarun_error err = {0};
        char other[] = HEX;
        other[7] = 'g';
        const char *text = i < ARRAY_LEN(bad) ? bad[i] : other;
        memset(&key, 7, sizeof key);
        before = key;
        put(text, strlen(text), 0600);
        assert_int_equal(key_file_read(path, &key, &err), -EINVAL);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, "64 hexadecimal digits"));
        assert_memory_equal(&key, &before, sizeof key);
        if (strlen(text) > 8)
            assert_null(strstr(err.text, text)); /* it may be most of a key */
    }
}

static void others_must_not_read_it(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0644, 0666, 0601};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct tls_key key;
        struct drarun_error err = {0};
        put(HEX, strlen(HEX), modes[i]);
        assert_int_equal(key_file_read(path, &key, &err), -EPERM);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, "chmod 600"));
    }
}

static void no_file(void **state)
{
    struct tls_key key;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(key_file_read("/nowhere/key", &key, &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_non_null(strstr(err.text, "/nowhere/key"));
    assert_int_equal(key_file_read("/tmp", &key, &err), -EISDIR);
}

/* As from a pipe or a Kubernetes secret that another process writes piece by piece. */
static void in_pieces(void **state)
{
    struct tls_key key;
    struct drarun_error err = {0};
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < strlen(HEX); i += 8) {
            ssize_t n = write(ends[1], &HEX[i], 8);
            struct timespec pause = {.tv_nsec = 2000000};
            if (n != 8 || nanosleep(&pause, NULL) < 0)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    if (key_fd_read(ends[0], "--key-fd", &key, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(key.bytes[31], 31);
    close(ends[0]);
}

static void endless_input_is_cut(void **state)
{
    struct tls_key key;
    struct drarun_error err = {0};
    cleanup_close int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    (void)state;
    assert_int_equal(key_fd_read(zero, "--key-fd", &key, &err), -EINVAL);
    assert_non_null(strstr(err.text, "--key-fd"));
}

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_a_key),
        cmocka_unit_test(what_is_no_key),
        cmocka_unit_test(others_must_not_read_it),
        cmocka_unit_test(no_file),
        cmocka_unit_test(in_pieces),
        cmocka_unit_test(endless_input_is_cut),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
