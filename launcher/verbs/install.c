/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/install.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "jobs/manifests/crd.h"
#include "jobs/manifests/install.h"
#include "launcher/cli/manifests.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct options {
    const char *namespace, *format;
    struct strlist pull_secrets;
    bool cluster_role, user_role, controller_role, crd, help;
};

static const char manifests[] = "Manifests";

static const struct option_spec option_list[] = {
    {.name = "namespace",
     .letter = 'n',
     .value = "NAME",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, namespace),
     .help = "namespace of the objects (default: default)"},
    {.name = "image-pull-secret",
     .value = "NAME",
     .group = manifests,
     .kind = OPTION_LIST,
     .offset = offsetof(struct options, pull_secrets),
     .help = "Secret of the namespace with which the account's pods pull\ndrarun's image from a "
             "private registry; may be repeated"},
    {.name = "cluster-role",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, cluster_role),
     .help = "instead print the read-only ClusterRole that lets jobs\nsee which devices exist"},
    {.name = "user-role",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, user_role),
     .help = "instead print the Role for people who submit jobs"},
    {.name = "controller-role",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, controller_role),
     .help = "instead print the account and Role for a controller of\nthis namespace only"},
    {.name = "crd",
     .group = manifests,
     .kind = OPTION_FLAG,
     .offset = offsetof(struct options, crd),
     .help = "instead print the CustomResourceDefinition of DraJob"},
    {.name = "output",
     .letter = 'o',
     .aliases = "--format",
     .value = "FORMAT",
     .choices = "yaml json",
     .group = manifests,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, format),
     .help = "yaml (default): one document each; json: one List"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static const char note[] =
    "# What a namespace needs once, before its first job. For an account that may create Roles:\n"
    "#   drarun install -n NAMESPACE | kubectl apply --server-side -f -\n";

static const char cluster_note[] =
    "# What lets the jobs of a namespace see the cluster's devices; they run without it, too, and\n"
    "# then cannot say which devices are missing while they wait. For an account that may create\n"
    "# ClusterRoles:\n"
    "#   drarun install -n NAMESPACE --cluster-role | kubectl apply --server-side -f -\n";

static const char user_note[] =
    "# What people need who run, watch and cancel jobs in the namespace. For an account that may\n"
    "# create Roles:\n"
    "#   drarun install -n NAMESPACE --user-role | kubectl apply --server-side -f -\n"
    "#   kubectl create rolebinding NAME -n NAMESPACE --role " INSTALL_USER_ROLE " --user USER\n";

static const char controller_note[] =
    "# What drarun controller -n NAMESPACE needs, for the DraJobs of that namespace alone. For\n"
    "# an account that may create Roles:\n"
    "#   drarun install -n NAMESPACE --controller-role | kubectl apply --server-side -f -\n";

static const char crd_note[] =
    "# DraJobs as objects of the cluster, for drarun controller and kubectl get drajobs. Once in "
    "a\n"
    "# cluster, by an account that may create CustomResourceDefinitions. It belongs to this\n"
    "# version, so apply it again after an upgrade:\n"
    "#   drarun install --crd | kubectl apply --server-side -f -\n";

static json_t *crd_list(struct drarun_error *err)
{
    json_t *crd = NULL;
    return crd_manifest(&crd, err) < 0 ? NULL : json_pack("[o]", crd);
}

static json_t *choose(const struct options *options, const char **ret_note,
                      struct drarun_error *err)
{
    const char *namespace = options->namespace ? options->namespace : "default";
    const struct strlist *secrets = &options->pull_secrets;
    *ret_note = options->crd               ? crd_note
                : options->cluster_role    ? cluster_note
                : options->user_role       ? user_note
                : options->controller_role ? controller_note
                                           : note;
    json_t *list = options->crd               ? crd_list(err)
                   : options->cluster_role    ? install_cluster_manifests(namespace)
                   : options->user_role       ? install_user_manifests(namespace)
                   : options->controller_role ? install_controller_manifests(namespace, secrets)
                                              : install_manifests(namespace, secrets);
    if (!list && !(err && err->code))
        error_set(err, ENOMEM, "out of memory");
    return list;
}

static int print(const struct options *options, struct buf *out, struct drarun_error *err)
{
    bool json = options->format && strcmp(options->format, "json") == 0;
    const char *text = NULL;
    if (options->cluster_role + options->user_role + options->controller_role + options->crd > 1)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--cluster-role, --user-role, --controller-role and --crd: give one of them");
    if (options->pull_secrets.count > 0 &&
        (options->cluster_role || options->user_role || options->crd))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--image-pull-secret is of an account, which --cluster-role, --user-role "
                          "and --crd do not print: leave it out");
    CLEANUP(json_decrefp) json_t *list = choose(options, &text, err);
    return list ? manifests_write(list, text, json, out, err) : -err->code;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = options_parse(&options_table, argc, argv, false, &options, &err);
    if (rc >= 0 && rc < argc)
        rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", argv[rc]);
    if (rc >= 0 && options.help)
        verb_help(&verb_install, &out);
    else if (rc >= 0)
        rc = print(&options, &out, &err);
    strlist_done(&options.pull_secrets);
    if (rc >= 0)
        return verb_write("install", &out);
    buf_done(&out);
    return verb_fail("install", &err);
}

const struct verb verb_install = {
    "install",      NULL, "Prints the manifests that a namespace needs once.",
    &options_table, run,  "account and role, printed"};
