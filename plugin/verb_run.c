/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb_run.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/discover/inventory.h"
#include "plugin/discover/nvml.h"
#include "plugin/slices/publishing.h"

struct settings {
    const char *root, *config, *nvml, *node, *kubeconfig, *addresses[2];
    enum log_level level;
    bool help;
};

/* What runs; released in the reverse order. */
struct plugin {
    struct event_base *base;
    struct event *ends[2];
    struct discover_config config;
    struct nvml *nvml;
    int root;
    struct kube_config *kube_config;
    struct kube_client *client;
    struct inventory *inventory;
    struct publishing *publishing;
};

static const char help_text[] =
    "Usage: drarun-plugin run [OPTION...]\n"
    "\n"
    "Publishes the GPUs and NICs of this node and keeps what it publishes true.\n"
    "\n"
    "  --node NAME        the node's name (default: the variable NODE_NAME)\n"
    "  --node-ip ADDRESS  the node's address, whose interface is never offered (default: the\n"
    "                     variable NODE_IP)\n"
    "  --config FILE      what is offered and under which names (a PluginConfig)\n"
    "  --root DIR         a directory that stands for / (a captured tree)\n"
    "  --nvml FILE        NVIDIA's library (default: libnvidia-ml.so.1, with --root none)\n"
    "  --kubeconfig FILE  how to reach the API server (default: the pod's service account)\n"
    "  -v, --verbose      more lines; twice for more\n"
    "      --help         this text\n";

enum { OPT_NODE = 1, OPT_NODE_IP, OPT_CONFIG, OPT_ROOT, OPT_NVML, OPT_KUBECONFIG, OPT_HELP };

static const struct option option_table[] = {
    {"node", required_argument, NULL, OPT_NODE},
    {"node-ip", required_argument, NULL, OPT_NODE_IP},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"root", required_argument, NULL, OPT_ROOT},
    {"nvml", required_argument, NULL, OPT_NVML},
    {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static int apply(int option, const char *value, struct settings *s, struct drarun_error *err)
{
    switch (option) {
    case OPT_NODE:
        s->node = value;
        return 0;
    case OPT_NODE_IP:
        s->addresses[0] = value;
        return 0;
    case OPT_CONFIG:
        s->config = value;
        return 0;
    case OPT_ROOT:
        s->root = value;
        return 0;
    case OPT_NVML:
        s->nvml = value;
        return 0;
    case OPT_KUBECONFIG:
        s->kubeconfig = value;
        return 0;
    case 'v':
        s->level = s->level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
        return 0;
    case OPT_HELP:
        s->help = true;
        return 0;
    default:
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "see drarun-plugin run --help");
    }
}

static int read_options(int argc, char **argv, struct settings *s, struct drarun_error *err)
{
    int option, rc = 0;
    optind = 1;
    while (rc == 0 && (option = getopt_long(argc, argv, "+v", option_table, NULL)) != -1)
        rc = apply(option, optarg, s, err);
    if (rc == 0 && optind < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument %s", argv[optind]);
    if (rc == 0 && !s->help && (!s->node || !s->node[0]))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "expected the node's name: --node NAME, or the variable NODE_NAME");
    return rc;
}

/* ---- parts ---- */

static void on_end(evutil_socket_t number, short what, void *arg)
{
    const struct plugin *plugin = arg;
    (void)what;
    log_note("ends: %s", strsignal((int)number));
    event_base_loopbreak(plugin->base);
}

static int start_loop(struct plugin *plugin, struct drarun_error *err)
{
    static const int signals[] = {SIGTERM, SIGINT};
    plugin->base = event_base_new();
    for (size_t i = 0; plugin->base && i < ARRAY_LEN(signals); i++) {
        plugin->ends[i] = evsignal_new(plugin->base, signals[i], on_end, plugin);
        if (!plugin->ends[i] || event_add(plugin->ends[i], NULL) < 0)
            return error_set(err, ENOMEM, "cannot watch for signals: out of memory");
    }
    signal(SIGPIPE, SIG_IGN);
    return plugin->base ? 0 : error_set(err, ENOMEM, "cannot make an event loop: out of memory");
}

static int open_host(struct plugin *plugin, const struct settings *s, struct drarun_error *err)
{
    struct drarun_error own = {0};
    if (s->root) {
        plugin->root = open(s->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (plugin->root < 0)
            return error_kind(err, DRARUN_ERR_USAGE, errno, "--root %s: %s", s->root,
                              strerror(errno));
    }
    int rc = s->root && !s->nvml ? -ENOENT : nvml_open(s->nvml, &plugin->nvml, &own);
    if (rc < 0 && (s->nvml || rc == -ENOMEM))
        return error_kind(err, DRARUN_ERR_USAGE, own.code, "--nvml: %s", own.text);
    if (rc < 0 && !s->root)
        log_note("without NVML: %s", own.text);
    return 0;
}

static void on_devices(const struct node_devices *devices, void *arg)
{
    struct drarun_error err = {0};
    struct plugin *plugin = arg;
    log_verbose("%zu devices are offered", devices->count);
    if (publishing_want(plugin->publishing, devices, &err) < 0)
        log_error("%s", err.text);
}

static int start_inventory(struct plugin *plugin, const struct settings *s,
                           struct drarun_error *err)
{
    const struct inventory_options options = {
        .base = plugin->base,
        .source = {.root = plugin->root,
                   .config = &plugin->config,
                   .addresses = s->addresses[0] ? s->addresses : NULL,
                   .nvml = plugin->nvml},
        .changed = on_devices,
        .arg = plugin,
    };
    return inventory_new(&options, &plugin->inventory, err);
}

static int start_publishing(struct plugin *plugin, const struct settings *s,
                            struct drarun_error *err)
{
    const struct kube_config_choice choice = {.path = s->kubeconfig};
    int rc = s->kubeconfig ? kube_config_load(&choice, &plugin->kube_config, err)
                           : kube_config_in_cluster(&choice, &plugin->kube_config, err);
    if (rc == 0)
        rc = kube_client_new(plugin->base, plugin->kube_config, &plugin->client, err);
    const struct publishing_options options = {
        .base = plugin->base,
        .client = plugin->client,
        .node = s->node,
        .gpu_driver = NODE_DRIVER_GPU,
        .nic_driver = NODE_DRIVER_NIC,
    };
    return rc < 0 ? rc : publishing_new(&options, &plugin->publishing, err);
}

static int start(struct plugin *plugin, const struct settings *s, struct drarun_error *err)
{
    int rc = start_loop(plugin, err);
    if (rc == 0 && s->config)
        rc = discover_config_load(s->config, &plugin->config, err);
    else if (rc == 0)
        discover_config_default(&plugin->config);
    if (rc == 0)
        rc = open_host(plugin, s, err);
    if (rc == 0)
        rc = start_publishing(plugin, s, err);
    if (rc == 0)
        rc = start_inventory(plugin, s, err);
    return rc;
}

static void stop(struct plugin *plugin)
{
    inventory_free(plugin->inventory);
    publishing_free(plugin->publishing);
    kube_client_free(plugin->client);
    kube_config_free(plugin->kube_config);
    nvml_close(plugin->nvml);
    close_fd(&plugin->root);
    discover_config_done(&plugin->config);
    for (size_t i = 0; i < ARRAY_LEN(plugin->ends); i++)
        if (plugin->ends[i])
            event_free(plugin->ends[i]);
    if (plugin->base)
        event_base_free(plugin->base);
}

int verb_run(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct plugin plugin = {.root = -1};
    struct settings s = {.node = getenv("NODE_NAME"),
                         .addresses = {getenv("NODE_IP")},
                         .level = LOG_NORMAL};
    int rc = read_options(argc, argv, &s, &err);
    if (rc == 0 && s.help)
        return fputs(help_text, stdout) < 0;
    log_setup("drarun-plugin", s.level);
    if (rc == 0)
        rc = start(&plugin, &s, &err);
    if (rc == 0 && event_base_dispatch(plugin.base) < 0)
        rc = error_set(&err, EIO, "the event loop failed");
    stop(&plugin);
    if (rc < 0)
        log_error("%s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}
