/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "launcher/programs/cluster_api.h"
#include "launcher/doctor/nics.h"
#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    struct cluster_choice cluster;
    const char *root, *output;
    bool node, nics, help;
};

static const char what[] = "What to check";

static const struct option_spec option_list[] = {
    {.name = "node",
     .group = what,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, node),
     .help = "check this machine instead of the cluster"},
    {.name = "nics",
     .group = what,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, nics),
     .help = "check the RDMA NICs of this machine or pod: open each one"},
    {.name = "root",
     .value = "DIR",
     .choices = "DIR",
     .group = what,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, root),
     .help = "check the machine whose files are below DIR"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = what,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, output),
     .help = "text (default) or json"},
    CLUSTER_OPTIONS(struct options),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int parse(int argc, char *const argv[], struct options *options, struct drarun_error *err)
{
    int used = options_parse(&options_table, argc, argv, false, options, err);
    if (used < 0)
        return used;
    if (used < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[used]);
    if (options->nics && options->root)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--nics opens the devices of this machine: it cannot open files below --root %s",
            options->root);
    options->node |= options->root != NULL;
    if ((options->node || options->nics) &&
        (options->cluster.kubeconfig || options->cluster.context || options->cluster.namespace))
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--%s checks this machine: --kubeconfig, --context and --namespace are for a cluster",
            options->node ? "node" : "nics");
    return 0;
}

static int look_at_node(const char *root, struct findings *findings, struct drarun_error *err)
{
    cleanup_close int fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_kind(err, DRARUN_ERR_USAGE, errno, "--root %s: %s", root, strerror(errno));
    return node_check(fd, findings, err);
}

static int look(const struct options *options, struct findings *findings, json_t **ret_nics,
                struct drarun_error *err)
{
    if (!options->node && !options->nics)
        return cluster_api()->doctor(&options->cluster, findings, err);
    int rc = options->node ? look_at_node(options->root, findings, err) : 0;
    return rc == 0 && options->nics ? nics_check(findings, ret_nics, err) : rc;
}

static json_t *as_json(const struct findings *findings, json_t *nics)
{
    json_t *json = findings_json(findings);
    if (json && nics && json_object_set(json, "nics", nics) < 0)
        json_decref(TAKE_PTR(json));
    return json;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    struct findings findings;
    CLEANUP(json_decrefp) json_t *nics = NULL;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0 && options.help) {
        verb_help(&verb_doctor, &out);
        return verb_write("doctor", &out);
    }
    if (rc == 0 && !options.node && !options.nics && !cluster_api())
        return cluster_become(argv - 2);
    findings_init(&findings);
    if (rc == 0)
        rc = look(&options, &findings, &nics, &err);
    bool json = options.output && strcmp(options.output, "json") == 0;
    if (rc == 0 && json)
        verb_add_json_take(as_json(&findings, nics), &out);
    else if (rc == 0)
        findings_text(&findings, &out);
    bool failed = findings.count[FINDING_FAILED] > 0;
    findings_done(&findings);
    if (rc == 0) {
        int status = json ? verb_write("doctor", &out) : verb_write_prose("doctor", &out);
        return status == 0 && failed ? 1 : status;
    }
    buf_done(&out);
    log_error("doctor: %s", err.text);
    return verb_exit_status(&err);
}

const struct verb verb_doctor = {
    "doctor",       NULL, "Reports what is wrong with a cluster or a machine, and how to fix it.",
    &options_table, run,  "what is wrong, what to do"};
