/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/modes/install.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

static int own_path(char path[PATH_MAX], struct drarun_error *err)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n < 0)
        return error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    return 0;
}

/* With its last slash. */
static int own_folder(char path[PATH_MAX], struct drarun_error *err)
{
    int rc = own_path(path, err);
    if (rc == 0)
        strrchr(path, '/')[1] = '\0';
    return rc;
}

static int join(char path[PATH_MAX], struct drarun_error *err, const char *folder, const char *name)
{
    int n = snprintf(path, PATH_MAX, "%s%s", folder, name);
    return n < 0 || n >= PATH_MAX ? error_set(err, ENAMETOOLONG, "%s: too long", folder) : 0;
}

/* Whatever the umask: the ranks' container may have another user. Where a platform gives each pod a
 * user of its own they share group 0 (OpenShift), and one may install what another one did. */
static int make_folder(const char *path, struct drarun_error *err)
{
    mode_t mode = getegid() == 0 ? 0775 : 0755;
    if (mkdir(path, mode) < 0)
        return errno == EEXIST ? 0 : error_set(err, errno, "%s: %s", path, strerror(errno));
    return chmod(path, mode) < 0 ? error_set(err, errno, "%s: %s", path, strerror(errno)) : 0;
}

/* This one itself may have been renamed. */
static int copy_program(const char *name, const char *dir, struct drarun_error *err)
{
    char folder[PATH_MAX], source[PATH_MAX], path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return error_set(err, ENAMETOOLONG, "%s: too long", dir);
    int rc = make_folder(dir, err);
    if (rc == 0 && strcmp(name, INSTALL_SELF) == 0) {
        rc = own_path(source, err);
    } else if (rc == 0) {
        rc = own_folder(folder, err);
        rc = rc < 0 ? rc : join(source, err, folder, name);
    }
    return rc < 0 ? rc : file_copy(source, path, 0755, err);
}

static bool is_module(const char *name)
{
    size_t length = strlen(name);
    return strncmp(name, "bench-", 6) == 0 && length > 9 && strcmp(name + length - 3, ".so") == 0;
}

static int copy_modules(const char *from, const char *to, struct drarun_error *err)
{
    char source[PATH_MAX], path[PATH_MAX];
    struct dirent *entry;
    int rc = 0;
    DIR *modules = opendir(from);
    if (!modules)
        return error_set(err, errno, "%s: %s", from, strerror(errno));
    while (rc == 0 && (entry = readdir(modules))) {
        if (!is_module(entry->d_name))
            continue;
        rc = join(source, err, from, entry->d_name);
        rc = rc < 0 ? rc : join(path, err, to, entry->d_name);
        rc = rc < 0 ? rc : file_copy(source, path, 0755, err);
    }
    closedir(modules);
    return rc;
}

static int usage(const char *option, const struct drarun_error *own, int rc,
                 struct drarun_error *err)
{
    return rc < 0 ? error_kind(err, DRARUN_ERR_USAGE, -rc, "%s: %s", option, own->text) : 0;
}

int install_program(const char *name, const char *dir, struct drarun_error *err)
{
    struct drarun_error own = {0};
    return usage("--install", &own, copy_program(name, dir, &own), err);
}

int install_bench(const char *dir, struct drarun_error *err)
{
    char folder[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
    struct drarun_error own = {0};
    int rc = copy_program(INSTALL_SELF, dir, &own);
    rc = rc < 0 ? rc : copy_program(INSTALL_BENCH, dir, &own);
    if (rc == -ENOENT)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "--install-bench: %s: the image was packed from a build without "
                          "DRARUN_BENCH_ANYWHERE; pack it again, and do what scripts/image says",
                          own.text);
    rc = rc < 0 ? rc : own_folder(folder, &own);
    rc = rc < 0 ? rc : join(from, &own, folder, "../lib/drarun/");
    rc = rc < 0 ? rc : join(to, &own, dir, "/../lib");
    rc = rc < 0 ? rc : make_folder(to, &own);
    rc = rc < 0 ? rc : join(to, &own, dir, "/../lib/drarun/");
    rc = rc < 0 ? rc : make_folder(to, &own);
    rc = rc < 0 ? rc : copy_modules(from, to, &own);
    return usage("--install-bench", &own, rc, err);
}
