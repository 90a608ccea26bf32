/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers of this node put together: inventory, slices, kubelet, prepare. One libevent loop. */
#ifndef DRARUN_PLUGIN_SERVE_H
#define DRARUN_PLUGIN_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

struct serve_options {        /* borrowed */
    const char *node;         /* its name */
    const char *addresses[2]; /* of the node, NULL-terminated: whose interface is never offered */
    const char *root;         /* a directory that stands for "/": published alone; NULL: none */
    const char *kubeconfig;   /* NULL: the pod's service account */
    const char *config;       /* a PluginConfig; NULL: the defaults */
    const char *nvml;         /* NVIDIA's library; NULL: libnvidia-ml.so.1, where it is */
    const char *nic_driver;   /* the name for NICs: NODE_DRIVER_NIC, or one that is taken over */
    const char *instance;     /* the plugin pod's UID; NULL: none */
    const char *plugins_dir, *registry_dir; /* the kubelet's */
    const char *state_dir, *orders_dir, *cdi_dir;
    const char *hook;
    const char *hook_from;   /* copied to hook at the start; NULL: it is there */
    const char *host_root;   /* the host's "/" as this process sees it; NULL: "/" */
    const char *driver_root; /* of NVIDIA's driver, on the host; NULL: looked for */
    const char *agent_dir;   /* on the host: OFFER/drarun-worker */
    const char *agent_from;  /* copied there at the start, and offered to jobs; NULL: it is not */
    uint32_t metrics_port;   /* 0: no metrics */
    const char *heartbeat;   /* a file, once the kubelet knows the drivers; NULL: none */
    bool gpus, nics;         /* which drivers are served */
};

/* Runs until SIGTERM or SIGINT. Devices that pods have stay theirs, and slices stay. */
int serve_run(const struct serve_options *options, struct drarun_error *err);

#endif
