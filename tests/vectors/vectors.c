/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-vectors --show FILE prints what is derived from one vector, as JSON.
 * drarun-vectors [--strict] DIR...: derives the plan of every vector file of the directories and
 * compares it with what the vector expects. Shape of the files: tests/data/vectors/README.md. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/plan.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "tests/vectors/compare.h"

#define DIFFERENCES_SHOWN 5

struct context {
    struct profiles profiles;
    bool strict; /* also how often a warning comes */
    unsigned passed, failed;
};

/* ---- nodes: fixtures under another name ---- */

static int load(const char *path, json_t **ret_json, struct drarun_error *err)
{
    json_error_t error;
    *ret_json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!*ret_json)
        return error_set(err, EINVAL, "%s:%d: %s", path, error.line, error.text);
    return 0;
}

static void rename_slice(json_t *slice, const char *from, const char *to)
{
    json_t *spec = json_object_get(slice, "spec"), *pool = json_object_get(spec, "pool");
    const char *name = value_text(pool, "name");
    if (value_text(spec, "nodeName"))
        json_object_set_new(spec, "nodeName", json_string(to));
    if (name && from && strcmp(name, from) == 0)
        json_object_set_new(pool, "name", json_string(to));
}

/* Labels that a vector changes: null takes one away. */
static void patch_labels(json_t *labels, const json_t *patch)
{
    const char *key;
    json_t *value;
    value_foreach(patch, key, value)
    {
        if (json_is_null(value))
            json_object_del(labels, key);
        else
            json_object_set(labels, key, value);
    }
}

static int add_node(const char *directory, const char *name, const json_t *node, json_t *slices,
                    json_t *all_labels, struct drarun_error *err)
{
    char path[4096];
    json_t *fixture = NULL, *item;
    size_t i;
    const char *file = value_text(node, "fixture");
    /* fixtures/ lies beside the directory of the vectors, or in it */
    snprintf(path, sizeof path, "%s/../%s", directory, file ? file : "");
    if (load(path, &fixture, err) < 0) {
        snprintf(path, sizeof path, "%s/%s", directory, file ? file : "");
        int rc = load(path, &fixture, NULL);
        if (rc < 0)
            return rc;
    }
    json_t *object = json_object_get(fixture, "node");
    json_t *labels = json_deep_copy(json_object_get(object, "labels"));
    const char *from = value_text(object, "name");
    json_array_foreach(json_object_get(fixture, "resourceSlices"), i, item)
    {
        json_t *copy = json_deep_copy(item);
        rename_slice(copy, from, name);
        json_array_append_new(slices, copy);
    }
    json_object_set_new(labels, "kubernetes.io/hostname", json_string(name));
    patch_labels(labels, json_object_get(node, "labels"));
    json_object_set_new(all_labels, name, labels);
    json_decref(fixture);
    return 0;
}

static int read_nodes(const char *directory, const json_t *vector, json_t *slices, json_t *labels,
                      struct drarun_error *err)
{
    const char *name;
    json_t *node;
    json_object_foreach(json_object_get(vector, "nodes"), name, node)
    {
        int rc = add_node(directory, name, node, slices, labels, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- the launcher's policy ---- */

static enum spec_transport transport(const json_t *launcher)
{
    const char *text = value_text(launcher, "mpiTransport");
    if (!text)
        text = value_text(json_object_get(launcher, "mpi"), "transport");
    if (!text)
        text = "auto";
    return strcmp(text, "rdma") == 0  ? SPEC_TRANSPORT_RDMA
           : strcmp(text, "tcp") == 0 ? SPEC_TRANSPORT_TCP
                                      : SPEC_TRANSPORT_AUTO;
}

static enum spec_hca_list hca_list(const json_t *launcher)
{
    const char *text = value_text(launcher, "hcaList");
    if (!text)
        return SPEC_HCA_AUTO;
    return strcmp(text, "always") == 0  ? SPEC_HCA_ALWAYS
           : strcmp(text, "never") == 0 ? SPEC_HCA_NEVER
                                        : SPEC_HCA_AUTO;
}

static void read_policy(const json_t *launcher, struct plan_input *in)
{
    const char *network = value_text(launcher, "network"),
               *ranks = value_text(launcher, "ranksPerPod");
    const json_t *gpus = json_object_get(launcher, "gpus");
    in->network = network && strcmp(network, "any") == 0 ? SPEC_NETWORK_ANY : SPEC_NETWORK_RDMA;
    in->tcp_will_do = in->network == SPEC_NETWORK_ANY;
    in->ranks = !ranks                      ? PLAN_RANKS_AUTO
                : strcmp(ranks, "pod") == 0 ? PLAN_RANKS_POD
                                            : PLAN_RANKS_GPU;
    in->no_gpus = json_is_false(gpus) || (json_is_integer(gpus) && json_integer_value(gpus) == 0);
    in->mpi = transport(launcher);
    in->hca_list = hca_list(launcher);
    in->inspector = json_is_true(json_object_get(launcher, "inspector"));
    in->profile = value_text(launcher, "profile");
    in->nccl_version = value_text(launcher, "ncclVersion");
    in->master_addr = value_text(launcher, "masterAddr");
    in->master_port = (uint32_t)json_integer_value(json_object_get(launcher, "masterPort"));
    in->pod_interface = value_text(launcher, "podInterface");
}

static void read_user_env(const json_t *launcher, struct strlist *env)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(launcher, "userEnv"), name, value)
        strlist_addf(env, "%s=%s", name, json_string_value(value) ? json_string_value(value) : "");
}

/* ---- one vector ---- */

struct run { /* what must outlive the plan */
    json_t *slices_json, *labels;
    struct slices slices;
    struct strlist env;
    struct plan_worker_input *workers;
    struct plan plan;
};

static void run_done(struct run *r)
{
    plan_done(&r->plan);
    slices_done(&r->slices);
    strlist_done(&r->env);
    free(r->workers);
    json_decref(r->slices_json);
    json_decref(r->labels);
}

static int build(struct context *c, const char *directory, const json_t *vector, struct run *r,
                 struct drarun_error *err)
{
    const json_t *input = json_object_get(vector, "input");
    const json_t *list = json_object_get(input, "workers");
    const json_t *launcher = json_object_get(input, "launcher");
    struct plan_input in = {.profiles = &c->profiles, .worker_count = json_array_size(list)};
    size_t i;
    json_t *worker;
    int rc = read_nodes(directory, vector, r->slices_json, r->labels, err);
    if (rc == 0)
        rc = slices_read(r->slices_json, &r->slices, err);
    r->workers = calloc(in.worker_count + 1, sizeof *r->workers);
    if (rc < 0 || !r->workers)
        return rc < 0 ? rc : error_set(err, ENOMEM, "out of memory");
    json_array_foreach(list, i, worker) r->workers[i] = (struct plan_worker_input){
        value_text(worker, "pod"), value_text(worker, "node"), json_object_get(worker, "claims"),
        json_object_get(worker, "probe")};
    read_policy(launcher, &in);
    read_user_env(launcher, &r->env);
    in.user_env = r->env.items;
    in.slices = &r->slices;
    in.node_labels = r->labels;
    in.workers = r->workers;
    return plan_build(&in, &r->plan, err);
}

static void run_vector(struct context *c, const char *directory, const char *name)
{
    char path[4096];
    struct drarun_error err = {0};
    struct run r = {.slices_json = json_array(), .labels = json_object()};
    json_t *vector = NULL, *got = NULL;
    struct strlist differences = STRLIST_INIT;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int rc = load(path, &vector, &err);
    if (rc == 0)
        rc = build(c, directory, vector, &r, &err);
    if (rc < 0)
        strlist_addf(&differences, "error: %s", err.text);
    else {
        got = plan_to_json(&r.plan, false);
        compare_plans(json_object_get(vector, "expect"), got, c->strict, &differences);
    }
    printf("%s %s\n", differences.count ? "FAIL" : "pass", name);
    for (size_t i = 0; i < differences.count && i < DIFFERENCES_SHOWN; i++)
        printf("     %s\n", differences.items[i]);
    if (differences.count > DIFFERENCES_SHOWN)
        printf("     and %zu more\n", differences.count - DIFFERENCES_SHOWN);
    if (differences.count)
        c->failed++;
    else
        c->passed++;
    strlist_done(&differences);
    json_decref(got);
    run_done(&r);
    json_decref(vector);
}

/* "error" in place of a plan that cannot be made. */
static int show_vector(struct context *c, const char *path)
{
    struct drarun_error err = {0};
    struct run r = {.slices_json = json_array(), .labels = json_object()};
    json_t *vector = NULL, *got = NULL;
    const char *slash = strrchr(path, '/');
    char directory[4096];
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    int rc = load(path, &vector, &err);
    if (rc == 0)
        rc = build(c, directory, vector, &r, &err);
    got = rc < 0 ? json_pack("{s:s}", "error", err.text) : plan_to_json(&r.plan, true);
    if (json_dumpf(got, stdout, JSON_INDENT(1) | JSON_SORT_KEYS) < 0)
        rc = -EIO;
    putchar('\n');
    json_decref(got);
    run_done(&r);
    json_decref(vector);
    return rc < 0;
}

static int is_vector(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int run_directory(struct context *c, const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_vector, alphasort);
    if (count < 0) {
        fprintf(stderr, "drarun-vectors: %s: %s\n", directory, strerror(errno));
        return -errno;
    }
    for (int i = 0; i < count; i++) {
        run_vector(c, directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

int main(int argc, char *argv[])
{
    struct context c = {0};
    struct drarun_error err = {0};
    int first = argc > 1 && strcmp(argv[1], "--strict") == 0 ? 2 : 1, rc = 0;
    c.strict = first == 2;
    if (first >= argc) {
        fprintf(stderr, "usage: drarun-vectors [--strict] DIR... | --show FILE\n");
        return 64;
    }
    if (profiles_builtin(&c.profiles, &err) < 0) {
        fprintf(stderr, "drarun-vectors: %s\n", err.text);
        return 70;
    }
    if (argc == 3 && strcmp(argv[1], "--show") == 0) {
        rc = show_vector(&c, argv[2]);
        profiles_done(&c.profiles);
        return rc;
    }
    for (int i = first; i < argc && rc == 0; i++)
        rc = run_directory(&c, argv[i]);
    profiles_done(&c.profiles);
    printf("%u passed, %u failed\n", c.passed, c.failed);
    return rc < 0 || c.failed > 0 || c.passed == 0;
}
