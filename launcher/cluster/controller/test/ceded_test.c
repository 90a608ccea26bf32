/* SPDX-License-Identifier: Apache-2.0 */
/* Which namespaces are left to a controller of their own. The cluster, its clock and ours are the
 * test's. */
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
#include "lib/base/log.h"
#include "lib/base/test/quoted_json.h"
#include "lib/base/timestamp.h"
#include "lib/kube/list.h"

#define RENEWED "2026-11-30T12:00:00Z"

static struct {
    int64_t now_ms, served_ms;
    kube_call_fn fn; /* of the list that is under way, or NULL */
    void *arg;
    int lists, refusal; /* how many were asked for; the next one's errno */
    char labels[128];
    bool trims;
    struct buf said;
} world;

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
    (void)client;
    return world.served_ms;
}

int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err);
int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err)
{
    (void)client;
    world.lists++;
    assert_ptr_equal(target->resource, &kube_leases);
    assert_null(target->namespace_);
    assert_null(target->name);
    snprintf(world.labels, sizeof world.labels, "%s", select->labels);
    world.trims = select->trim == controller_trim_lease;
    if (world.refusal)
        return error_set(err, world.refusal, "no list");
    world.fn = fn;
    world.arg = arg;
    *ret_listing = (struct kube_listing *)&world;
    return 0;
}

static void on_line(void *arg, const struct log_line *line)
{
    (void)arg;
    if (line->level <= LOG_NORMAL)
        buf_add(&world.said, line->text + line->prefix, line->length - line->prefix);
}

static void is_said(const char *expected)
{
    buf_add_str(&world.said, "");
    assert_string_equal(world.said.data ? world.said.data : "", expected);
    buf_reset(&world.said);
}

static const struct controller_options everywhere = {.lease_namespace = "drarun-system"};
static const struct controller_options one = {.namespace = "a", .lease_namespace = "a"};

static void begin(struct controller *c, const struct controller_options *options)
{
    static struct cluster cluster;
    *c = (struct controller){.cluster = &cluster, .options = options, .due = json_object()};
    buf_done(&world.said);
    memset(&world, 0, sizeof world);
    world.now_ms = 1000000;
    assert_true(timestamp_parse(RENEWED, &world.served_ms));
    log_divert(on_line, NULL);
}

static void done(struct controller *c)
{
    log_divert(NULL, NULL);
    json_decref(c->ceded);
    json_decref(c->due);
    buf_done(&world.said);
}

static void answer(const char *items)
{
    CLEANUP(json_decrefp) json_t *body = quoted_json(items, 0);
    const struct kube_answer got = {.status = 200, .body = body};
    kube_call_fn fn = world.fn;
    assert_non_null(fn);
    world.fn = NULL;
    fn(&got, NULL, world.arg);
}

static void refuse(int code)
{
    const struct kube_answer got = {.status = 403};
    struct drarun_error err = {0};
    kube_call_fn fn = world.fn;
    assert_non_null(fn);
    world.fn = NULL;
    error_set(&err, code, "refused");
    fn(&got, &err, world.arg);
}

#define LEASE(namespace, name)                                                                     \
    "{'metadata':{'namespace':'" namespace "','name':'" name "'},'spec':{'renewTime':'" RENEWED    \
                                           "'}}"

/* Its Lease is one of a controller, elsewhere, that was renewed within a minute. */
static void whose_lease_counts(void **state)
{
    static const struct {
        const char *items;
        int64_t after_ms; /* the renewal */
        bool ceded;       /* namespace a */
    } rows[] = {
        {"{'items':[]}", 0, false},
        {"{'items':[" LEASE("a", CONTROLLER_LEASE) "]}", 0, true},
        {"{'items':[" LEASE("a", CONTROLLER_LEASE) "]}", 59999, true},
        {"{'items':[" LEASE("a", CONTROLLER_LEASE) "]}", 60000, false},
        {"{'items':[" LEASE("a", "x") "]}", 0, false},
        {"{'items':[" LEASE("drarun-system", CONTROLLER_LEASE) "]}", 0, false},
        {"{'items':[" LEASE("b", CONTROLLER_LEASE) "," LEASE("a", CONTROLLER_LEASE) "]}", 0, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controller c;
        begin(&c, &everywhere);
        controller_check_namespaces(&c);
        assert_string_equal(world.labels, CONTROLLER_LEASE_LABEL "=" CONTROLLER_LEASE);
        assert_true(world.trims);
        world.served_ms += rows[i].after_ms;
        answer(rows[i].items);
        assert_int_equal(controller_is_ceded(&c, "a"), rows[i].ceded);
        assert_false(controller_is_ceded(&c, "drarun-system"));
        done(&c);
    }
}

static void changes_are_said_once(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    controller_check_namespaces(&c);
    answer("{'items':[" LEASE("a", CONTROLLER_LEASE) "]}");
    is_said("namespace a has a controller of its own: its DraJobs are left to that\n");
    world.now_ms += 5000;
    controller_check_namespaces(&c);
    answer("{'items':[" LEASE("a", CONTROLLER_LEASE) "]}");
    is_said("");
    world.now_ms += 5000;
    controller_check_namespaces(&c);
    answer("{'items':[" LEASE("b", CONTROLLER_LEASE) "]}");
    is_said("namespace b has a controller of its own: its DraJobs are left to that\n"
            "namespace a has no controller of its own any more: manages its DraJobs\n");
    done(&c);
}

/* Every 5 s, not beside a list that is under way, and never for one namespace. */
static void when_it_asks(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &one);
    assert_int_equal(controller_check_namespaces_due(&c), INT64_MAX);
    controller_check_namespaces(&c);
    assert_int_equal(world.lists, 0);
    assert_true(controller_knows_namespaces(&c));
    done(&c);
    begin(&c, &everywhere);
    assert_int_equal(controller_check_namespaces_due(&c), 0);
    controller_check_namespaces(&c);
    assert_int_equal(world.lists, 1);
    assert_int_equal(controller_check_namespaces_due(&c), INT64_MAX);
    controller_check_namespaces(&c);
    assert_int_equal(world.lists, 1);
    world.now_ms += 300;
    answer("{'items':[]}");
    assert_int_equal(controller_check_namespaces_due(&c), 1005000);
    world.now_ms = 1004999;
    controller_check_namespaces(&c);
    assert_int_equal(world.lists, 1);
    world.now_ms = 1005000;
    controller_check_namespaces(&c);
    assert_int_equal(world.lists, 2);
    done(&c);
}

/* What was known when the list was asked for counts for 10 s. */
static void how_long_it_knows(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    assert_false(controller_knows_namespaces(&c));
    controller_check_namespaces(&c);
    world.now_ms += 300;
    answer("{'items':[]}");
    assert_true(controller_knows_namespaces(&c));
    world.now_ms = 1009999;
    assert_true(controller_knows_namespaces(&c));
    world.now_ms = 1010000;
    assert_false(controller_knows_namespaces(&c));
    done(&c);
}

static void lists_that_fail(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    controller_check_namespaces(&c);
    world.now_ms += 4500; /* it may take its time: a second later at the earliest */
    refuse(ETIMEDOUT);
    is_said("cannot find out which namespaces have a controller of their own, and creates no job "
            "until then: refused\n");
    assert_int_equal(controller_check_namespaces_due(&c), 1005500);
    world.now_ms = 1005500;
    world.refusal = ENOMEM;
    controller_check_namespaces(&c);
    is_said(""); /* it has told */
    assert_int_equal(controller_check_namespaces_due(&c), 1010500);
    world.refusal = 0;
    world.now_ms = 1010500;
    controller_check_namespaces(&c);
    answer("{'items':[]}");
    is_said("knows which namespaces have a controller of their own\n");
    world.now_ms += 5000;
    controller_check_namespaces(&c);
    refuse(ETIMEDOUT); /* what it knows counts still */
    is_said("");
    assert_true(controller_knows_namespaces(&c));
    world.now_ms = 1020500;
    assert_false(controller_knows_namespaces(&c));
    done(&c);
}

/* Then none has one of its own that could be asked for. */
static void without_the_right_to_list(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    controller_check_namespaces(&c);
    refuse(EACCES);
    is_said("");
    assert_true(controller_knows_namespaces(&c));
    assert_false(controller_is_ceded(&c, "a"));
    assert_non_null(c.ceded);
    world.now_ms += 5000;
    controller_check_namespaces(&c);
    answer("{'items':[" LEASE("a", CONTROLLER_LEASE) "]}");
    assert_true(controller_is_ceded(&c, "a"));
    world.now_ms += 10000;
    assert_false(controller_knows_namespaces(&c)); /* the right is there */
    done(&c);
}

/* ---- what else is remembered ---- */

static void the_clock_of_the_server(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    assert_int_equal(controller_now(&c), world.served_ms);
    world.served_ms = 0;
    world.now_ms = 4321;
    assert_int_equal(controller_now(&c), 4321);
    done(&c);
}

static void what_is_forgotten(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    json_t **const books[] = {&c.outdated,    &c.pauses,      &c.going, &c.untold,
                              &c.made,        &c.refused,     &c.rests, &c.silent,
                              &c.large.turns, &c.small.turns, &c.late,  &c.limits};
    for (size_t i = 0; i < ARRAY_LEN(books); i++)
        *books[i] = json_pack("{s:i, s:i}", "a/x", 1, "a/y", 2);
    controller_again(&c, "a", "x", 1);
    controller_forget(&c, "a/x");
    for (size_t i = 0; i < ARRAY_LEN(books); i++) {
        assert_null(json_object_get(*books[i], "a/x"));
        assert_non_null(json_object_get(*books[i], "a/y"));
        json_decref(*books[i]);
    }
    assert_non_null(json_object_get(c.due, "a/x")); /* it is looked at, all the same */
    done(&c);
}

static void how_many_are_due(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, &everywhere);
    controller_again(&c, "a", "x", 1000);
    controller_again(&c, "a", "y", 1001);
    world.now_ms += 999;
    assert_int_equal(controller_count_due(&c), 0);
    world.now_ms++;
    assert_int_equal(controller_count_due(&c), 1);
    world.now_ms++;
    assert_int_equal(controller_count_due(&c), 2);
    done(&c);
}

/* Of those that wait equally long the first by name. */
static bool has_room(const struct controller *c, const char *key)
{
    (void)c;
    return strcmp(key, "a/full") != 0;
}

static void who_waits_longest(void **state)
{
    static const struct {
        const char *waiting, *first;
    } rows[] = {
        {"{}", NULL},
        {"{'a/x':5}", "a/x"},
        {"{'a/x':5,'b/x':4,'c/x':6}", "b/x"},
        {"{'a/x':6,'b/x':5,'c/x':4}", "c/x"},
        {"{'b/x':5,'a/x':5}", "a/x"},
        {"{'a/x':5,'b/x':5}", "a/x"},
        {"{'a/full':1,'b/x':5}", "b/x"},
        {"{'a/full':1}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controller c;
        CLEANUP(json_decrefp) json_t *waiting = quoted_json(rows[i].waiting, 0);
        begin(&c, &everywhere);
        const char *first = controller_first_waiting(&c, waiting, has_room);
        if (rows[i].first)
            assert_string_equal(first, rows[i].first);
        else
            assert_null(first);
        done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_lease_counts),
        cmocka_unit_test(changes_are_said_once),
        cmocka_unit_test(when_it_asks),
        cmocka_unit_test(how_long_it_knows),
        cmocka_unit_test(lists_that_fail),
        cmocka_unit_test(without_the_right_to_list),
        cmocka_unit_test(the_clock_of_the_server),
        cmocka_unit_test(what_is_forgotten),
        cmocka_unit_test(how_many_are_due),
        cmocka_unit_test(who_waits_longest),
    };
    log_setup("t", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
