/* SPDX-License-Identifier: Apache-2.0 */
/* The job's own objects: which member follows from which option or key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/objects.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define POD "template: {spec: {containers: [{image: i, command: [a]}]}}"

static void spec_of(const char *more, struct job_spec *ret_spec)
{
    struct drarun_error err = {0};
    char text[2048];
    snprintf(text, sizeof text,
             "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: train}\nspec: {%s}\n",
             more);
    int rc = spec_parse("s", text, strlen(text), ret_spec, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
}

/* "spec.template.spec.containers.0.env"; NULL: there is none. */
static const json_t *at(const json_t *value, const char *path)
{
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (const char *key; value && (key = strsep(&rest, "."));)
        value = json_is_array(value) ? json_array_get(value, (size_t)(*key - '0'))
                                     : json_object_get(value, key);
    return value;
}

/* expected: JSON with ' for "; NULL: the member is not there. */
static void is_at(const json_t *object, const char *path, const char *expected)
{
    const json_t *value = at(object, path);
    cleanup_free char *got = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!expected) {
        if (value)
            fail_msg("%s: %s", path, got);
        return;
    }
    CLEANUP(json_decrefp) json_t *wanted = quoted_json(expected, JSON_DECODE_ANY);
    if (!json_equal(value, wanted))
        fail_msg("%s: %s", path, got ? got : "nothing");
}

#define CONTAINER "spec.template.spec.containers.0."

static void test_the_launcher(void **state)
{
    static const struct {
        const char *spec;
        struct render_options options;
        const char *path, *expected;
    } rows[] = {
        {POD, {0}, "metadata.name", "'train'"},
        {POD, {0}, "metadata.namespace", "'default'"},
        {POD, {.namespace = "team"}, "metadata.namespace", "'team'"},
        {POD, {0}, "metadata.labels", "{'drarun.dev/job':'train'}"},
        {POD, {.attempt = 2}, "metadata.labels.drarun", NULL},
        {POD, {.owner_uid = "u"}, "metadata.ownerReferences", NULL}, /* it is the owner */
        {POD,
         {.dra_job = "d"},
         "metadata.ownerReferences",
         "[{'apiVersion':'drarun.dev/v1alpha1','kind':'DraJob','name':'train','uid':'d',"
         "'controller':true}]"},
        {POD, {0}, "spec.backoffLimit", "6"},
        {POD, {0}, "spec.suspend", NULL},
        {"suspend: true, " POD, {0}, "spec.suspend", "true"},
        {POD, {0}, "spec.ttlSecondsAfterFinished", NULL},
        {"ttlSecondsAfterFinished: 0, " POD, {0}, "spec.ttlSecondsAfterFinished", "0"},
        {"ttlSecondsAfterFinished: 90, " POD, {0}, "spec.ttlSecondsAfterFinished", "90"},
        {"ttlSecondsAfterFinished: 90, " POD,
         {.expires = true},
         "spec.ttlSecondsAfterFinished",
         NULL},
        {POD, {0}, "spec.podFailurePolicy.rules.1.onExitCodes.values", "[0,134,135,137,139,143]"},
        {POD, {0}, "spec.template.spec.enableServiceLinks", "false"},
        {POD, {0}, "spec.template.spec.imagePullSecrets", NULL},
        {"template: {spec: {imagePullSecrets: [{name: s}], priorityClassName: p, containers: "
         "[{image: i, command: [a]}]}}",
         {0},
         "spec.template.spec.imagePullSecrets",
         "[{'name':'s'}]"},
        {"template: {spec: {priorityClassName: p, containers: [{image: i, command: [a]}]}}",
         {0},
         "spec.template.spec.priorityClassName",
         "'p'"},
        {POD, {0}, "spec.template.spec.priorityClassName", NULL},
        {"launcher: {priorityClassName: q}, template: {spec: {priorityClassName: p, containers: "
         "[{image: i, command: [a]}]}}",
         {0},
         "spec.template.spec.priorityClassName",
         "'q'"},
        {POD, {.image = "x:1"}, CONTAINER "image", "'x:1'"},
        {POD, {0}, CONTAINER "args", "['--job','train']"},
        {POD, {0}, CONTAINER "env.0.valueFrom.secretKeyRef", "{'name':'train-key','key':'key'}"},
        {POD,
         {.secret = "s"},
         CONTAINER "env.0.valueFrom.secretKeyRef",
         "{'name':'s','key':'key'}"},
        {POD, {.secret = "s"}, CONTAINER "env.1", "{'name':'DRARUN_SECRET','value':'s'}"},
        {"workers: 7, " POD,
         {0},
         CONTAINER "env.3",
         "{'name':'DRARUN_DOCUMENT_WORKERS','value':'7'}"},
        {POD, {.image = "x:1"}, CONTAINER "env.4", "{'name':'DRARUN_IMAGE','value':'x:1'}"},
        {POD, {0}, CONTAINER "env.5", NULL},
        {POD, {.delivery = "copy"}, CONTAINER "env.5", "{'name':'DRARUN_AGENT','value':'copy'}"},
        {POD, {.keep_s = 1}, CONTAINER "env.5", "{'name':'DRARUN_KEEP','value':'1'}"},
        {POD, {.metrics_port = 1}, CONTAINER "env.5", "{'name':'DRARUN_METRICS','value':'1'}"},
        {POD,
         {.metrics_port = RENDER_NO_METRICS},
         CONTAINER "env.5",
         "{'name':'DRARUN_METRICS','value':'off'}"},
        {POD, {.metrics_port = 1}, CONTAINER "ports", "[{'name':'metrics','containerPort':1}]"},
        {POD, {.metrics_port = RENDER_NO_METRICS}, CONTAINER "ports", NULL},
        {"workers: 7, " POD,
         {0},
         CONTAINER "resources",
         "{'requests':{'cpu':'500m','memory':'519Mi'},'limits':{'cpu':'500m','memory':'519Mi'}}"},
        {POD, {0}, CONTAINER "securityContext.runAsUser", NULL},
        {POD, {0}, CONTAINER "securityContext.allowPrivilegeEscalation", "false"},
        {POD, {0}, CONTAINER "securityContext.readOnlyRootFilesystem", "true"},
        {POD, {0}, CONTAINER "securityContext.runAsNonRoot", "true"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        spec_of(rows[i].spec, &spec);
        CLEANUP(json_decrefp) json_t *launcher = object_launcher(&spec, &rows[i].options);
        assert_non_null(launcher);
        is_at(launcher, rows[i].path, rows[i].expected);
        job_spec_done(&spec);
    }
}

static void test_labels_of_an_attempt(void **state)
{
    static const struct {
        uint32_t attempt;
        const char *labels;
    } rows[] = {{0, "{'drarun.dev/job':'train'}"},
                {1, "{'drarun.dev/job':'train','drarun.dev/attempt':'1'}"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        const struct render_options options = {.attempt = rows[i].attempt};
        spec_of(POD, &spec);
        CLEANUP(json_decrefp) json_t *labels = object_labels(&spec, &options);
        CLEANUP(json_decrefp) json_t *expected = quoted_json(rows[i].labels, 0);
        assert_true(json_equal(labels, expected));
        job_spec_done(&spec);
    }
}

/* The first object owns all else: the launcher's Job, or the ConfigMap where there is none. */
static void test_owners(void **state)
{
    static const char by_job[] =
        "[{'apiVersion':'batch/v1','kind':'Job','name':'train','uid':'u'}]",
                      by_map[] = "[{'apiVersion':'v1','kind':'ConfigMap','name':'train-status',"
                                 "'uid':'u'}]";
    static const struct {
        struct render_options options;
        const char *of_secret, *of_status;
    } rows[] = {
        {{0}, NULL, NULL},
        {{.owner_uid = "u"}, by_job, by_job},
        {{.owner_uid = "u", .here = true}, by_map, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        spec_of(POD, &spec);
        CLEANUP(json_decrefp) json_t *secret = object_secret(&spec, &rows[i].options);
        CLEANUP(json_decrefp) json_t *status = object_status(&spec, &rows[i].options);
        is_at(secret, "metadata.ownerReferences", rows[i].of_secret);
        is_at(secret, "metadata.name", "'train-key'");
        is_at(secret, "immutable", "true");
        is_at(status, "metadata.ownerReferences", rows[i].of_status);
        is_at(status, "metadata.name", "'train-status'");
        job_spec_done(&spec);
    }
}

/* One worker is no gang, and a group that the user names is his. */
static void test_pod_groups(void **state)
{
    static const struct {
        const char *spec, *version;
        bool has;
        const char *disruption;
    } rows[] = {
        {"workers: 2, " POD, "v1beta1", true, "{'all':{}}"},
        {"workers: 2, " POD, "v1alpha3", true, "{'all':{}}"},
        {"workers: 2, " POD, "v1alpha2", true, "'PodGroup'"},
        {"workers: 2, " POD, NULL, false, NULL},
        {"workers: 1, " POD, "v1beta1", false, NULL},
        {"gangScheduling: never, workers: 2, " POD, "v1beta1", false, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        char version[64];
        const struct render_options options = {.pod_groups = rows[i].version};
        spec_of(rows[i].spec, &spec);
        assert_int_equal(object_has_pod_group(&spec, &options), rows[i].has);
        if (rows[i].has) {
            CLEANUP(json_decrefp) json_t *group = object_pod_group(&spec, &options);
            snprintf(version, sizeof version, "'scheduling.k8s.io/%s'", rows[i].version);
            is_at(group, "apiVersion", version);
            is_at(group, "metadata.name", "'train-w'");
            is_at(group, "spec.schedulingPolicy", "{'gang':{'minCount':2}}");
            is_at(group, "spec.disruptionMode", rows[i].disruption);
            is_at(group, "spec.priorityClassName", NULL);
        }
        job_spec_done(&spec);
    }
}

/* Of what may change while a job runs it says nothing. */
static void test_digest_of_a_document(void **state)
{
    static const struct {
        const char *document;
        bool same;
    } rows[] = {
        {"{'metadata':{'name':'a'},'spec':{'x':1}}", true},
        {"{'spec':{'x':1,'suspend':true,'workers':4},'metadata':{'name':'a'}}", true},
        {"{'metadata':{'name':'b'},'spec':{'x':1}}", false},
        {"{'metadata':{'name':'a'},'spec':{'x':2}}", false},
    };
    char first[OBJECT_DIGEST_SIZE];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char digest[OBJECT_DIGEST_SIZE];
        CLEANUP(json_decrefp) json_t *document = quoted_json(rows[i].document, 0);
        CLEANUP(json_decrefp) json_t *before = json_deep_copy(document);
        assert_int_equal(object_document_digest(document, digest, NULL), 0);
        assert_true(json_equal(document, before));
        assert_int_equal(strlen(digest), 7 + 64);
        assert_memory_equal(digest, "sha256:", 7);
        if (i == 0)
            memcpy(first, digest, sizeof first);
        assert_int_equal(strcmp(digest, first) == 0, rows[i].same);
    }
}

static void test_queues(void **state)
{
    CLEANUP(json_decrefp)
    json_t *queued = quoted_json("{'metadata':{'labels':{'" OBJECT_QUEUE_LABEL "':'q'}},'spec':{"
                                 "'suspend':true}}",
                                 0);
    CLEANUP(json_decrefp) json_t *other = quoted_json("{'spec':{'suspend':false}}", 0);
    (void)state;
    assert_string_equal(object_queue(queued), "q");
    assert_null(object_queue(other));
    assert_null(object_queue(NULL));
    assert_true(object_is_suspended(queued));
    assert_false(object_is_suspended(other));
    assert_false(object_is_suspended(NULL));
}

static void test_users(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *none = object_security(0);
    CLEANUP(json_decrefp) json_t *first = object_security(1);
    is_at(none, "runAsUser", NULL);
    is_at(first, "runAsUser", "1");
    is_at(first, "capabilities", "{'drop':['ALL']}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_launcher),
        cmocka_unit_test(test_labels_of_an_attempt),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_pod_groups),
        cmocka_unit_test(test_digest_of_a_document),
        cmocka_unit_test(test_queues),
        cmocka_unit_test(test_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
