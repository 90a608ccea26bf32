/* SPDX-License-Identifier: Apache-2.0 */
/* The pure rules: retries, errors, paths, what is served, base64, times, plugins' answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/kube/base64.h"
#include "lib/kube/call.h"
#include "lib/kube/exec_answer.h"
#include "lib/kube/problem.h"
#include "lib/kube/resource.h"
#include "lib/kube/retry.h"
#include "lib/kube/served.h"
#include "lib/kube/warning.h"

static void test_retry(void **state)
{
    static const struct {
        struct retry_facts facts;
        bool wanted, in_doubt;
    } rows[] = {
        {{.status = 0, .sent = false, .retry_after_ms = -1}, true, false},
        {{.status = 0, .sent = true, .retry_after_ms = -1}, false, true},
        {{.status = 0, .sent = true, .repeatable = true, .retry_after_ms = -1}, true, true},
        {{.status = 0, .sent = true, .repeatable = true, .hopeless = true}, false, true},
        {{.status = 429, .sent = true, .retry_after_ms = -1}, true, false},
        {{.status = 500, .sent = true, .retry_after_ms = -1}, false, true},
        {{.status = 500, .sent = true, .repeatable = true, .retry_after_ms = -1}, true, true},
        {{.status = 503, .sent = true, .retry_after_ms = 0}, true, false},
        {{.status = 501, .sent = true, .repeatable = true, .retry_after_ms = -1}, false, true},
        {{.status = 403, .sent = true, .repeatable = true, .retry_after_ms = -1}, false, false},
        {{.status = 403, .sent = true, .passes = true, .retry_after_ms = -1}, true, false},
        {{.status = 409, .sent = true, .repeatable = true, .retry_after_ms = 1}, false, false},
        {{.status = 409, .sent = true, .conflict = true, .retry_after_ms = -1}, true, false},
        {{.status = 410, .sent = true, .repeatable = true, .retry_after_ms = -1}, false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (retry_wanted(&rows[i].facts) != rows[i].wanted ||
            retry_in_doubt(&rows[i].facts) != rows[i].in_doubt)
            fail_msg("row %zu", i);
}

static void test_pauses(void **state)
{
    (void)state;
    assert_int_equal(retry_pause_ms(2, RETRY_MAX_MS, -1, 0), 50);
    assert_int_equal(retry_pause_ms(2, RETRY_MAX_MS, -1, 0.99), 149);
    assert_int_equal(retry_pause_ms(3, RETRY_MAX_MS, -1, 0.5), 200);
    assert_int_equal(retry_pause_ms(1000000, RETRY_MAX_MS, -1, 0.5), RETRY_MAX_MS);
    assert_int_equal(retry_pause_ms(100, 30000, -1, 0.5), 30000);
    assert_int_equal(retry_pause_ms(2, RETRY_MAX_MS, 7000, 0.5), 7050);
    assert_int_equal(retry_pause_ms(8, RETRY_MAX_MS, 1000, 0), 2500);
    assert_int_equal(retry_pause_ms(2, RETRY_MAX_MS, 3600000, 0.5), RETRY_AFTER_MAX_MS + 50);
}

static void test_lists_that_are_read_again(void **state)
{
    (void)state;
    assert_int_equal(retry_count_rereads(0, 1000), 1);
    assert_int_equal(retry_count_rereads(1, 1000), 2);
    assert_int_equal(retry_count_rereads(7, RETRY_PEACE_MS - 1), 8);
    assert_int_equal(retry_count_rereads(7, RETRY_PEACE_MS), 1);
}

static void test_problems(void **state)
{
    static const struct {
        int status;
        const char *reason;
        int code;
    } rows[] = {{401, "Unauthorized", EACCES},
                {403, "Forbidden", EACCES},
                {404, "NotFound", ENOENT},
                {409, "AlreadyExists", EEXIST},
                {409, "Conflict", EBUSY},
                {410, "Expired", ESTALE},
                {422, "Invalid", EINVAL},
                {429, "", EAGAIN},
                {500, "", EIO},
                {503, "", EIO},
                {418, "", ENOTSUP},
                {413, "", EFBIG}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        json_t *status = json_pack("{s:s, s:s, s:s}", "kind", "Status", "reason", rows[i].reason,
                                   "message", "the message");
        assert_int_equal(problem_from_status(rows[i].status, status, &err), -rows[i].code);
        assert_int_equal(err.kind, DRARUN_ERR_CLUSTER);
        assert_non_null(strstr(err.text, ": the message"));
        json_decref(status);
    }
    struct drarun_error err = {0};
    problem_from_status(502, NULL, &err);
    assert_string_equal(err.text, "502");
    assert_true(problem_is_hopeless(CURLE_PEER_FAILED_VERIFICATION));
    assert_false(problem_is_hopeless(CURLE_COULDNT_CONNECT));
}

/* As of a proxy or a load balancer before the server. */
static void test_answers_that_are_no_status(void **state)
{
    static const struct {
        int status;
        const char *body, *text;
    } rows[] = {
        {503, "no healthy upstream", "503: no healthy upstream"},
        {429, "\r\n Too many requests, please try again later.\r\nnext\n",
         "429: Too many requests, please try again later."},
        {502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>",
         "502: Bad Gateway"},
        {503, "<!DOCTYPE html><h1 class=\"a\">Down\n</h1> for work", "503: Down"},
        {403, "{\"error\": \"who are you\"}", "403: {\"error\": \"who are you\"}"},
        {403, "{\"kind\": \"Status\", \"message\": \"no\"}", "403: no"},
        {403, "{\"kind\": \"Status\"}", "403"},
        {401, "Unauthorized\n", "401: the server does not know us by these credentials"},
        {401, "log in", "401: the server does not know us by these credentials: log in"},
        {502, "\x1b[2Jgone\xff\r", "502: ?[2Jgone?"},
        {502, "<html><body", "502"},
        {502, " \n", "502"},
        {502, "502", "502: 502"},
        {502, "", "502"},
    };
    char body[400];
    struct drarun_error err = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        err = (struct drarun_error){0};
        json_t *object = json_loads(rows[i].body, 0, NULL);
        problem_from_answer(rows[i].status, rows[i].body, strlen(rows[i].body), object, &err);
        assert_string_equal(err.text, rows[i].text);
        json_decref(object);
    }
    for (size_t i = 0; i < sizeof body; i++) /* of two bytes each */
        body[i] = "\xc3\xa9"[i % 2];
    problem_from_answer(502, body, sizeof body, NULL, &err);
    assert_int_equal(strlen(err.text), strlen("502: ") + 160);
    body[0] = 'x';
    problem_from_answer(502, body, 2, NULL, &err);
    assert_string_equal(err.text, "502: x?");
    problem_from_answer(502, NULL, 0, NULL, &err);
    assert_string_equal(err.text, "502");
}

static void test_server_that_is_away(void **state)
{
    static const struct {
        CURLcode code;
        bool away;
    } rows[] = {{CURLE_COULDNT_RESOLVE_HOST, true}, {CURLE_COULDNT_CONNECT, true},
                {CURLE_OPERATION_TIMEDOUT, true},   {CURLE_RECV_ERROR, true},
                {CURLE_OUT_OF_MEMORY, false},       {CURLE_PEER_FAILED_VERIFICATION, false}};
    static const struct {
        int status;
        bool later;
    } statuses[] = {{429, true},  {500, true},  {503, true},  {504, true},
                    {403, false}, {404, false}, {405, false}, {409, false},
                    {413, false}, {422, false}, {501, false}};
    const struct drarun_error clock = {.code = ETIME, .kind = DRARUN_ERR_INFRASTRUCTURE};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        problem_from_curl(rows[i].code, "no answer", "https://a", &err);
        assert_int_equal(kube_is_away(&err), rows[i].away);
        assert_int_equal(kube_may_answer_later(&err), rows[i].away);
    }
    assert_false(kube_is_away(&clock)); /* as of a wait for workers */
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct drarun_error err = {0};
        problem_from_status(statuses[i].status, NULL, &err);
        assert_false(kube_is_away(&err));
        assert_int_equal(kube_may_answer_later(&err), statuses[i].later);
    }
}

static void test_warnings(void **state)
{
    static const struct {
        const char *value, *texts; /* with | between */
    } rows[] = {
        {"299 - \"would violate PodSecurity \\\"restricted:latest\\\": a\\\\b\"",
         "would violate PodSecurity \"restricted:latest\": a\\b"},
        {"299 - \"a, b\", 299 agent \"c\",  299 - \"d\"", "a, b|c|d"},
        {"299 - \"a\" \"Wed, 21 Oct 2015 07:28:00 GMT\", 299 - \"b\"", "a"},
        {"299 - \"\", 299 - \"b\"", "b"},
        {"299 - \"no end", ""},
        {"299 - \"no end\\", ""},
        {"299 - text", ""},
        {"299 \"text\"", ""},
        {"29 - \"text\"", ""},
        {"text", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(strlist_done) struct strlist got = STRLIST_INIT;
        struct buf texts = BUF_INIT;
        warning_add_texts(rows[i].value, &got);
        buf_add_str(&texts, "");
        for (size_t t = 0; t < got.count; t++)
            buf_printf(&texts, "%s%s", t ? "|" : "", got.items[t]);
        assert_string_equal(texts.data ? texts.data : "", rows[i].texts);
        buf_done(&texts);
    }
}

static void test_paths(void **state)
{
    static const struct {
        struct kube_target target;
        const char *path, *words;
    } rows[] = {
        {{&kube_pods, "x", NULL, NULL}, "/api/v1/namespaces/x/pods", "see pods in namespace x"},
        {{&kube_pods, NULL, NULL, NULL}, "/api/v1/pods", "see pods"},
        {{&kube_pods, "x", "a/../b", "log"},
         "/api/v1/namespaces/x/pods/a%2F..%2Fb/log",
         "see pods/log \"a/../b\" in namespace x"},
        {{&kube_resource_claims, "x", "c", NULL},
         "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/c",
         "see resourceclaims \"c\" in namespace x"},
        {{&kube_nodes, "x", "n", NULL}, "/api/v1/nodes/n", "see nodes \"n\""},
    };
    struct buf query = BUF_INIT;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf path = BUF_INIT, words = BUF_INIT;
        kube_path(&rows[i].target, &path);
        kube_target_describe("see", &rows[i].target, &words);
        assert_string_equal(path.data, rows[i].path);
        assert_string_equal(words.data, rows[i].words);
        buf_done(&path);
        buf_done(&words);
    }
    kube_query_add(&query, "labelSelector", "a=b,c in (d, e)");
    kube_query_add(&query, "none", NULL);
    kube_query_add(&query, "x", "\xc3\xa4&");
    assert_string_equal(query.data, "labelSelector=a%3Db%2Cc%20in%20%28d%2C%20e%29&x=%C3%A4%26");
    buf_done(&query);
    assert_ptr_equal(kube_resource_find("batch/v1", "Job"), &kube_jobs);
    assert_ptr_equal(kube_resource_find("v1", "Pod"), &kube_pods);
    assert_null(kube_resource_find("batch/v2", "Job"));
}

static void test_served(void **state)
{
    static const char *const answers[] = {
        "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"batch\"},"
        "\"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":\"jobs\"}]}]},{},3]}",
        "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\",\"versions\":[{\"version\":"
        "\"v1\"}]}]}",
        "{\"kind\":\"APIVersions\",\"versions\":[\"v1\",2]}",
    };
    struct kube_served *served = served_new();
    size_t length = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        json_t *answer = json_loads(answers[i], 0, NULL);
        assert_int_equal(served_add(served, answer, NULL), 0);
        json_decref(answer);
    }
    assert_int_equal(served_add(served, NULL, NULL), -EPROTO);
    assert_true(kube_serves(served, "batch", "v1", "jobs"));
    assert_true(kube_serves(served, "batch", "v1", NULL));
    assert_false(kube_serves(served, "batch", "v1", "cronjobs"));
    assert_false(kube_serves(served, "batch", "v2", NULL));
    assert_true(kube_serves(served, "apps", "v1", "whatever")); /* nothing is said about it */
    assert_true(kube_serves(served, "", "v1", "pods"));
    const char *one = kube_serves_one_of(served, "batch", "v2 v1", "jobs", &length);
    assert_memory_equal(one, "v1", length);
    assert_null(kube_serves_one_of(served, "batch", "v2 v3", "jobs", &length));
    assert_string_equal(kube_version_with(served, "batch", "jobs"), "v1");
    assert_null(kube_version_with(served, "batch", "podgroups"));
    assert_null(kube_version_with(served, "apps", "whatever")); /* nothing is said about it */
    served_free(served);
}

static void test_base64(void **state)
{
    static const struct {
        const char *text, *bytes;
        int rc;
    } rows[] = {{"", "", 0},           {"YQ==", "a", 0},         {"YWI=", "ab", 0},
                {"YWJj", "abc", 0},    {"YW\nJj\r\n", "abc", 0}, {"YWJ", "", -EINVAL},
                {"YQ=a", "", -EINVAL}, {"Y===", "", -EINVAL},    {"YW-_", "", -EINVAL},
                {"YW J", "", -EINVAL}, {"====", "", -EINVAL}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT;
        if (base64_decode(rows[i].text, &out) != rows[i].rc ||
            (rows[i].rc == 0 && strcmp(out.data, rows[i].bytes) != 0))
            fail_msg("\"%s\"", rows[i].text);
        buf_done(&out);
    }
    struct buf out = BUF_INIT;
    base64_encode("ab", 2, &out);
    assert_string_equal(out.data, "YWI=");
    buf_done(&out);
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } rows[] = {{"1970-01-01T00:00:00Z", 0},
                {"2026-11-21T15:00:00Z", 1795273200},
                {"2026-11-21T15:00:00.123456789Z", 1795273200},
                {"2026-11-21T17:00:00+02:00", 1795273200},
                {"2026-11-21T13:30:00.5-01:30", 1795273200},
                {"2026-11-21T15:00:00", -1},
                {"2026-11-21 15:00:00Z", -1},
                {"2026-13-21T15:00:00Z", -1},
                {"2026-11-21T25:00:00Z", -1},
                {"2026-01-01T00:00:00Z", 1767225600},
                {"2026-12-31T23:59:59Z", 1798761599},
                {"2026-12-31T23:59:60Z", 1798761600}, /* a leap second */
                {"2026-00-21T15:00:00Z", -1},
                {"2026-11-00T15:00:00Z", -1},
                {"2026-11-32T15:00:00Z", -1},
                {"2026-11-21T24:00:00Z", -1},
                {"2026-11-21T15:60:00Z", -1},
                {"2026-11-21T15:00:61Z", -1},
                {"2026-11-21T15:00:00Zx", -1},
                {"2026-11-21T15:00:00+2:00", -1},
                {"soon", -1},
                {"", -1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t seconds = -1;
        time_from_rfc3339(rows[i].text, &seconds);
        if (seconds != rows[i].seconds)
            fail_msg("%s gave %lld", rows[i].text, (long long)seconds);
    }
}

static void test_exec_answer(void **state)
{
    static const char text[] =
        "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
        "\"status\":{\"token\":\"t\",\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\","
        "\"expirationTimestamp\":\"2026-11-21T15:00:00Z\",\"unknown\":1}}";
    struct exec_credential credential = {0};
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(exec_answer_read(text, sizeof text - 1, "client.authentication.k8s.io/v1",
                                      &credential, &err),
                     0);
    assert_string_equal(credential.token, "t");
    assert_string_equal(credential.key.data, "k");
    assert_int_equal(credential.expires_s, 1795273200);
    exec_credential_done(&credential);
    for (size_t cut = 0; cut < sizeof text - 1; cut++)
        assert_true(
            exec_answer_read(text, cut, "client.authentication.k8s.io/v1", &credential, &err) < 0);
}

#define ANSWER(status)                                                                             \
    "{\"apiVersion\":\"client.authentication.k8s.io/"                                              \
    "v1\",\"kind\":\"ExecCredential\",\"status\":" status "}"

static void test_exec_answer_refused(void **state)
{
    static const struct {
        const char *text, *error; /* NULL: taken */
    } rows[] = {
        {ANSWER("{\"token\":\"t\"}"), NULL},
        {ANSWER("{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}"), NULL},
        {"", "its answer is empty"},
        {"{", "its answer is no JSON"},
        {"{}", "its answer is no ExecCredential"},
        {"{\"kind\":\"ExecCredential\"}", "has apiVersion none, the kubeconfig expects"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}",
         "has apiVersion v9, the kubeconfig"},
        {ANSWER("1"), "has no status"},
        {ANSWER("{}"), "neither status.token nor"},
        {ANSWER("{\"token\":\"a b\"}"), "blanks or control characters"},
        {ANSWER("{\"token\":\"a\\u007f\"}"), "blanks or control characters"},
        {ANSWER("{\"clientCertificateData\":\"c\"}"), "expected both"},
        {ANSWER("{\"clientKeyData\":\"k\"}"), "expected both"},
        {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"), "no RFC 3339 time"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exec_credential credential = {0};
        struct drarun_error err = {0};
        int rc = exec_answer_read(rows[i].text, strlen(rows[i].text),
                                  "client.authentication.k8s.io/v1", &credential, &err);
        if (rows[i].error ? rc >= 0 || !strstr(err.text, rows[i].error) : rc != 0)
            fail_msg("%s gave %d %s", rows[i].text, rc, err.text);
        assert_int_equal(err.kind, rows[i].error ? DRARUN_ERR_CLUSTER : 0);
        exec_credential_done(&credential);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exec_answer_refused),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_lists_that_are_read_again),
        cmocka_unit_test(test_problems),
        cmocka_unit_test(test_answers_that_are_no_status),
        cmocka_unit_test(test_server_that_is_away),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_served),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_exec_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
