/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/crd.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define PRESERVE "x-kubernetes-preserve-unknown-fields"

extern const unsigned char drajob_schema_json[], crd_json[];
extern const size_t drajob_schema_json_size, crd_json_size;

/* JSON Schema 2020-12 becomes a structural schema: every value has one type, nothing is said by
 * alternatives, and $ref is written out. What is lost that way crd.json says again as a rule. */
struct maker {
    const json_t *defs;   /* of the schema */
    const json_t *rules;  /* of crd.json */
    const json_t *bounds; /* likewise: of maps in lists, or the API server takes rules over their
                             keys for too expensive */
    struct drarun_error *err;
    bool quiet; /* in types of the API, whose words would be most of the definition */
    int rc;
};

static void fail(struct maker *m, const char *path, const char *what)
{
    if (m->rc == 0)
        m->rc = error_set(m->err, ENOTSUP, "schema of the job spec: %s: %s", path, what);
}

static void put(struct maker *m, json_t *object, const char *key, json_t *value_take)
{
    if (json_object_set_new(object, key, value_take) < 0 && m->rc == 0)
        m->rc = error_set(m->err, ENOMEM, "out of memory");
}

/* A new reference: the node with what its $ref names, itself winning. */
static json_t *resolved(struct maker *m, const json_t *node, const char *path)
{
    const char *ref = value_text(node, "$ref");
    if (!ref)
        return json_copy(unconst(node));
    const json_t *named = json_object_get(m->defs, strrchr(ref, '/') + 1);
    json_t *copy = json_copy(unconst(named));
    if (!copy || json_object_update(copy, unconst(node)) < 0)
        fail(m, path, "a reference to nothing");
    json_object_del(copy, "$ref");
    return copy;
}

/* ---- values of one type, or of several ---- */

/* What means the same in both worlds. */
static const char *const same[] = {
    "type",    "enum",    "pattern",       "minLength",     "maxLength", "minItems", "maxItems",
    "minimum", "maximum", "minProperties", "maxProperties", "required",  NULL};

static void copy_same(struct maker *m, const json_t *from, json_t *to)
{
    for (const char *const *key = same; *key; key++)
        if (json_object_get(from, *key))
            put(m, to, *key, json_incref(json_object_get(from, *key)));
}

static bool is_required_alone(const json_t *schema)
{
    return json_object_size(schema) == 1 && json_object_get(schema, "required");
}

/* Which members go together, where that is all that is said of them. */
static void copy_required(struct maker *m, const json_t *from, json_t *to)
{
    static const char *const keys[] = {"oneOf", "anyOf", "not"};
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        json_t *said = json_object_get(from, keys[k]);
        bool plain = is_required_alone(said) || json_array_size(said) > 0;
        for (size_t i = 0; i < json_array_size(said); i++)
            plain = plain && is_required_alone(json_array_get(said, i));
        if (plain)
            put(m, to, keys[k], json_incref(said));
    }
}

/* With what it is when it is left out: the schema's defaults are drarun's at the time when it reads
 * the job, and not written into objects. */
static void describe(struct maker *m, const json_t *from, json_t *to)
{
    const char *words = value_text(from, "description");
    if (m->quiet)
        return;
    const json_t *fallback = json_object_get(from, "default");
    cleanup_free char *value = fallback ? json_dumps(fallback, JSON_ENCODE_ANY) : NULL;
    const char *between = words && value ? "; " : "";
    if (value && json_is_string(fallback)) {
        value[strlen(value) - 1] = '\0';
        memmove(value, value + 1, strlen(value));
    }
    if (words || value)
        put(m, to, "description",
            json_sprintf("%s%s%s%s", words ? words : "", between, value ? "default: " : "",
                         value ? value : ""));
}

/* Each alternative's limits hold for values of its own type alone, in both worlds. */
static void add_alternative(struct maker *m, const json_t *node, json_t *to, unsigned *types,
                            const char *path)
{
    CLEANUP(json_decrefp) json_t *one = resolved(m, node, path);
    const char *constant = value_text(one, "const"), *type = value_text(one, "type");
    if (constant)
        put(m, to, "pattern", json_sprintf("^%s$", constant));
    *types |= constant || (type && strcmp(type, "string") == 0) ? 1U
              : type && strcmp(type, "integer") == 0            ? 2U
              : type && strcmp(type, "array") == 0              ? 4U
                                                                : 8U;
    copy_same(m, one, to);
    json_object_del(to, "type");
}

static json_t *convert_choice(struct maker *m, const json_t *choices, const char *path)
{
    json_t *to = json_object();
    unsigned types = 0;
    size_t i;
    const json_t *each;
    json_array_foreach(choices, i, each) add_alternative(m, each, to, &types, path);
    if (types == (1U | 2U))
        put(m, to, "x-kubernetes-int-or-string", json_true());
    else if (types == (1U | 4U) || (types & 8U && !(types & 2U)))
        put(m, to, PRESERVE, json_true());
    else
        fail(m, path, "alternatives of these types have no counterpart");
    return to;
}

/* ---- objects and lists ---- */

static json_t *convert(struct maker *m, const json_t *node, const char *path);

static bool has_word(const json_t *list, const char *word)
{
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each)
    {
        if (strcmp(json_string_value(each), word) == 0)
            return true;
    }
    return false;
}

static void add_members(struct maker *m, const json_t *from, json_t *to, const char *path)
{
    const json_t *more = json_object_get(from, "additionalProperties");
    json_t *properties = json_object(), *value;
    const char *key;
    json_object_foreach(json_object_get(from, "properties"), key, value)
    {
        struct buf below = BUF_INIT;
        buf_printf(&below, "%s.%s", path, key);
        put(m, properties, key, convert(m, value, below.data ? below.data : key));
        buf_done(&below);
    }
    if (json_object_size(properties) > 0)
        put(m, to, "properties", json_incref(properties));
    json_decref(properties);
    if (json_is_object(more))
        put(m, to, "additionalProperties", convert(m, more, ""));
    else if (!more)
        put(m, to, PRESERVE, json_true());
}

static void add_items(struct maker *m, const json_t *from, json_t *to, const char *path)
{
    const json_t *items = json_object_get(from, "items");
    struct buf below = BUF_INIT;
    buf_printf(&below, "%s[]", path);
    if (items)
        put(m, to, "items", convert(m, items, below.data ? below.data : path));
    buf_done(&below);
}

/* ---- rules ---- */

/* What holds for a key of the spec holds for that key of a role. */
static bool is_at(const json_t *rule, const char *path)
{
    static const char top[] = "spec.", role[] = "spec.roles[].";
    const char *at = value_text(rule, "at");
    bool of_role = strncmp(path, role, strlen(role)) == 0;
    if (at && of_role && strncmp(at, top, strlen(top)) == 0)
        return strcmp(at + strlen(top), path + strlen(role)) == 0;
    return at && strcmp(at, path) == 0;
}

static json_t *validation(const json_t *rule)
{
    json_t *copy = json_copy(unconst(rule));
    json_object_del(copy, "at");
    return copy;
}

static void add_rules(struct maker *m, json_t *to, const char *path)
{
    json_t *list = json_object_get(to, "x-kubernetes-validations");
    size_t i;
    const json_t *rule;
    json_array_foreach(m->rules, i, rule)
    {
        if (!is_at(rule, path))
            continue;
        if (!list)
            put(m, to, "x-kubernetes-validations", list = json_array());
        if (json_array_append_new(list, validation(rule)) < 0)
            fail(m, path, "out of memory");
    }
}

static void add_bound(struct maker *m, json_t *to, const char *path)
{
    size_t i;
    const json_t *bound;
    json_array_foreach(m->bounds, i, bound)
    {
        if (strcmp(value_text(bound, "at"), path) == 0)
            put(m, to, "maxProperties", json_incref(json_object_get(bound, "maxProperties")));
    }
}

/* What a structural schema cannot say must be said by a rule. */
static void need_rules(struct maker *m, const json_t *from, const json_t *to, const char *path)
{
    static const char *const lost[] = {
        "if", "not", "allOf", "oneOf", "anyOf", "dependentRequired", "propertyNames", NULL};
    for (const char *const *key = lost; *key; key++)
        if (json_object_get(from, *key) && !json_object_get(to, *key) &&
            !json_object_get(to, "x-kubernetes-validations"))
            fail(m, path, *key);
}

/* A selector may be a text or a list, of which rules see nothing. */
static void keep_selector_from_resource(struct maker *m, const json_t *from, json_t *to)
{
    const json_t *then = json_object_get(json_object_get(from, "then"), "properties");
    if (json_is_false(json_object_get(then, "selector")))
        put(m, to, "not", json_pack("{s:[s, s]}", "required", "resource", "selector"));
}

/* A type of the API's, as scripts/pod-schema writes it. */
static bool is_foreign(const json_t *node)
{
    const char *ref = value_text(node, "$ref");
    return ref && isupper((unsigned char)strrchr(ref, '/')[1]);
}

static json_t *convert_resolved(struct maker *m, const json_t *from, const char *path);

/* The path begins with "spec"; the items of a list have the list's with "[]". */
static json_t *convert(struct maker *m, const json_t *node, const char *path)
{
    CLEANUP(json_decrefp) json_t *from = resolved(m, node, path);
    bool quiet = m->quiet;
    m->quiet = quiet || is_foreign(node);
    json_t *to = convert_resolved(m, from, path);
    m->quiet = quiet;
    describe(m, from, to);
    return to;
}

static json_t *convert_resolved(struct maker *m, const json_t *from, const char *path)
{
    const json_t *type = json_object_get(from, "type"), *choices = json_object_get(from, "oneOf");
    const char *name = json_string_value(type);
    json_t *to = NULL;
    if (choices && !type)
        return convert_choice(m, choices, path);
    to = json_object();
    copy_same(m, from, to);
    if (json_is_array(type)) { /* text or number */
        json_object_del(to, "type");
        put(m, to, has_word(type, "number") ? PRESERVE : "x-kubernetes-int-or-string", json_true());
    } else if (json_object_get(from, "enum")) {
        put(m, to, "type", json_string("string"));
    } else if (name && strcmp(name, "object") == 0) {
        add_members(m, from, to, path);
    } else if (name && strcmp(name, "array") == 0) {
        add_items(m, from, to, path);
    }
    add_bound(m, to, path);
    add_rules(m, to, path); /* whose words are better */
    if (!json_object_get(to, "x-kubernetes-validations"))
        copy_required(m, from, to);
    need_rules(m, from, to, path);
    keep_selector_from_resource(m, from, to);
    return to;
}

/* ---- the whole ---- */

/* Rules may compare with what is there: a job that was accepted stays as it is, one whose spec was
 * refused may be corrected. */
#define OPEN                                                                                       \
    "!has(oldSelf.status) || !has(oldSelf.status.state) || (has(oldSelf.status.reason) && "        \
    "oldSelf.status.reason == 'InvalidSpec')"

/* Rules know nothing of a value that may be of several types. */
static bool is_seen(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");
    if (items)
        return is_seen(items);
    return json_object_get(schema, "type") || json_object_get(schema, "x-kubernetes-int-or-string");
}

/* always: from the creation, not only once it is accepted. */
static json_t *fix_member(const char *key, bool always)
{
    return json_pack(
        "{s:o, s:s+, s:s}", "rule",
        json_sprintf("%s(has(self.spec.%s) ? has(oldSelf.spec.%s) && self.spec.%s == "
                     "oldSelf.spec.%s : !has(oldSelf.spec.%s))",
                     always ? "" : OPEN " || ", key, key, key, key, key),
        "fieldPath", ".spec.", key, "message",
        always ? "is fixed once the object is there: delete the job and apply it again"
               : "is fixed once the job is accepted: delete the job and apply it again, or give it "
                 "another name");
}

/* additions: `changes` may change at any time, `fixed` at none. */
static void fix_members(struct maker *m, json_t *root, const json_t *spec, const json_t *additions)
{
    json_t *list = json_array(), *value;
    const char *key;
    put(m, root, "x-kubernetes-validations", list);
    json_object_foreach(json_object_get(spec, "properties"), key, value)
    {
        if (has_word(json_object_get(additions, "changes"), key) || !is_seen(value))
            continue;
        json_t *rule = fix_member(key, has_word(json_object_get(additions, "fixed"), key));
        if (json_array_append_new(list, rule) < 0)
            fail(m, key, "out of memory");
    }
}

int crd_make(const json_t *schema, const json_t *additions, json_t **ret_crd,
             struct drarun_error *err)
{
    struct maker m = {.defs = json_object_get(schema, "$defs"),
                      .rules = json_object_get(additions, "rules"),
                      .bounds = json_object_get(additions, "bounds"),
                      .err = err};
    CLEANUP(json_decrefp) json_t *crd = json_deep_copy(json_object_get(additions, "crd"));
    json_t *version = json_array_get(json_object_get(json_object_get(crd, "spec"), "versions"), 0);
    json_t *root = json_object_get(json_object_get(version, "schema"), "openAPIV3Schema");
    json_t *spec = convert(&m, json_object_get(m.defs, "spec"), "spec");
    json_t *workers = json_object_get(json_object_get(spec, "properties"), "workers");
    const json_t *given = json_object_get(json_object_get(m.defs, "spec"), "properties");
    /* rules count with it */
    put(&m, workers, "default",
        json_incref(json_object_get(json_object_get(given, "workers"), "default")));
    put(&m, json_object_get(root, "properties"), "spec", spec);
    fix_members(&m, root, spec, additions);
    if (m.rc == 0)
        *ret_crd = TAKE_PTR(crd);
    return m.rc;
}

int crd_manifest(json_t **ret_crd, struct drarun_error *err)
{
    json_error_t why;
    CLEANUP(json_decrefp)
    json_t *schema = json_loadb((const char *)drajob_schema_json, drajob_schema_json_size, 0, &why);
    CLEANUP(json_decrefp)
    json_t *additions = json_loadb((const char *)crd_json, crd_json_size, 0, &why);
    if (!schema || !additions)
        return error_set(err, EINVAL, "internal error: the embedded schema: %s", why.text);
    return crd_make(schema, additions, ret_crd, err);
}
