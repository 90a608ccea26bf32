/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/profiles/profiles.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/profiles/machine.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

extern const unsigned char profiles_json[]; /* profiles.json, by the build */
extern const size_t profiles_json_size;

#define INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define GBS_PER_MBPS (1.0 / 8000)

void profiles_done(struct profiles *profiles)
{
    free(profiles->list);
    json_decref(profiles->documents);
    *profiles = (struct profiles){0};
}

DEFINE_CLEANUP(struct profiles, profiles_done)

/* ---- reading ---- */

struct key {
    const char *name;
    json_type type;
};

static int check_keys(const char *what, const json_t *object, const struct key *keys, size_t count,
                      struct drarun_error *err)
{
    const char *name;
    json_t *value;
    value_foreach(object, name, value)
    {
        size_t k = 0;
        while (k < count && strcmp(keys[k].name, name) != 0)
            k++;
        if (k == count)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: unknown key \"%.60s\"", what,
                              name);
        json_type type = json_typeof(value) == JSON_FALSE ? JSON_TRUE : json_typeof(value);
        if (type != keys[k].type && !(type == JSON_INTEGER && keys[k].type == JSON_REAL))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: %s has the wrong type", what,
                              name);
    }
    return 0;
}

static int check_list(const char *what, const json_t *list, const struct key *keys, size_t count,
                      struct drarun_error *err)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (!json_is_object(entry))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected an object for each",
                              what);
        int rc = check_keys(what, entry, keys, count, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_machine(const char *profile, const json_t *machine, struct drarun_error *err)
{
    static const struct key keys[] = {{"gpus", JSON_INTEGER},   {"nics", JSON_INTEGER},
                                      {"noRoot", JSON_STRING},  {"gpuClass", JSON_STRING},
                                      {"wholeNode", JSON_TRUE}, {"mounts", JSON_ARRAY},
                                      {"taint", JSON_OBJECT}};
    static const struct key mount_keys[] = {
        {"name", JSON_STRING}, {"host", JSON_STRING}, {"pod", JSON_STRING}};
    static const struct key taint_keys[] = {
        {"key", JSON_STRING}, {"value", JSON_STRING}, {"nodes", JSON_STRING}};
    const json_t *mounts = json_object_get(machine, "mounts");
    json_t *taint = json_object_get(machine, "taint"), *mount;
    char what[160];
    size_t i;
    snprintf(what, sizeof what, "profile %.60s: machine", profile);
    int rc = check_keys(what, machine, keys, ARRAY_LEN(keys), err);
    if (rc == 0)
        rc = check_list(what, mounts, mount_keys, ARRAY_LEN(mount_keys), err);
    if (rc == 0 && taint)
        rc = check_keys(what, taint, taint_keys, ARRAY_LEN(taint_keys), err);
    if (rc < 0)
        return rc;
    if (taint && json_object_size(taint) != ARRAY_LEN(taint_keys))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: a taint has key, value and nodes",
                          what);
    if (json_array_size(mounts) > MACHINE_MOUNTS_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: at most %u mounts, not %zu", what,
                          MACHINE_MOUNTS_MAX, json_array_size(mounts));
    json_array_foreach(mounts, i, mount)
    {
        if (json_object_size(mount) != ARRAY_LEN(mount_keys))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: a mount has name, host and pod",
                              what);
    }
    return 0;
}

static int check_sizes(const char *profile, const json_t *sizes, struct drarun_error *err)
{
    static const struct key keys[] = {{"instanceType", JSON_ARRAY},   {"nicMbps", JSON_REAL},
                                      {"interSocketGBs", JSON_REAL},  {"source", JSON_STRING},
                                      {"netDevsPolicy", JSON_STRING}, {"unverified", JSON_STRING}};
    char what[160];
    snprintf(what, sizeof what, "profile %.60s: sizes", profile);
    return check_list(what, sizes, keys, ARRAY_LEN(keys), err);
}

static int check_variables(const char *profile, const json_t *list, struct drarun_error *err)
{
    static const struct key keys[] = {{"name", JSON_STRING},       {"value", JSON_STRING},
                                      {"reason", JSON_STRING},     {"source", JSON_STRING},
                                      {"file", JSON_TRUE},         {"keep", JSON_TRUE},
                                      {"unverified", JSON_STRING}, {"when", JSON_OBJECT}};
    static const struct key conditions[] = {
        {"ncclBelow", JSON_STRING},   {"ncclFrom", JSON_STRING},
        {"instanceType", JSON_ARRAY}, {"instanceTypeNot", JSON_ARRAY},
        {"railIsolated", JSON_TRUE},  {"nics", JSON_STRING},
        {"mpi", JSON_STRING}};
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        char what[160];
        const char *name = value_text(entry, "name");
        snprintf(what, sizeof what, "profile %.60s: variable %.60s", profile, name ? name : "?");
        if (!name || !name[0] || strchr(name, '=') ||
            !json_is_string(json_object_get(entry, "value")) ||
            !json_is_string(json_object_get(entry, "reason")))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "%s: expected name, value and reason as texts", what);
        int rc = check_keys(what, entry, keys, ARRAY_LEN(keys), err);
        if (rc == 0)
            rc = check_keys(what, json_object_get(entry, "when"), conditions, ARRAY_LEN(conditions),
                            err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_profile(const json_t *entry, struct drarun_error *err)
{
    static const struct key keys[] = {
        {"name", JSON_STRING},       {"source", JSON_STRING},
        {"detect", JSON_OBJECT},     {"data", JSON_STRING},
        {"c2c", JSON_TRUE},          {"wholeNode", JSON_TRUE},
        {"gkeNaming", JSON_TRUE},    {"exactInterface", JSON_TRUE},
        {"hcaList", JSON_TRUE},      {"roceGid", JSON_TRUE},
        {"mergeRails", JSON_TRUE},   {"interSocketGBs", JSON_REAL},
        {"nicMbps", JSON_REAL},      {"variables", JSON_ARRAY},
        {"prepend", JSON_ARRAY},     {"confirm", JSON_ARRAY},
        {"directories", JSON_ARRAY}, {"directoryFile", JSON_STRING},
        {"numaPairs", JSON_ARRAY},   {"script", JSON_STRING},
        {"scriptWins", JSON_TRUE},   {"railIsolated", JSON_TRUE},
        {"machine", JSON_OBJECT},    {"sizes", JSON_ARRAY},
        {"unverified", JSON_STRING},
    };
    static const struct key detect[] = {{"instanceType", JSON_ARRAY}, {"attribute", JSON_OBJECT},
                                        {"label", JSON_OBJECT},       {"linkLayer", JSON_ARRAY},
                                        {"ibdev", JSON_ARRAY},        {"arch", JSON_ARRAY},
                                        {"product", JSON_ARRAY},      {"file", JSON_ARRAY}};
    const char *name = value_text(entry, "name");
    char what[128];
    if (!name)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "profiles: a profile without a name");
    snprintf(what, sizeof what, "profile %.60s", name);
    int rc = check_keys(what, entry, keys, ARRAY_LEN(keys), err);
    const char *script = value_text(entry, "script");
    if (rc == 0 && script && script[0] != '/')
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: script: expected an absolute path, got \"%.80s\"", what, script);
    if (rc == 0)
        rc = check_keys(what, json_object_get(entry, "detect"), detect, ARRAY_LEN(detect), err);
    if (rc == 0)
        rc = check_variables(name, json_object_get(entry, "variables"), err);
    if (rc == 0)
        rc = check_variables(name, json_object_get(entry, "prepend"), err);
    if (rc == 0)
        rc = check_sizes(name, json_object_get(entry, "sizes"), err);
    return rc < 0 ? rc : check_machine(name, json_object_get(entry, "machine"), err);
}

static bool flag(const json_t *entry, const char *key, bool fallback)
{
    const json_t *value = json_object_get(entry, key);
    return value ? json_is_true(value) : fallback;
}

static struct profile read_profile(const json_t *entry)
{
    const char *data = value_text(entry, "data");
    const char *source = value_text(entry, "source");
    return (struct profile){
        .name = value_text(entry, "name"),
        .source = source ? source : "",
        .data = !data || strcmp(data, "rdma") == 0 ? PROFILE_RDMA
                : strcmp(data, "netdev") == 0      ? PROFILE_NETDEV
                                                   : PROFILE_NO_DATA,
        .c2c = flag(entry, "c2c", false),
        .whole_node = flag(entry, "wholeNode", false),
        .gke_naming = flag(entry, "gkeNaming", false),
        .exact_interface = flag(entry, "exactInterface", true),
        .hca_list = flag(entry, "hcaList", true),
        .roce_gid = flag(entry, "roceGid", true),
        .merge_rails = flag(entry, "mergeRails", false),
        .script = value_text(entry, "script"),
        .script_wins = flag(entry, "scriptWins", false),
        .rail_isolated = flag(entry, "railIsolated", false),
        .inter_socket = json_number_value(json_object_get(entry, "interSocketGBs")),
        .nic_gbs = json_number_value(json_object_get(entry, "nicMbps")) * GBS_PER_MBPS,
        .detect = json_object_get(entry, "detect"),
        .variables = json_object_get(entry, "variables"),
        .prepend = json_object_get(entry, "prepend"),
        .confirm = json_object_get(entry, "confirm"),
        .directories = json_object_get(entry, "directories"),
        .numa_pairs = json_object_get(entry, "numaPairs"),
        .machine = json_object_get(entry, "machine"),
        .sizes = json_object_get(entry, "sizes"),
        .unverified = value_text(entry, "unverified"),
        .directory_file = value_text(entry, "directoryFile"),
    };
}

static int add_document(struct profiles *p, const json_t *document, struct drarun_error *err)
{
    const json_t *list = json_object_get(document, "profiles");
    size_t i;
    json_t *entry;
    if (!json_is_array(list))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "profiles: expected an object with an array \"profiles\"");
    struct profile *grown =
        reallocarray(p->list, p->count + json_array_size(list) + 1, sizeof *grown);
    if (!grown)
        return error_set(err, ENOMEM, "profiles: out of memory");
    p->list = grown;
    json_array_foreach(list, i, entry)
    {
        int rc = check_profile(entry, err);
        if (rc < 0)
            return rc;
        if (!profiles_find(p, value_text(entry, "name")))
            p->list[p->count++] = read_profile(entry);
    }
    return 0;
}

int profiles_load(json_t *site, struct profiles *ret_profiles, struct drarun_error *err)
{
    struct profiles p = {.documents = json_array()};
    CLEANUP(profiles_donep) struct profiles *undo = &p;
    json_t *builtin = json_loadb((const char *)profiles_json, profiles_json_size, 0, NULL);
    if (!p.documents || !builtin || (site && json_array_append(p.documents, site) < 0)) {
        json_decref(builtin);
        return error_set(err, ENOMEM, "profiles: out of memory");
    }
    if (json_array_append_new(p.documents, builtin) < 0)
        return error_set(err, ENOMEM, "profiles: out of memory");
    for (size_t d = 0; d < json_array_size(p.documents); d++) {
        int rc = add_document(&p, json_array_get(p.documents, d), err);
        if (rc < 0)
            return rc;
    }
    p.common = json_object_get(builtin, "common");
    p.rules = json_object_get(builtin, "rules");
    undo = NULL;
    *ret_profiles = p;
    return 0;
}

int profiles_builtin(struct profiles *ret_profiles, struct drarun_error *err)
{
    return profiles_load(NULL, ret_profiles, err);
}

const struct profile *profiles_find(const struct profiles *profiles, const char *name)
{
    for (size_t i = 0; i < profiles->count; i++)
        if (strcmp(profiles->list[i].name, name) == 0)
            return &profiles->list[i];
    return NULL;
}

bool profiles_is_of_site(const struct profiles *profiles, const char *name)
{
    for (size_t d = 0; d + 1 < json_array_size(profiles->documents); d++) {
        const json_t *document = json_array_get(profiles->documents, d);
        if (value_find(json_object_get(document, "profiles"), "name", name))
            return true;
    }
    return false;
}

const char *profile_rule(const struct profiles *profiles, const char *id)
{
    const char *text = value_text(profiles->rules, id);
    return text ? text : "";
}

/* ---- detection ---- */

/* Shell-like pattern with * alone, without regard to case. */
static bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *mark = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            mark = text;
        } else if (tolower((unsigned char)*pattern) == tolower((unsigned char)*text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool profile_match_any(const char *text, const void *patterns)
{
    size_t i;
    json_t *entry;
    json_array_foreach(patterns, i, entry)
    {
        const char *pattern = json_string_value(entry);
        if (pattern && text && matches(pattern, text))
            return true;
    }
    return false;
}

static const char *label(const struct profile_facts *facts, const char *key)
{
    return value_text(facts->labels, key);
}

struct profile_size profile_size(const struct profile *profile, const char *instance_type)
{
    struct profile_size size = {profile->inter_socket, profile->nic_gbs, NULL};
    size_t i;
    json_t *entry;
    json_array_foreach(profile->sizes, i, entry)
    {
        const json_t *mbps = json_object_get(entry, "nicMbps");
        const json_t *link = json_object_get(entry, "interSocketGBs");
        if (!profile_match_any(instance_type, json_object_get(entry, "instanceType")))
            continue;
        if (mbps)
            size.nic_gbs = json_number_value(mbps) * GBS_PER_MBPS;
        if (link)
            size.inter_socket = json_number_value(link);
        size.net_devs_policy = value_text(entry, "netDevsPolicy");
        break;
    }
    return size;
}

/* One way of telling a profile; says in ret_fact what it was. */
typedef bool (*detect_fn)(const struct profile *profile, const struct profile_facts *facts,
                          char *ret_fact, size_t size);

static bool by_instance_type(const struct profile *profile, const struct profile_facts *facts,
                             char *ret_fact, size_t size)
{
    const char *type = label(facts, INSTANCE_TYPE);
    if (!type || !profile_match_any(type, json_object_get(profile->detect, "instanceType")))
        return false;
    snprintf(ret_fact, size, "node label %s=%s", INSTANCE_TYPE, type);
    return true;
}

static bool by_attribute(const struct profile *profile, const struct profile_facts *facts,
                         char *ret_fact, size_t size)
{
    const char *key;
    json_t *patterns;
    json_object_foreach(json_object_get(profile->detect, "attribute"), key, patterns)
    {
        if (facts->has_attribute &&
            facts->has_attribute(key, profile_match_any, patterns, facts->node)) {
            snprintf(ret_fact, size, "attribute %s of the node's NICs", key);
            return true;
        }
    }
    return false;
}

static bool by_label(const struct profile *profile, const struct profile_facts *facts,
                     char *ret_fact, size_t size)
{
    const char *key;
    json_t *patterns;
    json_object_foreach(json_object_get(profile->detect, "label"), key, patterns)
    {
        const char *value = label(facts, key);
        if (value && profile_match_any(value, patterns)) {
            snprintf(ret_fact, size, "node label %s=%s", key, value);
            return true;
        }
    }
    return false;
}

/* The first of the files that the pod shows to be there. */
static const char *first_file(const json_t *paths, const json_t *files)
{
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        if (path && json_is_true(json_object_get(files, path)))
            return path;
    }
    return NULL;
}

/* Every condition that the profile has must hold, and it must have one beside the architecture and
 * the product, which tell no fabric. */
static bool by_probe(const struct profile *profile, const struct profile_facts *facts,
                     char *ret_fact, size_t size)
{
    const json_t *layer = json_object_get(profile->detect, "linkLayer");
    const json_t *ibdev = json_object_get(profile->detect, "ibdev");
    const json_t *arch = json_object_get(profile->detect, "arch");
    const json_t *product = json_object_get(profile->detect, "product");
    const json_t *paths = json_object_get(profile->detect, "file");
    const char *file = first_file(paths, facts->files);
    if ((!layer && !ibdev && !paths) || (layer && !profile_match_any(facts->link_layer, layer)) ||
        (ibdev && !profile_match_any(facts->ibdev, ibdev)) ||
        (arch && !profile_match_any(facts->arch, arch)) ||
        (product && !profile_match_any(facts->product, product)) || (paths && !file))
        return false;
    if (file)
        snprintf(ret_fact, size, "%s%s%s", file, product ? " with " : "",
                 product ? facts->product : "");
    else
        snprintf(ret_fact, size, "link layer %s%s%s",
                 facts->link_layer ? facts->link_layer : "unknown", ibdev ? ", device " : "",
                 ibdev && facts->ibdev ? facts->ibdev : "");
    return true;
}

const struct profile *profiles_detect(const struct profiles *profiles,
                                      const struct profile_facts *facts, char *ret_fact,
                                      size_t size)
{
    static const detect_fn ways[] = {by_instance_type, by_attribute, by_label, by_probe};
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        for (size_t i = 0; i < profiles->count; i++)
            if (ways[w](&profiles->list[i], facts, ret_fact, size))
                return &profiles->list[i];
    return NULL;
}

/* ---- files ---- */

static void add_path(struct strlist *paths, const char *path)
{
    if (path[0] == '/' && !strlist_has(paths, path))
        strlist_add(paths, path);
}

/* A path may begin with ${directory}: each of the profile's. */
static void add_paths(const struct profile *profile, const char *path, struct strlist *paths)
{
    static const char mark[] = "${directory}";
    size_t i;
    json_t *entry;
    if (strncmp(path, mark, strlen(mark)) != 0) {
        add_path(paths, path);
        return;
    }
    json_array_foreach(profile->directories, i, entry)
    {
        char text[512];
        snprintf(text, sizeof text, "%s%s", json_string_value(entry), path + strlen(mark));
        add_path(paths, text);
    }
}

void profiles_scripts(const struct profiles *profiles, struct strlist *paths)
{
    for (size_t p = 0; p < profiles->count; p++)
        if (profiles->list[p].script)
            add_path(paths, profiles->list[p].script);
}

void profiles_files(const struct profiles *profiles, struct strlist *paths)
{
    json_t *entry;
    size_t i;
    for (size_t p = 0; p < profiles->count; p++) {
        const struct profile *profile = &profiles->list[p];
        if (profile->script)
            add_path(paths, profile->script);
        json_array_foreach(profile->confirm, i, entry) if (json_is_string(entry))
            add_paths(profile, json_string_value(entry), paths);
        json_array_foreach(profile->variables, i, entry)
        {
            if (json_is_true(json_object_get(entry, "file")))
                add_paths(profile, value_text(entry, "value"), paths);
        }
    }
}
