/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known before slices are published. The API server and the publishers are the test's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/discover.h"
#include "lib/kube/object.h"
#include "plugin/slices/publishing.h"

static struct {
    struct event_base *base;
    kube_discover_fn on_served;
    kube_call_fn on_node;
    void *arg;
    const char *served;
    unsigned questions, forgot, discoveries_cancelled, calls_cancelled;
    struct event *timer;
    int64_t wait_ms; /* -1: it is not set */
    char said[512];
    /* the publishers: a line for each thing that was done */
    char done[1024];
    unsigned made, fail_at; /* fail_at: the publisher that cannot be made, from 1 */
} w;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t n = strlen(w.done);
    va_list args;
    va_start(args, format);
    vsnprintf(w.done + n, sizeof w.done - n, format, args);
    va_end(args);
}

static void did(const char *expected)
{
    assert_string_equal(w.done, expected);
    w.done[0] = '\0';
}

int __wrap_kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                         struct kube_discovery **ret_discovery, struct drarun_error *err);
int __wrap_kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                         struct kube_discovery **ret_discovery, struct drarun_error *err)
{
    (void)client, (void)err;
    w.questions++;
    w.on_served = fn;
    w.arg = arg;
    *ret_discovery = (struct kube_discovery *)&w;
    return 0;
}

void __wrap_kube_discover_cancel(struct kube_discovery *discovery);
void __wrap_kube_discover_cancel(struct kube_discovery *discovery)
{
    w.discoveries_cancelled += discovery != NULL;
}

void __wrap_kube_discover_forget(struct kube_client *client);
void __wrap_kube_discover_forget(struct kube_client *client)
{
    (void)client;
    w.forgot++;
}

const char *__wrap_kube_serves_one_of(const struct kube_served *served, const char *group,
                                      const char *versions, const char *plural, size_t *ret_length);
const char *__wrap_kube_serves_one_of(const struct kube_served *served, const char *group,
                                      const char *versions, const char *plural, size_t *ret_length)
{
    (void)served;
    assert_string_equal(group, "resource.k8s.io");
    assert_string_equal(versions, "v1 v1beta2 v1beta1");
    assert_string_equal(plural, "resourceslices");
    *ret_length = w.served ? strcspn(w.served, " ") : 0;
    return w.served;
}

int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)arg, (void)err;
    assert_ptr_equal(target->resource, &kube_nodes);
    assert_string_equal(target->name, "n");
    w.on_node = fn;
    *ret_call = (struct kube_call *)&w;
    return 0;
}

void __wrap_kube_call_cancel(struct kube_call *call);
void __wrap_kube_call_cancel(struct kube_call *call)
{
    w.calls_cancelled += call != NULL;
}

int __wrap_event_add(struct event *timer, const struct timeval *after);
int __wrap_event_add(struct event *timer, const struct timeval *after)
{
    w.timer = timer;
    w.wait_ms = after->tv_sec * 1000 + after->tv_usec / 1000;
    return 0;
}

int __wrap_publisher_new(const struct publisher_options *options, struct publisher **ret_publisher,
                         struct drarun_error *err);
int __wrap_publisher_new(const struct publisher_options *options, struct publisher **ret_publisher,
                         struct drarun_error *err)
{
    if (++w.made == w.fail_at)
        return error_set(err, ENOMEM, "no memory");
    note("new %s of %s, %s, node %s %s, agent %s\n", options->owner.driver, options->devices_of,
         options->version, options->owner.node, options->owner.node_uid,
         options->agent ? options->agent : "none");
    *ret_publisher = (struct publisher *)&w;
    return 0;
}

void __wrap_publisher_free(struct publisher *publisher);
void __wrap_publisher_free(struct publisher *publisher)
{
    (void)publisher;
    note("free\n");
}

int __wrap_publisher_want(struct publisher *publisher, const struct node_devices *devices,
                          struct drarun_error *err);
int __wrap_publisher_want(struct publisher *publisher, const struct node_devices *devices,
                          struct drarun_error *err)
{
    (void)publisher, (void)err;
    note("want %zu\n", devices->count);
    return 0;
}

void __wrap_publisher_held_changed(struct publisher *publisher);
void __wrap_publisher_held_changed(struct publisher *publisher)
{
    (void)publisher;
    note("held\n");
}

void __wrap_publisher_count(const struct publisher *publisher, struct publisher_counts *ret_counts);
void __wrap_publisher_count(const struct publisher *publisher, struct publisher_counts *ret_counts)
{
    (void)publisher;
    *ret_counts = (struct publisher_counts){.writes = 1, .failures = 10, .restored = 100};
}

static void on_log(void *arg, const struct log_line *line)
{
    (void)arg;
    /* without the program before it and the end of the line */
    snprintf(w.said, sizeof w.said, "%.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
}

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.base = event_base_new();
    w.wait_ms = -1;
    w.served = "v1beta2 v1beta1";
    log_divert(on_log, NULL);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    log_divert(NULL, NULL);
    event_base_free(w.base);
    return 0;
}

static struct publishing *new_publishing(const char *gpu, const char *nic, const char *agent)
{
    const struct publishing_options options = {
        .base = w.base, .node = "n", .agent = agent, .gpu_driver = gpu, .nic_driver = nic};
    struct publishing *p = NULL;
    struct drarun_error err = {0};
    assert_int_equal(publishing_new(&options, &p, &err), 0);
    assert_int_equal(w.questions, 1);
    assert_string_equal(publishing_version(p), "");
    return p;
}

static void want(struct publishing *p, size_t count)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    struct drarun_error err = {0};
    while (devices.count < count)
        node_devices_add(&devices);
    assert_int_equal(publishing_want(p, &devices, &err), 0);
    node_devices_done(&devices);
}

static void answer_served(void)
{
    w.on_served((const struct kube_served *)&w, NULL, w.arg);
}

static void answer_node(void)
{
    CLEANUP(json_decrefp) json_t *node = json_pack("{s:{s:s}}", "metadata", "uid", "node-uid");
    const struct kube_answer answer = {.status = 200, .body = node};
    w.on_node(&answer, NULL, w.arg);
}

static void fire(int64_t expected_ms)
{
    assert_int_equal(w.wait_ms, expected_ms);
    w.wait_ms = -1;
    event_active(w.timer, EV_TIMEOUT, 1);
    event_base_loop(w.base, EVLOOP_NONBLOCK);
}

static void publishers_follow_what_is_known(void **state)
{
    struct publishing *p = new_publishing("gpu.test", "nic.test", "v1-pmix-5");
    struct publisher_counts counts;
    (void)state;
    want(p, 3);
    want(p, 2);
    publishing_held_changed(p);
    answer_served();
    assert_string_equal(publishing_version(p), "v1beta2");
    did("");
    answer_node();
    did("new gpu.test of gpu.drarun.dev, v1beta2, node n node-uid, agent v1-pmix-5\n"
        "new nic.test of nic.drarun.dev, v1beta2, node n node-uid, agent v1-pmix-5\n"
        "want 2\nwant 2\n");
    want(p, 1);
    did("want 1\nwant 1\n");
    publishing_held_changed(p);
    did("held\nheld\n");
    publishing_count(p, &counts);
    assert_int_equal(counts.writes, 2);
    assert_int_equal(counts.failures, 20);
    assert_int_equal(counts.restored, 200);
    assert_int_equal(w.wait_ms, -1);
    publishing_free(p);
    did("free\nfree\n");
    assert_int_equal(w.discoveries_cancelled, 0);
    assert_int_equal(w.calls_cancelled, 0);
}

static void one_kind_alone(void **state)
{
    struct publishing *p = new_publishing(NULL, "nic.test", "");
    (void)state;
    answer_served();
    answer_node();
    did("new nic.test of nic.drarun.dev, v1beta2, node n node-uid, agent none\n");
    want(p, 4); /* nothing was wanted before */
    did("want 4\n");
    publishing_free(p);
    did("free\n");
}

/* With pauses that double up to a minute, whatever fails. */
static void it_is_tried_until_all_is_known(void **state)
{
    struct publishing *p = new_publishing("gpu.test", "nic.test", NULL);
    struct drarun_error err = {0};
    (void)state;
    want(p, 1);
    error_set(&err, EIO, "no server");
    w.on_served(NULL, &err, w.arg);
    assert_string_equal(w.said, "nothing is published yet: no server");
    assert_int_equal(w.forgot, 0);
    fire(2000);
    w.served = NULL;
    answer_served();
    assert_string_equal(w.said,
                        "nothing is published yet: the API server serves no resourceslices of "
                        "resource.k8s.io (v1 v1beta2 v1beta1): it needs Kubernetes 1.34 or later "
                        "with Dynamic Resource Allocation");
    assert_int_equal(w.forgot, 1);
    fire(4000);
    w.served = "v1";
    answer_served();
    error_set(&err, ENOENT, "no node");
    w.on_node(NULL, &err, w.arg);
    assert_string_equal(w.said, "nothing is published yet: no node");
    fire(8000);
    w.fail_at = 2;
    answer_served();
    answer_node();
    assert_string_equal(w.said, "nothing is published yet: no memory");
    did("new gpu.test of gpu.drarun.dev, v1, node n node-uid, agent none\nfree\n");
    for (int64_t ms = 16000; ms < 60000; ms *= 2) {
        fire(ms);
        w.on_served(NULL, &err, w.arg);
    }
    fire(60000);
    w.on_served(NULL, &err, w.arg);
    fire(60000);
    assert_int_equal(w.questions, 8);
    answer_served();
    answer_node();
    did("new gpu.test of gpu.drarun.dev, v1, node n node-uid, agent none\n"
        "new nic.test of nic.drarun.dev, v1, node n node-uid, agent none\n"
        "want 1\nwant 1\n");
    publishing_free(p);
}

static void what_is_under_way_is_cancelled(void **state)
{
    (void)state;
    struct publishing *p = new_publishing("gpu.test", NULL, NULL);
    want(p, 1);
    publishing_free(p);
    assert_int_equal(w.discoveries_cancelled, 1);
    assert_int_equal(w.calls_cancelled, 0);
    w.questions = 0;
    p = new_publishing("gpu.test", NULL, NULL);
    answer_served();
    publishing_free(p);
    assert_int_equal(w.discoveries_cancelled, 1);
    assert_int_equal(w.calls_cancelled, 1);
    publishing_free(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(publishers_follow_what_is_known),
        CASE(one_kind_alone),
        CASE(it_is_tried_until_all_is_known),
        CASE(what_is_under_way_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
