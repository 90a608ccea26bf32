/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/attempt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/kube/problem.h"

struct attempt {
    TAILQ_ENTRY(attempt) link; /* in the client's line */
    struct kube_client *client;
    struct attempt_request request;
    const struct attempt_events *events;
    void *arg;
    struct event *begin; /* so that nothing is called back before attempt_start has returned */
    struct credential_waiter waiter;
    struct exchange *exchange;
    struct curl_slist *headers;
    unsigned generation; /* of the identity that was used */
    bool in_line, has_turn, renewed, paused;
};

static void attempt_free(struct attempt *a);
static void attempt_go(struct attempt *a);

static void give_turns(struct kube_client *client)
{
    struct attempt *next = TAILQ_FIRST(&client->line);
    if (!next || client->under_way >= KUBE_CALLS_MAX)
        return;
    TAILQ_REMOVE(&client->line, next, link);
    next->in_line = false;
    next->has_turn = true;
    client->under_way++;
    event_active(next->begin, 0, 0);
}

static void leave_turn(struct attempt *a)
{
    if (a->in_line)
        TAILQ_REMOVE(&a->client->line, a, link);
    a->in_line = false;
    if (a->has_turn) {
        a->client->under_way--;
        a->has_turn = false;
        give_turns(a->client);
    }
}

static void attempt_free(struct attempt *a)
{
    leave_turn(a);
    if (a->waiter.waiting)
        credentials_withdraw(a->client->credentials, &a->waiter);
    exchange_cancel(a->exchange);
    if (a->begin)
        event_free(a->begin);
    curl_slist_free_all(a->headers);
    free(a);
}

static void attempt_end(struct attempt *a, const struct exchange_result *result,
                        const struct drarun_error *err)
{
    leave_turn(a);
    a->events->done(result, err, a->arg);
    attempt_free(a);
}

static bool add_header(struct attempt *a, const char *name, const char *value)
{
    struct buf line = BUF_INIT;
    buf_printf(&line, "%s: %s", name, value);
    struct curl_slist *more = line.failed ? NULL : curl_slist_append(a->headers, line.data);
    if (line.data)
        explicit_bzero(line.data, line.len);
    buf_done(&line);
    if (more)
        a->headers = more;
    return more != NULL;
}

static bool add_identity(struct attempt *a, const struct identity *identity)
{
    const struct kube_config *config = a->client->config;
    struct buf bearer = BUF_INIT;
    bool ok = true;
    if (identity->token) {
        buf_printf(&bearer, "Bearer %s", identity->token);
        ok = !bearer.failed && add_header(a, "Authorization", bearer.data);
        if (bearer.data)
            explicit_bzero(bearer.data, bearer.len);
        buf_done(&bearer);
    }
    if (config->as)
        ok = ok && add_header(a, "Impersonate-User", config->as);
    if (config->as_uid)
        ok = ok && add_header(a, "Impersonate-Uid", config->as_uid);
    for (size_t i = 0; i < config->as_groups.count; i++)
        ok = ok && add_header(a, "Impersonate-Group", config->as_groups.items[i]);
    for (size_t i = 0; i + 1 < config->as_extra.count; i += 2)
        ok = ok && add_header(a, config->as_extra.items[i], config->as_extra.items[i + 1]);
    return ok;
}

static bool add_headers(struct attempt *a, const struct identity *identity)
{
    const struct attempt_request *r = &a->request;
    curl_slist_free_all(a->headers);
    a->headers = NULL;
    bool ok = add_header(a, "Accept", r->accept ? r->accept : "application/json");
    if (r->body)
        ok = ok &&
             add_header(a, "Content-Type", r->content_type ? r->content_type : "application/json");
    if (a->client->host_header)
        ok = ok && add_header(a, "Host", a->client->host_header);
    /* no 100-continue: it costs a round trip */
    return ok && add_header(a, "Expect", "") && add_identity(a, identity);
}

static void on_connected(void *arg)
{
    struct attempt *a = arg;
    a->events->connected(a->exchange, a->headers, a->arg);
}

/* Roles know watching as a verb of its own; the other streams are of subresources. */
static const char *verb_of(const struct attempt *a)
{
    return a->request.stream ? "WATCH" : a->request.method;
}

static void on_head(void *arg)
{
    struct attempt *a = arg;
    client_note_answer(a->client, verb_of(a), a->request.path, 200);
    if (a->events->head)
        a->events->head(a->arg);
}

static void on_data(const char *bytes, size_t length, void *arg)
{
    struct attempt *a = arg;
    a->events->data(bytes, length, a->arg);
}

static void on_done(const struct exchange_result *result, void *arg)
{
    struct attempt *a = arg;
    a->exchange = NULL;
    if (result->code == CURLE_OK)
        client_note_answer(a->client, verb_of(a), a->request.path, result->status);
    else if (!problem_is_hopeless(result->code))
        client_note_loss(a->client);
    if (result->status == 401 && !a->renewed &&
        credentials_refused(a->client->credentials, a->generation)) {
        a->renewed = true;
        event_active(a->begin, 0, 0);
        return;
    }
    attempt_end(a, result, NULL);
}

static int start_exchange(struct attempt *a, const struct identity *identity,
                          struct drarun_error *err)
{
    static const struct exchange_events events = {
        .connected = on_connected, .head = on_head, .data = on_data, .done = on_done};
    struct kube_client *client = a->client;
    const struct attempt_request *r = &a->request;
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s%s%s", client->url, r->path, r->query ? "?" : "",
               r->query ? r->query : "");
    a->generation = identity->generation;
    if (url.failed || !add_headers(a, identity)) {
        buf_done(&url);
        return error_set(err, ENOMEM, "out of memory");
    }
    struct exchange_request exchange = {.method = r->method,
                                        .url = url.data,
                                        .connect_to = client->connect_to,
                                        .proxy = client->proxy,
                                        .headers = a->headers,
                                        .body = r->body,
                                        .body_length = r->body_length,
                                        .answer_max =
                                            r->answer_max ? r->answer_max : KUBE_ANSWER_MAX,
                                        .timeout_ms = r->timeout_ms,
                                        .ca = identity->ca,
                                        .certificate = identity->certificate,
                                        .key = identity->key,
                                        .insecure = client->config->insecure,
                                        .stream = r->stream,
                                        .alone = r->alone,
                                        .connect_only = r->connect_only};
    int rc = exchange_start(client->transport, &exchange, &events, a, &a->exchange, err);
    buf_done(&url);
    if (rc == 0 && a->paused)
        exchange_pause(a->exchange, true);
    return rc;
}

static void on_credentials(const struct drarun_error *err, void *arg)
{
    struct attempt *a = arg;
    if (err)
        attempt_end(a, NULL, err);
    else
        attempt_go(a);
}

static void attempt_go(struct attempt *a)
{
    struct identity identity = {0};
    struct drarun_error err = {0};
    int rc = credentials_get(a->client->credentials, &identity, &a->waiter, &err);
    if (rc == -EINPROGRESS)
        return;
    if (rc == 0)
        rc = start_exchange(a, &identity, &err);
    if (rc < 0)
        attempt_end(a, NULL, &err);
}

static void on_begin(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    attempt_go(arg);
}

static void count(struct kube_client *client, const struct attempt_request *request)
{
    if (request->stream || request->connect_only)
        client->counts.watches++;
    else if (strcmp(request->method, "GET") == 0)
        client->counts.reads++;
    else
        client->counts.writes++;
}

int attempt_start(struct kube_client *client, const struct attempt_request *request,
                  const struct attempt_events *events, void *arg, struct attempt **ret_attempt,
                  struct drarun_error *err)
{
    struct attempt *a = calloc(1, sizeof *a);
    if (!a)
        return error_set(err, ENOMEM, "out of memory");
    a->client = client;
    a->request = *request;
    a->events = events;
    a->arg = arg;
    a->waiter = (struct credential_waiter){.fn = on_credentials, .arg = a};
    a->begin = event_new(client->base, -1, 0, on_begin, a);
    if (!a->begin) {
        attempt_free(a);
        return error_set(err, ENOMEM, "out of memory");
    }
    count(client, request);
    if (request->urgent || request->stream || request->connect_only) {
        event_active(a->begin, 0, 0);
    } else {
        TAILQ_INSERT_TAIL(&client->line, a, link);
        a->in_line = true;
        give_turns(client);
    }
    *ret_attempt = a;
    return 0;
}

void attempt_cancel(struct attempt *attempt)
{
    if (attempt)
        attempt_free(attempt);
}

void attempt_pause(struct attempt *attempt, bool pause)
{
    attempt->paused = pause;
    if (attempt->exchange)
        exchange_pause(attempt->exchange, pause);
}
