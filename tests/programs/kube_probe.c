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
#include "lib/kube/list.h"
#include "lib/kube/object.h"

struct probe {
    struct event_base *base;
    struct kube_client *client;
    struct evbuffer *input;
};

struct task { /* of one line; owned by what it started */
    json_int_t id;
    struct probe *probe;
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
    return task;
}

static void on_answer(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct task *task = arg;
    say(task, "answer",
        json_pack("{s:i, s:O?, s:s, s:i, s:b, s:o}", "status", answer->status, "body", answer->body,
                  "reason", answer->reason, "tries", (int)answer->tries, "lost", answer->lost,
                  "err", error_json(err)));
    free(task);
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
    free(task);
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
                 {"counts", do_counts}};
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
    kube_client_free(p->client);
    event_free(input);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"kubeconfig", required_argument, NULL, 'k'},
                                          {"context", required_argument, NULL, 'c'},
                                          {"namespace", required_argument, NULL, 'n'},
                                          {"in-cluster", required_argument, NULL, 'i'},
                                          {0}};
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
