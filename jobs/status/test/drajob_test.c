/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "jobs/status/drajob.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/timestamp.h"

#define AT 1800000000000 /* 2027-01-15T08:00:00Z */

static json_t *object_of(const char *spec)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:i, s:{s:s, s:s, s:s}}, s:o}", "apiVersion",
                     SPEC_API_VERSION, "kind", SPEC_KIND, "metadata", "name", "job", "namespace",
                     "team", "generation", 3, "annotations",
                     "kubectl.kubernetes.io/last-applied-configuration", "{}", DRAJOB_CLIENT,
                     "true", "example.com/kept", "yes", "spec", json_loads(spec, 0, NULL));
}

static void test_spec(void **state)
{
    json_t *object =
        object_of("{\"workers\": 2, \"image\": \"i\", \"command\": [\"c\"], \"suspend\": true}");
    struct drarun_error err = {0};
    struct job_spec spec;
    (void)state;
    assert_int_equal(drajob_spec(object, &spec, &err), 0);
    assert_string_equal(spec.name, "job");
    assert_string_equal(spec.namespace, "team");
    assert_int_equal(spec.workers, 2);
    assert_false(spec.suspend); /* the object's own affair */
    assert_int_equal(json_object_size(spec.annotations), 1);
    job_spec_done(&spec);
    assert_true(drajob_is_suspended(object) && drajob_is_of_client(object));
    json_decref(object);
}

static void test_refused(void **state)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {"{\"workers\": 0, \"image\": \"i\", \"command\": [\"c\"], \"suspended\": 1}",
         "spec.workers: expected an integer of at least 1, got 0\nspec.suspended: unknown key; did "
         "you mean suspend?"},
        {"{\"image\": \"i\", \"command\": [\"c\"], \"nccl\": {\"profile\": \"a5\"}}",
         "spec.nccl.profile: no profile \"a5\""},
        {"{\"image\": \"i\", \"command\": [\"c\"], \"devices\": {\"gpus\": {\"count\": 40}}}",
         "32"},
        {"{\"template\": {\"spec\": {\"restartPolicy\": \"Always\", \"containers\": [{\"name\": "
         "\"a\", \"image\": \"i\", \"command\": [\"c\"]}]}}}",
         "restartPolicy"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *object = object_of(cases[i].spec);
        struct drarun_error err = {0};
        struct job_spec spec;
        assert_true(drajob_spec(object, &spec, &err) < 0);
        assert_int_equal(err.kind, DRARUN_ERR_SPEC);
        assert_non_null(strstr(err.text, cases[i].says));
        json_decref(object);
    }
}

static const char *condition(const json_t *status, const char *type, const char *key)
{
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(status, "conditions"), i, each)
    {
        if (strcmp(json_string_value(json_object_get(each, "type")), type) == 0)
            return json_string_value(json_object_get(each, key));
    }
    return "none";
}

/* The next status becomes the object's. */
static const json_t *next(json_t *object, struct drajob_input *input)
{
    input->object = object;
    json_t *status = drajob_status(input);
    assert_non_null(status);
    json_object_set_new(object, "status", status);
    return status;
}

static json_t *doc_of(const char *phase, int running, const char *result)
{
    return json_pack(
        "{s:s, s:s, s:i, s:{s:i, s:i, s:i, s:i}, s:{s:s}, s:s?, s:o, s:{s:{s:s, s:s}}}", "kind",
        "DraJobStatus", "phase", phase, "attempt", 1, "workers", "count", 2, "claims", 2,
        "allocated", running, "running", running, "waiting", "text", "waiting 3 s for devices",
        "result", result, "exit", result ? json_integer(7) : json_null(), "report", "cause", "kind",
        "node-lost", "text", "node a is gone");
}

static const char *text(const json_t *status, const char *key)
{
    return json_string_value(json_object_get(status, key));
}

static void test_course_of_a_job(void **state)
{
    json_t *object = object_of("{\"workers\": 2, \"image\": \"i\", \"command\": [\"c\"]}");
    struct drajob_input input = {.now_ms = AT, .stage = DRAJOB_PENDING};
    (void)state;
    const json_t *status = next(object, &input);
    assert_string_equal(text(status, "state"), "Pending");
    assert_string_equal(text(status, "ready"), "0/2");
    assert_string_equal(condition(status, "Accepted", "lastTransitionTime"),
                        "2027-01-15T08:00:00Z");
    assert_true(drajob_is_accepted(object) && !drajob_is_refused(object));
    assert_null(drajob_launcher(object));

    input = (struct drajob_input){
        .now_ms = AT + 5000, .stage = DRAJOB_LED, .launcher = "u", .text = "no pod"};
    assert_string_equal(text(next(object, &input), "message"), "no pod");

    json_t *doc = doc_of("placing", 1, NULL);
    input.doc = doc;
    status = next(object, &input);
    assert_string_equal(text(status, "state"), "Placing");
    assert_string_equal(text(status, "message"), "waiting 3 s for devices");
    assert_string_equal(text(status, "ready"), "1/2");
    assert_string_equal(text(status, "startTime"), "2027-01-15T08:00:05Z");
    assert_string_equal(condition(status, "Accepted", "lastTransitionTime"),
                        "2027-01-15T08:00:00Z");
    assert_string_equal(condition(status, "Allocated", "status"), "False");
    assert_string_equal(drajob_launcher(object), "u");
    json_decref(doc);
    input.text = NULL;

    doc = doc_of("running", 2, NULL);
    input.doc = doc;
    input.now_ms = AT + 6000;
    status = next(object, &input);
    assert_string_equal(text(status, "state"), "Running");
    assert_string_equal(condition(status, "Running", "lastTransitionTime"), "2027-01-15T08:00:06Z");
    assert_string_equal(condition(status, "Failed", "status"), "none");
    json_t *same = json_deep_copy(status);
    input.now_ms = AT + 9000;
    assert_true(json_equal(same, next(object, &input))); /* nothing to be written */
    json_decref(same);
    json_decref(doc);

    input.silence = "launcher a-x2k8f has not renewed its Lease since 2027-01-15T08:00:06Z";
    input.doc = doc = doc_of("running", 2, NULL);
    input.now_ms = AT + 40000;
    status = next(object, &input);
    assert_string_equal(text(status, "state"), "Running");
    assert_string_equal(text(status, "reason"), "LauncherSilent");
    assert_string_equal(text(status, "message"), input.silence);
    assert_string_equal(condition(status, "Running", "status"), "Unknown");
    assert_string_equal(condition(status, "Running", "lastTransitionTime"), "2027-01-15T08:00:40Z");
    assert_string_equal(condition(status, "Allocated", "status"), "True");
    input.silence = NULL;
    status = next(object, &input);
    assert_string_equal(text(status, "reason"), "Running");
    assert_string_equal(condition(status, "Running", "status"), "True");
    json_decref(doc);

    input.now_ms = AT + 9000;
    doc = doc_of("ended", 0, "failed");
    input.doc = doc;
    status = next(object, &input);
    assert_string_equal(text(status, "state"), "Failed");
    assert_string_equal(text(status, "reason"), "NodeLost");
    assert_int_equal(json_integer_value(json_object_get(status, "exitStatus")), 7);
    assert_string_equal(condition(status, "Failed", "message"), "node a is gone");
    assert_string_equal(condition(status, "Succeeded", "status"), "False");
    assert_true(drajob_has_ended(object));
    assert_int_equal(drajob_end_ms(object), AT + 9000);
    json_decref(doc);
    json_decref(object);
}

/* The launcher's clock is an hour slow. */
static void test_end_by_the_servers_clock(void **state)
{
    static const struct {
        int exit;
        int64_t written_ms;
        const char *ended;
    } cases[] = {{0, 0, "2027-01-15T07:00:00Z"},
                 {7, 0, "2027-01-15T07:00:00Z"},
                 {0, AT + 3000, "2027-01-15T08:00:03Z"},
                 {7, AT + 3000, "2027-01-15T08:00:03Z"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *object = object_of("{\"ttlSecondsAfterFinished\": 60}");
        CLEANUP(json_decrefp)
        json_t *doc = doc_of("ended", 0, cases[i].exit ? "failed" : "succeeded");
        json_object_set_new(doc, "exit", json_integer(cases[i].exit));
        json_object_set_new(doc, "updated", json_string("2027-01-15T07:00:00.000Z"));
        struct drajob_input input = {.now_ms = AT + 5000,
                                     .stage = DRAJOB_LED,
                                     .launcher = "u",
                                     .doc = doc,
                                     .written_ms = cases[i].written_ms};
        assert_string_equal(text(next(object, &input), "completionTime"), cases[i].ended);
        input.written_ms += 1000; /* somebody has touched it: the end stays */
        assert_string_equal(text(next(object, &input), "completionTime"), cases[i].ended);
    }
}

static void test_refused_and_corrected(void **state)
{
    json_t *object = object_of("{\"workers\": 2}");
    struct drajob_input input = {
        .now_ms = AT, .stage = DRAJOB_INVALID_SPEC, .text = "spec.image: is missing"};
    (void)state;
    const json_t *status = next(object, &input);
    assert_string_equal(text(status, "reason"), "InvalidSpec");
    assert_string_equal(text(status, "message"), "spec.image: is missing");
    assert_true(drajob_is_refused(object));
    json_object_set_new(json_object_get(object, "metadata"), "generation", json_integer(4));
    assert_false(drajob_is_refused(object)); /* another spec */
    input = (struct drajob_input){.now_ms = AT + 1000, .stage = DRAJOB_SUSPENDED};
    status = next(object, &input);
    assert_string_equal(condition(status, "Accepted", "lastTransitionTime"),
                        "2027-01-15T08:00:01Z");
    assert_string_equal(condition(status, "Suspended", "status"), "True");
    json_decref(object);
}

/* What keeps its objects from being made is told in whole characters, however it was cut. */
static void test_long_refusal(void **state)
{
    char words[1024] = "";
    struct drarun_error err = {0};
    (void)state;
    for (size_t i = 0; i + 4 < sizeof words; i += 3)
        memcpy(words + i, "\xe2\x80\x9c", 4);
    CLEANUP(json_decrefp) json_t *object = object_of("{\"image\": \"i\"}");
    error_kind(&err, DRARUN_ERR_CLUSTER, EINVAL, "admission webhook \"a\" denied: %s", words);
    const struct drajob_input input = {.object = object,
                                       .now_ms = AT,
                                       .stage = DRAJOB_PENDING,
                                       .reason = "CannotCreate",
                                       .text = err.text};
    CLEANUP(json_decrefp) json_t *status = drajob_status(&input);
    assert_non_null(status);
    assert_string_equal(json_string_value(json_object_get(status, "message")), err.text);
}

static void test_events(void **state)
{
    static const struct {
        struct drajob_input input;
        const char *reason, *text; /* NULL: none */
        bool warning;
    } cases[] = {
        {{.stage = DRAJOB_INVALID_SPEC, .text = "x: wrong"}, "InvalidSpec", "x: wrong", true},
        {{.stage = DRAJOB_INVALID_SPEC, .text = "x: wrong"}, .reason = NULL},
        {{.stage = DRAJOB_INVALID_SPEC, .text = "y: wrong"}, "InvalidSpec", "y: wrong", true},
        {{.stage = DRAJOB_PENDING}, .reason = NULL},
        {{.stage = DRAJOB_PENDING, .reason = "CannotCreate", .text = "quota"},
         "CannotCreate",
         "quota",
         true},
        {{.stage = DRAJOB_PENDING, .reason = "CannotCreate", .text = "quota: 2"}, .reason = NULL},
        {{.stage = DRAJOB_LED, .launcher = "u"}, "Created", "the job's objects are made", false},
        {{.stage = DRAJOB_LED, .launcher = "u"}, .reason = NULL},
        {{.stage = DRAJOB_LED, .launcher = "u", .silence = "no renewal"},
         "LauncherSilent",
         "no renewal",
         true},
        {{.stage = DRAJOB_LED, .launcher = "u", .silence = "no renewal"}, .reason = NULL},
        {{.stage = DRAJOB_LED, .launcher = "u"}, .reason = NULL},
        {{.stage = DRAJOB_SUSPENDING}, .reason = NULL},
        {{.stage = DRAJOB_SUSPENDED},
         "Suspended",
         "suspended (spec.suspend): the job holds no pods or claims",
         false},
        {{.stage = DRAJOB_SUSPENDED}, .reason = NULL},
        {{.stage = DRAJOB_PENDING}, "Resumed", "the job is no longer suspended", false},
        {{.stage = DRAJOB_LED, .launcher = "v"}, "Created", "the job's objects are made", false},
        {{.stage = DRAJOB_LOST, .reason = "JobDeleted", .text = "deleted", .result = "cancelled"},
         "Cancelled",
         "deleted",
         true},
        {{.stage = DRAJOB_LOST, .reason = "JobDeleted", .text = "deleted", .result = "cancelled"},
         .reason = NULL},
    };
    json_t *object = object_of("{\"workers\": 2, \"image\": \"i\", \"command\": [\"c\"]}");
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct drajob_input input = cases[i].input;
        struct drajob_event event = {0};
        input.object = object;
        input.now_ms = AT;
        json_t *status = drajob_status(&input);
        assert_int_equal(drajob_event(object, status, &event), cases[i].reason != NULL);
        if (cases[i].reason) {
            assert_string_equal(event.reason, cases[i].reason);
            assert_string_equal(event.text, cases[i].text);
            assert_int_equal(event.warning, cases[i].warning);
        }
        json_object_set_new(object, "status", status);
    }
    json_decref(object);
}

static void test_document_for_verbs(void **state)
{
    json_t *object = object_of("{\"workers\": 2, \"image\": \"i\", \"command\": [\"c\"]}");
    struct drajob_input input = {.now_ms = AT,
                                 .stage = DRAJOB_LOST,
                                 .reason = "JobDeleted",
                                 .text = "deleted",
                                 .result = "cancelled",
                                 .exit = 130};
    (void)state;
    json_t *doc = drajob_doc(object);
    assert_string_equal(text(doc, "phase"), "created");
    json_decref(doc);
    next(object, &input);
    doc = drajob_doc(object);
    assert_string_equal(text(doc, "result"), "cancelled");
    assert_int_equal(json_integer_value(json_object_get(doc, "exit")), 130);
    json_decref(doc);
    json_decref(object);
}

/* As MultiKueue makes it in the cluster that runs the job, and as kubectl apply --prune marks it:
 * that is not on its parts. */
static void test_spec_of_a_copy(void **state)
{
    json_t *object = object_of("{\"image\": \"i\", \"command\": [\"c\"]}");
    json_t *metadata = json_object_get(object, "metadata");
    struct drarun_error err = {0};
    struct job_spec spec;
    (void)state;
    json_object_set_new(metadata, "labels",
                        json_pack("{s:s, s:s, s:s, s:s, s:s}", "kueue.x-k8s.io/multikueue-origin",
                                  "here", "kueue.x-k8s.io/prebuilt-workload-name", "w",
                                  "kueue.x-k8s.io/queue-name", "of-the-manager",
                                  "applyset.kubernetes.io/part-of", "applyset-x-v1", "team", "a"));
    json_object_set_new(json_object_get(metadata, "annotations"),
                        "kueue.x-k8s.io/prebuilt-workload-name", json_string("w"));
    assert_int_equal(drajob_spec(object, &spec, &err), 0);
    assert_int_equal(json_object_size(spec.labels), 1);
    assert_string_equal(text(spec.labels, "team"), "a");
    assert_int_equal(json_object_size(spec.annotations), 1); /* example.com/kept */
    assert_string_equal(spec.managed_by, SPEC_CONTROLLER);
    job_spec_done(&spec);
    /* of a job that is no copy it is the user's */
    json_object_del(json_object_get(metadata, "labels"), "kueue.x-k8s.io/multikueue-origin");
    assert_int_equal(drajob_spec(object, &spec, &err), 0);
    assert_string_equal(text(spec.labels, "kueue.x-k8s.io/queue-name"), "of-the-manager");
    job_spec_done(&spec);
    json_decref(object);
}

static void test_manager(void **state)
{
    static const struct {
        const char *spec, *manager; /* NULL: drarun's controller */
    } cases[] = {
        {"{}", NULL},
        {"{\"managedBy\": \"drarun.dev/drajob-controller\"}", NULL},
        {"{\"managedBy\": \"drarun.dev/other\"}", "drarun.dev/other"},
        {"{\"managedBy\": \"kueue.x-k8s.io/multikueue\"}", "kueue.x-k8s.io/multikueue"},
    };
    (void)state;
    assert_null(drajob_manager(NULL));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *object = object_of(cases[i].spec);
        const char *manager = drajob_manager(object);
        assert_int_equal(manager != NULL, cases[i].manager != NULL);
        assert_true(!manager || strcmp(manager, cases[i].manager) == 0);
        json_decref(object);
    }
}

/* Its status is a copy of one in another cluster. */
static void test_document_of_another_managers_job(void **state)
{
    json_t *object = object_of("{\"workers\": 2, \"managedBy\": \"example.com/far\"}");
    json_t *doc = drajob_doc(object);
    (void)state;
    assert_string_equal(text(doc, "managedBy"), "example.com/far");
    assert_string_equal(text(json_object_get(doc, "waiting"), "text"),
                        "it has reported no status yet");
    json_decref(doc);
    json_object_set_new(object, "status",
                        json_pack("{s:s, s:s, s:s, s:i, s:{s:i, s:i}, s:[{s:s, s:s, s:i}]}",
                                  "state", "Running", "message", "the ranks run", "launcherUID",
                                  "u", "attempt", 2, "workers", "count", 2, "ready", 1,
                                  "conditions", "type", "Accepted", "status", "False",
                                  "observedGeneration", 1));
    assert_true(drajob_is_refused(object)); /* another generation than the object's, 3 */
    doc = drajob_doc(object);
    assert_string_equal(text(doc, "phase"), "running");
    assert_string_equal(text(json_object_get(doc, "waiting"), "text"), "the ranks run");
    assert_int_equal(json_integer_value(json_object_get(doc, "attempt")), 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(doc, "workers"), "running")), 1);
    json_decref(doc);
    json_object_set_new(object, "status",
                        json_pack("{s:s, s:i, s:s, s:s}", "state", "Failed", "exitStatus", 3,
                                  "completionTime", "2027-01-15T08:00:00Z", "expirationTime",
                                  "2027-01-15T09:00:00Z"));
    doc = drajob_doc(object);
    drajob_date_doc(object, 60, doc);
    assert_int_equal(json_integer_value(json_object_get(doc, "exit")), 3);
    assert_string_equal(text(doc, "managedBy"), "example.com/far");
    assert_null(json_object_get(doc, "expiration")); /* that of the copy */
    json_decref(doc);
    json_decref(object);
}

static json_t *ended(const char *spec)
{
    return json_pack("{s:o, s:{s:s, s:i, s:s}}", "spec", json_loads(spec, 0, NULL), "status",
                     "state", "Succeeded", "exitStatus", 0, "completionTime",
                     "2027-01-15T08:00:00Z");
}

/* The spec's time to live before the site's, which changes. */
static void test_time_to_live(void **state)
{
    static const struct {
        const char *spec;
        int64_t site_ms;
        const char *time, *reason, *word; /* NULL: it stays */
    } cases[] = {
        {"{}", 0, .time = NULL},
        {"{\"ttlSecondsAfterFinished\": 60}", 0, "2027-01-15T08:01:00Z", "Spec", "spec"},
        {"{\"ttlSecondsAfterFinished\": 60}", 7200000, "2027-01-15T08:01:00Z", "Spec", "spec"},
        {"{\"ttlSecondsAfterFinished\": 0}", 7200000, "2027-01-15T08:00:00Z", "Spec", "spec"},
        {"{}", 7200000, "2027-01-15T10:00:00Z", "SiteDefault", "site"},
        {"{\"ttlSecondsAfterFinished\": \"x\"}", 7200000, "2027-01-15T10:00:00Z", "SiteDefault",
         "site"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *object = ended(cases[i].spec);
        json_object_set_new(json_object_get(object, "status"), "expirationTime",
                            json_string("2000-01-01T00:00:00Z")); /* of an earlier setting */
        json_t *status = drajob_dated_status(object, cases[i].site_ms);
        int64_t at = drajob_expiration_ms(object, cases[i].site_ms), told = 0;
        assert_true(cases[i].time ? timestamp_parse(cases[i].time, &told) : true);
        assert_int_equal(at, told);
        assert_int_equal(text(status, "expirationTime") != NULL, cases[i].time != NULL);
        if (cases[i].time) {
            assert_string_equal(text(status, "expirationTime"), cases[i].time);
            assert_string_equal(text(status, "expirationReason"), cases[i].reason);
        }
        json_object_set_new(object, "status", status);
        json_t *doc = drajob_doc(object);
        drajob_date_doc(object, -1, doc);
        const json_t *expiration = json_object_get(doc, "expiration");
        assert_int_equal(expiration != NULL, cases[i].time != NULL);
        if (cases[i].time)
            assert_string_equal(text(expiration, "reason"), cases[i].word);
        json_decref(doc);
        json_decref(object);
    }
    json_t *runs = json_pack("{s:{s:i}, s:{s:s}}", "spec", "ttlSecondsAfterFinished", 1, "status",
                             "state", "Running");
    assert_int_equal(drajob_expiration_ms(runs, 1), 0);
    json_decref(runs);
}

/* As when it is suspended then: tools take an object whose status is of another generation for one
 * that is still worked on. */
static void test_generation_of_an_ended_job(void **state)
{
    CLEANUP(json_decrefp)
    json_t *object = json_pack("{s:{s:i}, s:{}, s:{s:s, s:i}}", "metadata", "generation", 4, "spec",
                               "status", "state", "Failed", "observedGeneration", 3);
    (void)state;
    CLEANUP(json_decrefp) json_t *status = drajob_dated_status(object, 0);
    assert_int_equal(json_integer_value(json_object_get(status, "observedGeneration")), 4);
    assert_string_equal(text(status, "state"), "Failed");
}

/* Without a controller Kubernetes deletes it, by the spec alone. */
static void test_date_of_a_job_without_a_controller(void **state)
{
    json_t *doc = json_pack("{s:i, s:s}", "exit", 0, "phaseSince", "2027-01-15T08:00:00.000Z");
    json_t *object = json_pack("{s:{}}", "spec");
    (void)state;
    drajob_date_doc(NULL, -1, doc);
    drajob_date_doc(object, -1, doc);
    assert_null(json_object_get(doc, "expiration"));
    drajob_date_doc(object, 90, doc);
    assert_string_equal(text(json_object_get(doc, "expiration"), "time"),
                        "2027-01-15T08:01:30.000Z");
    json_object_del(doc, "expiration");
    json_object_set_new(doc, "exit", json_null()); /* it runs */
    drajob_date_doc(object, 90, doc);
    assert_null(json_object_get(doc, "expiration"));
    json_decref(object);
    json_decref(doc);
}

static void test_workers_before_a_launcher_counts_them(void **state)
{
    static const struct {
        const char *spec, *ready;
        int count;
    } cases[] = {
        {"{\"workers\": 3}", "0/3", 3},
        {"{}", "0/1", 1},
        {"{\"roles\": [{\"name\": \"a\"}, {\"name\": \"b\", \"workers\": 4}]}", "0/5", 5},
        {"{\"workers\": 2, \"roles\": [{\"name\": \"a\"}, {\"name\": \"b\", \"workers\": 4}]}",
         "0/6", 6},
        {"{\"roles\": [{\"workers\": \"x\"}, {\"workers\": 9223372036854775807}, {\"workers\": 0}, "
         "7]}",
         "0/4", 4},
        {"{\"workers\": 2, \"roles\": \"x\"}", "0/2", 2},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *object = object_of(cases[i].spec);
        struct drajob_input input = {.now_ms = AT, .stage = DRAJOB_INVALID_SPEC, .text = "x"};
        json_t *doc = drajob_doc(object);
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(doc, "workers"), "count")),
            cases[i].count);
        assert_string_equal(text(next(object, &input), "ready"), cases[i].ready);
        json_decref(doc);
        json_decref(object);
    }
}

/* What is said of the job's devices is the same in the status and in what verbs show before. */
static void test_devices_of_all_roles(void **state)
{
    static const struct {
        const char *spec, *gpus, *nics; /* NULL: left out */
    } cases[] = {
        {"{}", NULL, NULL},
        {"{\"devices\": {\"gpus\": {\"count\": 8}}}", "8", NULL},
        {"{\"workers\": 2, \"devices\": {\"gpus\": {\"count\": 8}, \"nics\": {\"count\": "
         "\"all\"}}}",
         "16", "all"},
        /* a role's devices replace those of the top as a whole */
        {"{\"devices\": {\"gpus\": {\"count\": 4}, \"nics\": {\"count\": 1}}, \"roles\": [{}, "
         "{\"workers\": 3}, {\"devices\": {}}, {\"devices\": {\"gpus\": {\"count\": 1}}}]}",
         "17", "4"},
        {"{\"workers\": 2, \"roles\": [{\"devices\": {\"gpus\": {\"count\": \"all\"}}}, "
         "{\"workers\": 3, "
         "\"devices\": {\"gpus\": {\"count\": 8}}}]}",
         "24+all", NULL},
        /* refused ones */
        {"{\"devices\": {\"gpus\": 3, \"nics\": {\"count\": 9223372036854775807}}}", NULL, NULL},
        {"{\"devices\": {\"gpus\": {\"count\": -1}, \"nics\": {\"count\": \"x\"}}}", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *object = object_of(cases[i].spec);
        struct drajob_input input = {.now_ms = AT, .stage = DRAJOB_PENDING};
        json_t *doc = drajob_doc(object);
        const json_t *devices = json_object_get(next(object, &input), "devices");
        assert_true(json_equal(devices, json_object_get(doc, "devices")));
        json_t *expected = json_pack("{s:s*, s:s*}", "gpus", cases[i].gpus, "nics", cases[i].nics);
        assert_true(json_equal(devices, expected));
        json_decref(expected);
        json_decref(doc);
        json_decref(object);
    }
}

/* All that is asked of an object is answered as before. */
static void test_what_a_controller_keeps(void **state)
{
    json_t *object =
        object_of("{\"workers\": 2, \"suspend\": true, \"ttlSecondsAfterFinished\": 60, "
                  "\"managedBy\": \"example.com/a\", \"image\": \"i\", \"args\": [\"\", \"\"], "
                  "\"devices\": {\"gpus\": {\"count\": 8, \"class\": \"c\"}, \"match\": [\"m\"]}, "
                  "\"roles\": [{\"name\": \"a\", \"workers\": 3, \"args\": [\"\"]}, {\"devices\": "
                  "{\"nics\": {\"count\": \"all\", \"selector\": \"s\"}}}]}");
    json_t *wanted = json_loads(
        "{\"workers\": 2, \"suspend\": true, \"ttlSecondsAfterFinished\": 60, \"managedBy\": "
        "\"example.com/a\", \"devices\": {\"gpus\": {\"count\": 8}}, \"roles\": [{\"workers\": 3}, "
        "{\"devices\": {\"nics\": {\"count\": \"all\"}}}]}",
        0, NULL);
    json_t *owned = json_pack("[{s:s}]", "uid", "u");
    json_t *devices = drajob_devices(object);
    (void)state;
    json_object_set_new(json_object_get(object, "metadata"), "ownerReferences", owned);
    drajob_trim(object);
    assert_true(json_equal(json_object_get(object, "spec"), wanted));
    json_t *after = drajob_devices(object), *metadata = json_object_get(object, "metadata");
    assert_true(json_equal(devices, after));
    assert_true(drajob_is_suspended(object) && drajob_is_of_client(object));
    assert_string_equal(drajob_manager(object), "example.com/a");
    assert_int_equal(json_object_size(json_object_get(metadata, "annotations")), 1);
    assert_non_null(json_object_get(metadata, "generation"));
    assert_null(json_object_get(metadata, "ownerReferences"));
    json_decref(after);
    json_decref(devices);
    json_decref(wanted);
    json_decref(object);
}

static void test_status_that_a_controller_keeps(void **state)
{
    static const size_t sizes[] = {10, 100000};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        json_t *object = object_of("{}"), *cause = json_array();
        for (size_t k = 0; k < sizes[i]; k++)
            json_array_append_new(cause, json_string(""));
        json_object_set_new(object, "status",
                            json_pack("{s:s, s:{s:o}, s:[{s:s, s:s, s:i}]}", "launcherUID", "u",
                                      "cause", "it", cause, "conditions", "type", "Accepted",
                                      "status", "True", "observedGeneration", 3));
        drajob_trim(object);
        assert_string_equal(drajob_launcher(object), "u");
        assert_int_equal(drajob_is_accepted(object), i == 0);
        assert_int_equal(json_object_get(json_object_get(object, "status"), "cause") != NULL,
                         i == 0);
        json_decref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_course_of_a_job),
        cmocka_unit_test(test_end_by_the_servers_clock),
        cmocka_unit_test(test_refused_and_corrected),
        cmocka_unit_test(test_long_refusal),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_document_for_verbs),
        cmocka_unit_test(test_spec_of_a_copy),
        cmocka_unit_test(test_manager),
        cmocka_unit_test(test_document_of_another_managers_job),
        cmocka_unit_test(test_time_to_live),
        cmocka_unit_test(test_generation_of_an_ended_job),
        cmocka_unit_test(test_date_of_a_job_without_a_controller),
        cmocka_unit_test(test_workers_before_a_launcher_counts_them),
        cmocka_unit_test(test_devices_of_all_roles),
        cmocka_unit_test(test_what_a_controller_keeps),
        cmocka_unit_test(test_status_that_a_controller_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
