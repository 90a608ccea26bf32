/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* libpmix and MPI libraries put sockets below the session directory: sun_path has 108 bytes. */
#define TMPDIR_MAX 40

int identity_make(char uid[IDENTITY_UID_SIZE], struct drarun_error *err)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567"; /* RFC 4648, lower case */
    uint8_t random[IDENTITY_UID_SIZE - 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        uid[i] = digits[random[i] % 32];
    uid[sizeof random] = '\0';
    return 0;
}

static bool is_writable(const char *dir)
{
    return faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0;
}

/* The first that we may write: /tmp can be read-only. "" when there is none: the agent then looks
 * for itself, and says what it tried. */
static const char *writable_dir(void)
{
    static const char *const places[] = {"/tmp", "/dev/shm", "/run"};
    const char *dir = getenv("TMPDIR");
    if (dir && dir[0] == '/' && strlen(dir) <= TMPDIR_MAX && is_writable(dir))
        return dir;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (is_writable(places[i]))
            return places[i];
    return "";
}

void identity_session_dir(const char *uid, uint32_t attempt, uint32_t worker, bool here,
                          char path[IDENTITY_PATH_SIZE])
{
    const char *dir = here ? writable_dir() : "";
    snprintf(path, IDENTITY_PATH_SIZE, "%s%sdrarun-%s.%u.%u", dir, dir[0] ? "/" : "", uid, attempt,
             worker);
}
