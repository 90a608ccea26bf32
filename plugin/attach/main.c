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
#include "plugin/attach/oci_config.h"
#include "plugin/attach/oci_state.h"
#include "plugin/attach/restore.h"
#include "plugin/attach/verbs_nodes.h"

#define STATE_MS 5000
#define RETURN_MS 3000 /* for a device on its way back from a namespace that died */
#define RESTORE_MS 5000
#define WHOLE_S 20 /* for everything, with the wait for another of us */

static const char usage[] =
    "usage: drarun-attach attach ORDER...    as an OCI createRuntime hook: container state on "
    "stdin\n"
    "       drarun-attach restore ORDER...   move NICs back to the host; 3: a device is gone\n"
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

/* Opens descriptors 0 to 2 if our parent closed them: a socket would become standard error. */
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

/* ---- attach ---- */

struct container {
    struct oci_state state;
    struct oci_config config;
    int ns;
    struct verbs_nodes nodes;
    bool looked; /* nodes is open */
};

static void container_done(struct container *c)
{
    oci_config_done(&c->config);
    close_fd(&c->ns);
    if (c->looked)
        verbs_nodes_done(&c->nodes);
}

static int container_read(struct container *c, struct drarun_error *err)
{
    int rc = oci_state_read(STDIN_FILENO, clock_ms() + STATE_MS, &c->state, err);
    if (rc == 0 && c->state.bundle[0])
        rc = oci_config_load(c->state.bundle, &c->config, err);
    return rc < 0 ? rc : netns_of(c->state.pid, &c->ns, err);
}

static int ensure_node(struct container *c, const struct attach_order *order,
                       struct drarun_error *err)
{
    int rc = 0;
    if (!c->state.bundle[0])
        return error_set(err, EINVAL,
                         "the runtime names no bundle, where the container's device nodes are "
                         "looked up");
    if (!c->looked)
        rc =
            verbs_nodes_open(c->state.pid, c->config.root, order->claim_uid, c->ns, &c->nodes, err);
    c->looked = c->looked || rc == 0;
    return rc < 0 ? rc : verbs_nodes_ensure(&c->nodes, order->rdma, err);
}

static int attach_one(const char *path, struct container *c)
{
    CLEANUP(order_donep) struct attach_order order = {0};
    cleanup_close int locked = -1;
    struct drarun_error err = {0};
    if (lock(path, &locked, &err) < 0 || attach_order_load(AT_FDCWD, path, &order, &err) < 0)
        return fail("order", &err);
    if (!oci_config_has(&c->config, &order))
        return 0;
    if (attach_device(&order, c->ns, clock_ms() + RETURN_MS, &err) < 0)
        return fail(order.device, &err);
    if (order.rdma[0] && ensure_node(c, &order, &err) < 0)
        return fail(order.device, &err);
    return 0;
}

/* Orders of one claim: those of them that the container was given. */
static int attach(int count, char **paths)
{
    CLEANUP(container_done) struct container c = {.ns = -1};
    struct drarun_error err = {0};
    if (container_read(&c, &err) < 0)
        return fail("hook", &err);
    int status = 0;
    for (int i = 0; status == 0 && i < count; i++)
        status = attach_one(paths[i], &c);
    if (status == 0 && c.looked && verbs_nodes_clear(&c.nodes, &err) < 0)
        return fail("hook", &err);
    return status;
}

/* ---- restore ---- */

/* What there is nothing to take back of is no failure: it is told on standard output. */
static int tell_gone(const struct attach_order *order)
{
    if (order->pci[0])
        printf("%s: %s (%s) is gone from this machine, or has no driver\n", order->device,
               order->host.name, order->pci);
    else
        printf("%s: %s ended with its pod's network\n", order->device, order->host.name);
    return RESTORE_EXIT_GONE;
}

/* The exit status, or -EEXIST without a message: its name is taken, and it is not the last try. */
static int restore_one(const char *path, int64_t until_ms, bool last)
{
    CLEANUP(order_donep) struct attach_order order = {0};
    cleanup_close int locked = -1;
    struct drarun_error err = {0};
    enum restore_outcome outcome = RESTORE_DONE;
    if (lock(path, &locked, &err) < 0 || attach_order_load(AT_FDCWD, path, &order, &err) < 0)
        return fail("order", &err);
    int rc = attach_restore(&order, until_ms, &outcome, &err);
    if (rc == -EEXIST && !last)
        return rc;
    if (rc < 0)
        return fail(order.device, &err);
    return outcome == RESTORE_DONE ? 0 : tell_gone(&order);
}

/* Those that found their name taken are moved to the front of paths; returns their number. */
static int restore_each(int count, char **paths, int64_t until_ms, bool last, int *status)
{
    int again = 0;
    for (int i = 0; i < count; i++) {
        int one = restore_one(paths[i], until_ms, last);
        if (one == -EEXIST)
            paths[again++] = paths[i];
        else if (one == 1 || *status == 0)
            *status = one;
    }
    return again;
}

/* One that fails keeps no other from coming back; they wait for the same time, in which the devices
 * of a namespace that has died return together. They return under their names in the pod, which may
 * be names of each other on the host; after the first round none has a name that another wants. */
static int restore(int count, char **paths)
{
    int64_t until_ms = clock_ms() + RESTORE_MS;
    int status = 0;
    int again = restore_each(count, paths, until_ms, false, &status);
    restore_each(again, paths, until_ms, true, &status);
    return fflush(stdout) == 0 ? status : 1;
}

int main(int argc, char **argv)
{
    if (prepare_process() < 0)
        return 1;
    if (argc >= 3 && strcmp(argv[1], "attach") == 0)
        return attach(argc - 2, argv + 2);
    if (argc >= 3 && strcmp(argv[1], "restore") == 0)
        return restore(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("drarun-attach " DRARUN_VERSION) < 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) < 0;
    fputs(usage, stderr);
    return error_exit_status(DRARUN_ERR_USAGE);
}
