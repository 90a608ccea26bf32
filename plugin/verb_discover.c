/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb_discover.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/yaml_write.h"
#include "plugin/discover/discover.h"
#include "plugin/discover/nvml.h"
#include "plugin/discover/select.h"
#include "plugin/slices/node_slices.h"
#include "plugin/slices/table.h"

enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_YAML };

struct request {
    const char *root, *config, *nvml, *node, *version, *addresses[2];
    enum output output;
    bool help;
};

static const char help_text[] =
    "Usage: drarun-plugin discover [OPTION...]\n"
    "\n"
    "Prints the GPUs and NICs of this node that drarun-plugin would publish.\n"
    "\n"
    "  --root DIR            a directory that stands for / (a captured tree)\n"
    "  --config FILE         what is offered and under which names (a PluginConfig)\n"
    "  --nvml FILE           NVIDIA's library (default: libnvidia-ml.so.1, with --root none)\n"
    "  --node NAME           the node's name in the slices (default: the host's name)\n"
    "  --node-ip ADDRESS     the node's address, whose interface is never offered\n"
    "  --api-version VERSION the shape of the slices: v1 (default), v1beta2 or v1beta1\n"
    "  -o, --output FORMAT   table (default), json or yaml: the ResourceSlices\n"
    "      --help            this text\n";

enum { OPT_ROOT = 1, OPT_CONFIG, OPT_NVML, OPT_NODE, OPT_NODE_IP, OPT_VERSION, OPT_HELP };

static const struct option option_table[] = {
    {"root", required_argument, NULL, OPT_ROOT},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"nvml", required_argument, NULL, OPT_NVML},
    {"node", required_argument, NULL, OPT_NODE},
    {"node-ip", required_argument, NULL, OPT_NODE_IP},
    {"api-version", required_argument, NULL, OPT_VERSION},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static int usage(struct drarun_error *err, const char *option, const char *value,
                 const char *expected)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s %s: expected %s", option, value, expected);
}

static int read_output(const char *value, struct request *r, struct drarun_error *err)
{
    static const char *const words[] = {"table", "json", "yaml"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(value, words[i]) == 0) {
            r->output = (enum output)i;
            return 0;
        }
    return usage(err, "-o", value, "table, json or yaml");
}

static int apply(int option, const char *value, struct request *r, struct drarun_error *err)
{
    switch (option) {
    case OPT_ROOT:
        r->root = value;
        return 0;
    case OPT_CONFIG:
        r->config = value;
        return 0;
    case OPT_NVML:
        r->nvml = value;
        return 0;
    case OPT_NODE:
        r->node = value;
        return 0;
    case OPT_NODE_IP:
        r->addresses[0] = value;
        return 0;
    case OPT_VERSION:
        r->version = value;
        if (strcmp(value, "v1") == 0 || strcmp(value, "v1beta2") == 0 ||
            strcmp(value, "v1beta1") == 0)
            return 0;
        return usage(err, "--api-version", value, "v1, v1beta2 or v1beta1");
    case 'o':
        return read_output(value, r, err);
    case OPT_HELP:
        r->help = true;
        return 0;
    default:
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "see drarun-plugin discover --help");
    }
}

static int read_options(int argc, char **argv, struct request *r, struct drarun_error *err)
{
    int option, rc = 0;
    optind = 1;
    while (rc == 0 && (option = getopt_long(argc, argv, "+o:", option_table, NULL)) != -1)
        rc = apply(option, optarg, r, err);
    if (rc == 0 && optind < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument %s", argv[optind]);
    return rc;
}

/* ---- printing ---- */

static int add_slices(const struct node_devices *devices, const struct request *r,
                      const char *driver, json_t *items)
{
    const struct slices_owner owner = {.node = r->node, .driver = driver};
    json_t *parts = slices_split(devices, driver);
    int rc = parts ? 0 : -ENOMEM;
    size_t count = json_array_size(parts);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (json_array_append_new(items, slice_object(&owner, r->version, json_array_get(parts, i),
                                                      i, count, 1)) < 0)
            rc = -ENOMEM;
    json_decref(parts);
    return rc;
}

static int write_text(const char *data, size_t len, struct drarun_error *err)
{
    if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0)
        return error_set(err, EIO, "cannot write to stdout: %s", strerror(errno));
    return 0;
}

static int print_list(const json_t *list, enum output output, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    cleanup_free char *json = NULL;
    int rc = 0;
    if (output == OUTPUT_YAML) {
        rc = yaml_write(list, &text, err);
    } else {
        json = json_dumps(list, JSON_INDENT(2));
        buf_printf(&text, "%s\n", json ? json : "");
        rc = json ? 0 : error_set(err, ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = text.failed ? error_set(err, ENOMEM, "out of memory")
                         : write_text(text.data, text.len, err);
    buf_done(&text);
    return rc;
}

static int print_slices(const struct node_devices *devices, const struct request *r,
                        struct drarun_error *err)
{
    json_t *items = json_array();
    json_t *list =
        json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", items);
    int rc = list ? add_slices(devices, r, NODE_DRIVER_GPU, items) : -ENOMEM;
    if (rc == 0)
        rc = add_slices(devices, r, NODE_DRIVER_NIC, items);
    rc = rc < 0 ? error_set(err, ENOMEM, "out of memory") : print_list(list, r->output, err);
    json_decref(list);
    return rc;
}

static int print_table(const struct node_devices *devices, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    devices_table(devices, &text);
    int rc = text.failed ? error_set(err, ENOMEM, "out of memory")
                         : write_text(text.data, text.len, err);
    buf_done(&text);
    return rc;
}

/* ---- the verb ---- */

static int print_devices(const struct request *r, const struct discover_source *source,
                         struct drarun_error *err)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    int rc = discover(source, &devices, err);
    if (rc == 0)
        rc = select_devices(source->config, &devices, err);
    for (size_t i = 0; i < devices.warnings.count; i++)
        log_note("%s", devices.warnings.items[i]);
    if (rc == 0)
        rc = r->output == OUTPUT_TABLE ? print_table(&devices, err)
                                       : print_slices(&devices, r, err);
    node_devices_done(&devices);
    return rc;
}

/* Without it GPUs are what sysfs and procfs tell, unless a library was asked for by name. */
static int open_nvml(const struct request *r, struct nvml **ret_nvml, struct drarun_error *err)
{
    struct drarun_error own = {0};
    if (r->root && !r->nvml)
        return 0;
    int rc = nvml_open(r->nvml, ret_nvml, &own);
    if (rc < 0 && (r->nvml || rc == -ENOMEM))
        return error_kind(err, DRARUN_ERR_USAGE, own.code, "--nvml: %s", own.text);
    if (rc < 0)
        log_verbose("without NVML: %s", own.text);
    return 0;
}

static int discover_once(const struct request *r, struct drarun_error *err)
{
    struct discover_config config;
    struct nvml *nvml = NULL;
    cleanup_close int root = -1;
    int rc = 0;
    if (r->config)
        rc = discover_config_load(r->config, &config, err);
    else
        discover_config_default(&config);
    if (rc < 0)
        return rc;
    if (r->root)
        root = open(r->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->root && root < 0)
        rc = error_kind(err, DRARUN_ERR_USAGE, errno, "--root %s: %s", r->root, strerror(errno));
    if (rc == 0)
        rc = open_nvml(r, &nvml, err);
    const struct discover_source source = {root, &config, r->addresses[0] ? r->addresses : NULL,
                                           nvml};
    if (rc == 0)
        rc = print_devices(r, &source, err);
    nvml_close(nvml);
    discover_config_done(&config);
    return rc;
}

int verb_discover(int argc, char **argv)
{
    char host[256] = "node";
    struct drarun_error err = {0};
    struct request r = {.node = host, .version = "v1"};
    gethostname(host, sizeof host - 1);
    int rc = read_options(argc, argv, &r, &err);
    if (rc == 0 && r.help)
        return fputs(help_text, stdout) < 0;
    if (rc == 0)
        rc = discover_once(&r, &err);
    if (rc < 0)
        log_error("discover: %s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}
