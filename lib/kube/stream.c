/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/chance.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/kube/attempt.h"
#include "lib/kube/problem.h"
#include "lib/kube/retry.h"

struct kube_stream {
    struct kube_client *client;
    char *path, *query, *what;
    struct kube_stream_events events;
    void *arg;
    struct attempt *attempt;
    struct event *timer; /* a pause, or the deadline of the head */
    int64_t timeout_ms, end_ms;
    unsigned tries;
    bool began, paused;
};

static void try_once(struct kube_stream *s);

void kube_stream_free(struct kube_stream *stream)
{
    if (!stream)
        return;
    attempt_cancel(stream->attempt);
    if (stream->timer)
        event_free(stream->timer);
    free(stream->path);
    free(stream->query);
    free(stream->what);
    free(stream);
}

/* The stream is gone before its owner hears of it. */
static void stream_end(struct kube_stream *s, struct drarun_error *err)
{
    void (*ended)(const struct drarun_error *err, void *arg) = s->events.ended;
    void *arg = s->arg;
    if (err)
        error_prefix(err, "%s", s->what);
    kube_stream_free(s);
    if (ended)
        ended(err, arg);
}

static void on_head(void *arg)
{
    struct kube_stream *s = arg;
    s->began = true;
    event_del(s->timer);
}

static void on_data(const char *bytes, size_t length, void *arg)
{
    struct kube_stream *s = arg;
    if (s->events.data)
        s->events.data(bytes, length, s->arg);
}

static bool try_later(struct kube_stream *s, const struct exchange_result *result, bool passes)
{
    struct retry_facts facts = {.status = result->code == CURLE_OK ? result->status : 0,
                                .retry_after_ms = result->retry_after_ms,
                                .repeatable = !s->began,
                                .sent = true,
                                .passes = passes,
                                .hopeless =
                                    result->code != CURLE_OK && problem_is_hopeless(result->code)};
    int64_t pause = retry_pause_ms(s->tries + 1, RETRY_MAX_MS, facts.retry_after_ms, chance_draw());
    struct timeval after = timeval_from_ms(pause);
    if (s->began || !retry_wanted(&facts) || clock_ms() + pause >= s->end_ms)
        return false;
    s->client->counts.retries++;
    return event_add(s->timer, &after) == 0;
}

static void on_done(const struct exchange_result *result, const struct drarun_error *why, void *arg)
{
    struct kube_stream *s = arg;
    struct drarun_error err = {0};
    bool passes = false;
    s->attempt = NULL;
    event_del(s->timer);
    if (why) {
        err = *why;
    } else if (result->code != CURLE_OK) {
        problem_from_curl(result->code, result->text, kube_config_server(s->client->config), &err);
    } else if (result->status >= 300) {
        json_t *status =
            json_loadb(result->body->data ? result->body->data : "", result->body->len, 0, NULL);
        problem_from_answer(result->status, result->body->data, result->body->len, status, &err);
        passes = client_refusal_passes(s->client, "WATCH", s->path, result->status, status);
        json_decref(status);
    } else {
        stream_end(s, NULL);
        return;
    }
    if (why || !try_later(s, result, passes))
        stream_end(s, &err);
}

/* Either a pause is over, or the head did not come. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct kube_stream *s = arg;
    struct drarun_error err = {0};
    (void)fd;
    (void)what;
    if (!s->attempt) {
        try_once(s);
        return;
    }
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, "%s: no answer within %" PRId64 " s",
               kube_config_server(s->client->config), (s->timeout_ms + 999) / 1000);
    stream_end(s, &err);
}

static void try_once(struct kube_stream *s)
{
    static const struct attempt_events events = {.head = on_head, .data = on_data, .done = on_done};
    struct attempt_request request = {.method = "GET",
                                      .path = s->path,
                                      .query = s->query,
                                      .accept = "*/*",
                                      .stream = true,
                                      .alone = true};
    struct drarun_error err = {0};
    int64_t left = s->end_ms - clock_ms();
    struct timeval after = timeval_from_ms(left < 1 ? 1 : left);
    s->tries++;
    event_add(s->timer, &after);
    if (attempt_start(s->client, &request, &events, s, &s->attempt, &err) < 0)
        stream_end(s, &err);
    else if (s->paused)
        attempt_pause(s->attempt, true);
}

int kube_stream_open(struct kube_client *client, const struct kube_request *request,
                     const struct kube_stream_events *events, void *arg,
                     struct kube_stream **ret_stream, struct drarun_error *err)
{
    struct timeval now = {0};
    CLEANUP(kube_stream_freep) struct kube_stream *s = calloc(1, sizeof *s);
    if (!s)
        return error_set(err, ENOMEM, "out of memory");
    s->client = client;
    s->events = *events;
    s->arg = arg;
    s->timeout_ms = request->timeout_ms ? request->timeout_ms : KUBE_CALL_MS;
    s->end_ms = clock_ms() + s->timeout_ms;
    s->path = strdup(request->path);
    s->query = request->query ? strdup(request->query) : NULL;
    s->what = strdup(request->what ? request->what : request->path);
    s->timer = event_new(client->base, -1, 0, on_timer, s);
    if (!s->path || !s->what || (request->query && !s->query) || !s->timer ||
        event_add(s->timer, &now) < 0)
        return error_set(err, ENOMEM, "out of memory");
    *ret_stream = TAKE_PTR(s);
    return 0;
}

void kube_stream_pause(struct kube_stream *stream, bool pause)
{
    stream->paused = pause;
    if (stream->attempt)
        attempt_pause(stream->attempt, pause);
}

int kube_log_open(struct kube_client *client, const struct kube_log *log,
                  const struct kube_stream_events *events, void *arg,
                  struct kube_stream **ret_stream, struct drarun_error *err)
{
    struct kube_target target = {.resource = &kube_pods,
                                 .namespace_ = log->namespace_,
                                 .name = log->pod,
                                 .subresource = "log"};
    struct buf path = BUF_INIT, query = BUF_INIT, what = BUF_INIT;
    char tail[24];
    snprintf(tail, sizeof tail, "%" PRId64, log->tail);
    kube_path(&target, &path);
    kube_target_describe("get", &target, &what);
    kube_query_add(&query, "container", log->container);
    kube_query_add(&query, "follow", log->follow ? "true" : NULL);
    kube_query_add(&query, "previous", log->previous ? "true" : NULL);
    kube_query_add(&query, "timestamps", log->timestamps ? "true" : NULL);
    kube_query_add(&query, "tailLines", log->tail >= 0 ? tail : NULL);
    kube_query_add(&query, "sinceTime", log->since_time);
    struct kube_request request = {
        .method = "GET", .path = path.data, .query = query.data, .what = what.data};
    int rc = path.failed || query.failed || what.failed
                 ? error_set(err, ENOMEM, "out of memory")
                 : kube_stream_open(client, &request, events, arg, ret_stream, err);
    buf_done(&path);
    buf_done(&query);
    buf_done(&what);
    return rc;
}
