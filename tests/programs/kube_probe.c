/* SPDX-License-Identifier: Apache-2.0 */
/* kube_probe [--kubeconfig FILE] [--context NAME] [--namespace NAME] [--in-cluster DIR]: lib/kube
 * by hand. Each line of stdin is {"id": N, "do": VERB, ...}; each line of stdout {"id": N, "event":
 * WORD, "at": microseconds of the monotonic clock, ...}. Ends when stdin does. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/kube/discover.h"
#include "lib/kube/list.h"
#include "lib/kube/object.h"
#include "lib/kube/stream.h"
#include "lib/kube/watch.h"

#define TASKS_MAX 4096

struct probe {
    struct event_base *base;
    struct kube_client *client;
    struct evbuffer *input;
    struct task *open[TASKS_MAX]; /* by id */
};

struct task { /* of one line; owned by what it started */
    json_int_t id;
    struct probe *probe;
    struct kube_watch *watch;
    struct kube_stream *stream;
    bool whole;      /* events show the whole object */
    bool free_first; /* the watch is freed in its first callback */
};

static void say(const struct task *task, const char *event, json_t *more)
{
    json_t *line =
        json_pack("{s:I, s:s, s:I}", "id", task->id, "event", event, "at", (json_int_t)clock_us());
    json_object_update(line, more);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(line);
    json_decref(more);
}

static json_t *error_json(const struct drarun_error *err)
{
    return err ? json_pack("{s:i, s:i, s:s}", "code", err->code, "kind", (int)err->kind, "text",
                           err->text)
               : json_null();
}

static struct task *task_new(struct probe *probe, const json_t *line)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        abort();
    task->probe = probe;
    task->id = json_integer_value(json_object_get(line, "id"));
    probe->open[task->id % TASKS_MAX] = task;
    return task;
}

static void task_close(struct task *task)
{
    struct task **slot = &task->probe->open[task->id % TASKS_MAX];
    if (*slot == task)
        *slot = NULL;
    kube_watch_free(task->watch);
    kube_stream_free(task->stream);
    free(task);
}

static void on_answer(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct task *task = arg;
    say(task, "answer",
        json_pack("{s:i, s:O?, s:s, s:i, s:b, s:o}", "status", answer->status, "body", answer->body,
                  "reason", answer->reason, "tries", (int)answer->tries, "lost", answer->lost,
                  "err", error_json(err)));
    task_close(task);
}

static const char *text(const json_t *line, const char *key)
{
    return json_string_value(json_object_get(line, key));
}

static struct kube_target target_of(const json_t *line)
{
    const struct kube_resource *resource =
        kube_resource_find(text(line, "apiVersion"), text(line, "kind"));
    if (!resource)
        abort();
    return (struct kube_target){.resource = resource,
                                .namespace_ = text(line, "namespace"),
                                .name = text(line, "name"),
                                .subresource = text(line, "subresource")};
}

static struct kube_write write_of(const json_t *line)
{
    return (struct kube_write){.manager = text(line, "manager"),
                               .force = json_is_true(json_object_get(line, "force")),
                               .dry_run = json_is_true(json_object_get(line, "dryRun")),
                               .repeat = json_is_true(json_object_get(line, "repeat")),
                               .timeout_ms =
                                   json_integer_value(json_object_get(line, "timeout_ms"))};
}

static int do_request(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct kube_request request = {.method = text(line, "method"),
                                   .path = text(line, "path"),
                                   .query = text(line, "query"),
                                   .body = json_object_get(line, "body"),
                                   .content_type = text(line, "content_type"),
                                   .what = text(line, "what"),
                                   .repeat = json_is_true(json_object_get(line, "repeat")),
                                   .timeout_ms =
                                       json_integer_value(json_object_get(line, "timeout_ms"))};
    return kube_call_start(p->client, &request, on_answer, task_new(p, line), NULL, err);
}

static int do_get(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct kube_target target = target_of(line);
    return kube_get(p->client, &target, on_answer, task_new(p, line), NULL, err);
}

static int do_list(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct kube_target target = target_of(line);
    struct kube_select select = {text(line, "labels"), text(line, "fields")};
    return kube_list(p->client, &target, &select, on_answer, task_new(p, line), NULL, err);
}

static int do_write(struct probe *p, const json_t *line, struct drarun_error *err)
{
    static const struct {
        const char *name;
        int (*fn)(struct kube_client *, const struct kube_target *, const json_t *,
                  const struct kube_write *, kube_call_fn, void *, struct kube_call **,
                  struct drarun_error *);
    } verbs[] = {{"create", kube_create},
                 {"apply", kube_apply},
                 {"replace", kube_replace},
                 {"merge_patch", kube_merge_patch},
                 {"json_patch", kube_json_patch}};
    struct kube_target target = target_of(line);
    struct kube_write options = write_of(line);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, text(line, "do")) == 0)
            return verbs[i].fn(p->client, &target, json_object_get(line, "body"), &options,
                               on_answer, task_new(p, line), NULL, err);
    abort();
}

static int do_delete(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct kube_target target = target_of(line);
    struct kube_select select = {text(line, "labels"), text(line, "fields")};
    struct kube_delete options = {.propagation = text(line, "propagation"),
                                  .uid = text(line, "uid"),
                                  .resource_version = text(line, "resourceVersion"),
                                  .now = json_is_true(json_object_get(line, "now"))};
    if (!target.name)
        return kube_delete_all(p->client, &target, &select, &options, on_answer, task_new(p, line),
                               NULL, err);
    return kube_delete(p->client, &target, &options, on_answer, task_new(p, line), NULL, err);
}

static void say_object(struct task *task, const char *event, const json_t *object)
{
    say(task, event,
        json_pack("{s:s, s:s, s:s, s:O?}", "namespace", kube_namespace(object), "name",
                  kube_name(object), "version", kube_resource_version(object), "object",
                  task->whole ? object : NULL));
    if (task->free_first)
        task_close(task);
}

static void on_added(const json_t *object, void *arg)
{
    say_object(arg, "added", object);
}

static void on_changed(const json_t *object, const json_t *before, void *arg)
{
    (void)before;
    say_object(arg, "changed", object);
}

static void on_deleted(const json_t *object, void *arg)
{
    say_object(arg, "deleted", object);
}

static void on_synced(void *arg)
{
    struct task *task = arg;
    say(task, "synced", json_pack("{s:I}", "count", (json_int_t)kube_watch_count(task->watch)));
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    say(arg, "trouble", json_pack("{s:o}", "err", error_json(err)));
}

static void trim(json_t *object, void *arg)
{
    (void)arg;
    json_object_del(object, "spec");
}

static int do_watch(struct probe *p, const json_t *line, struct drarun_error *err)
{
    static const struct kube_watch_events events = {.added = on_added,
                                                    .changed = on_changed,
                                                    .deleted = on_deleted,
                                                    .synced = on_synced,
                                                    .trouble = on_trouble};
    static const struct kube_watch_events trimmed = {.added = on_added,
                                                     .changed = on_changed,
                                                     .deleted = on_deleted,
                                                     .synced = on_synced,
                                                     .trouble = on_trouble,
                                                     .trim = trim};
    struct task *task = task_new(p, line);
    struct kube_watch_options options = {
        .target = target_of(line),
        .select = {text(line, "labels"), text(line, "fields"),
                   json_is_true(json_object_get(line, "metadataOnly"))},
        .forget = json_is_true(json_object_get(line, "forget")),
    };
    task->whole = json_is_true(json_object_get(line, "whole"));
    task->free_first = json_is_true(json_object_get(line, "freeFirst"));
    return kube_watch_new(p->client, &options,
                          json_is_true(json_object_get(line, "trim")) ? &trimmed : &events, task,
                          &task->watch, err);
}

static void on_stream_data(const char *bytes, size_t length, void *arg)
{
    say(arg, "data", json_pack("{s:s%}", "bytes", bytes, length));
}

static void on_stream_ended(const struct drarun_error *err, void *arg)
{
    struct task *task = arg;
    say(task, "ended", json_pack("{s:o}", "err", error_json(err)));
    task->stream = NULL;
    task_close(task);
}

static int do_stream(struct probe *p, const json_t *line, struct drarun_error *err)
{
    static const struct kube_stream_events events = {.data = on_stream_data,
                                                     .ended = on_stream_ended};
    struct task *task = task_new(p, line);
    struct kube_request request = {.method = "GET",
                                   .path = text(line, "path"),
                                   .query = text(line, "query"),
                                   .timeout_ms =
                                       json_integer_value(json_object_get(line, "timeout_ms"))};
    return kube_stream_open(p->client, &request, &events, task, &task->stream, err);
}

static int do_log(struct probe *p, const json_t *line, struct drarun_error *err)
{
    static const struct kube_stream_events events = {.data = on_stream_data,
                                                     .ended = on_stream_ended};
    struct task *task = task_new(p, line);
    struct kube_log log = {.namespace_ = text(line, "namespace"),
                           .pod = text(line, "name"),
                           .follow = json_is_true(json_object_get(line, "follow")),
                           .tail = -1};
    return kube_log_open(p->client, &log, &events, task, &task->stream, err);
}

/* {"do": "close", "which": ID}, {"do": "pause", "which": ID, "pause": true} */
static int do_close(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct task *task = p->open[json_integer_value(json_object_get(line, "which")) % TASKS_MAX];
    (void)err;
    if (task)
        task_close(task);
    return 0;
}

static int do_pause(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct task *task = p->open[json_integer_value(json_object_get(line, "which")) % TASKS_MAX];
    (void)err;
    if (task)
        kube_stream_pause(task->stream, json_is_true(json_object_get(line, "pause")));
    return 0;
}

static void on_served(const struct kube_served *served, const struct drarun_error *err, void *arg)
{
    struct task *task = arg;
    size_t length = 0;
    const char *one = err ? NULL
                          : kube_serves_one_of(served, "resource.k8s.io", "v9 v1 v1beta2",
                                               "resourceclaims", &length);
    bool later = !err && kube_serves(served, "kube.test", "v1", "laters");
    say(task, "served",
        json_pack("{s:o, s:b, s:b, s:b, s:b, s:s%}", "err", error_json(err), "pods",
                  !err && kube_serves(served, "", "v1", "pods"), "log",
                  !err && kube_serves(served, "", "v1", "pods/log"), "nonsense",
                  !err && kube_serves(served, "batch", "v1", "nonsense"), "later", later, "one",
                  one ? one : "", length));
    task_close(task);
}

static int do_discover(struct probe *p, const json_t *line, struct drarun_error *err)
{
    if (json_is_true(json_object_get(line, "forget")))
        kube_discover_forget(p->client);
    return kube_discover(p->client, on_served, task_new(p, line), NULL, err);
}

static int do_counts(struct probe *p, const json_t *line, struct drarun_error *err)
{
    struct task *task = task_new(p, line);
    struct kube_client_counts n;
    (void)err;
    kube_client_count(p->client, &n);
    say(task, "counts",
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "reads", (json_int_t)n.reads, "writes",
                  (json_int_t)n.writes, "watches", (json_int_t)n.watches, "retries",
                  (json_int_t)n.retries, "connections", (json_int_t)n.connections));
    task_close(task);
    return 0;
}

static void run_line(struct probe *p, const char *bytes)
{
    static const struct {
        const char *name;
        int (*fn)(struct probe *p, const json_t *line, struct drarun_error *err);
    } verbs[] = {{"request", do_request},   {"get", do_get},          {"list", do_list},
                 {"create", do_write},      {"apply", do_write},      {"replace", do_write},
                 {"merge_patch", do_write}, {"json_patch", do_write}, {"delete", do_delete},
                 {"counts", do_counts},     {"watch", do_watch},      {"stream", do_stream},
                 {"log", do_log},           {"close", do_close},      {"pause", do_pause},
                 {"discover", do_discover}};
    struct drarun_error err = {0};
    json_t *line = json_loads(bytes, 0, NULL);
    for (size_t i = 0; line && i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, text(line, "do")) == 0 && verbs[i].fn(p, line, &err) < 0)
            fprintf(stderr, "%s: %s\n", bytes, err.text);
    json_decref(line);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct probe *p = arg;
    (void)what;
    if (evbuffer_read(p->input, fd, -1) <= 0) {
        event_base_loopbreak(p->base);
        return;
    }
    for (char *line; (line = evbuffer_readln(p->input, NULL, EVBUFFER_EOL_LF)); free(line))
        run_line(p, line);
}

static int run(struct probe *p, const struct kube_config *config, struct drarun_error *err)
{
    struct event *input = event_new(p->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, p);
    fd_set_nonblock(STDIN_FILENO);
    int rc = kube_client_new(p->base, config, &p->client, err);
    if (rc == 0) {
        event_add(input, NULL);
        event_base_dispatch(p->base);
    }
    for (size_t i = 0; i < TASKS_MAX; i++)
        if (p->open[i])
            task_close(p->open[i]);
    kube_client_free(p->client);
    event_free(input);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"kubeconfig", required_argument, NULL, 'k'}, {"context", required_argument, NULL, 'c'},
        {"namespace", required_argument, NULL, 'n'},  {"exec-ms", required_argument, NULL, 'e'},
        {"in-cluster", required_argument, NULL, 'i'}, {0}};
    struct kube_config_choice choice = {0};
    CLEANUP(kube_config_freep) struct kube_config *config = NULL;
    struct probe probe = {.base = event_base_new(), .input = evbuffer_new()};
    struct drarun_error err = {0};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'k')
            choice.path = optarg;
        else if (c == 'c')
            choice.context = optarg;
        else if (c == 'n')
            choice.namespace_ = optarg;
        else if (c == 'e')
            choice.exec_ms = strtol(optarg, NULL, 10);
        else if (c == 'i')
            choice.in_cluster_in = optarg;
        else
            return 64;
    }
    int rc = choice.in_cluster_in ? kube_config_in_cluster(&choice, &config, &err)
                                  : kube_config_load(&choice, &config, &err);
    if (rc == 0)
        rc = run(&probe, config, &err);
    if (rc < 0)
        fprintf(stderr, "kube_probe: %s\n", err.text);
    evbuffer_free(probe.input);
    event_base_free(probe.base);
    return rc < 0;
}
