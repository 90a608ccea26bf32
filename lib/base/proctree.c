/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/base/proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/dir_entries.h"

#define GENERATIONS_MAX 4096
#define TASK_EXITING 0x4 /* PF_EXITING of the kernel's, which no header for programs has */

struct birth {
    pid_t parent;               /* -1: not to be seen */
    unsigned flags;             /* the kernel's of the task */
    unsigned long long started; /* in ticks since boot: with its number it tells one process */
};

struct process {
    pid_t pid;
    struct birth birth;
    bool below; /* known to descend from the root */
};

int proctree_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* proc(5), /proc/PID/stat: "pid (comm) state ppid ... flags ... starttime ...", the 9th and the
 * 22nd; comm may hold spaces and brackets. */
static struct birth read_birth(int proc, const char *pid_name)
{
    const struct birth gone = {.parent = -1};
    char path[64], text[512];
    snprintf(path, sizeof path, "%s/stat", pid_name);
    cleanup_close int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return gone;
    text[n] = '\0';
    char *after = strrchr(text, ')');
    struct birth birth;
    if (!after || sscanf(after + 1,
                         " %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                         "%*d %llu",
                         &birth.parent, &birth.flags, &birth.started) != 3)
        return gone;
    return birth;
}

static struct birth birth_of(pid_t pid)
{
    char name[24];
    cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%d", (int)pid);
    return proc < 0 ? (struct birth){.parent = -1} : read_birth(proc, name);
}

pid_t proctree_parent(pid_t pid)
{
    return birth_of(pid).parent;
}

bool proctree_is_exiting(pid_t pid)
{
    struct birth birth = birth_of(pid);
    return birth.parent >= 0 && (birth.flags & TASK_EXITING);
}

/* The next process in /proc, which entries read; false: there is none. */
static bool next_process(struct dir_entries *entries, struct process *ret_process)
{
    const char *name;
    int rc;
    while ((name = dir_entries_next(entries, &rc))) {
        char *end;
        long pid = strtol(name, &end, 10);
        if (*end || pid <= 0)
            continue;
        *ret_process = (struct process){(pid_t)pid, read_birth(entries->fd, name), false};
        return true;
    }
    return false;
}

/* NULL: out of memory, or nothing is to be seen. */
static struct process *read_processes(int proc, size_t *ret_count)
{
    struct dir_entries entries = {.fd = proc};
    size_t count = 0, cap = 0;
    cleanup_free struct process *list = NULL;
    struct process process;
    while (next_process(&entries, &process)) {
        struct process *grown = array_room(list, count, &cap, sizeof *grown);
        if (!grown)
            return NULL;
        list = grown;
        list[count++] = process;
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

/* Its number may be another process's by now. What was opened before it is looked at again is what
 * is signalled; without such descriptors (Linux before 5.3, gVisor) a moment stays open. */
static bool signal_one(const struct process *process, int signo)
{
    cleanup_close int fd = pidfd_open(process->pid, 0);
    if (fd < 0 && errno != ENOSYS && errno != EPERM)
        return false;
    struct birth now = birth_of(process->pid);
    if (now.parent < 0 || now.started != process->birth.started)
        return false;
    return (fd < 0 ? kill(process->pid, signo) : pidfd_send_signal(fd, signo, NULL, 0)) == 0;
}

typedef bool (*process_fn)(const struct process *process, void *arg);

static bool descends(int proc, pid_t parent, pid_t root)
{
    char name[24];
    for (int i = 0; parent > 1 && parent != root && i < GENERATIONS_MAX; i++) {
        snprintf(name, sizeof name, "%d", (int)parent);
        parent = read_birth(proc, name).parent;
    }
    return parent == root;
}

/* The ancestors of each process are read again, and children may come before their parents. */
static bool any_below_without_memory(int proc, pid_t root, process_fn fn, void *arg)
{
    struct dir_entries entries = {.fd = proc};
    struct process process;
    if (lseek(proc, 0, SEEK_SET) < 0)
        return false;
    while (next_process(&entries, &process))
        if (descends(proc, process.birth.parent, root) && fn(&process, arg))
            return true;
    return false;
}

/* Until fn returns true, which is then returned. */
static bool any_below(pid_t root, process_fn fn, void *arg)
{
    size_t count = 0;
    cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return false;
    cleanup_free struct process *list = read_processes(proc, &count);
    if (!list)
        return any_below_without_memory(proc, root, fn, arg);
    /* pids are not ordered by birth once they have wrapped: repeat until nothing new is found */
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < count; i++) {
            if (list[i].below || !is_below(list, count, list[i].birth.parent, root))
                continue;
            list[i].below = again = true;
            if (fn(&list[i], arg))
                return true;
        }
    }
    return false;
}

struct signalling {
    int signo;
    bool (*skip)(pid_t pid, void *arg);
    void *arg;
    size_t count;
};

static bool signal_if_wanted(const struct process *process, void *arg)
{
    struct signalling *s = arg;
    if ((!s->skip || !s->skip(process->pid, s->arg)) && signal_one(process, s->signo))
        s->count++;
    return false;
}

size_t proctree_signal(pid_t root, int signo, bool (*skip)(pid_t pid, void *arg), void *arg)
{
    struct signalling s = {.signo = signo, .skip = skip, .arg = arg};
    any_below(root, signal_if_wanted, &s);
    return s.count;
}

struct question {
    bool (*fn)(pid_t pid, void *arg);
    void *arg;
};

static bool ask(const struct process *process, void *arg)
{
    const struct question *question = arg;
    return question->fn(process->pid, question->arg);
}

bool proctree_any(pid_t root, bool (*fn)(pid_t pid, void *arg), void *arg)
{
    struct question question = {fn, arg};
    return any_below(root, ask, &question);
}
