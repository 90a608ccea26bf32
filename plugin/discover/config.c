/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/fields.h"
#include "lib/doc/load.h"
#include "plugin/discover/config_edits.h"

#define API_VERSION "drarun.dev/v1alpha1"
#define KIND "PluginConfig"

/* ---- the kinds of fields that are ours ---- */

static void read_list(const struct reader_node *node, void *field)
{
    reader_texts(node, field);
}

static void read_expression(const struct reader_node *node, void *field)
{
    struct cel_program **program = field;
    struct drarun_error own = {0};
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    *program = cel_compile(text, &own);
    /* no API server has looked at it */
    if (!*program || cel_program_admit(*program, &own) < 0)
        reader_fail(node, "%s", own.text);
}

static void read_edits(const struct reader_node *node, void *field)
{
    config_edits_read(node, field);
}

/* What stands between braces is known; the rest may stand in a DNS label. */
static bool template_ok(const char *name)
{
    static const char *const known[] = {"{rail}", "{ifName}", "{rdmaDevice}", "{address}"};
    while (*name) {
        size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
        for (size_t i = 0; len == 0 && i < ARRAY_LEN(known); i++)
            if (strncmp(name, known[i], strlen(known[i])) == 0)
                len = strlen(known[i]);
        if (len == 0)
            return false;
        name += len;
    }
    return true;
}

static void read_rule(const struct reader_node *item, struct config_name_rule *rule)
{
    struct reader_node node;
    const char *name = NULL;
    if (reader_object(item) < 0)
        return;
    reader_known(item, "match name");
    if (reader_get(item, "match", &node))
        read_expression(&node, &rule->match);
    if (!reader_get(item, "name", &node))
        reader_fail(item, "expected a member name");
    else if (reader_text(&node, &name) == 0 && !template_ok(name))
        reader_expected(&node, "lower-case letters, digits and -, with {rail}, {ifName}, "
                               "{rdmaDevice} or {address}");
    rule->name = strdup(name ? name : "");
}

static void read_names(const struct reader_node *node, void *field)
{
    struct discover_config *config = field;
    if (reader_list(node, 0) < 0)
        return;
    if (json_array_size(node->value) > CONFIG_NAME_RULES_MAX) {
        reader_fail(node, "expected at most %u rules", CONFIG_NAME_RULES_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        read_rule(&item, &config->names[config->name_count++]);
    }
}

/* ---- the document ---- */

struct document { /* the names are read into the config as a whole: it comes first */
    struct discover_config config;
    const char *api_version, *kind;
};

#define AT(member) offsetof(struct document, member)
#define EFFECTS "NoSchedule NoExecute None"

static const struct field nic_list[] = {
    {"include", FIELD_CALL, AT(config.nics.include), .read = read_expression},
    {"exclude", FIELD_CALL, AT(config.nics.exclude), .read = read_expression},
    {"excludePrefixes", FIELD_CALL, AT(config.exclude_prefixes), .read = read_list},
    {"virtualPrefixes", FIELD_CALL, AT(config.virtual_prefixes), .read = read_list},
    {"managementNodes", FIELD_BOOL, AT(config.management_nodes), .fallback = "false"},
    {"edits", FIELD_CALL, AT(config.nic_edits), .read = read_edits},
};
static const struct field_table nic_fields = {nic_list, ARRAY_LEN(nic_list)};

static const struct field gpu_list[] = {
    {"include", FIELD_CALL, AT(config.gpus.include), .read = read_expression},
    {"exclude", FIELD_CALL, AT(config.gpus.exclude), .read = read_expression},
    {"edits", FIELD_CALL, AT(config.gpu_edits), .read = read_edits},
};
static const struct field_table gpu_fields = {gpu_list, ARRAY_LEN(gpu_list)};

static const struct field taint_list[] = {
    {"linkDown", FIELD_CHOICE, AT(config.link_down), .choices = EFFECTS, .fallback = "NoSchedule"},
    {"xid", FIELD_CHOICE, AT(config.xid), .choices = EFFECTS, .fallback = "NoSchedule"},
    {"lost", FIELD_CHOICE, AT(config.lost), .choices = EFFECTS, .fallback = "NoSchedule"},
};
static const struct field_table taint_fields = {taint_list, ARRAY_LEN(taint_list)};

static const struct field claims_list[] = {
    {"allow", FIELD_CALL, AT(config.claims.allowed), .read = claim_limits_read_allow},
    {"addresses", FIELD_CALL, AT(config.claims), .read = claim_limits_read_addresses},
};
static const struct field_table claims_fields = {claims_list, ARRAY_LEN(claims_list)};

static const struct field document_list[] = {
    {"apiVersion", FIELD_TEXT, AT(api_version), .fallback = API_VERSION},
    {"kind", FIELD_TEXT, AT(kind), .fallback = KIND},
    {"rescan", FIELD_DURATION, AT(config.rescan_ms), .fallback = "30s"},
    {"uplinks", FIELD_CALL, AT(config.uplinks), .read = read_list},
    {"nics", FIELD_GROUP, 0, .group = &nic_fields},
    {"gpus", FIELD_GROUP, 0, .group = &gpu_fields},
    {"names", FIELD_CALL, AT(config), .read = read_names},
    {"taints", FIELD_GROUP, 0, .group = &taint_fields},
    {"claims", FIELD_GROUP, 0, .group = &claims_fields},
};
static const struct field_table document_fields = {document_list, ARRAY_LEN(document_list)};

/* What container networks make on a node. */
static void default_prefixes(struct discover_config *config)
{
    static const char *const made[] = {"docker", "cni", "cilium_", "lxc", "cali", "flannel"};
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        strlist_add(&config->exclude_prefixes, made[i]);
}

static void defaults(struct document *document)
{
    fields_default(&document_fields, document);
    document->config.claims.allowed = claim_limits_default();
}

void discover_config_default(struct discover_config *ret_config)
{
    struct document document = {0};
    defaults(&document);
    default_prefixes(&document.config);
    *ret_config = document.config;
}

static void check(const struct reader_node *root, const struct document *document)
{
    if (strcmp(document->api_version, API_VERSION) != 0)
        reader_fail_key(root, "apiVersion", "expected " API_VERSION);
    if (strcmp(document->kind, KIND) != 0)
        reader_fail_key(root, "kind", "expected " KIND);
    if (document->config.rescan_ms < 1000)
        reader_fail_key(root, "rescan", "expected at least 1s");
}

static bool out_of_memory(const struct discover_config *config)
{
    bool failed = config->uplinks.failed || config->exclude_prefixes.failed ||
                  config->virtual_prefixes.failed;
    for (size_t i = 0; i < config->name_count; i++)
        failed |= !config->names[i].name;
    return failed;
}

int discover_config_read(const struct doc *doc, struct discover_config *ret_config,
                         struct drarun_error *err)
{
    struct document document = {0};
    struct reader reader;
    if (doc_count(doc) != 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected one document, a " KIND,
                          doc_name(doc));
    reader_init(&reader, doc, false);
    struct reader_node root = reader_root(&reader, 0);
    defaults(&document);
    if (fields_read(&document_fields, &root, &document))
        check(&root, &document);
    if (document.config.exclude_prefixes.count == 0)
        default_prefixes(&document.config);
    int rc = reader_result(&reader, err);
    if (rc == 0 && out_of_memory(&document.config))
        rc = error_set(err, ENOMEM, "%s: out of memory", doc_name(doc));
    reader_done(&reader);
    if (rc < 0)
        discover_config_done(&document.config);
    else
        *ret_config = document.config;
    return rc;
}

int discover_config_load(const char *path, struct discover_config *ret_config,
                         struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    int rc = doc_load_one(path, &doc, err);
    return rc < 0 ? rc : discover_config_read(doc, ret_config, err);
}

static void filter_done(struct config_filter *filter)
{
    if (filter->include)
        cel_program_free(filter->include);
    if (filter->exclude)
        cel_program_free(filter->exclude);
}

void discover_config_done(struct discover_config *config)
{
    filter_done(&config->nics);
    filter_done(&config->gpus);
    for (size_t i = 0; i < config->name_count; i++) {
        if (config->names[i].match)
            cel_program_free(config->names[i].match);
        free(config->names[i].name);
    }
    json_decref(config->nic_edits);
    json_decref(config->gpu_edits);
    claim_limits_done(&config->claims);
    strlist_done(&config->uplinks);
    strlist_done(&config->exclude_prefixes);
    strlist_done(&config->virtual_prefixes);
    *config = (struct discover_config){0};
}

bool config_has_prefix(const struct strlist *prefixes, const char *text)
{
    for (size_t i = 0; i < prefixes->count; i++)
        if (strncmp(text, prefixes->items[i], strlen(prefixes->items[i])) == 0)
            return true;
    return false;
}
