/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/heartbeat_file.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/doc/log_json.h"
#include "plugin/kubelet/dra_driver.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/preparer.h"
#include "plugin/discover/node_device.h"
#include "plugin/serve.h"
#include "plugin/takeover.h"

struct request {
    struct serve_options serve;
    const char *log;
    const char *check; /* the file of another one's heartbeat */
    int verbose;
    bool help;
};

static int set_drivers(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct serve_options *o = &((struct request *)target)->serve;
    o->gpus = strcmp(value, "gpu") == 0 || strcmp(value, "gpu,nic") == 0;
    o->nics = strcmp(value, "nic") == 0 || strcmp(value, "gpu,nic") == 0;
    return o->gpus || o->nics ? 0
                              : error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                                           "%s %s: expected gpu, nic or gpu,nic", shown, value);
}

static int set_takeover(void *target, const char *shown, const char *value,
                        struct drarun_error *err)
{
    ((struct request *)target)->serve.nic_driver = value;
    return takeover_name_valid(value)
               ? 0
               : error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                            "%s %s: expected a driver's name, like dra.net", shown, value);
}

static int set_verbose(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    (void)shown, (void)value, (void)err;
    ((struct request *)target)->verbose++;
    return 0;
}

#define TEXT(name_, value_, choices_, group_, field, help_)                                        \
    {                                                                                              \
        .name = name_, .value = value_, .choices = choices_, .group = group_, .kind = OPTION_TEXT, \
        .offset = offsetof(struct request, serve.field), .help = help_                             \
    }

static const char node[] = "The node", offered[] = "Published devices", host[] = "On the host",
                  others[] = "Others";

static const struct option_spec option_list[] = {
    TEXT("node", "NAME", NULL, node, node, "the node's name (default: $NODE_NAME)"),
    TEXT("node-ip", "ADDRESS", NULL, node, addresses[0],
         "the node's address; its interface is never published\n(default: $NODE_IP)"),
    TEXT("kubeconfig", "FILE", "FILE", node, kubeconfig,
         "how to reach the API server (default: the pod's account)"),
    TEXT("instance", "UID", NULL, node, instance,
         "UID of the plugin pod, so that an update leaves no gap\n(default: $POD_UID)"),
    {.name = "drivers",
     .value = "LIST",
     .group = offered,
     .kind = OPTION_CALL,
     .set = set_drivers,
     .help = "gpu, nic, or gpu,nic (default)"},
    {.name = "takeover",
     .value = "NAME",
     .group = offered,
     .kind = OPTION_CALL,
     .set = set_takeover,
     .help = "serve NICs as the driver NAME, so that objects written for it\nwork unchanged "
             "(dra.net); fails if that driver is present"},
    TEXT("config", "FILE", "FILE", offered, config,
         "which devices are published, and their names (a PluginConfig)"),
    TEXT("root", "DIR", "DIR", offered, root,
         "publish the devices of a captured tree; do not serve the kubelet"),
    TEXT("nvml", "FILE", "FILE", offered, nvml,
         "NVIDIA's library (default: libnvidia-ml.so.1, if present)"),
    TEXT("host-root", "DIR", "DIR", host, host_root,
         "where this program sees the host's /, to find NVIDIA's CDI\nspecifications, driver and "
         "device nodes (default: /)"),
    TEXT("driver-root", "DIR", "DIR", host, driver_root,
         "root of NVIDIA's driver on the host (default: /,\n/run/nvidia/driver or "
         "/home/kubernetes/bin/nvidia)"),
    TEXT("hook", "FILE", "FILE", host, hook,
         "path of drarun-attach on the host\n(default: " PREPARE_HOOK ")"),
    TEXT("hook-from", "FILE", "FILE", host, hook_from,
         "file to copy there at startup (default: copy nothing)"),
    TEXT("agent-from", "FILE", "FILE", host, agent_from,
         "drarun-worker, to copy to the host at startup: jobs' claims may\nthen deliver it to "
         "their containers (default: they may not)"),
    TEXT("agent-dir", "DIR", "DIR", host, agent_dir,
         "directory to copy it to (default: " PREPARE_AGENT_DIR ")"),
    TEXT("state-dir", "DIR", "DIR", host, state_dir,
         "checkpoints (default: " PREPARE_STATE_DIR ")"),
    TEXT("orders-dir", "DIR", "DIR", host, orders_dir,
         "orders for the hook (default: " PREPARE_ORDERS_DIR ")"),
    TEXT("cdi-dir", "DIR", "DIR", host, cdi_dir, "CDI specifications (default: " CDI_DIR ")"),
    TEXT("plugins-dir", "DIR", "DIR", host, plugins_dir,
         "the kubelet's (default: " DRA_PLUGINS_DIR ")"),
    TEXT("registry-dir", "DIR", "DIR", host, registry_dir,
         "the kubelet's (default: " DRA_REGISTRY_DIR ")"),
    {.name = "metrics-port",
     .value = "PORT",
     .group = others,
     .kind = OPTION_COUNT,
     .offset = offsetof(struct request, serve.metrics_port),
     .min = 0,
     .max = UINT16_MAX,
     .help = "serve GET /metrics for Prometheus on PORT (default: 0, off)"},
    TEXT("heartbeat", "FILE", "FILE", others, heartbeat,
         "write the time into FILE every 2 s, once the kubelet has\nregistered the drivers"),
    {.name = "check-heartbeat",
     .value = "FILE",
     .choices = "FILE",
     .group = others,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct request, check),
     .help = "instead exit with 0 if FILE was written in the last 30 s: a probe"},
    {.name = "log",
     .value = "FORMAT",
     .choices = "text json",
     .group = others,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct request, log),
     .help = "text (default), or json: one object per line"},
    {.name = "verbose",
     .letter = 'v',
     .group = others,
     .kind = OPTION_CALL,
     .set = set_verbose,
     .help = "log each transition; twice: more detail"},
    {.name = "help",
     .letter = 'h',
     .group = others,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct request, help),
     .help = "show this help"},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int check(const struct request *r, struct drarun_error *err)
{
    if (!r->serve.node)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "expected the node's name: --node NAME, or the variable NODE_NAME");
    if (!r->serve.nics && strcmp(r->serve.nic_driver, NODE_DRIVER_NIC) != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--takeover serves NICs, and --drivers has none");
    return 0;
}

static void on_log(void *arg, const struct log_line *line)
{
    const struct log_json who = {.about = {.node = arg}};
    log_json_write(&who, line);
}

static int serve(const struct request *r, struct drarun_error *err)
{
    if (r->check)
        return heartbeat_file_check(r->check, clock_ms(), err);
    int rc = check(r, err);
    if (rc < 0)
        return rc;
    log_setup("drarun-plugin", r->verbose > 1 ? LOG_DEBUG : r->verbose ? LOG_VERBOSE : LOG_NORMAL);
    if (r->log && strcmp(r->log, "json") == 0)
        log_divert(on_log, unconst(r->serve.node));
    return serve_run(&r->serve, err);
}

static int run(int argc, char *const argv[])
{
    struct drarun_error err = {0};
    struct request r = {.serve = {
                            .node = from_environment("NODE_NAME"),
                            .addresses = {from_environment("NODE_IP"), NULL},
                            .instance = from_environment("POD_UID"),
                            .hook = PREPARE_HOOK,
                            .agent_dir = PREPARE_AGENT_DIR,
                            .state_dir = PREPARE_STATE_DIR,
                            .orders_dir = PREPARE_ORDERS_DIR,
                            .cdi_dir = CDI_DIR,
                            .plugins_dir = DRA_PLUGINS_DIR,
                            .registry_dir = DRA_REGISTRY_DIR,
                            .nic_driver = NODE_DRIVER_NIC,
                            .gpus = true,
                            .nics = true,
                        }};
    bool done = false;
    int rc = plugin_verb_parse(&verb_run, argc, argv, &r, &r.help, &done, &err);
    if (rc >= 0 && !done)
        rc = serve(&r, &err);
    if (rc < 0)
        log_error("%s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}

const struct plugin_verb verb_run = {
    "run",
    NULL,
    "Serves this node's GPUs and NICs to the scheduler and the kubelet.",
    "It runs as the DRA drivers gpu.drarun.dev and nic.drarun.dev until SIGTERM. Pods keep\n"
    "their devices.\n",
    &options_table,
    run};
