/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/takeover.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/kube/discover.h"
#include "lib/kube/list.h"
#include "lib/kube/object.h"
#include "plugin/slices/node_slices.h"
#include "plugin/slices/publishing.h"

#define NAME_MAX_LENGTH 63u
#define RETRY_MS 2000
#define OWN_SLICES_MAX 100u /* of a node: 12,800 devices */
#define SOCKET_END "-reg.sock"

bool takeover_name_valid(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > NAME_MAX_LENGTH)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool edge = i == 0 || i + 1 == length || name[i - 1] == '.' || name[i + 1] == '.';
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
            (edge || (name[i] != '-' && name[i] != '.')))
            return false;
    }
    return true;
}

/* ---- sockets ---- */

/* NAME-reg.sock, or NAME-UID-reg.sock of a driver that is updated without a gap. */
static bool is_socket_of(const char *file, const char *driver)
{
    size_t length = strlen(file), name = strlen(driver), end = strlen(SOCKET_END);
    return length >= name + end && strncmp(file, driver, name) == 0 && file[name] == '-' &&
           strcmp(file + length - end, SOCKET_END) == 0;
}

/* Who listens there: 0 nobody, else the process. */
static pid_t listener_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        return 0;
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EAGAIN)
        return 0;
    /* of a process that cannot be seen from here the kernel says 0 */
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 ? peer.pid
                                                                                      : -1;
}

/* What the process is called, as this one is. */
static bool is_ours(pid_t pid)
{
    char path[32];
    struct buf there = BUF_INIT, here = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    bool same = pid > 0 && file_read(AT_FDCWD, path, 64, &there, NULL) == 0 &&
                file_read(AT_FDCWD, "/proc/self/comm", 64, &here, NULL) == 0 &&
                there.len == here.len && memcmp(there.data, here.data, here.len) == 0;
    buf_done(&there);
    buf_done(&here);
    return same;
}

static int check_sockets(const struct takeover *t, struct drarun_error *err)
{
    DIR *dir = opendir(t->registry_dir);
    if (!dir)
        return errno == ENOENT ? 0
                               : error_set(err, errno, "%s: %s", t->registry_dir, strerror(errno));
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
        char path[512];
        if (!is_socket_of(entry->d_name, t->driver))
            continue;
        snprintf(path, sizeof path, "%s/%s", t->registry_dir, entry->d_name);
        pid_t pid = listener_of(path);
        if (pid != 0 && !is_ours(pid))
            rc = error_kind(err, DRARUN_ERR_USAGE, EBUSY,
                            "driver %s is present on node %s: somebody listens on %s; remove that "
                            "driver first, or run without --takeover",
                            t->driver, t->node, path);
    }
    closedir(dir);
    return rc;
}

/* ---- slices ---- */

struct check {
    struct event_base *base;
    struct kube_client *client;
    const struct takeover *takeover;
    struct drarun_error *err;
    struct event *retry;
    struct kube_discovery *discovery;
    struct kube_listing *listing;
    char version[16], fields[400];
    struct kube_resource resource; /* of the version that is served */
    bool told;
    int rc;
};

static void end(struct check *c, int rc)
{
    c->rc = rc;
    event_base_loopbreak(c->base);
}

static void again(struct check *c, const char *why)
{
    const struct timeval after = timeval_from_ms(RETRY_MS);
    if (!c->told)
        log_error("nobody knows yet whether driver %s is present: %s", c->takeover->driver, why);
    c->told = true;
    evtimer_add(c->retry, &after);
}

static bool is_own_slice(const struct takeover *t, const char *name)
{
    const struct slices_owner owner = {.node = t->node, .driver = t->driver};
    char own[254];
    for (size_t i = 0; i < OWN_SLICES_MAX; i++) {
        slice_name(&owner, i, own, sizeof own);
        if (strcmp(own, name) == 0)
            return true;
    }
    return false;
}

static void on_slices(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct check *c = arg;
    const struct takeover *t = c->takeover;
    size_t i;
    json_t *slice;
    c->listing = NULL;
    if (err) {
        again(c, err->text);
        return;
    }
    json_array_foreach(json_object_get(answer->body, "items"), i, slice)
    {
        if (is_own_slice(t, kube_name(slice)))
            continue;
        end(c, error_kind(c->err, DRARUN_ERR_USAGE, EBUSY,
                          "driver %s is present on node %s: slice %s is not this plugin's; remove "
                          "that driver first (the kubelet deletes its slices half a minute later), "
                          "or run without --takeover",
                          t->driver, t->node, kube_name(slice)));
        return;
    }
    end(c, 0);
}

static void on_served(const struct kube_served *served, const struct drarun_error *err, void *arg)
{
    struct check *c = arg;
    struct drarun_error own = {0};
    size_t length = 0;
    c->discovery = NULL;
    const char *version = err ? NULL
                              : kube_serves_one_of(served, "resource.k8s.io", PUBLISHING_VERSIONS,
                                                   "resourceslices", &length);
    if (!version) {
        kube_discover_forget(c->client); /* it may by the next try */
        again(c, err ? err->text : "the API server serves no resourceslices of resource.k8s.io");
        return;
    }
    snprintf(c->version, sizeof c->version, "%.*s", (int)length, version);
    c->resource = kube_resource_slices;
    c->resource.version = c->version;
    const struct kube_target target = {.resource = &c->resource};
    snprintf(c->fields, sizeof c->fields, "spec.nodeName=%s,spec.driver=%s", c->takeover->node,
             c->takeover->driver);
    const struct kube_select select = {.fields = c->fields};
    if (kube_list(c->client, &target, &select, on_slices, c, &c->listing, &own) < 0)
        again(c, own.text);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct check *c = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    if (kube_discover(c->client, on_served, c, &c->discovery, &err) < 0)
        again(c, err.text);
}

int takeover_check(struct event_base *base, struct kube_client *client,
                   const struct takeover *takeover, struct drarun_error *err)
{
    struct check c = {
        .base = base, .client = client, .takeover = takeover, .err = err, .rc = -EINTR};
    int rc = check_sockets(takeover, err);
    if (rc < 0)
        return rc;
    c.retry = evtimer_new(base, on_retry, &c);
    if (!c.retry)
        return error_set(err, ENOMEM, "out of memory");
    on_retry(-1, 0, &c);
    event_base_dispatch(base);
    if (c.discovery)
        kube_discover_cancel(c.discovery);
    if (c.listing)
        kube_list_cancel(c.listing);
    event_free(c.retry);
    return c.rc == -EINTR ? error_set(err, EINTR,
                                      "ended before it was known whether driver %s is "
                                      "present",
                                      takeover->driver)
                          : c.rc;
}
