/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* libpmix and MPI libraries put sockets below the session directory: sun_path has 108 bytes. */
#define TMPDIR_MAX 40
#define ROOM_MIN (UINT64_C(1) << 20) /* as for a pod, jobs/preflight */

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

/* A file system may not say how much it has. */
static bool has_room(const char *dir)
{
    struct statvfs fs;
    if (statvfs(dir, &fs) < 0)
        return true;
    bool bytes = fs.f_blocks == 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_MIN;
    return bytes && (fs.f_files == 0 || fs.f_favail > 0);
}

/* The first that we may write and that is not full, as the disk with /tmp can be, or else the first
 * that we may write: /tmp can be read-only. "" when there is none: the agent then looks for itself,
 * and says what it tried. */
static const char *writable_dir(void)
{
    const char *own = getenv("TMPDIR"), *full = "";
    bool usable = own && own[0] == '/' && strlen(own) <= TMPDIR_MAX;
    const char *const places[] = {usable ? own : "/tmp", "/tmp", "/dev/shm", "/run"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!is_writable(places[i]))
            continue;
        if (has_room(places[i]))
            return places[i];
        full = full[0] ? full : places[i];
    }
    return full;
}

void identity_session_dir(const char *uid, uint32_t attempt, uint32_t worker, bool here,
                          char path[IDENTITY_PATH_SIZE])
{
    const char *dir = here ? writable_dir() : "";
    snprintf(path, IDENTITY_PATH_SIZE, "%s%sdrarun-%s.%u.%u", dir, dir[0] ? "/" : "", uid, attempt,
             worker);
}
