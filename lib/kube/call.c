/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/chance.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/kube/attempt.h"
#include "lib/kube/problem.h"
#include "lib/kube/retry.h"

#define TRY_MS 30000 /* of a request that may be sent again; of others all the time there is */

struct kube_call {
    TAILQ_ENTRY(kube_call) link; /* in the client's calls */
    struct kube_client *client;
    char *method, *path, *query, *body, *content_type, *accept, *what;
    kube_call_fn fn;
    void *arg;
    struct attempt *attempt;
    struct event *pause;
    int64_t end_ms; /* on clock_ms() */
    size_t answer_max;
    unsigned tries;
    bool repeatable, urgent, lost;
};

static void call_free(struct kube_call *call)
{
    TAILQ_REMOVE(&call->client->calls, call, link);
    if (TAILQ_EMPTY(&call->client->calls))
        unanswered_note_idle(&call->client->unanswered);
    attempt_cancel(call->attempt);
    if (call->pause)
        event_free(call->pause);
    free(call->method);
    free(call->path);
    free(call->query);
    if (call->body)
        explicit_bzero(call->body, strlen(call->body)); /* it may be a Secret */
    free(call->body);
    free(call->content_type);
    free(call->accept);
    free(call->what);
    free(call);
}

/* result: NULL: there was no exchange. */
static void call_end(struct kube_call *call, const struct exchange_result *result,
                     const json_t *body, struct drarun_error *err)
{
    static const struct strlist none = STRLIST_INIT;
    struct kube_answer answer = {.status = result ? result->status : 0,
                                 .body = body,
                                 .reason = problem_reason(body),
                                 .tries = call->tries,
                                 .lost = call->lost,
                                 .warnings = result ? result->warnings : &none};
    size_t length = err ? strlen(err->text) : 0;
    if (err && call->tries > 1)
        snprintf(err->text + length, sizeof err->text - length, " (%u tries)", call->tries);
    if (err && call->what)
        error_prefix(err, "%s", call->what);
    else if (err)
        error_prefix(err, "%s %s", call->method, call->path);
    call->fn(&answer, err, call->arg);
    call_free(call);
}

static int parse_body(const struct buf *text, json_t **ret_body, struct drarun_error *err)
{
    json_error_t where;
    json_t *body = json_loadb(text->data ? text->data : "", text->len, JSON_DECODE_ANY, &where);
    if (!body)
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO, "the answer is no JSON: %s at byte %d",
                          where.text, where.position);
    *ret_body = body;
    return 0;
}

/* False when there is no time left for another try. */
static bool try_later(struct kube_call *call, int64_t retry_after_ms)
{
    int64_t pause = retry_pause_ms(call->tries + 1, RETRY_MAX_MS, retry_after_ms, chance_draw());
    struct timeval after = timeval_from_ms(pause);
    if (clock_ms() + pause >= call->end_ms)
        return false;
    call->client->counts.retries++;
    return event_add(call->pause, &after) == 0;
}

static void note_date(struct kube_client *client, const struct exchange_result *result)
{
    if (!result->date_ms)
        return;
    client->date_ms = result->date_ms;
    client->dated_ms = clock_ms();
}

/* A read of a verb that only looks: a refused connection is reported at once, not tried again. */
static bool is_refused_read(const struct kube_call *call, const struct exchange_result *result)
{
    return result->code == CURLE_COULDNT_CONNECT && strcmp(call->method, "GET") == 0 &&
           unanswered_is_limited(&call->client->unanswered);
}

static void on_done(const struct exchange_result *result, const struct drarun_error *why, void *arg)
{
    struct kube_call *call = arg;
    struct drarun_error err = {0};
    json_t *body = NULL;
    call->attempt = NULL;
    if (!result) {
        err = *why;
        call_end(call, NULL, NULL, &err);
        return;
    }
    note_date(call->client, result);
    struct retry_facts facts = {
        .status = result->code == CURLE_OK ? result->status : 0,
        .retry_after_ms = result->retry_after_ms,
        .sent = result->sent,
        .repeatable = call->repeatable,
        .hopeless = result->code != CURLE_OK &&
                    (problem_is_hopeless(result->code) || is_refused_read(call, result))};
    int rc = facts.status ? parse_body(result->body, &body, &err)
                          : problem_from_curl(result->code, result->text,
                                              kube_config_server(call->client->config), &err);
    if (facts.status)
        unanswered_note_answer(&call->client->unanswered);
    else
        unanswered_note_failure(&call->client->unanswered, err.text);
    if (facts.status >= 300 || (facts.status && facts.status < 200)) {
        err = (struct drarun_error){0};
        rc = problem_from_answer(facts.status, result->body->data, result->body->len, body, &err);
        facts.passes =
            client_refusal_passes(call->client, call->method, call->path, facts.status, body);
        facts.conflict =
            strcmp(call->method, "POST") == 0 && strcmp(problem_reason(body), "Conflict") == 0;
    } else if (facts.status && rc < 0) {
        facts = (struct retry_facts){
            .sent = true, .repeatable = call->repeatable, .retry_after_ms = -1};
    }
    call->lost |= rc < 0 && retry_in_doubt(&facts);
    if (rc == 0 || !retry_wanted(&facts) || !try_later(call, facts.retry_after_ms))
        call_end(call, result, body, rc < 0 ? &err : NULL);
    json_decref(body);
}

static void try_once(struct kube_call *call)
{
    static const struct attempt_events events = {.done = on_done};
    struct drarun_error err = {0};
    int64_t left = call->end_ms - clock_ms();
    struct attempt_request request = {.method = call->method,
                                      .path = call->path,
                                      .query = call->query,
                                      .content_type = call->content_type,
                                      .accept = call->accept,
                                      .body = call->body,
                                      .body_length = call->body ? strlen(call->body) : 0,
                                      .answer_max = call->answer_max,
                                      .urgent = call->urgent,
                                      .timeout_ms = left < 1 ? 1 : left};
    if (call->repeatable && request.timeout_ms > TRY_MS)
        request.timeout_ms = TRY_MS;
    call->tries++;
    if (attempt_start(call->client, &request, &events, call, &call->attempt, &err) < 0)
        call_end(call, NULL, NULL, &err);
}

static void on_pause(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    try_once(arg);
}

static bool copy_text(char **target, const char *text)
{
    return !text || (*target = strdup(text));
}

static bool is_repeatable(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "DELETE") == 0;
}

static int fill(struct kube_call *call, const struct kube_request *request,
                struct drarun_error *err)
{
    struct timeval now = {0};
    if (!copy_text(&call->method, request->method) || !copy_text(&call->path, request->path) ||
        !copy_text(&call->query, request->query) ||
        !copy_text(&call->content_type, request->content_type) ||
        !copy_text(&call->accept, request->accept) || !copy_text(&call->what, request->what) ||
        !(call->pause = event_new(call->client->base, -1, 0, on_pause, call)) ||
        (request->body &&
         !(call->body = json_dumps(request->body, JSON_COMPACT | JSON_ENCODE_ANY))) ||
        event_add(call->pause, &now) < 0)
        return error_set(err, ENOMEM, "out of memory");
    return 0;
}

int kube_call_start(struct kube_client *client, const struct kube_request *request, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    struct kube_call *call = calloc(1, sizeof *call);
    if (!call)
        return error_set(err, ENOMEM, "out of memory");
    call->client = client;
    call->fn = fn;
    call->arg = arg;
    call->answer_max = request->answer_max;
    call->urgent = request->urgent;
    call->repeatable = request->repeat || is_repeatable(request->method);
    call->end_ms =
        unanswered_begin(&client->unanswered, strcmp(request->method, "GET") == 0,
                         clock_ms() + (request->timeout_ms ? request->timeout_ms : KUBE_CALL_MS));
    TAILQ_INSERT_TAIL(&client->calls, call, link);
    int rc = fill(call, request, err);
    if (rc < 0) {
        call_free(call);
        return rc;
    }
    if (ret_call)
        *ret_call = call;
    return 0;
}

void kube_call_cancel(struct kube_call *call)
{
    if (call)
        call_free(call);
}
