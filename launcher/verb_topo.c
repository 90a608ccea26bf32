/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_topo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "launcher/topo_view.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

struct options {
    const char *root, *format;
    bool help;
};

static const struct option_spec option_list[] = {
    {"root", 0, NULL, "DIR", "DIR", "Options",
     "read the machine from the files below DIR, not from /", OPTION_TEXT,
     offsetof(struct options, root)},
    {"format", 0, NULL, "FORMAT", "text json svg nccl-xml", "Options",
     "text, json, svg (a picture) or nccl-xml (for NCCL_TOPO_FILE) (text)", OPTION_TEXT,
     offsetof(struct options, format)},
    {"help", 'h', NULL, NULL, NULL, "Options", "this help", OPTION_FLAG,
     offsetof(struct options, help)},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int parse(int argc, char *const argv[], struct options *options, struct drarun_error *err)
{
    int used = options_parse(&options_table, argc, argv, false, options, err);
    if (used >= 0 && used < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[used]);
    return used < 0 ? used : 0;
}

static int read_host(const struct options *options, struct topo_host *ret_host,
                     struct drarun_error *err)
{
    cleanup_close int root = -1;
    if (options->root) {
        root = open(options->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
            return error_kind(err, DRARUN_ERR_USAGE, errno, "--root %s: %s", options->root,
                              strerror(errno));
    }
    return host_read(root, ret_host, err);
}

static void add_json(const struct topo_view *view, struct buf *out)
{
    json_t *json = topo_json(view);
    cleanup_free char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (text)
        buf_printf(out, "%s\n", text);
    else
        out->failed = true;
}

static void print(const struct topo_view *view, const char *format, struct buf *out)
{
    if (!format || strcmp(format, "text") == 0)
        topo_text(view, out);
    else if (strcmp(format, "json") == 0)
        add_json(view, out);
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
    if (rc == 0 && (out.failed || fd_write_all(STDOUT_FILENO, out.data, out.len) < 0))
        rc = error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EIO, "the output could not be written");
    buf_done(&out);
    if (rc < 0)
        log_error("topo: %s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}

const struct verb verb_topo = {
    "topo", NULL,
    "Shows GPUs, NICs and NUMA nodes of a machine and how near they are to each other.",
    &options_table, run};
