/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kubelet/dra_driver.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/kubelet/dra_private.h"

#define HEARTBEAT_S 10 /* the kubelet takes silence of 30 s for unknown */
#define UID_LENGTH 36u
#define SOCKET_AGE_S 60 /* on a newer one its instance may be about to listen */
#define DRA_V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define DRA_V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"

static const struct rpc_method methods[] = {
    {"/pluginregistration.Registration/GetInfo", dra_get_info, false},
    {"/pluginregistration.Registration/NotifyRegistrationStatus", dra_notify, false},
    {DRA_V1 "NodePrepareResources", dra_prepare, false},
    {DRA_V1 "NodeUnprepareResources", dra_unprepare, false},
    {DRA_V1BETA1 "NodePrepareResources", dra_prepare, false},
    {DRA_V1BETA1 "NodeUnprepareResources", dra_unprepare, false},
    {"/v1.DRAResourceHealth/NodeWatchResources", dra_watch, true},
    {"/v1alpha1.DRAResourceHealth/NodeWatchResources", dra_watch, true},
};

static void on_heartbeat(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    dra_driver_health_changed(arg);
}

static int make_dir(const char *path, struct drarun_error *err)
{
    return mkdir(path, 0750) == 0 || errno == EEXIST
               ? 0
               : error_set(err, errno, "make %s: %s", path, strerror(errno));
}

/* ---- sockets of instances that were killed ---- */

/* START UID END */
static bool is_of_instance(const char *file, const char *start, const char *end)
{
    size_t before = strlen(start);
    return strlen(file) == before + UID_LENGTH + strlen(end) && strncmp(file, start, before) == 0 &&
           strspn(file + before, "0123456789abcdef-") >= UID_LENGTH &&
           strcmp(file + before + UID_LENGTH, end) == 0;
}

static bool is_dead(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat file;
    if (strlen(path) >= sizeof address.sun_path || lstat(path, &file) < 0 ||
        !S_ISSOCK(file.st_mode) || file.st_mtime > time(NULL) - SOCKET_AGE_S)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0 &&
           errno == ECONNREFUSED;
}

/* The kubelet tries to register each as long as it is there. */
static void remove_dead(const char *dir, const char *start, const char *end)
{
    cleanup_dir DIR *open_dir = opendir(dir);
    const struct dirent *entry;
    while (open_dir && (entry = readdir(open_dir))) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (is_of_instance(entry->d_name, start, end) && is_dead(path) && unlink(path) == 0)
            log_note("%s removed: the instance that made it was killed", path);
    }
}

/* ---- its own ---- */

/* The socket for calls first: the kubelet dials it as soon as it has seen the other. */
static int listen_on_both(struct dra_driver *driver, const struct dra_driver_config *config,
                          struct drarun_error *err)
{
    const char *dash = config->instance ? "-" : "", *id = config->instance ? config->instance : "";
    char dir[200], registration[256], start[80];
    snprintf(dir, sizeof dir, "%s/%s", config->plugins_dir, config->name);
    snprintf(driver->endpoint, sizeof driver->endpoint, "%s/dra%s%s.sock", dir, dash, id);
    snprintf(registration, sizeof registration, "%s/%s%s%s-reg.sock", config->registry_dir,
             config->name, dash, id);
    int rc = make_dir(dir, err);
    if (rc == 0)
        rc = rpc_server_listen(driver->server, driver->endpoint, err);
    if (rc == 0)
        rc = rpc_server_listen(driver->server, registration, err);
    if (rc < 0)
        return rc;
    snprintf(start, sizeof start, "%s-", config->name);
    remove_dead(config->registry_dir, start, "-reg.sock");
    remove_dead(dir, "dra-", ".sock");
    return 0;
}

int dra_driver_new(struct event_base *base, const struct dra_driver_config *config,
                   const struct dra_handler *handler, void *arg, struct dra_driver **ret_driver,
                   struct drarun_error *err)
{
    const struct timeval period = {.tv_sec = HEARTBEAT_S};
    CLEANUP(dra_driver_freep) struct dra_driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        return error_set(err, ENOMEM, "out of memory");
    driver->handler = handler;
    driver->arg = arg;
    snprintf(driver->name, sizeof driver->name, "%s", config->name);
    driver->heartbeat = event_new(base, -1, EV_PERSIST, on_heartbeat, driver);
    if (!driver->heartbeat || event_add(driver->heartbeat, &period) < 0)
        return error_set(err, ENOMEM, "out of memory");
    int rc = rpc_server_new(base, methods, ARRAY_LEN(methods), driver, &driver->server, err);
    if (rc == 0)
        rc = listen_on_both(driver, config, err);
    if (rc < 0)
        return error_prefix(err, "driver %s", config->name);
    *ret_driver = TAKE_PTR(driver);
    return 0;
}

void dra_driver_free(struct dra_driver *driver)
{
    if (!driver)
        return;
    dra_streams_end(driver);
    rpc_server_free(driver->server);
    if (driver->heartbeat)
        event_free(driver->heartbeat);
    free(driver);
}
