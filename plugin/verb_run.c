/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb_run.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/kubelet/dra_driver.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/preparer.h"
#include "plugin/discover/node_device.h"
#include "plugin/serve.h"
#include "plugin/takeover.h"

static const char help_text[] =
    "Usage: drarun-plugin run [OPTION...]\n"
    "\n"
    "Serves the GPUs and NICs of this node to Kubernetes, as the DRA drivers gpu.drarun.dev and\n"
    "nic.drarun.dev, until SIGTERM. What pods have stays theirs.\n"
    "\n"
    "  --node NAME           the node's name (default: $NODE_NAME)\n"
    "  --node-ip ADDRESS     the node's address, whose interface is never offered ($NODE_IP)\n"
    "  --drivers LIST        gpu, nic, or gpu,nic (default)\n"
    "  --takeover NAME       serve NICs as the driver NAME, so that what is written for it works\n"
    "                        unchanged (dra.net); refused where that driver is present\n"
    "  --config FILE         what is offered and under which names (a PluginConfig)\n"
    "  --root DIR            publish what a captured tree has, and serve no kubelet\n"
    "  --kubeconfig FILE     the API server (default: the pod's service account)\n"
    "  --nvml FILE           NVIDIA's library (default: libnvidia-ml.so.1, where it is)\n"
    "  --instance UID        the plugin pod's, so that an update leaves no gap ($POD_UID)\n"
    "  --host-root DIR       the host's / as this program sees it: where NVIDIA's CDI specifications,\n"
    "                        driver and device nodes are looked for (default: /)\n"
    "  --driver-root DIR     of NVIDIA's driver, on the host (default: /, /run/nvidia/driver or\n"
    "                        /home/kubernetes/bin/nvidia)\n"
    "  --hook FILE           drarun-attach, by its path on the host\n"
    "                        (default: " PREPARE_HOOK ")\n"
    "  --hook-from FILE      copied there at the start (default: it is there)\n"
    "  --agent-from FILE     drarun-worker, copied to the host at the start: claims of jobs may have\n"
    "                        it brought into their containers (default: they may not)\n"
    "  --agent-dir DIR       where it is copied to (default: " PREPARE_AGENT_DIR ")\n"
    "  --state-dir DIR       checkpoints (default: " PREPARE_STATE_DIR ")\n"
    "  --orders-dir DIR      orders for the hook (default: " PREPARE_ORDERS_DIR ")\n"
    "  --cdi-dir DIR         CDI specifications (default: " CDI_DIR ")\n"
    "  --plugins-dir DIR     the kubelet's (default: " DRA_PLUGINS_DIR ")\n"
    "  --registry-dir DIR    the kubelet's (default: " DRA_REGISTRY_DIR ")\n"
    "  -v, --verbose         a line for each transition; twice for more\n"
    "      --help            this text\n";

enum {
    OPT_NODE = 1,
    OPT_NODE_IP,
    OPT_DRIVERS,
    OPT_TAKEOVER,
    OPT_CONFIG,
    OPT_ROOT,
    OPT_KUBECONFIG,
    OPT_NVML,
    OPT_INSTANCE,
    OPT_HOOK,
    OPT_HOOK_FROM,
    OPT_HOST_ROOT,
    OPT_DRIVER_ROOT,
    OPT_AGENT_FROM,
    OPT_AGENT_DIR,
    OPT_STATE,
    OPT_ORDERS,
    OPT_CDI,
    OPT_PLUGINS,
    OPT_REGISTRY,
    OPT_HELP
};

static const struct option option_table[] = {
    {"node", required_argument, NULL, OPT_NODE},
    {"node-ip", required_argument, NULL, OPT_NODE_IP},
    {"drivers", required_argument, NULL, OPT_DRIVERS},
    {"takeover", required_argument, NULL, OPT_TAKEOVER},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"root", required_argument, NULL, OPT_ROOT},
    {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
    {"nvml", required_argument, NULL, OPT_NVML},
    {"instance", required_argument, NULL, OPT_INSTANCE},
    {"hook", required_argument, NULL, OPT_HOOK},
    {"hook-from", required_argument, NULL, OPT_HOOK_FROM},
    {"host-root", required_argument, NULL, OPT_HOST_ROOT},
    {"driver-root", required_argument, NULL, OPT_DRIVER_ROOT},
    {"agent-from", required_argument, NULL, OPT_AGENT_FROM},
    {"agent-dir", required_argument, NULL, OPT_AGENT_DIR},
    {"state-dir", required_argument, NULL, OPT_STATE},
    {"orders-dir", required_argument, NULL, OPT_ORDERS},
    {"cdi-dir", required_argument, NULL, OPT_CDI},
    {"plugins-dir", required_argument, NULL, OPT_PLUGINS},
    {"registry-dir", required_argument, NULL, OPT_REGISTRY},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

struct request {
    struct serve_options serve;
    int verbose;
    bool help;
};

static int read_drivers(const char *value, struct serve_options *o, struct drarun_error *err)
{
    o->gpus = strcmp(value, "gpu") == 0 || strcmp(value, "gpu,nic") == 0;
    o->nics = strcmp(value, "nic") == 0 || strcmp(value, "gpu,nic") == 0;
    return o->gpus || o->nics ? 0
                              : error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                                           "--drivers %s: expected gpu, nic or gpu,nic", value);
}

static int read_takeover(const char *value, struct serve_options *o, struct drarun_error *err)
{
    o->nic_driver = value;
    return takeover_name_valid(value)
               ? 0
               : error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                            "--takeover %s: expected a driver's name, like dra.net", value);
}

static int apply(int option, const char *value, struct request *r, struct drarun_error *err)
{
    struct serve_options *o = &r->serve;
    const char **const texts[] = {
        [OPT_NODE] = &o->node,           [OPT_NODE_IP] = &o->addresses[0],
        [OPT_CONFIG] = &o->config, [OPT_ROOT] = &o->root,       [OPT_KUBECONFIG] = &o->kubeconfig,
        [OPT_NVML] = &o->nvml,           [OPT_INSTANCE] = &o->instance,
        [OPT_HOOK] = &o->hook, [OPT_HOOK_FROM] = &o->hook_from,           [OPT_STATE] = &o->state_dir,
        [OPT_HOST_ROOT] = &o->host_root, [OPT_DRIVER_ROOT] = &o->driver_root,
        [OPT_AGENT_FROM] = &o->agent_from, [OPT_AGENT_DIR] = &o->agent_dir,
        [OPT_ORDERS] = &o->orders_dir,   [OPT_CDI] = &o->cdi_dir,
        [OPT_PLUGINS] = &o->plugins_dir, [OPT_REGISTRY] = &o->registry_dir,
    };
    if (option == OPT_DRIVERS)
        return read_drivers(value, o, err);
    if (option == OPT_TAKEOVER)
        return read_takeover(value, o, err);
    if (option == OPT_HELP)
        r->help = true;
    else if (option == 'v')
        r->verbose++;
    else if (option > 0 && (size_t)option < ARRAY_LEN(texts) && texts[option])
        *texts[option] = value;
    else
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "see drarun-plugin run --help");
    return 0;
}

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int read_options(int argc, char **argv, struct request *r, struct drarun_error *err)
{
    int option, rc = 0;
    optind = 1;
    while (rc == 0 && (option = getopt_long(argc, argv, "+v", option_table, NULL)) != -1)
        rc = apply(option, optarg, r, err);
    if (rc == 0 && optind < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument %s", argv[optind]);
    if (rc == 0 && !r->serve.node && !r->help)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "expected the node's name: --node NAME, or the variable NODE_NAME");
    if (rc == 0 && !r->serve.nics && strcmp(r->serve.nic_driver, NODE_DRIVER_NIC) != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--takeover serves NICs, and --drivers has none");
    return rc;
}

int verb_run(int argc, char **argv)
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
    int rc = read_options(argc, argv, &r, &err);
    if (rc == 0 && r.help) {
        fputs(help_text, stdout);
        return 0;
    }
    if (rc == 0) {
        log_setup("drarun-plugin", r.verbose > 1 ? LOG_DEBUG : r.verbose ? LOG_VERBOSE : LOG_NORMAL);
        rc = serve_run(&r.serve, &err);
    }
    if (rc < 0)
        log_error("%s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}
