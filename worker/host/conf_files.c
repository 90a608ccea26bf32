/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/conf_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define MCA_NAME "openmpi-mca-params.conf"
#define FILE_MAX (64u << 10) /* Open MPI's own, all comments, has 3 KB */

struct reader {
    const struct strlist *env; /* what is set already */
    struct strlist *entries;
    void (*add_line)(const struct reader *r, char *line);
};

/* ---- one file ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\r");
}

/* "name = value", or a comment. */
static void add_mca_line(const struct reader *r, char *line)
{
    char *equals = strchr(line, '=');
    const char *name = skip_blanks(line);
    if (!equals || name[0] == '#' || name == equals)
        return;
    const char *value = skip_blanks(equals + 1);
    int name_length = (int)strcspn(name, " \t="), value_length = (int)strlen(value);
    while (value_length > 0 && strchr(" \t\r", value[value_length - 1]))
        value_length--;
    strlist_addf(r->entries, "OMPI_MCA_%.*s=%.*s", name_length, name, value_length, value);
}

/* "NAME=VALUE" without blanks. What is set first stays, as in NCCL's src/misc/param.cc. */
static void add_nccl_line(const struct reader *r, char *line)
{
    char *equals = strchr(line, '=');
    if (!equals || strncmp(line, "NCCL_", strlen("NCCL_")) != 0)
        return;
    *equals = '\0';
    if (!env_get(r->env, line) && !env_get(r->entries, line))
        strlist_addf(r->entries, "%s=%.*s", line, (int)strcspn(equals + 1, "\r"), equals + 1);
}

/* A pipe of that name must not hold the agent up. */
static void read_file(const struct reader *r, const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    char text[FILE_MAX + 1], *rest = text, *line;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    ssize_t n = read(fd, text, FILE_MAX);
    text[n > 0 ? n : 0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL)
        r->add_line(r, line);
}

/* ---- where they are ---- */

static void read_of(const struct reader *r, const char *folder, size_t length, const char *file)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, file);
    if (n > 0 && (size_t)n < sizeof path)
        read_file(r, path);
}

/* PREFIX/bin of an Open MPI has its files in PREFIX/etc. */
static void read_of_path(const struct reader *r, const char *path)
{
    static const char bin[] = "/bin";
    size_t tail = sizeof bin - 1;
    while (*path) {
        size_t length = strcspn(path, ":");
        if (path[0] == '/' && length >= tail && memcmp(path + length - tail, bin, tail) == 0)
            read_of(r, path, length - tail, "etc/" MCA_NAME);
        path += length + (path[length] != '\0');
    }
}

static void read_mca_files(const struct reader *r)
{
    static const char *const distributions[] = {"/etc/openmpi", "/etc/openmpi-x86_64",
                                                "/etc/openmpi-aarch64"};
    const char *home = env_get(r->env, "HOME"), *prefix = env_get(r->env, "OPAL_PREFIX");
    const char *path = env_get(r->env, "PATH");
    for (size_t i = 0; i < ARRAY_LEN(distributions); i++)
        read_of(r, distributions[i], strlen(distributions[i]), MCA_NAME);
    if (path)
        read_of_path(r, path);
    if (prefix && prefix[0] == '/')
        read_of(r, prefix, strlen(prefix), "etc/" MCA_NAME);
    if (home && home[0] == '/')
        read_of(r, home, strlen(home), ".openmpi/mca-params.conf");
}

/* In NCCL's order: NCCL_CONF_FILE takes the place of the file in HOME. */
static void read_nccl_files(const struct reader *r)
{
    const char *home = env_get(r->env, "HOME"), *file = env_get(r->env, "NCCL_CONF_FILE");
    if (file && file[0] == '/')
        read_file(r, file);
    else if ((!file || !file[0]) && home && home[0] == '/')
        read_of(r, home, strlen(home), ".nccl.conf");
    read_file(r, "/etc/nccl.conf");
}

void conf_files_read(const struct strlist *env, struct strlist *entries)
{
    read_mca_files(&(struct reader){env, entries, add_mca_line});
    read_nccl_files(&(struct reader){env, entries, add_nccl_line});
}
