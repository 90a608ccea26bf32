/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods a pod keeps near or away: terms on labels that another controller puts on its pods
 * would select nothing here. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "jobs/import/parts.h"

struct term {
    struct import_affinity *a;
    json_t *copy;        /* of ours */
    const char *foreign; /* the first such label */
    const char *why_not; /* it cannot be rewritten */
    bool matches;        /* the template's own labels satisfy the others */
};

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_foreign(const struct import_affinity *a, const char *key)
{
    char path[320];
    snprintf(path, sizeof path, "metadata.labels.%s", key);
    return import_is_foreign(key) || strlist_has(a->own, path);
}

static bool has_value(const json_t *values, bool (*is)(const char *value, const char *other),
                      const char *other)
{
    json_t *value;
    size_t i;
    json_array_foreach(values, i, value)
    {
        if (json_is_string(value) && is(json_string_value(value), other))
            return true;
    }
    return false;
}

static bool is_same(const char *value, const char *other)
{
    return strcmp(value, other) == 0;
}

static bool begins_with(const char *value, const char *other)
{
    return strncmp(value, other, strlen(other)) == 0;
}

static bool is_worker_role(const char *value, const char *unused)
{
    (void)unused;
    return strcasecmp(value, "launcher") != 0;
}

static void look_at_foreign(struct term *t, const char *key, const char *op, const json_t *values)
{
    bool is_name = ends_in(key, "job-name") || ends_in(key, "jobset-name") ||
                   ends_in(key, "job_name") || strcmp(key, "leaderworkerset.sigs.k8s.io/name") == 0;
    bool is_role =
        ends_in(key, "-role") || ends_in(key, "replica-type") || ends_in(key, "role_type");
    t->foreign = t->foreign ? t->foreign : key;
    if (strcmp(op, "NotIn") == 0 || strcmp(op, "DoesNotExist") == 0)
        t->why_not = "it excludes pods, and no pod of this job has the label";
    else if (is_name && json_array_size(values) > 0 && !has_value(values, begins_with, t->a->job))
        t->why_not = "it names another job: give that job's pods a label of your own, or name a "
                     "drarun job by drarun.dev/job";
    else if (is_role && json_array_size(values) > 0 && !has_value(values, is_worker_role, NULL))
        t->why_not = "it selects the launcher's pod, which holds no devices here";
}

static bool is_satisfied(const struct term *t, const char *key, const char *op,
                         const json_t *values)
{
    const char *label = json_string_value(json_object_get(t->a->labels, key));
    if (strcmp(op, "Exists") == 0)
        return label != NULL;
    if (strcmp(op, "DoesNotExist") == 0)
        return label == NULL;
    bool in = label && has_value(values, is_same, label);
    return strcmp(op, "NotIn") == 0 ? !in : in;
}

static void look_at(struct term *t, const char *key, const char *op, const json_t *values)
{
    if (is_foreign(t->a, key))
        look_at_foreign(t, key, op, values);
    else if (!is_satisfied(t, key, op, values))
        t->matches = false;
}

static void look_at_selector(struct term *t, const struct reader_node *selector)
{
    const char *key = NULL;
    json_t *value = NULL;
    size_t i = 0;
    json_object_foreach(json_object_get(selector->value, "matchLabels"), key, value)
    {
        json_t *values = json_pack("[O]", value);
        look_at(t, key, "In", values);
        json_decref(values);
    }
    json_array_foreach(json_object_get(selector->value, "matchExpressions"), i, value)
    {
        const char *op = json_string_value(json_object_get(value, "operator"));
        key = json_string_value(json_object_get(value, "key"));
        if (key && op)
            look_at(t, key, op, json_object_get(value, "values"));
    }
}

/* matchLabelKeys, not the job's name: a job that is given another name keeps the term. */
static void rewrite(struct term *t, const struct reader_node *selector)
{
    json_object_set_new(
        t->copy, "labelSelector",
        json_pack("{s:[{s:s, s:s}]}", "matchExpressions", "key",
                  t->a->queued ? "batch.kubernetes.io/job-completion-index" : "drarun.dev/worker",
                  "operator", "Exists"));
    json_object_set_new(t->copy, "matchLabelKeys", json_pack("[s]", "drarun.dev/job"));
    json_object_del(t->copy, "mismatchLabelKeys");
    reader_fail(selector,
                "the label %s is another controller's: the term now selects the workers of this "
                "job (drarun.dev/job, drarun.dev/worker)",
                t->foreign);
}

/* False: the term has to go. */
static bool keep_term(struct import_affinity *a, const struct reader_node *node, json_t *copy)
{
    struct term t = {.a = a, .copy = copy, .matches = true};
    struct reader_node selector;
    if (!reader_get(node, "labelSelector", &selector) || !json_is_object(selector.value))
        return true;
    look_at_selector(&t, &selector);
    if (t.why_not) {
        reader_fail(&selector, "this term on the label %s is left out: %s", t.foreign, t.why_not);
        return false;
    }
    if (t.foreign)
        rewrite(&t, &selector);
    else if (!t.matches)
        reader_fail(
            &selector,
            "kept, though no worker of this job has these labels: it applies to other pods");
    return true;
}

/* inner: what a term stands in, or NULL. */
static void take_terms(struct import_affinity *a, const struct reader_node *holder, json_t *copy,
                       const char *key, const char *inner)
{
    struct reader_node list, term;
    json_t *kept = json_object_get(copy, key);
    if (!reader_get(holder, key, &list) || !json_is_array(list.value))
        return;
    for (size_t i = json_array_size(list.value); i-- > 0;) {
        struct reader_node item = reader_item(&list, i);
        json_t *own = json_array_get(kept, i);
        if (!json_is_object(item.value))
            continue;
        term = item;
        if (inner && (!reader_get(&item, inner, &term) || !json_is_object(term.value)))
            continue;
        if (!keep_term(a, &term, inner ? json_object_get(own, inner) : own))
            json_array_remove(kept, i);
    }
    if (json_array_size(kept) == 0)
        json_object_del(copy, key);
}

void import_affinity(struct import_affinity *a, const struct reader_node *pod, json_t *template)
{
    static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
    struct reader_node affinity, kind;
    json_t *spec = json_object_get(template, "spec"), *copy = json_object_get(spec, "affinity");
    a->labels = json_object_get(json_object_get(template, "metadata"), "labels");
    take_terms(a, pod, spec, "topologySpreadConstraints", NULL);
    if (!reader_get(pod, "affinity", &affinity) || !json_is_object(affinity.value))
        return;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        json_t *own = json_object_get(copy, kinds[i]);
        if (!reader_get(&affinity, kinds[i], &kind) || !json_is_object(kind.value))
            continue;
        take_terms(a, &kind, own, "requiredDuringSchedulingIgnoredDuringExecution", NULL);
        take_terms(a, &kind, own, "preferredDuringSchedulingIgnoredDuringExecution",
                   "podAffinityTerm");
        if (json_object_size(own) == 0)
            json_object_del(copy, kinds[i]);
    }
    if (json_object_size(copy) == 0)
        json_object_del(spec, "affinity");
}
