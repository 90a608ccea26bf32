/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-attach: a container runtime's hook (attach) and Unprepare's hand (restore). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "plugin/attach/attach.h"
#include "plugin/attach/netns.h"
#include "plugin/attach/oci_state.h"
#include "plugin/attach/restore.h"

#define STATE_MS 5000
#define RETURN_MS 3000 /* for a device on its way back from a namespace that died */
#define RESTORE_MS 5000
#define WHOLE_S 20 /* for everything, with the wait for another of us */

static const char usage[] =
    "usage: drarun-attach attach ORDER...    as OCI createRuntime hook: container state on stdin\n"
    "       drarun-attach restore ORDER      back on the host; 3: the device is gone\n"
    "       drarun-attach --help | --version\n";

static void order_donep(struct attach_order *order)
{
    attach_order_done(order);
}

static void on_alarm(int signal)
{
    static const char text[] = "drarun-attach: not done within 20 s; ended where it was\n";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

/* Descriptors 0 to 2 are open, whoever started us: else a socket would be taken for standard error.
 */
static int prepare_process(void)
{
    int fd = -1;
    do {
        fd = open("/dev/null", O_RDWR); // NOLINT(android-cloexec-open): it stays open as 0, 1 or 2
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
    clearenv();
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, on_alarm);
    alarm(WHOLE_S);
    return fd < 0 ? -1 : 0;
}

static int fail(const char *name, const struct drarun_error *err)
{
    fprintf(stderr, "drarun-attach: %s: %s\n", name, err->text);
    return 1;
}

/* Two containers of a pod, or a container and Unprepare: one after the other. The lock ends with
 * the program; WHOLE_S bounds the wait. */
static int lock(const char *path, int *ret_fd, struct drarun_error *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && flock(fd, LOCK_EX) < 0)
        return error_set(err, errno, "%s: lock: %s", path, strerror(errno));
    *ret_fd = take_fd(&fd); /* where it cannot be opened, attach_order_load says why */
    return 0;
}

static int attach_one(const char *path, int ns)
{
    CLEANUP(order_donep) struct attach_order order = {0};
    cleanup_close int locked = -1;
    struct drarun_error err = {0};
    if (lock(path, &locked, &err) < 0 || attach_order_load(AT_FDCWD, path, &order, &err) < 0)
        return fail("order", &err);
    if (attach_device(&order, ns, clock_ms() + RETURN_MS, &err) < 0)
        return fail(order.device, &err);
    return 0;
}

static int attach(int count, char **paths)
{
    struct drarun_error err = {0};
    cleanup_close int ns = -1;
    pid_t pid = 0;
    if (oci_state_read(STDIN_FILENO, clock_ms() + STATE_MS, &pid, &err) < 0 ||
        netns_of(pid, &ns, &err) < 0)
        return fail("hook", &err);
    int status = 0;
    for (int i = 0; status == 0 && i < count; i++)
        status = attach_one(paths[i], ns);
    return status;
}

static int restore(const char *path)
{
    CLEANUP(order_donep) struct attach_order order = {0};
    cleanup_close int locked = -1;
    struct drarun_error err = {0};
    enum restore_outcome outcome = RESTORE_DONE;
    if (lock(path, &locked, &err) < 0 || attach_order_load(AT_FDCWD, path, &order, &err) < 0)
        return fail("order", &err);
    if (attach_restore(&order, clock_ms() + RESTORE_MS, &outcome, &err) < 0)
        return fail(order.device, &err);
    if (outcome == RESTORE_DONE)
        return 0;
    if (order.pci[0])
        fprintf(stderr, "drarun-attach: %s: %s (%s) is gone from this machine, or has no driver\n",
                order.device, order.host.name, order.pci);
    else
        fprintf(stderr, "drarun-attach: %s: %s ended with its pod's network\n", order.device,
                order.host.name);
    return RESTORE_EXIT_GONE;
}

int main(int argc, char **argv)
{
    if (prepare_process() < 0)
        return 1;
    if (argc >= 3 && strcmp(argv[1], "attach") == 0)
        return attach(argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "restore") == 0)
        return restore(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("drarun-attach " DRARUN_VERSION) < 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) < 0;
    fputs(usage, stderr);
    return error_exit_status(DRARUN_ERR_USAGE);
}
