/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/plan/env_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/derive/inventory/allocation.h"
#include "launcher/files/cluster_files.h"
#include "launcher/plan/env_print.h"
#include "launcher/files/profile_file.h"
#include "lib/inspect/vendor_script.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/load.h"
#include "lib/inspect/inspect.h"

void env_inputs_done(struct env_inputs *in)
{
    slices_done(&in->slices);
    profiles_done(&in->profiles);
    strlist_done(&in->user);
    json_decref(in->claims);
    json_decref(in->slices_json);
    json_decref(in->nodes);
    json_decref(in->pods);
    json_decref(in->labels);
    json_decref(in->probe);
    doc_free(in->probe_file);
    *in = (struct env_inputs){0};
}

/* ---- the shell's environment ---- */

/* A variable that an earlier `eval "$(drarun env)"` set and nobody has changed since is no wish of
 * the user's (env_print.h). */
static bool is_derived(const char *entry)
{
    const char *list = getenv(ENV_DERIVED);
    size_t length = strlen(entry);
    for (const char *line = list; line && *line;) {
        const char *end = strchrnul(line, '\n');
        if ((size_t)(end - line) == length && strncmp(line, entry, length) == 0)
            return true;
        line = *end ? end + 1 : end;
    }
    return false;
}

/* What the user has set for the libraries that we set variables for. */
static void read_environment(struct strlist *user)
{
    for (char **item = environ; item && *item; item++)
        if (inspect_steers(*item) && !is_derived(*item))
            strlist_add(user, *item);
}

/* ---- the pod among the claims ---- */

static const char *meta(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return text ? text : "";
}

/* What comes from a file without a namespace may be of any. */
static bool same_namespace(const json_t *a, const json_t *b)
{
    const char *x = meta(a, "namespace"), *y = meta(b, "namespace");
    return !x[0] || !y[0] || strcmp(x, y) == 0;
}

static int several_pods(const json_t *pods, const char *wanted, struct drarun_error *err)
{
    struct buf names = BUF_INIT;
    size_t i;
    json_t *pod;
    json_array_foreach(pods, i, pod)
    {
        if (i < 8)
            buf_printf(&names, "%s%s", i ? ", " : "", meta(pod, "name"));
    }
    if (json_array_size(pods) > 8)
        buf_add_str(&names, ", ...");
    int rc = wanted ? error_kind(err, DRARUN_ERR_SPEC, ENOENT,
                                 "pod %s: the files of claims hold %s%s", wanted,
                                 names.data ? "the Pods " : "no Pod", names.data ? names.data : "")
                    : error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                                 "claims: the files hold %zu Pods (%s): name one of them",
                                 json_array_size(pods), names.data ? names.data : "");
    buf_done(&names);
    return rc;
}

/* *ret_pod stays NULL when there is none and none was asked for. */
static int choose_pod(const json_t *pods, const char *wanted, const json_t **ret_pod,
                      struct drarun_error *err)
{
    size_t i;
    json_t *pod;
    if (!wanted && json_array_size(pods) > 1)
        return several_pods(pods, NULL, err);
    json_array_foreach(pods, i, pod)
    {
        if (!wanted || strcmp(meta(pod, "name"), wanted) == 0) {
            *ret_pod = pod;
            return 0;
        }
    }
    return wanted ? several_pods(pods, wanted, err) : 0;
}

static json_t *find_claim(const json_t *claims, const char *name, const json_t *pod)
{
    size_t i;
    json_t *claim;
    json_array_foreach(claims, i, claim)
    {
        if (strcmp(meta(claim, "name"), name) == 0 && same_namespace(claim, pod))
            return claim;
    }
    return NULL;
}

/* Without a Pod all claims of the files are the pod's. */
static int keep_pods_claims(const char *wanted, struct env_inputs *in, struct drarun_error *err)
{
    const json_t *pod = NULL;
    struct strlist names = STRLIST_INIT;
    int rc = choose_pod(in->pods, wanted, &pod, err);
    if (rc < 0 || !pod)
        return rc;
    json_t *kept = json_array();
    allocation_pod_claims(pod, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        json_t *claim = find_claim(in->claims, names.items[i], pod);
        if (!claim)
            rc = error_kind(err, DRARUN_ERR_SPEC, ENOENT,
                            "pod %s holds the claim %s, which is not in the files of claims",
                            meta(pod, "name"), names.items[i]);
        else
            json_array_append(kept, claim);
    }
    if (rc == 0 && (names.failed || !kept))
        rc = error_set(err, ENOMEM, "out of memory");
    strlist_done(&names);
    json_decref(rc == 0 ? in->claims : kept);
    if (rc < 0)
        return rc;
    in->claims = kept;
    in->pod = meta(pod, "name");
    in->node = json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));
    return 0;
}

/* ---- files ---- */

/* One file may hold all of them. */
static int read_objects(const struct env_sources *s, struct env_inputs *in,
                        struct drarun_error *err)
{
    const struct cluster_kind claims[] = {{"ResourceClaim", in->claims, NULL},
                                          {"ResourceSlice", in->slices_json, NULL},
                                          {"Node", in->nodes, NULL},
                                          {"Pod", in->pods, NULL}};
    int rc = cluster_files_read(s->claims, claims, ARRAY_LEN(claims), err);
    if (rc == 0)
        rc = cluster_files_read(s->slices, &claims[1], 2, err);
    if (rc == 0)
        rc = cluster_files_read(s->nodes, &claims[2], 1, err);
    if (rc == 0)
        rc = keep_pods_claims(s->pod, in, err);
    if (!s->claims || !s->claims[0]) {
        json_decref(in->claims);
        in->claims = NULL;
    }
    return rc;
}

static int read_probe_file(const char *path, struct env_inputs *in, struct drarun_error *err)
{
    int rc = doc_load_one(path, &in->probe_file, err);
    if (rc == 0)
        in->probe = json_incref(doc_root(in->probe_file, 0));
    return rc;
}

/* ---- what is to be seen ---- */

static bool is_ours(const char *root)
{
    struct stat given, own;
    return !root || (stat(root, &given) == 0 && stat("/", &own) == 0 &&
                     given.st_dev == own.st_dev && given.st_ino == own.st_ino);
}

/* The files of these claims by their exact paths, or without claims all that are there. */
static int read_metadata(const char *root, const json_t *claims, json_t *probe,
                         struct drarun_error *err)
{
    struct strlist paths = STRLIST_INIT;
    size_t i;
    json_t *claim;
    cleanup_close int fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", root ? root : "/", strerror(errno));
    json_array_foreach(claims, i, claim) metadata_paths(claim, &paths);
    int rc = paths.failed ? -ENOMEM : device_metadata_read(fd, claims ? &paths : NULL, probe);
    strlist_done(&paths);
    return rc < 0 ? error_set(err, -rc, "out of memory") : metadata_decode_files(probe, err);
}

static int look(const struct env_sources *s, struct env_inputs *in, struct drarun_error *err)
{
    in->foreign = !is_ours(s->root);
    in->looked = true;
    struct strlist files = STRLIST_INIT;
    profiles_files(&in->profiles, &files);
    int rc = files.failed ? error_set(err, ENOMEM, "out of memory")
                          : inspect_probe(s->root, &files, &in->probe, err);
    strlist_done(&files);
    return rc == 0 ? read_metadata(s->root, in->claims, in->probe, err) : rc;
}

bool env_inputs_run_script(struct env_inputs *in, const struct profile *profile, bool allowed)
{
    struct drarun_error why = {0};
    json_t *env = NULL;
    if (!profile->script || !in->looked ||
        !json_is_true(json_object_get(json_object_get(in->probe, "files"), profile->script)))
        return false;
    if (in->foreign)
        error_set(&why, EPERM, "%s: not run, since root is not this machine's own tree",
                  profile->script);
    else if (!allowed)
        error_set(&why, EPERM, "%s: not run, because the calling program has not allowed it",
                  profile->script);
    else
        vendor_script_run_apart(profile->script, VENDOR_SCRIPT_MS, &env, &why);
    json_t *script = env ? json_pack("{s:s, s:o}", "path", profile->script, "env", env)
                         : json_pack("{s:s, s:s}", "path", profile->script, "reason", why.text);
    json_object_set_new(in->probe, "script", script);
    return true;
}

int env_inputs_read(const struct env_sources *s, struct env_inputs *in, struct drarun_error *err)
{
    *in = (struct env_inputs){.claims = json_array(),
                              .slices_json = json_array(),
                              .nodes = json_array(),
                              .pods = json_array()};
    if (!in->claims || !in->slices_json || !in->nodes || !in->pods)
        return error_set(err, ENOMEM, "out of memory");
    int rc = profile_file_load(s->profiles, &in->profiles, err);
    if (rc == 0)
        rc = read_objects(s, in, err);
    if (rc == 0)
        rc = slices_read(in->slices_json, &in->slices, err);
    if (rc == 0 && s->probe)
        rc = read_probe_file(s->probe, in, err);
    if (rc == 0 && !s->probe && (s->root || !in->claims))
        rc = look(s, in, err);
    in->labels = cluster_node_labels(in->nodes);
    read_environment(&in->user);
    return rc;
}
