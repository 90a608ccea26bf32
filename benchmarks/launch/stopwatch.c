/* SPDX-License-Identifier: Apache-2.0 */
/* stopwatch SECONDS[:MIB] FD PROGRAM [ARGUMENT...]: runs a program and writes one line to FD:
 *     start_ns end_ns status hung left cpu_us maxrss_kib least_mib
 * Clocks are CLOCK_MONOTONIC. status: as a shell has it. hung: 1 when it was killed after SECONDS,
 * 2 when it was since the machine had less than MIB of memory available; least_mib is the least
 * that there was. left: processes of it that outlived it for more than 2 s and were killed. cpu_us:
 * of the program and all that it left or waited for. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENDED, TOO_LONG, TOO_BIG };

static const int patience_ms = 2000, look_ms = 100;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Kills all children, which after that include the grandchildren. Returns how many there were. */
static int kill_children(void)
{
    char path[64];
    int count = 0, pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fscanf(file, "%d", &pid) == 1) {
        kill(pid, SIGKILL);
        count++;
    }
    fclose(file);
    return count;
}

/* Reaps everything; what is still there after patience is killed and counted. */
static int reap_all(int patience)
{
    int left = 0;
    long long deadline = now_ns() + patience * 1000000LL;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid > 0)
            continue;
        if (pid < 0)
            return left;
        if (now_ns() > deadline)
            left += kill_children();
        struct timespec pause = {.tv_nsec = 500000};
        nanosleep(&pause, NULL);
    }
}

static long available_mib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib / 1024;
}

/* Waits for the process. A limit of 0 MiB: the memory is not looked at, so that nothing disturbs.
 */
static int await(pid_t pid, int seconds, long mib, long *ret_least)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    long long deadline = now_ns() + seconds * 1000000000LL;
    if (mib == 0)
        return poll(&end, 1, seconds * 1000) == 0 ? TOO_LONG : ENDED;
    *ret_least = available_mib();
    while (poll(&end, 1, look_ms) == 0) {
        long available = available_mib();
        if (available < *ret_least)
            *ret_least = available;
        if (available < mib)
            return TOO_BIG;
        if (now_ns() > deadline)
            return TOO_LONG;
    }
    return ENDED;
}

static int spawn(pid_t *ret_pid, char **argv)
{
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
    int rc = posix_spawnp(ret_pid, argv[0], NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    return rc;
}

int main(int argc, char **argv)
{
    pid_t pid;
    if (argc < 4)
        return 64;
    const char *colon = strchr(argv[1], ':');
    long mib = colon ? atol(colon + 1) : 0, least = 0;
    int seconds = atoi(argv[1]), result = atoi(argv[2]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    long long start = now_ns();
    int rc = spawn(&pid, argv + 3);
    if (rc != 0) {
        errno = rc;
        perror(argv[3]);
        return 70;
    }
    int hung = await(pid, seconds, mib, &least);
    long long end = now_ns();
    if (hung)
        kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    int left = reap_all(hung ? 0 : patience_ms);
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    long long cpu = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL +
                    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    dprintf(result, "%lld %lld %d %d %d %lld %ld %ld\n", start, end,
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), hung,
            hung ? 0 : left, cpu, used.ru_maxrss, least);
    return 0;
}
