/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
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

struct request {
    const char *root, *config, *nvml, *node, *version, *output, *addresses[2];
    bool help;
};

#define TEXT(name_, value_, choices_, field, help_)                                                \
    {                                                                                              \
        .name = name_, .value = value_, .choices = choices_, .group = "Options",                   \
        .kind = OPTION_TEXT, .offset = offsetof(struct request, field), .help = help_              \
    }

static const struct option_spec option_list[] = {
    TEXT("root", "DIR", "DIR", root, "directory to read instead of / (a captured tree)"),
    TEXT("config", "FILE", "FILE", config,
         "which devices are published, and their names (a PluginConfig)"),
    TEXT("nvml", "FILE", "FILE", nvml,
         "NVIDIA's library (default: libnvidia-ml.so.1; none with --root)"),
    TEXT("node", "NAME", NULL, node, "the node's name in the slices (default: the host's name)"),
    TEXT("node-ip", "ADDRESS", NULL, addresses[0],
         "the node's address; its interface is never published"),
    TEXT("api-version", "VERSION", "v1 v1beta2 v1beta1", version,
         "API version of the slices (default: v1)"),
    {"output", 'o', NULL, "FORMAT", "table json yaml", "Options",
     "table (default), json or yaml: the ResourceSlices", OPTION_TEXT,
     offsetof(struct request, output)},
    {"help", 'h', NULL, NULL, NULL, "Options", "show this help", OPTION_FLAG,
     offsetof(struct request, help)},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* ---- printing ---- */

static int add_slices(const struct node_devices *devices, const struct request *r,
                      const char *driver, json_t *items)
{
    const struct slices_owner owner = {.node = r->node, .driver = driver};
    json_t *parts = slices_split(devices, driver);
    int rc = parts ? 0 : -ENOMEM;
    size_t count = json_array_size(parts);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (json_array_append_new(
                items, slice_object(&owner, r->version, json_array_get(parts, i), i, count, 1)) < 0)
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

static int print_list(const json_t *list, const char *output, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    cleanup_free char *json = NULL;
    int rc = 0;
    if (strcmp(output, "yaml") == 0) {
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
    json_t *list = json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", items);
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

static void tell_left_out(const struct node_devices *devices)
{
    char text[SPARED_TEXT];
    for (size_t i = 0; i < devices->warnings.count; i++)
        log_note("%s", devices->warnings.items[i]);
    for (size_t i = 0; i < devices->spared.count && i < devices->spared_reasons.count; i++) {
        node_devices_spared_text(devices, i, text);
        log_note("%s", text);
    }
    for (size_t i = 0; i < devices->count; i++) /* which claims there are is not known here */
        if (node_device_is_bare(&devices->list[i]))
            log_note("%s is published only while a claim has it: it has neither an interface nor "
                     "an RDMA device",
                     devices->list[i].name);
}

static int print_devices(const struct request *r, const struct discover_source *source,
                         struct drarun_error *err)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    int rc = discover(source, &devices, err);
    if (rc == 0)
        rc = select_devices(source->config, &devices, err);
    tell_left_out(&devices);
    if (rc == 0)
        rc = strcmp(r->output, "table") == 0 ? print_table(&devices, err)
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
    int rc = nvml_open(r->nvml, NULL, ret_nvml, &own);
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

static int run(int argc, char *const argv[])
{
    char host[256] = "node";
    struct drarun_error err = {0};
    struct request r = {.node = host, .version = "v1", .output = "table"};
    bool done = false;
    gethostname(host, sizeof host - 1);
    int rc = plugin_verb_parse(&verb_discover, argc, argv, &r, &r.help, &done, &err);
    if (rc >= 0 && !done)
        rc = discover_once(&r, &err);
    if (rc < 0)
        log_error("discover: %s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}

const struct plugin_verb verb_discover = {
    "discover",
    NULL,
    "Prints the GPUs and NICs of this node that drarun-plugin would publish.",
    NULL,
    &options_table,
    run};
