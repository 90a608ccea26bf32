/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that verbs and lists make, without a server: the test is kube_call_start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/kube/list.h"
#include "lib/kube/object.h"

struct kube_call {
    int unused;
};

static struct {
    char text[1024]; /* "METHOD PATH?QUERY\nwhat\nbody", and what is not usual */
    unsigned count;
    unsigned cancelled;
    kube_call_fn fn; /* NULL: no call is under way */
    void *arg;
    bool fails; /* the next one does not start */
} call;

static struct kube_call under_way;

int __wrap_kube_call_start(struct kube_client *client, const struct kube_request *request,
                           kube_call_fn fn, void *arg, struct kube_call **ret_call,
                           struct drarun_error *err);
void __wrap_kube_call_cancel(struct kube_call *of);

int __wrap_kube_call_start(struct kube_client *client, const struct kube_request *request,
                           kube_call_fn fn, void *arg, struct kube_call **ret_call,
                           struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    char *body = request->body ? json_dumps(request->body, JSON_COMPACT) : NULL;
    (void)client;
    buf_printf(&text, "%s %s%s%s\n%s", request->method, request->path, request->query ? "?" : "",
               request->query ? request->query : "", request->what);
    if (body)
        buf_printf(&text, "\n%s", body);
    if (request->content_type)
        buf_printf(&text, "\n%s", request->content_type);
    if (request->accept)
        buf_printf(&text, "\naccept %s", request->accept);
    if (request->timeout_ms)
        buf_printf(&text, "\n%d ms", (int)request->timeout_ms);
    if (request->answer_max)
        buf_printf(&text, "\n%zu bytes", request->answer_max);
    buf_printf(&text, "%s%s", request->repeat ? "\nrepeat" : "", request->urgent ? "\nurgent" : "");
    snprintf(call.text, sizeof call.text, "%s", text.data);
    buf_done(&text);
    free(body);
    call.count++;
    call.fn = fn;
    call.arg = arg;
    if (call.fails)
        return error_set(err, ENOMEM, "no call");
    if (ret_call)
        *ret_call = &under_way;
    return 0;
}

void __wrap_kube_call_cancel(struct kube_call *of)
{
    call.cancelled += of == &under_way;
}

static int set_up(void **state)
{
    (void)state;
    memset(&call, 0, sizeof call);
    return 0;
}

/* ---- verbs ---- */

static const struct kube_target pod = {&kube_pods, "x", "y", NULL}, pods = {&kube_pods, "x"},
                                status = {&kube_pods, "x", "y", "status"},
                                eviction = {&kube_pods, "x", "y", "eviction"};

#define QUERY "?fieldManager=drarun&fieldValidation=Strict"
#define BODY "\n{\"metadata\":{\"name\":\"z\"}}"

static void asks(int rc, const char *expected)
{
    assert_int_equal(rc, 0);
    assert_string_equal(call.text, expected);
}

static void each_verb_has_its_request(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *object = json_pack("{s:{s:s}}", "metadata", "name", "z");
    CLEANUP(json_decrefp) json_t *nameless = json_object();
    const struct kube_write all = {.manager = "me",
                                   .force = true,
                                   .dry_run = true,
                                   .repeat = true,
                                   .urgent = true,
                                   .timeout_ms = 7};
#define ALL "?fieldManager=me&fieldValidation=Strict&force=true&dryRun=All"
#define AND_ALL "\n7 ms\nrepeat\nurgent"
    asks(kube_get(NULL, &pod, NULL, NULL, NULL, NULL),
         "GET /api/v1/namespaces/x/pods/y\nget pods \"y\" in namespace x");
    asks(kube_get_urgently(NULL, &pod, NULL, NULL, NULL, NULL),
         "GET /api/v1/namespaces/x/pods/y\nget pods \"y\" in namespace x\nurgent");
    asks(kube_create(NULL, &pod, object, NULL, NULL, NULL, NULL, NULL),
         "POST /api/v1/namespaces/x/pods" QUERY "\ncreate pods \"z\" in namespace x" BODY);
    asks(kube_create(NULL, &pods, nameless, NULL, NULL, NULL, NULL, NULL),
         "POST /api/v1/namespaces/x/pods" QUERY "\ncreate pods in namespace x\n{}");
    asks(kube_create(NULL, &eviction, object, NULL, NULL, NULL, NULL, NULL),
         "POST /api/v1/namespaces/x/pods/y/eviction" QUERY
         "\ncreate pods/eviction \"z\" in namespace x" BODY);
    asks(kube_create(NULL, &pod, object, &all, NULL, NULL, NULL, NULL),
         "POST /api/v1/namespaces/x/pods" ALL "\ncreate pods \"z\" in namespace x" BODY AND_ALL);
    asks(kube_apply(NULL, &pod, object, NULL, NULL, NULL, NULL, NULL),
         "PATCH /api/v1/namespaces/x/pods/y" QUERY "\napply pods \"y\" in namespace x" BODY
         "\napplication/apply-patch+yaml\nrepeat");
    asks(kube_apply(NULL, &pods, object, &all, NULL, NULL, NULL, NULL),
         "PATCH /api/v1/namespaces/x/pods/z" ALL "\napply pods \"z\" in namespace x" BODY
         "\napplication/apply-patch+yaml" AND_ALL);
    asks(kube_replace(NULL, &status, object, NULL, NULL, NULL, NULL, NULL),
         "PUT /api/v1/namespaces/x/pods/y/status" QUERY
         "\nupdate pods/status \"y\" in namespace x" BODY);
    asks(kube_replace(NULL, &pods, object, &all, NULL, NULL, NULL, NULL),
         "PUT /api/v1/namespaces/x/pods/z" ALL "\nupdate pods \"z\" in namespace x" BODY AND_ALL);
    asks(kube_merge_patch(NULL, &pod, object, NULL, NULL, NULL, NULL, NULL),
         "PATCH /api/v1/namespaces/x/pods/y" QUERY "\npatch pods \"y\" in namespace x" BODY
         "\napplication/merge-patch+json");
    asks(kube_json_patch(NULL, &pod, object, &all, NULL, NULL, NULL, NULL),
         "PATCH /api/v1/namespaces/x/pods/y" ALL "\npatch pods \"y\" in namespace x" BODY
         "\napplication/json-patch+json" AND_ALL);
    assert_int_equal(call.count, 12);
}

#define OPTIONS "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\""

static void deletions_have_options(void **state)
{
    (void)state;
    static const struct {
        struct kube_delete options;
        const char *text;
    } table[] = {
        {{0}, OPTIONS "}"},
        {{.propagation = "Foreground"}, OPTIONS ",\"propagationPolicy\":\"Foreground\"}"},
        {{.now = true}, OPTIONS ",\"gracePeriodSeconds\":0}"},
        {{.uid = "u"}, OPTIONS ",\"preconditions\":{\"uid\":\"u\"}}"},
        {{.resource_version = "8"}, OPTIONS ",\"preconditions\":{\"resourceVersion\":\"8\"}}"},
        {{.uid = "u", .resource_version = "8", .timeout_ms = 9},
         OPTIONS ",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"8\"}}\n9 ms"},
    };
    static const char what[] = "DELETE /api/v1/namespaces/x/pods/y\ndelete pods \"y\" in "
                               "namespace x\n";
    const struct kube_select select = {.labels = "a=b", .fields = "c=d"};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char expected[512];
        snprintf(expected, sizeof expected, "%s%s", what, table[i].text);
        asks(kube_delete(NULL, &pod, &table[i].options, NULL, NULL, NULL, NULL), expected);
    }
    asks(kube_delete_all(NULL, &pods, &select, NULL, NULL, NULL, NULL, NULL),
         "DELETE /api/v1/namespaces/x/pods?labelSelector=a%3Db&fieldSelector=c%3Dd\n"
         "delete pods in namespace x\n" OPTIONS "}");
    asks(kube_delete_all(NULL, &pods, NULL, NULL, NULL, NULL, NULL, NULL),
         "DELETE /api/v1/namespaces/x/pods\ndelete pods in namespace x\n" OPTIONS "}");
}

/* Else the request were for all objects, or for another path. */
static void an_object_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *namespace_, *name;
        bool good;
    } table[] = {
        {"x", NULL, false}, {"x", "", false},   {"x", ".", false}, {"x", "..", false},
        {"", "y", false},   {"..", "y", false}, {".", "y", false}, {NULL, "y", true},
        {"x", "...", true}, {"x", "a..", true},
    };
    CLEANUP(json_decrefp) json_t *object = json_object();
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct kube_target target = {&kube_pods, table[i].namespace_, table[i].name, NULL};
        struct drarun_error err = {0};
        const int expected = table[i].good ? 0 : -EINVAL;
        const unsigned before = call.count;
        assert_int_equal(kube_delete(NULL, &target, NULL, NULL, NULL, NULL, NULL), expected);
        assert_int_equal(kube_get_urgently(NULL, &target, NULL, NULL, NULL, NULL), expected);
        assert_int_equal(kube_json_patch(NULL, &target, object, NULL, NULL, NULL, NULL, NULL),
                         expected);
        assert_int_equal(kube_merge_patch(NULL, &target, object, NULL, NULL, NULL, NULL, NULL),
                         expected);
        assert_int_equal(kube_replace(NULL, &target, object, NULL, NULL, NULL, NULL, NULL),
                         expected);
        assert_int_equal(kube_get(NULL, &target, NULL, NULL, NULL, &err), expected);
        assert_int_equal(call.count - before, table[i].good ? 6 : 0);
        if (table[i].good)
            continue;
        char text[256];
        snprintf(text, sizeof text,
                 "get pods \"%s\" in namespace \"%s\": not the name of an object, nothing was sent "
                 "to the API server",
                 table[i].name ? table[i].name : "", table[i].namespace_);
        assert_string_equal(err.text, text);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    }
}

/* ---- parts of objects ---- */

static void parts_of_an_object(void **state)
{
    (void)state;
    CLEANUP(json_decrefp)
    json_t *object = json_loads(
        "{\"metadata\":{\"name\":\"n\",\"namespace\":\"s\",\"uid\":\"u\",\"resourceVersion\":\"8\","
        "\"creationTimestamp\":\"2026-11-21T15:00:00Z\",\"deletionTimestamp\":\"x\","
        "\"ownerReferences\":[{\"uid\":\"o\"},{\"uid\":\"p\"}],\"managedFields\":["
        "{\"manager\":\"a\",\"time\":\"2026-11-21T15:00:02Z\"},"
        "{\"manager\":\"b\",\"time\":\"2026-11-21T15:00:09Z\"},"
        "{\"manager\":\"a\",\"time\":\"2026-11-21T15:00:01Z\"},"
        "{\"time\":\"2026-11-21T15:00:03Z\"},{\"manager\":\"c\",\"time\":\"soon\"}]},"
        "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
        "{\"type\":\"Bound\",\"status\":\"False\"},{\"type\":\"Odd\"}]}}",
        0, NULL);
    CLEANUP(json_decrefp) json_t *empty = json_object();
    const int64_t created = INT64_C(1795273200000);
    assert_string_equal(kube_name(object), "n");
    assert_string_equal(kube_namespace(object), "s");
    assert_string_equal(kube_uid(object), "u");
    assert_string_equal(kube_resource_version(object), "8");
    assert_int_equal(kube_created_ms(object), created);
    assert_int_equal(kube_written_ms(object, NULL), created + 9000);
    assert_int_equal(kube_written_ms(object, "a"), created + 2000);
    assert_int_equal(kube_written_ms(object, "c"), 0);
    assert_true(kube_is_owned_by(object, "p"));
    assert_false(kube_is_owned_by(object, "u"));
    assert_false(kube_is_owned_by(object, NULL));
    assert_true(kube_is_terminating(object));
    assert_string_equal(json_string_value(json_object_get(kube_condition(object, "Bound"), "type")),
                        "Bound");
    assert_null(kube_condition(object, "Other"));
    assert_true(kube_has_condition(object, "Ready"));
    assert_false(kube_has_condition(object, "Bound"));
    assert_false(kube_has_condition(object, "Odd"));
    assert_false(kube_has_condition(object, "Other"));
    for (int i = 0; i < 2; i++) {
        const json_t *none = i == 0 ? empty : NULL;
        assert_string_equal(kube_name(none), "");
        assert_string_equal(kube_uid(none), "");
        assert_int_equal(kube_created_ms(none), 0);
        assert_int_equal(kube_written_ms(none, NULL), 0);
        assert_false(kube_is_owned_by(none, "o"));
        assert_false(kube_is_terminating(none));
        assert_false(kube_has_condition(none, "Ready"));
    }
}

/* ---- lists ---- */

static struct {
    unsigned count;
    char items[64]; /* as JSON */
    int code;       /* of the error; 0: none */
} heard;

static void hear(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    assert_ptr_equal(arg, &heard);
    heard.count++;
    heard.code = err ? err->code : 0;
    char *items = json_dumps(json_object_get(answer->body, "items"), JSON_COMPACT);
    snprintf(heard.items, sizeof heard.items, "%s", items ? items : "");
    free(items);
}

static void answer_page(const char *items, const char *token)
{
    char text[256];
    snprintf(text, sizeof text, "{\"items\":%s,\"metadata\":{\"continue\":\"%s\"}}", items, token);
    CLEANUP(json_decrefp) json_t *body = json_loads(text, 0, NULL);
    const struct kube_answer answer = {.status = 200, .body = body, .reason = "", .tries = 1};
    assert_non_null(body);
    call.fn(&answer, NULL, call.arg);
}

static void answer_error(int code)
{
    const struct kube_answer answer = {.status = 410, .reason = "", .tries = 1};
    const struct drarun_error err = {.code = code};
    call.fn(&answer, &err, call.arg);
}

static void start_list(const struct kube_select *select, bool pages)
{
    memset(&call, 0, sizeof call);
    memset(&heard, 0, sizeof heard);
    assert_int_equal(
        (pages ? kube_list_pages : kube_list)(NULL, &pods, select, hear, &heard, NULL, NULL), 0);
}

#define LIST(query) "GET /api/v1/namespaces/x/pods?" query "\nlist pods in namespace x"

static void a_list_is_all_of_its_pages(void **state)
{
    (void)state;
    const struct kube_select select = {.labels = "a", .fields = "b", .older = true};
    start_list(&select, false);
    assert_string_equal(call.text,
                        LIST("labelSelector=a&fieldSelector=b&limit=500&resourceVersion=0"));
    answer_page("[1,2]", "next");
    assert_string_equal(call.text, LIST("labelSelector=a&fieldSelector=b&limit=500&continue=next"));
    assert_int_equal(heard.count, 0);
    answer_page("[3]", "last");
    assert_string_equal(call.text, LIST("labelSelector=a&fieldSelector=b&limit=500&continue=last"));
    answer_page("[]", "");
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, 0);
    assert_string_equal(heard.items, "[1,2,3]");
    assert_int_equal(call.count, 3);
    start_list(NULL, false);
    answer_page("null", ""); /* as of an empty list in Go */
    assert_string_equal(heard.items, "[]");
}

static void pages_one_by_one(void **state)
{
    (void)state;
    start_list(NULL, true);
    assert_string_equal(call.text, LIST("limit=500"));
    answer_page("[1]", "next");
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.items, "[1]");
    assert_string_equal(call.text, LIST("limit=500&continue=next"));
    answer_page("[2]", "");
    assert_int_equal(heard.count, 2);
    assert_string_equal(heard.items, "[2]");
    assert_int_equal(call.count, 2);
}

static void an_expired_token_is_begun_again_once(void **state)
{
    (void)state;
    start_list(NULL, false);
    answer_page("[1]", "next");
    answer_error(ESTALE);
    assert_int_equal(heard.count, 0);
    assert_string_equal(call.text, LIST("limit=500"));
    answer_page("[2]", "next");
    answer_error(ESTALE);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, ESTALE);
    /* the first page has none */
    start_list(NULL, false);
    answer_error(ESTALE);
    assert_int_equal(heard.code, ESTALE);
    assert_int_equal(call.count, 1);
    start_list(NULL, false);
    answer_page("[1]", "next");
    answer_error(EACCES);
    assert_int_equal(heard.code, EACCES);
    assert_int_equal(call.count, 2);
    /* pages that were handed on cannot be taken back */
    start_list(NULL, true);
    answer_page("[1]", "next");
    answer_error(ESTALE);
    assert_int_equal(heard.code, ESTALE);
    assert_int_equal(heard.count, 2);
}

static void large_pages_are_asked_for_in_parts(void **state)
{
    (void)state;
    static const char *const smaller[] = {LIST("limit=62"), LIST("limit=7"), LIST("limit=1")};
    static const char *const larger[] = {
        LIST("limit=2&continue=t"),   LIST("limit=4&continue=t"),   LIST("limit=8&continue=t"),
        LIST("limit=16&continue=t"),  LIST("limit=32&continue=t"),  LIST("limit=64&continue=t"),
        LIST("limit=128&continue=t"), LIST("limit=256&continue=t"), LIST("limit=500&continue=t"),
        LIST("limit=500&continue=t")};
    start_list(NULL, false);
    for (size_t i = 0; i < ARRAY_LEN(smaller); i++) {
        answer_error(EFBIG);
        assert_string_equal(call.text, smaller[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(larger); i++) {
        answer_page("[]", "t");
        assert_string_equal(call.text, larger[i]);
    }
    answer_error(EFBIG); /* the same page */
    assert_string_equal(call.text, LIST("limit=62&continue=t"));
    answer_page("[]", "");
    assert_int_equal(heard.count, 1);
    start_list(NULL, false);
    for (size_t i = 0; i < ARRAY_LEN(smaller) + 1; i++)
        answer_error(EFBIG);
    assert_int_equal(heard.code, EFBIG); /* a single object is too large */
}

static void add_mark(json_t *object)
{
    json_object_set_new(object, "trimmed", json_true());
}

static void answers_may_be_kept_small(void **state)
{
    (void)state;
    const struct kube_select small = {.small_pages = true}, trimmed = {.trim = add_mark};
    const struct kube_select metadata = {.metadata_only = true};
    start_list(&small, false);
    assert_string_equal(call.text, LIST("limit=500") "\n2097152 bytes");
    answer_error(EFBIG);
    answer_error(EFBIG);
    assert_string_equal(call.text, LIST("limit=7") "\n2097152 bytes");
    answer_error(EFBIG);
    assert_string_equal(call.text, LIST("limit=1")); /* one object may have more */
    answer_page("[]", "");
    start_list(&trimmed, false);
    assert_string_equal(call.text, LIST("limit=500") "\n2097152 bytes");
    answer_page("[{}]", "next");
    answer_page("[{}]", "");
    assert_string_equal(heard.items, "[{\"trimmed\":true},{\"trimmed\":true}]");
    start_list(&metadata, false);
    assert_string_equal(call.text,
                        LIST("limit=500") "\naccept application/json;as=PartialObjectMetadataList;"
                                          "g=meta.k8s.io;v=v1");
    answer_page("[]", "");
}

static void a_list_that_cannot_go_on(void **state)
{
    (void)state;
    struct kube_listing *listing = NULL;
    struct drarun_error err = {0};
    call.fails = true;
    assert_int_equal(kube_list(NULL, &pods, NULL, hear, &heard, &listing, &err), -ENOMEM);
    assert_null(listing);
    assert_string_equal(err.text, "no call");
    assert_int_equal(kube_delete(NULL, &pod, NULL, NULL, NULL, NULL, NULL), -ENOMEM);
    for (int pages = 0; pages < 2; pages++) {
        start_list(NULL, pages);
        call.fails = true;
        answer_page("[1]", "next");
        assert_int_equal(heard.count, 1);
        assert_int_equal(heard.code, ENOMEM);
    }
    start_list(NULL, false);
    call.fails = true;
    answer_error(EFBIG);
    assert_int_equal(heard.code, ENOMEM);
    start_list(NULL, false);
    answer_page("[1]", "next");
    call.fails = true;
    answer_error(ESTALE);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, ENOMEM);
}

static void a_cancelled_list_is_silent(void **state)
{
    (void)state;
    struct kube_listing *listing = NULL;
    memset(&heard, 0, sizeof heard);
    assert_int_equal(kube_list(NULL, &pods, NULL, hear, &heard, &listing, NULL), 0);
    assert_non_null(listing);
    kube_list_cancel(listing);
    assert_int_equal(call.cancelled, 1);
    kube_list_cancel(NULL);
    assert_int_equal(heard.count, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        CASE(each_verb_has_its_request),
        CASE(deletions_have_options),
        CASE(an_object_is_named),
        CASE(parts_of_an_object),
        CASE(a_list_is_all_of_its_pages),
        CASE(pages_one_by_one),
        CASE(an_expired_token_is_begun_again_once),
        CASE(large_pages_are_asked_for_in_parts),
        CASE(answers_may_be_kept_small),
        CASE(a_list_that_cannot_go_on),
        CASE(a_cancelled_list_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
