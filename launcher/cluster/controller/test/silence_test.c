/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers that do not renew their Leases. The cluster and both clocks are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "launcher/cluster/controller/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/quoted_json.h"
#include "lib/base/timestamp.h"
#include "lib/kube/list.h"

#define RENEWED "2026-11-30T12:00:00Z"
#define BEGIN 1000000

static struct {
    int64_t now_ms, silent_ms; /* silent_ms: since RENEWED, by the server's clock; -1: not known */
    int lists;
    kube_call_fn fn;
    void *arg;
    struct cluster_read *pod;
    char asked[64];
} world;

static json_t *drajob, *map;

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    (void)id;
    *ret_now =
        (struct timespec){.tv_sec = world.now_ms / 1000, .tv_nsec = world.now_ms % 1000 * 1000000};
    return 0;
}

int64_t __wrap_kube_client_now(const struct kube_client *client);
int64_t __wrap_kube_client_now(const struct kube_client *client)
{
    int64_t renewed = 0;
    (void)client;
    assert_true(timestamp_parse(RENEWED, &renewed));
    return world.silent_ms < 0 ? 0 : renewed + world.silent_ms;
}

void __wrap_kube_watch_each(const struct kube_watch *watch,
                            void (*fn)(const json_t *object, void *arg), void *arg);
void __wrap_kube_watch_each(const struct kube_watch *watch,
                            void (*fn)(const json_t *object, void *arg), void *arg)
{
    (void)watch;
    if (drajob)
        fn(drajob, arg);
}

const json_t *__wrap_kube_watch_find(const struct kube_watch *watch, const char *namespace_,
                                     const char *name);
const json_t *__wrap_kube_watch_find(const struct kube_watch *watch, const char *namespace_,
                                     const char *name)
{
    assert_string_equal(namespace_, "team");
    assert_string_equal(name, watch ? "train-status" : "train");
    return watch ? map : drajob;
}

int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err);
int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err)
{
    (void)client, (void)err;
    assert_ptr_equal(target->resource, &kube_leases);
    assert_string_equal(select->labels, CONTROLLER_LABEL);
    world.lists++;
    world.fn = fn;
    world.arg = arg;
    *ret_listing = (struct kube_listing *)&world;
    return 0;
}

int __wrap_cluster_read_start(struct cluster *cluster, const struct kube_target *target,
                              struct cluster_read *read, struct drarun_error *err);
int __wrap_cluster_read_start(struct cluster *cluster, const struct kube_target *target,
                              struct cluster_read *read, struct drarun_error *err)
{
    (void)cluster, (void)err;
    assert_ptr_equal(target->resource, &kube_pods);
    snprintf(world.asked, sizeof world.asked, "%s/%s", target->namespace_, target->name);
    *read = (struct cluster_read){.call = (struct kube_call *)&world};
    world.pod = read;
    return 0;
}

#define LED                                                                                        \
    "{'metadata':{'name':'train','namespace':'team'},'spec':{},'status':{'launcherUID':'j'}}"

static struct controller_options options;
static struct cluster cluster;

static void begin(struct controller *c, const char *object)
{
    *c = (struct controller){.cluster = &cluster, .options = &options, .due = json_object()};
    c->maps = (struct kube_watch *)&world; /* not the other one */
    memset(&world, 0, sizeof world);
    world.now_ms = BEGIN;
    world.silent_ms = 25000;
    drajob = quoted_json(object, 0);
}

static void done(struct controller *c)
{
    json_decref(c->due);
    json_decref(c->silent);
    json_decref(drajob);
    json_decref(map);
    drajob = map = NULL;
}

/* The list comes, and the pod of its launcher, if that is asked for. */
static void check(struct controller *c, const char *holder, const char *pod)
{
    char text[512];
    snprintf(text, sizeof text,
             "{'items':[{'metadata':{'name':'train','namespace':'team'},'spec':{'holderIdentity':"
             "'%s','leaseDurationSeconds':60,'renewTime':'" RENEWED "'}}]}",
             holder);
    CLEANUP(json_decrefp) json_t *body = quoted_json(text, 0);
    const struct kube_answer answer = {.status = 200, .body = body};
    controller_check_launchers(c);
    assert_non_null(world.fn);
    assert_int_equal(controller_check_due(c), INT64_MAX); /* it goes on */
    kube_call_fn fn = world.fn;
    world.fn = NULL;
    world.asked[0] = '\0';
    fn(&answer, NULL, world.arg);
    controller_check_launchers(c);
    if (!world.pod)
        return;
    controller_check_launchers(c); /* it has not come yet */
    assert_int_equal(controller_check_due(c), INT64_MAX);
    world.pod->call = NULL;
    world.pod->body = pod ? quoted_json(pod, 0) : NULL;
    world.pod = NULL;
    controller_check_launchers(c);
}

static const char *text_of(const struct controller *c)
{
    return json_string_value(json_object_get(json_object_get(c->silent, "team/train"), "text"));
}

static void launchers_that_are_not_silent(void **state)
{
    static const struct {
        const char *object, *holder;
        int64_t silent_ms;
        bool asks, silent;
    } rows[] = {
        {LED, "train-x", 24999, true, false},
        {LED, "train-x", 25000, true, true},
        {LED, "train-x", -1, true, false}, /* the server's clock is not known */
        {LED, "", 90000, true, false},
        {"{'metadata':{},'status':{}}", "train-x", 90000, false, false}, /* it has no launcher */
        {"{'metadata':{},'spec':{'managedBy':'example.com/x'},'status':{'launcherUID':'j'}}",
         "train-x", 90000, false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controller c;
        begin(&c, rows[i].object);
        world.silent_ms = rows[i].silent_ms;
        if (rows[i].asks)
            check(&c, rows[i].holder, NULL);
        else
            controller_check_launchers(&c);
        assert_int_equal(world.lists, rows[i].asks);
        assert_int_equal(json_object_size(c.silent), rows[i].silent);
        /* the next one: one that is silent is confirmed sooner */
        assert_int_equal(controller_check_due(&c), BEGIN + (rows[i].silent ? 12000 : 15000));
        done(&c);
    }
}

/* A second list confirms it; only then it is told. */
static void launchers_that_are_silent(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, LED);
    map = quoted_json("{'metadata':{'resourceVersion':'8'}}", 0);
    check(&c, "train-x", "{'metadata':{},'spec':{'nodeName':'n1'}}");
    assert_string_equal(world.asked, "team/train-x");
    assert_null(text_of(&c));
    const json_t *entry = json_object_get(c.silent, "team/train");
    assert_int_equal(json_integer_value(json_object_get(entry, "since")), BEGIN);
    assert_string_equal(json_string_value(json_object_get(entry, "map")), "8");
    assert_int_equal(json_object_size(c.due), 1);
    json_object_clear(c.due);
    world.now_ms += 11999;
    controller_check_launchers(&c);
    assert_int_equal(world.lists, 1);
    world.now_ms++;
    world.silent_ms += 12000;
    check(&c, "train-x", "{'metadata':{},'spec':{'nodeName':'n1'}}");
    assert_string_equal(text_of(&c), "launcher train-x on n1 has not renewed its Lease since "
                                     "2026-11-30T12:00:00Z");
    assert_int_equal(json_object_size(c.due), 1); /* it is looked at */
    json_object_clear(c.due);
    world.now_ms += 15000;
    check(&c, "train-x", "{'metadata':{},'spec':{'nodeName':'n1'}}");
    assert_int_equal(json_object_size(c.due), 0); /* nothing has changed */
    world.now_ms += 15000;
    world.silent_ms = 1000; /* it renews again */
    check(&c, "train-x", NULL);
    assert_int_equal(json_object_size(c.silent), 0);
    assert_int_equal(json_object_size(c.due), 1);
    done(&c);
}

/* A process of run --here has no pod. */
static void launchers_without_a_pod(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, LED);
    check(&c, "host_77", NULL);
    world.now_ms += 12000;
    check(&c, "host_77", NULL);
    assert_string_equal(world.asked, "");
    assert_string_equal(text_of(&c),
                        "launcher host_77 has not renewed its Lease since 2026-11-30T12:00:00Z");
    done(&c);
}

#define LOST_POD(more)                                                                             \
    "{'metadata':{'name':'train-x'" more "},'spec':{'nodeName':'n1'},'status':{'phase':'Running'," \
    "'conditions':[{'type':'Ready','status':'False'},{'type':'ContainersReady','status':'True'}]}" \
    "}"
#define DELETED ",'deletionTimestamp':'" RENEWED "'"

/* Lost for good: its Lease has run out, its node does not answer and its pod is to go. */
static void launchers_that_are_over(void **state)
{
    static const struct {
        const char *pod;
        int64_t silent_ms, since_ms;
        bool over;
    } rows[] = {
        {LOST_POD(DELETED), 60000, 10000, true},
        {LOST_POD(DELETED), 59999, 10000, false},
        {LOST_POD(DELETED), 60000, 9999, false},
        {LOST_POD(""), 60000, 10000, false},
        {"{'metadata':{'name':'x'" DELETED "},'spec':{}}", 60000, 10000, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controller c;
        begin(&c, LED);
        c.silent = json_pack("{s:{s:I, s:s}}", "team/train", "since",
                             (json_int_t)(BEGIN - rows[i].since_ms), "map", "7");
        world.silent_ms = rows[i].silent_ms;
        check(&c, "train-x", rows[i].pod);
        const json_t *entry = json_object_get(c.silent, "team/train");
        assert_int_equal(json_is_true(json_object_get(entry, "over")), rows[i].over);
        assert_int_equal(json_integer_value(json_object_get(entry, "since")),
                         BEGIN - rows[i].since_ms);
        assert_string_equal(json_string_value(json_object_get(entry, "map")), "7");
        if (i < 3)
            assert_string_equal(text_of(&c),
                                "launcher train-x on n1 has not renewed its Lease since "
                                "2026-11-30T12:00:00Z: its node does not answer");
        done(&c);
    }
}

/* What is known stays. */
static void lists_that_fail(void **state)
{
    struct controller c;
    struct drarun_error err = {0};
    const struct kube_answer answer = {.status = 500};
    (void)state;
    begin(&c, LED);
    c.silent = json_pack("{s:{s:i}}", "team/train", "since", 5);
    controller_check_launchers(&c);
    error_set(&err, EIO, "no list");
    world.fn(&answer, &err, world.arg);
    controller_check_launchers(&c);
    assert_int_equal(json_object_size(c.silent), 1);
    assert_int_equal(json_object_size(c.due), 0);
    assert_int_equal(controller_check_due(&c), BEGIN + 15000);
    done(&c);
}

static void what_is_kept_of_a_lease(void **state)
{
    CLEANUP(json_decrefp)
    json_t *lease = quoted_json("{'metadata':{'name':'a','namespace':'n','labels':{'x':'y'},"
                                "'managedFields':[{'manager':'m','time':'t','fieldsV1':{'f':{}}}]}"
                                ",'spec':{'holderIdentity':'h'}}",
                                0);
    CLEANUP(json_decrefp)
    json_t *expected = quoted_json("{'metadata':{'name':'a','namespace':'n','managedFields':[{"
                                   "'manager':'m','time':'t'}]},'spec':{'holderIdentity':'h'}}",
                                   0);
    CLEANUP(json_decrefp) json_t *many = json_pack("{s:{s:[]}}", "metadata", "managedFields");
    json_t *list = json_object_get(json_object_get(many, "metadata"), "managedFields");
    (void)state;
    controller_trim_lease(lease);
    assert_true(json_equal(lease, expected));
    for (int i = 0; i < 65; i++)
        json_array_append_new(list, json_pack("{s:s, s:i}", "manager", "m", "x", i));
    controller_trim_writes(many);
    list = json_object_get(json_object_get(many, "metadata"), "managedFields"); /* another */
    assert_int_equal(json_array_size(list), 64);
    assert_int_equal(json_object_size(json_array_get(list, 63)), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_that_are_not_silent),
        cmocka_unit_test(launchers_that_are_silent),
        cmocka_unit_test(launchers_without_a_pod),
        cmocka_unit_test(launchers_that_are_over),
        cmocka_unit_test(lists_that_fail),
        cmocka_unit_test(what_is_kept_of_a_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
