/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "launcher/topo/slices.h"
#include "launcher/topo/view.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    const char *root, *format, *node;
    struct strlist slices, claims;
    bool help;
};

static const struct option_spec option_list[] = {
    {.name = "root",
     .value = "DIR",
     .choices = "DIR",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, root),
     .help = "read the files below DIR instead of /"},
    {.name = "slices",
     .value = "FILE",
     .choices = "FILE",
     .group = "Options",
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, slices),
     .help = "read a node from ResourceSlices, as kubectl get prints\nthem (json, yaml); more "
             "files may follow"},
    {.name = "claims",
     .value = "FILE",
     .choices = "FILE",
     .group = "Options",
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, claims),
     .help = "with --slices: mark the devices of these ResourceClaims"},
    {.name = "node",
     .value = "NAME",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, node),
     .help = "with --slices of several nodes: the node to show"},
    {.name = "output",
     .letter = 'o',
     .aliases = "--format",
     .value = "FORMAT",
     .choices = "text json svg nccl-xml",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, format),
     .help = "text (default), json, svg (a picture) or nccl-xml (for\nNCCL_TOPO_FILE)"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int refuse(const struct options *options, struct drarun_error *err)
{
    if (options->root && options->slices.count)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--root and --slices exclude each other");
    if (options->slices.count && options->format && strcmp(options->format, "nccl-xml") == 0)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "-o nccl-xml needs a machine or --root: slices do not describe PCIe switches");
    if (!options->slices.count && (options->claims.count || options->node))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--claims and --node need --slices");
    return 0;
}

/* Words after --slices FILE are further files. */
static int parse(int argc, char *const argv[], struct options *options, struct drarun_error *err)
{
    for (int i = 0; i < argc; i++) {
        int used = options_parse(&options_table, argc - i, argv + i, false, options, err);
        if (used < 0)
            return used;
        i += used;
        if (i < argc && options->slices.count == 0)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[i]);
        if (i < argc)
            strlist_add(&options->slices, argv[i]);
    }
    if (options->slices.failed)
        return error_set(err, ENOMEM, "out of memory");
    return refuse(options, err);
}

static int read_host(const struct options *options, struct topo_host *ret_host,
                     struct drarun_error *err)
{
    cleanup_close int root = -1;
    if (options->slices.count > 0)
        return topo_slices_read(&options->slices, &options->claims, options->node, ret_host, err);
    if (options->root) {
        root = open(options->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
            return error_kind(err, DRARUN_ERR_USAGE, errno, "--root %s: %s", options->root,
                              strerror(errno));
    }
    return host_read(root, ret_host, err);
}

static void print(const struct topo_view *view, const char *format, struct buf *out)
{
    if (!format || strcmp(format, "text") == 0)
        topo_text(view, out);
    else if (strcmp(format, "json") == 0)
        verb_add_json_take(topo_json(view), out);
    else if (strcmp(format, "svg") == 0)
        topo_svg(view, out);
    else
        topo_nccl_xml(view, out);
}

static int show(const struct options *options, struct buf *out, struct drarun_error *err)
{
    struct topo_host host;
    struct topo_view view;
    int rc = read_host(options, &host, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < host.warnings.count; i++)
        log_note("topo: %s", host.warnings.items[i]);
    rc = topo_view_make(&host, &view, err);
    if (rc == 0) {
        print(&view, options->format, out);
        topo_view_done(&view);
    }
    host_done(&host);
    return rc;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0 && options.help)
        verb_help(&verb_topo, &out);
    else if (rc == 0)
        rc = show(&options, &out, &err);
    strlist_done(&options.slices);
    strlist_done(&options.claims);
    if (rc == 0)
        return verb_write("topo", &out);
    buf_done(&out);
    return verb_fail("topo", &err);
}

const struct verb verb_topo = {
    "topo",
    NULL,
    "Shows the GPUs, NICs and NUMA nodes of a machine and the distances between them.",
    &options_table,
    run,
    "GPUs, NICs, distances"};
