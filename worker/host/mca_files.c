/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/mca_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define NAME "openmpi-mca-params.conf"
#define FILE_MAX (64u << 10) /* Open MPI's own, all comments, has 3 KB */

/* ---- one file ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\r");
}

/* "name = value", or a comment. */
static void add_line(char *line, struct strlist *entries)
{
    char *equals = strchr(line, '=');
    const char *name = skip_blanks(line);
    if (!equals || name[0] == '#' || name == equals)
        return;
    const char *value = skip_blanks(equals + 1);
    int name_length = (int)strcspn(name, " \t="), value_length = (int)strlen(value);
    while (value_length > 0 && strchr(" \t\r", value[value_length - 1]))
        value_length--;
    strlist_addf(entries, "OMPI_MCA_%.*s=%.*s", name_length, name, value_length, value);
}

/* A pipe of that name must not hold the agent up. */
static void read_file(const char *path, struct strlist *entries)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    char text[FILE_MAX + 1], *rest = text, *line;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    ssize_t n = read(fd, text, FILE_MAX);
    text[n > 0 ? n : 0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL)
        add_line(line, entries);
}

/* ---- where they are ---- */

static void read_of(const char *folder, size_t length, const char *file, struct strlist *entries)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, file);
    if (n > 0 && (size_t)n < sizeof path)
        read_file(path, entries);
}

/* PREFIX/bin of an Open MPI has its files in PREFIX/etc. */
static void read_of_path(const char *path, struct strlist *entries)
{
    static const char bin[] = "/bin";
    size_t tail = sizeof bin - 1;
    while (*path) {
        size_t length = strcspn(path, ":");
        if (path[0] == '/' && length >= tail && memcmp(path + length - tail, bin, tail) == 0)
            read_of(path, length - tail, "etc/" NAME, entries);
        path += length + (path[length] != '\0');
    }
}

void mca_files_read(const struct strlist *env, struct strlist *entries)
{
    static const char *const distributions[] = {"/etc/openmpi", "/etc/openmpi-x86_64",
                                                "/etc/openmpi-aarch64"};
    const char *home = env_get(env, "HOME"), *prefix = env_get(env, "OPAL_PREFIX");
    const char *path = env_get(env, "PATH");
    for (size_t i = 0; i < ARRAY_LEN(distributions); i++)
        read_of(distributions[i], strlen(distributions[i]), NAME, entries);
    if (path)
        read_of_path(path, entries);
    if (prefix && prefix[0] == '/')
        read_of(prefix, strlen(prefix), "etc/" NAME, entries);
    if (home && home[0] == '/')
        read_of(home, strlen(home), ".openmpi/mca-params.conf", entries);
}
