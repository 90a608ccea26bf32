/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/key_file.h"

#include <errno.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool from_hex(const char *text, size_t length, struct tls_key *key)
{
    if (length == 2 * TLS_KEY_SIZE + 1 && text[length - 1] == '\n')
        length--;
    if (length != 2 * TLS_KEY_SIZE)
        return false;
    for (size_t i = 0; i < TLS_KEY_SIZE; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int no_key(const char *what, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s: expected a key of %u hexadecimal digits or %u bytes, such as "
                      "`openssl rand -hex %u` makes",
                      what, 2 * TLS_KEY_SIZE, TLS_KEY_SIZE, TLS_KEY_SIZE);
}

int key_env_take(const char *name, struct tls_key *ret_key, struct drarun_error *err)
{
    char *text = getenv(name);
    struct tls_key key;
    if (!text)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "%s is not set", name);
    size_t length = strlen(text);
    bool good = from_hex(text, length, &key);
    explicit_bzero(text, length);
    unsetenv(name);
    if (!good)
        return no_key(name, err);
    *ret_key = key;
    explicit_bzero(&key, sizeof key);
    return 0;
}

int key_fd_read(int fd, const char *what, struct tls_key *ret_key, struct drarun_error *err)
{
    char text[128];
    size_t length = 0;
    ssize_t n = 1;
    while (n > 0 && length < sizeof text) {
        n = read(fd, text + length, sizeof text - length);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            return error_kind(err, DRARUN_ERR_USAGE, errno, "%s: %s", what, strerror(errno));
        else
            length += (size_t)n;
    }
    struct tls_key key;
    bool good = length == TLS_KEY_SIZE || from_hex(text, length, &key);
    if (good && length == TLS_KEY_SIZE)
        memcpy(key.bytes, text, TLS_KEY_SIZE);
    explicit_bzero(text, sizeof text);
    if (!good)
        return no_key(what, err);
    *ret_key = key;
    explicit_bzero(&key, sizeof key);
    return 0;
}

int key_file_read(const char *path, struct tls_key *ret_key, struct drarun_error *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_kind(err, DRARUN_ERR_USAGE, errno, "key file %s: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode) && (st.st_mode & 077) != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EPERM,
                          "key file %s: others may read it (mode %03o); run chmod 600 %s", path,
                          st.st_mode & 0777, path);
    int rc = key_fd_read(fd, "key file", ret_key, err);
    return rc < 0 ? error_prefix(err, "%s", path) : 0;
}
