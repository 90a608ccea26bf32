/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/api/env.h"
#include "launcher/verbs/env_exec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

struct options {
    struct strlist claims, slices, nodes;
    struct drarun_env_options env;
    const char *format;
    char *const *command; /* that takes our place; NULL: print */
    bool explain, help;
};

static const char input[] = "Input, as kubectl get -o json or yaml prints it", derive[] = "Rules";

static const struct option_spec option_list[] = {
    {.name = "claims",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, claims),
     .help = "the pod's allocated ResourceClaims; if the file has the\nPod too, only that pod's "
             "claims are used; may be\nrepeated (default: the GPUs and NICs of this machine)"},
    {.name = "slices",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, slices),
     .help = "ResourceSlices from the time of the allocation; may be\nrepeated"},
    {.name = "nodes",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, nodes),
     .help = "Nodes, whose labels give the machine type; may be repeated"},
    {.name = "pod",
     .value = "NAME",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.pod),
     .help = "which Pod in the files of claims"},
    {.name = "probe",
     .value = "FILE",
     .choices = "FILE",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.probe),
     .help = "the pod's probed devices, as JSON"},
    {.name = "root",
     .value = "DIR",
     .choices = "DIR",
     .group = input,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.root),
     .help = "captured tree to inspect instead of /"},
    {.name = "network",
     .value = "KIND",
     .choices = "rdma any",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.network),
     .help = "rdma (default): fail without RDMA; any: fall back to Socket"},
    {.name = "nccl-version",
     .value = "V",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.nccl_version),
     .help = "the program's NCCL, such as 2.28.9 (default: the\nnewest known)"},
    {.name = "profile",
     .value = "NAME",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.profile),
     .help = "fabric profile (default: detected)"},
    VERB_PROFILES_OPTION(derive, offsetof(struct options, env.profiles)),
    {.name = "hca-list",
     .value = "WHEN",
     .choices = "auto always never",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.hca_list),
     .help = "whether to set NCCL_IB_HCA: auto (default): as the\nprofile says; always; never"},
    {.name = "mpi",
     .value = "TRANSPORT",
     .choices = "auto tcp rdma",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.mpi_transport),
     .help = "auto (default): leave RDMA to NCCL if there are GPUs;\ntcp; rdma"},
    {.name = "interface",
     .value = "NAME",
     .group = derive,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, env.pod_interface),
     .help = "interface of the pod network (default: that of the\ndefault route, else eth0)"},
    {.name = "output",
     .letter = 'o',
     .aliases = "--format",
     .value = "FORMAT",
     .choices = "sh json docker nccl.conf",
     .group = "Output",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, format),
     .help = "sh (default): for eval; json: the whole plan;\ndocker: for --env-file; nccl.conf: "
             "NCCL's variables"},
    {.name = "explain",
     .group = "Output",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, explain),
     .help = "show the rule, fact, reason and source of each variable"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* ---- deriving ---- */

static void log_what_was_found(const struct drarun_env *env, bool refused)
{
    for (size_t i = 0; drarun_env_warning(env, i); i++)
        log_note("env: %s", drarun_env_warning(env, i));
    if (!refused)
        log_note("env: %s (%s): %s", drarun_env_profile(env), drarun_env_profile_fact(env),
                 drarun_env_summary(env));
}

static int print(const struct drarun_env *env, const struct options *o, struct buf *out,
                 struct drarun_error *err)
{
    cleanup_free char *text = drarun_env_text(env, o->format ? o->format : "sh", o->explain);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    buf_add_str(out, text);
    return 0;
}

static int derive_and_use(struct options *o, struct buf *out, struct drarun_error *err)
{
    struct drarun_env *env = NULL;
    o->env.size = sizeof o->env;
    o->env.claims = strlist_items(&o->claims);
    o->env.slices = strlist_items(&o->slices);
    o->env.nodes = strlist_items(&o->nodes);
    o->env.run_script = 1;
    int rc = env_build(&o->env, &env, err);
    if (rc < 0)
        return rc;
    rc = env_refusal(env, err);
    log_what_was_found(env, rc < 0);
    if (rc == 0)
        rc = o->command ? env_exec(env, o->command, err) : print(env, o, out, err);
    drarun_env_free(env);
    return rc;
}

/* Behind "--", so that a mistyped option is not run. */
static int parse_command(char *const argv[], int used, struct options *options,
                         struct drarun_error *err)
{
    if (used == 0 || strcmp(argv[used - 1], "--") != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "unexpected argument \"%s\": a command goes after --", argv[used]);
    if (options->format || options->explain)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--output and --explain print the environment: leave them out to run a "
                          "command with it");
    options->command = argv + used;
    return 0;
}

static int parse(int argc, char *const argv[], struct options *options, struct drarun_error *err)
{
    int used = options_parse(&options_table, argc, argv, false, options, err);
    if (used < 0 || options->help)
        return used < 0 ? used : 0;
    return used < argc ? parse_command(argv, used, options, err) : 0;
}

/* A shell's eval ends as what it evaluates does, however the program that printed it has ended. */
static void fail_eval(const struct options *o, int status)
{
    if (o->command || (o->format && strcmp(o->format, "sh") != 0) || isatty(STDOUT_FILENO))
        return;
    char text[32];
    snprintf(text, sizeof text, "(exit %d)\n", status);
    fd_write_all(STDOUT_FILENO, text, strlen(text)); /* who does not read it sees our status */
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0 && options.help) {
        verb_help(&verb_env, &out);
    } else if (rc == 0) {
        rc = derive_and_use(&options, &out, &err);
        if (rc < 0)
            fail_eval(&options, error_exit_status(err.kind));
    }
    strlist_done(&options.claims);
    strlist_done(&options.slices);
    strlist_done(&options.nodes);
    if (rc == 0)
        return verb_write("env", &out);
    buf_done(&out);
    return verb_fail("env", &err);
}

const struct verb verb_env = {
    "env",
    "[-- COMMAND...]",
    "Prints the NCCL, UCX and MPI environment for a pod or machine, or runs a command with it.",
    &options_table,
    run,
    "NCCL variables for a pod"};
