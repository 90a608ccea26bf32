/* SPDX-License-Identifier: Apache-2.0 */
/* A publisher before an API server that the test plays: what it writes, how long it waits, and what
 * it does about those who write too. Time stands still but where a test moves it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/kube/watch.h"
#include "plugin/discover/faults.h"
#include "plugin/slices/publisher.h"

static struct {
    struct event_base *base;
    /* the watch */
    const struct kube_watch_events *events;
    void *arg;
    char fields[128], version[16];
    bool synced;
    json_t *held;
    /* the call under way: "create", "replace NAME", "delete NAME UID", "get NAME"; "": none */
    char call[128];
    json_t *object;
    kube_call_fn fn;
    void *fn_arg;
    unsigned revision, cancelled, freed;
    /* the timer */
    struct event *timer;
    int64_t wait_ms; /* -1: it is not set */
    int64_t now_ms;
    /* what a claim holds */
    const char *held_device;
} w;

/* ---- in the place of lib/kube, the timer and the clock ---- */

int __wrap_kube_watch_new(struct kube_client *client, const struct kube_watch_options *options,
                          const struct kube_watch_events *events, void *arg,
                          struct kube_watch **ret_watch, struct drarun_error *err);
int __wrap_kube_watch_new(struct kube_client *client, const struct kube_watch_options *options,
                          const struct kube_watch_events *events, void *arg,
                          struct kube_watch **ret_watch, struct drarun_error *err)
{
    (void)client, (void)err;
    w.events = events;
    w.arg = arg;
    snprintf(w.fields, sizeof w.fields, "%s", options->select.fields);
    snprintf(w.version, sizeof w.version, "%s", options->target.resource->version);
    *ret_watch = (struct kube_watch *)&w;
    return 0;
}

void __wrap_kube_watch_free(struct kube_watch *watch);
void __wrap_kube_watch_free(struct kube_watch *watch)
{
    w.freed += watch != NULL;
}

bool __wrap_kube_watch_synced(const struct kube_watch *watch);
bool __wrap_kube_watch_synced(const struct kube_watch *watch)
{
    (void)watch;
    return w.synced;
}

void __wrap_kube_watch_each(const struct kube_watch *watch,
                            void (*fn)(const json_t *object, void *arg), void *arg);
void __wrap_kube_watch_each(const struct kube_watch *watch,
                            void (*fn)(const json_t *object, void *arg), void *arg)
{
    size_t i;
    json_t *object;
    (void)watch;
    json_array_foreach(w.held, i, object)
    {
        fn(object, arg);
    }
}

static int begin(struct kube_call **ret_call, kube_call_fn fn, void *arg, const json_t *object)
{
    w.fn = fn;
    w.fn_arg = arg;
    w.object = object ? json_deep_copy(object) : NULL;
    *ret_call = (struct kube_call *)&w;
    return 0;
}

int __wrap_kube_create(struct kube_client *client, const struct kube_target *target,
                       const json_t *object, const struct kube_write *options, kube_call_fn fn,
                       void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_create(struct kube_client *client, const struct kube_target *target,
                       const json_t *object, const struct kube_write *options, kube_call_fn fn,
                       void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)target, (void)err;
    assert_string_equal(w.call, "");
    assert_true(options->repeat);
    snprintf(w.call, sizeof w.call, "create");
    return begin(ret_call, fn, arg, object);
}

int __wrap_kube_replace(struct kube_client *client, const struct kube_target *target,
                        const json_t *object, const struct kube_write *options, kube_call_fn fn,
                        void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_replace(struct kube_client *client, const struct kube_target *target,
                        const json_t *object, const struct kube_write *options, kube_call_fn fn,
                        void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)err;
    assert_string_equal(w.call, "");
    assert_true(options->repeat);
    snprintf(w.call, sizeof w.call, "replace %s", target->name);
    return begin(ret_call, fn, arg, object);
}

int __wrap_kube_delete(struct kube_client *client, const struct kube_target *target,
                       const struct kube_delete *options, kube_call_fn fn, void *arg,
                       struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_delete(struct kube_client *client, const struct kube_target *target,
                       const struct kube_delete *options, kube_call_fn fn, void *arg,
                       struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)err;
    assert_string_equal(w.call, "");
    snprintf(w.call, sizeof w.call, "delete %s %s", target->name, options->uid);
    return begin(ret_call, fn, arg, NULL);
}

int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)err;
    assert_string_equal(w.call, "");
    assert_ptr_equal(target->resource, &kube_nodes);
    snprintf(w.call, sizeof w.call, "get %s", target->name);
    return begin(ret_call, fn, arg, NULL);
}

void __wrap_kube_call_cancel(struct kube_call *call);
void __wrap_kube_call_cancel(struct kube_call *call)
{
    w.cancelled += call != NULL;
}

int __wrap_event_add(struct event *timer, const struct timeval *after);
int __wrap_event_add(struct event *timer, const struct timeval *after)
{
    w.timer = timer;
    w.wait_ms = after->tv_sec * 1000 + after->tv_usec / 1000;
    return 0;
}

int __wrap_event_del(struct event *timer);
int __wrap_event_del(struct event *timer)
{
    (void)timer;
    w.wait_ms = -1;
    return 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    int64_t ms = id == CLOCK_REALTIME ? 1796000000123 : w.now_ms;
    *now = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    return 0;
}

/* ---- the server ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.base = event_base_new();
    w.held = json_array();
    w.wait_ms = -1;
    w.now_ms = 1000000;
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    json_decref(w.held);
    json_decref(w.object);
    event_base_free(w.base);
    return 0;
}

static void fire(void)
{
    assert_true(w.wait_ms >= 0);
    w.wait_ms = -1;
    event_active(w.timer, EV_TIMEOUT, 1);
    event_base_loop(w.base, EVLOOP_NONBLOCK);
}

static void waits(int64_t ms)
{
    assert_int_equal(w.wait_ms, ms);
    assert_string_equal(w.call, "");
}

static json_t *meta(json_t *object)
{
    return json_object_get(object, "metadata");
}

static const char *name_of(json_t *object)
{
    return json_string_value(json_object_get(meta(object), "name"));
}

static size_t place_of(const char *name)
{
    size_t i;
    json_t *object;
    json_array_foreach(w.held, i, object)
    {
        if (strcmp(name_of(object), name) == 0)
            break;
    }
    return i;
}

/* What is written is as the server makes it: with a new version, and a UID. */
static json_t *stored(json_t *object)
{
    char text[16];
    json_t *own = json_deep_copy(object);
    snprintf(text, sizeof text, "%u", ++w.revision);
    json_object_set_new(meta(own), "resourceVersion", json_string(text));
    json_object_set_new(meta(own), "uid", json_string("slice-uid"));
    return own;
}

/* The watch tells of it. */
static void show(json_t *object)
{
    size_t i = place_of(name_of(object));
    if (i < json_array_size(w.held)) {
        json_t *before = json_incref(json_array_get(w.held, i));
        json_array_set(w.held, i, object);
        w.events->changed(object, before, w.arg);
        json_decref(before);
    } else {
        json_array_append(w.held, object);
        w.events->added(object, w.arg);
    }
}

static void show_deletion(const char *name)
{
    size_t i = place_of(name);
    assert_true(i < json_array_size(w.held));
    json_t *object = json_incref(json_array_get(w.held, i));
    json_array_remove(w.held, i);
    w.events->deleted(object, w.arg);
    json_decref(object);
}

/* Ends the call with a body, or an error. */
static void answer_with(const json_t *body, int code)
{
    struct drarun_error err = {0};
    const struct kube_answer answer = {.status = code ? 500 : 200, .body = body};
    w.call[0] = '\0';
    if (code)
        error_set(&err, code, "the server says no");
    w.fn(&answer, code ? &err : NULL, w.fn_arg);
}

static void refuse(int code)
{
    json_decref(TAKE_PTR(w.object));
    answer_with(NULL, code);
}

/* Carries the write out. What was made; the watch has not told of it. */
static json_t *carry_out(void)
{
    json_t *object = stored(w.object);
    json_decref(TAKE_PTR(w.object));
    answer_with(object, 0);
    return object;
}

static void write_and_echo(void)
{
    json_t *object = carry_out();
    show(object);
    json_decref(object);
}

static void answer_node(const char *uid)
{
    CLEANUP(json_decrefp) json_t *node = json_pack("{s:{s:s}}", "metadata", "uid", uid);
    answer_with(node, 0);
}

/* ---- the publisher ---- */

static bool is_held(const char *driver, const char *device, void *arg)
{
    (void)arg;
    assert_string_equal(driver, NODE_DRIVER_NIC);
    return w.held_device && strcmp(device, w.held_device) == 0;
}

static struct publisher *new_publisher(void)
{
    struct drarun_error err = {0};
    struct publisher *p = NULL;
    const struct publisher_options options = {.base = w.base,
                                              .version = "v1",
                                              .owner = {"n", "node-uid", NODE_DRIVER_NIC},
                                              .held = is_held};
    assert_int_equal(publisher_new(&options, &p, &err), 0);
    assert_string_equal(w.fields, "spec.nodeName=n,spec.driver=" NODE_DRIVER_NIC);
    assert_string_equal(w.version, "v1");
    return p;
}

/* count NICs, of which the first `faulty` have a fault. */
static void want(struct publisher *p, size_t count, size_t faulty)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    struct drarun_error err = {0};
    for (size_t i = 0; i < count; i++) {
        struct node_device *device = node_devices_add(&devices);
        device->kind = NODE_DEVICE_NIC;
        device->rail = -1;
        snprintf(device->name, sizeof device->name, "nic-%zu", i);
        if (i < faulty)
            fault_add(device, FAULT_NO_SCHEDULE, FAULT_LINK_DOWN, "", "x");
    }
    assert_int_equal(publisher_want(p, &devices, &err), 0);
    node_devices_done(&devices);
}

static size_t devices_in(json_t *object)
{
    return json_array_size(json_object_get(json_object_get(object, "spec"), "devices"));
}

static json_int_t generation_of(json_t *object)
{
    json_t *pool = json_object_get(json_object_get(object, "spec"), "pool");
    return json_integer_value(json_object_get(pool, "generation"));
}

static const char *owner_of(json_t *object)
{
    const json_t *owner = json_array_get(json_object_get(meta(object), "ownerReferences"), 0);
    return json_string_value(json_object_get(owner, "uid"));
}

static void counts_are(struct publisher *p, unsigned writes, unsigned failures, unsigned restored)
{
    struct publisher_counts counts;
    publisher_count(p, &counts);
    assert_int_equal(counts.writes, writes);
    assert_int_equal(counts.failures, failures);
    assert_int_equal(counts.restored, restored);
}

static void sync_watch(void)
{
    w.synced = true;
    w.events->synced(w.arg);
}

/* One slice of one device, and nothing to do. */
static struct publisher *settled(void)
{
    struct publisher *p = new_publisher();
    sync_watch();
    want(p, 1, 0);
    write_and_echo();
    waits(-1);
    return p;
}

#define SLICE "n-nic.drarun.dev-0"

static void nothing_is_written_before_all_is_known(void **state)
{
    struct publisher *p = new_publisher();
    (void)state;
    want(p, 2, 0);
    waits(-1); /* the slices that are there are not known */
    sync_watch();
    assert_string_equal(w.call, "create");
    assert_string_equal(name_of(w.object), SLICE);
    assert_string_equal(owner_of(w.object), "node-uid");
    assert_int_equal(devices_in(w.object), 2);
    assert_int_equal(generation_of(w.object), 1796000000123);
    counts_are(p, 0, 0, 0);
    json_t *object = carry_out();
    waits(5000); /* until the watch tells of it */
    counts_are(p, 1, 0, 0);
    show(object);
    waits(-1);
    want(p, 2, 0); /* the same */
    waits(-1);
    w.events->changed(object, object, w.arg);
    waits(-1);
    counts_are(p, 1, 0, 0);
    json_decref(object);
    publisher_free(p);
    assert_int_equal(w.freed, 1);
    assert_int_equal(w.cancelled, 0);
}

static void watch_that_is_there_first(void **state)
{
    struct publisher *p = new_publisher();
    (void)state;
    sync_watch();
    waits(-1); /* nothing is wanted yet */
    want(p, 0, 0);
    assert_string_equal(w.call, "create"); /* which says that there are none */
    assert_int_equal(devices_in(w.object), 0);
    publisher_free(p);
    assert_int_equal(w.cancelled, 1);
}

static void changes_are_written_one_at_a_time(void **state)
{
    struct publisher *p = settled();
    (void)state;
    want(p, 129, 0);
    assert_string_equal(w.call, "replace " SLICE);
    assert_int_equal(devices_in(w.object), 128);
    want(p, 130, 0); /* the first is still under way */
    json_t *object = carry_out();
    waits(5000);
    show(object);
    assert_string_equal(w.call, "replace " SLICE);
    write_and_echo();
    assert_string_equal(w.call, "create");
    assert_int_equal(devices_in(w.object), 2);
    write_and_echo();
    waits(-1);
    want(p, 1, 0);
    write_and_echo();
    assert_string_equal(w.call, "delete n-nic.drarun.dev-1 slice-uid");
    refuse(ENOENT); /* somebody was faster */
    waits(5000);
    show_deletion("n-nic.drarun.dev-1");
    if (strcmp(w.call, "get n") == 0) /* its owner may be another one */
        answer_node("node-uid");
    waits(-1);
    counts_are(p, 6, 0, 0);
    json_decref(object);
    publisher_free(p);
}

/* Where the watch does not tell of a write, it is looked again. */
static void echo_that_does_not_come(void **state)
{
    struct publisher *p = new_publisher();
    (void)state;
    sync_watch();
    want(p, 1, 0);
    json_t *object = carry_out();
    waits(5000);
    json_t *other = stored(object); /* tells of another one */
    json_object_set_new(meta(other), "name", json_string("other"));
    show(other);
    waits(5000);
    fire();
    assert_string_equal(w.call, "create");
    json_decref(object);
    json_decref(other);
    publisher_free(p);
}

/* With pauses that double up to a minute; the same failure is an error each time. */
static void failed_writes_are_repeated(void **state)
{
    static const int64_t pauses[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct publisher *p = new_publisher();
    (void)state;
    sync_watch();
    want(p, 1, 0);
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        assert_string_equal(w.call, "create");
        refuse(EIO);
        waits(pauses[i]);
        want(p, 2 + i, 0); /* does not end the pause */
        waits(pauses[i]);
        counts_are(p, 0, (unsigned)i + 1, 0);
        fire();
    }
    write_and_echo();
    waits(-1);
    want(p, 1, 0);
    refuse(EIO); /* the first again */
    waits(1000);
    publisher_free(p);
}

/* Somebody was faster: the watch shows what is there now. */
static void lost_races(void **state)
{
    static const int codes[] = {EBUSY, EEXIST, ENOENT, EBUSY, EBUSY};
    static const int64_t pauses[] = {500, 500, 1000, 2000, 4000};
    struct publisher *p = new_publisher();
    (void)state;
    sync_watch();
    want(p, 1, 0);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        refuse(codes[i]);
        waits(pauses[i]);
        counts_are(p, 0, i < 2 ? 0 : (unsigned)i - 1, 0);
        if (i == 0)
            w.events->changed(NULL, NULL, w.arg); /* news end the wait */
        else
            fire();
        assert_string_equal(w.call, "create");
    }
    write_and_echo();
    waits(-1);
    publisher_free(p);
}

static void deleted(void)
{
    show_deletion(SLICE);
}

/* At once the first times, then with pauses, until nobody has touched them for five minutes. */
static void deleted_slices_are_restored(void **state)
{
    static const int64_t pauses[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct publisher *p = settled();
    (void)state;
    for (unsigned i = 0; i < 2 + ARRAY_LEN(pauses); i++) {
        w.now_ms += 300000;
        deleted();
        if (i >= 2) {
            waits(pauses[i - 2]);
            fire();
        }
        assert_string_equal(w.call, "get n");
        answer_node("node-uid");
        assert_string_equal(w.call, "create");
        assert_string_equal(owner_of(w.object), "node-uid");
        write_and_echo();
        waits(-1);
        counts_are(p, i + 2, 0, i + 1);
    }
    w.now_ms += 300001;
    deleted();
    assert_string_equal(w.call, "get n");
    publisher_free(p);
}

static void changed_slices_are_restored(void **state)
{
    struct publisher *p = settled();
    (void)state;
    json_t *other = stored(json_array_get(w.held, 0));
    json_array_clear(json_object_get(json_object_get(other, "spec"), "devices"));
    show(other);
    assert_string_equal(w.call, "replace " SLICE); /* the Node is not asked for */
    assert_int_equal(devices_in(w.object), 1);
    write_and_echo();
    waits(-1);
    counts_are(p, 2, 0, 1);
    json_decref(other);
    publisher_free(p);
}

/* The garbage collector deletes what the old Node owned. */
static void node_that_was_made_again(void **state)
{
    struct publisher *p = settled();
    (void)state;
    deleted();
    refuse(EIO);
    waits(1000);
    counts_are(p, 1, 1, 1);
    fire();
    assert_string_equal(w.call, "get n"); /* still not known */
    answer_node("another");
    assert_string_equal(w.call, "create");
    assert_string_equal(owner_of(w.object), "another");
    refuse(EIO);
    waits(1000); /* the Node's answer was a success in between */
    publisher_free(p);
}

/* The scheduler would give devices whose taints the server drops to pods. */
static void tainted_devices_are_left_out_of_such_a_server(void **state)
{
    struct publisher *p = new_publisher();
    size_t i;
    json_t *device;
    (void)state;
    sync_watch();
    want(p, 3, 2);
    assert_int_equal(devices_in(w.object), 3);
    w.held_device = "nic-1";
    json_array_foreach(json_object_get(json_object_get(w.object, "spec"), "devices"), i, device)
    {
        json_object_del(device, "taints");
    }
    write_and_echo();
    assert_string_equal(w.call, "replace " SLICE);
    assert_int_equal(devices_in(w.object), 2); /* the one that is held, and the one without */
    write_and_echo();
    waits(-1);
    publisher_held_changed(p);
    waits(-1); /* nothing else is held */
    w.held_device = NULL;
    publisher_held_changed(p);
    assert_string_equal(w.call, "replace " SLICE);
    assert_int_equal(devices_in(w.object), 1);
    write_and_echo();
    waits(-1);
    want(p, 3, 0);
    assert_int_equal(devices_in(w.object), 3);
    counts_are(p, 3, 0, 0);
    publisher_free(p);
}

static void claims_do_not_matter_to_other_servers(void **state)
{
    struct publisher *p = settled();
    (void)state;
    w.held_device = "nic-0";
    publisher_held_changed(p);
    waits(-1);
    counts_are(p, 1, 0, 0);
    publisher_free(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_written_before_all_is_known),
        CASE(watch_that_is_there_first),
        CASE(changes_are_written_one_at_a_time),
        CASE(echo_that_does_not_come),
        CASE(failed_writes_are_repeated),
        CASE(lost_races),
        CASE(deleted_slices_are_restored),
        CASE(changed_slices_are_restored),
        CASE(node_that_was_made_again),
        CASE(tainted_devices_are_left_out_of_such_a_server),
        CASE(claims_do_not_matter_to_other_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
