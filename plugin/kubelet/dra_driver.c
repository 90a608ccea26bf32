/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kubelet/dra_driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/error.h"
#include "plugin/kubelet/dra_private.h"

#define HEARTBEAT_S 10 /* the kubelet takes silence of 30 s for unknown */
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

/* The socket for calls first: the kubelet dials it as soon as it has seen the other. */
static int listen_on_both(struct dra_driver *driver, const struct dra_driver_config *config,
                          struct drarun_error *err)
{
    const char *dash = config->instance ? "-" : "", *id = config->instance ? config->instance : "";
    char dir[200], registration[256];
    snprintf(dir, sizeof dir, "%s/%s", config->plugins_dir, config->name);
    snprintf(driver->endpoint, sizeof driver->endpoint, "%s/dra%s%s.sock", dir, dash, id);
    snprintf(registration, sizeof registration, "%s/%s%s%s-reg.sock", config->registry_dir,
             config->name, dash, id);
    int rc = make_dir(dir, err);
    if (rc == 0)
        rc = rpc_server_listen(driver->server, driver->endpoint, err);
    if (rc == 0)
        rc = rpc_server_listen(driver->server, registration, err);
    return rc;
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
