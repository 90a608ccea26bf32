/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/proctree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

struct process {
    pid_t pid;
    pid_t parent;
    bool below; /* known to descend from the root */
};

int proctree_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* proc(5), /proc/PID/stat: "pid (comm) state ppid ..."; comm may hold spaces and brackets. */
static pid_t read_parent(int proc, const char *pid_name)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "%s/stat", pid_name);
    cleanup_close int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    char *after = strrchr(text, ')');
    int parent = -1;
    if (!after || sscanf(after + 1, " %*c %d", &parent) != 1)
        return -1;
    return parent;
}

pid_t proctree_parent(pid_t pid)
{
    char name[24];
    cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%d", (int)pid);
    return proc < 0 ? -1 : read_parent(proc, name);
}

static struct process *read_processes(size_t *ret_count)
{
    cleanup_dir DIR *dir = opendir("/proc");
    size_t count = 0, cap = 0;
    cleanup_free struct process *list = NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end || pid <= 0)
            continue;
        if (count == cap) {
            cap = cap ? cap * 2 : 256;
            struct process *grown = realloc(list, cap * sizeof *list);
            if (!grown)
                break;
            list = grown;
        }
        list[count++] = (struct process){(pid_t)pid, read_parent(dirfd(dir), entry->d_name), false};
    }
    *ret_count = count;
    return TAKE_PTR(list);
}

static bool is_below(const struct process *list, size_t count, pid_t parent, pid_t root)
{
    if (parent == root)
        return true;
    for (size_t i = 0; i < count; i++)
        if (list[i].pid == parent)
            return list[i].below;
    return false;
}

size_t proctree_signal(pid_t root, int signo, bool (*skip)(pid_t pid, void *arg), void *arg)
{
    size_t count = 0, signalled = 0;
    cleanup_free struct process *list = read_processes(&count);
    /* pids are not ordered by birth once they have wrapped: repeat until nothing new is found */
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < count; i++) {
            if (list[i].below || !is_below(list, count, list[i].parent, root))
                continue;
            list[i].below = again = true;
            if ((!skip || !skip(list[i].pid, arg)) && kill(list[i].pid, signo) == 0)
                signalled++;
        }
    }
    return signalled;
}
