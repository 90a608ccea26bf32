/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/slices/pool.h"

#define NOW 1000

/* An API server for one pool: what is held, and the writes that were made. */
struct server {
    struct pool pool;
    json_t *held;
    unsigned writes;
    bool drops_taints;
};

static struct server server(void)
{
    return (struct server){.pool = {.owner = {"n", "uid", NODE_DRIVER_NIC}, .version = "v1"},
                           .held = json_array()};
}

static void server_done(struct server *s)
{
    pool_done(&s->pool);
    json_decref(s->held);
}

/* count devices named from first; with a taint on the first of them. */
static json_t *parts(unsigned slices, const char *prefix, bool taint)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < slices; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s-%u", prefix, i);
        json_t *device = json_pack("{s:s}", "name", name);
        if (taint && i == 0)
            json_object_set_new(device, "taints",
                                json_pack("[{s:s, s:s}]", "key", "k", "effect", "NoSchedule"));
        json_array_append_new(all, json_pack("[o]", device));
    }
    return all;
}

static json_t *held_named(const struct server *s, const char *name, size_t *ret_index)
{
    size_t i;
    json_t *object;
    json_array_foreach(s->held, i, object)
    {
        const char *other =
            json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
        if (strcmp(other, name) == 0) {
            *ret_index = i;
            return object;
        }
    }
    return NULL;
}

/* As the API server: gives taints a time, or drops them where the feature is off. */
static void store(struct server *s, json_t *object)
{
    size_t i, t;
    json_t *device, *taint;
    json_array_foreach(json_object_get(json_object_get(object, "spec"), "devices"), i, device)
    {
        json_t *basic = json_object_get(device, "basic");
        if (s->drops_taints)
            json_object_del(basic ? basic : device, "taints");
        json_array_foreach(json_object_get(device, "taints"), t, taint)
        {
            if (!json_object_get(taint, "timeAdded"))
                json_object_set_new(taint, "timeAdded", json_sprintf("t%u", s->writes));
        }
    }
}

static void write_step(struct server *s, struct pool_step *step)
{
    size_t at = 0;
    const json_t *before = held_named(s, step->name, &at);
    s->writes++;
    if (step->kind == POOL_DELETE) {
        assert_non_null(before);
        json_array_remove(s->held, at);
        return;
    }
    json_t *object = json_deep_copy(step->object);
    store(s, object);
    assert_true((step->kind == POOL_REPLACE) == (before != NULL));
    if (before)
        json_array_set_new(s->held, at, object);
    else
        json_array_append_new(s->held, object);
    pool_written(&s->pool, step, object);
}

/* Writes until all is settled: how many that took. */
static unsigned settle(struct server *s, int64_t now)
{
    unsigned before = s->writes;
    for (unsigned i = 0; i < 100; i++) {
        struct pool_step step;
        assert_int_equal(pool_next(&s->pool, s->held, now, &step, NULL), 0);
        if (step.kind == POOL_SETTLED)
            return s->writes - before;
        write_step(s, &step);
        pool_step_done(&step);
    }
    fail_msg("it never settles");
    return 0;
}

static void test_first_and_again(void **state)
{
    (void)state;
    struct server s = server();
    assert_int_equal(settle(&s, NOW), 0); /* nothing is wanted yet */
    assert_true(pool_want_take(&s.pool, parts(3, "a", false)));
    assert_int_equal(settle(&s, NOW), 3);
    assert_int_equal(s.pool.generation, NOW);
    assert_int_equal(settle(&s, NOW + 50), 0);
    assert_false(pool_want_take(&s.pool, parts(3, "a", false)));
    assert_int_equal(settle(&s, NOW + 50), 0);
    assert_int_equal(s.pool.generation, NOW);
    server_done(&s);
}

/* The answer to a write of what is not wanted any more does not pass for what is. */
static void test_change_during_a_write(void **state)
{
    (void)state;
    struct server s = server();
    struct pool_step step;
    size_t at;
    pool_want_take(&s.pool, parts(1, "a", true));
    assert_int_equal(pool_next(&s.pool, s.held, NOW, &step, NULL), 0);
    assert_int_equal(step.kind, POOL_CREATE);
    assert_true(pool_want_take(&s.pool, parts(1, "b", true)));
    write_step(&s, &step);
    assert_int_equal(settle(&s, NOW), 1);
    json_t *held = held_named(&s, step.name, &at);
    json_t *devices = json_object_get(json_object_get(held, "spec"), "devices");
    assert_string_equal(json_string_value(json_object_get(json_array_get(devices, 0), "name")),
                        "b-0");
    pool_step_done(&step);
    server_done(&s);
}

/* A new content goes into all slices with one new generation. */
static void test_change(void **state)
{
    (void)state;
    struct server s = server();
    pool_want_take(&s.pool, parts(3, "a", false));
    settle(&s, NOW);
    pool_want_take(&s.pool, parts(2, "b", false));
    assert_int_equal(settle(&s, NOW), 3); /* two written, one deleted */
    assert_int_equal(json_array_size(s.held), 2);
    assert_int_equal(s.pool.generation, NOW + 1); /* the clock stands: still above */
    server_done(&s);
}

static void test_deleted(void **state)
{
    (void)state;
    struct server s = server();
    pool_want_take(&s.pool, parts(3, "a", false));
    settle(&s, NOW);
    json_array_remove(s.held, 1);
    assert_int_equal(settle(&s, NOW + 9), 1);
    assert_int_equal(s.pool.generation, NOW); /* the same content, the same generation */
    server_done(&s);
}

static void test_changed_by_another(void **state)
{
    (void)state;
    struct server s = server();
    pool_want_take(&s.pool, parts(2, "a", false));
    settle(&s, NOW);
    json_t *spec = json_object_get(json_array_get(s.held, 0), "spec");
    json_object_set_new(json_object_get(spec, "pool"), "generation", json_integer(NOW + 100));
    json_object_set_new(spec, "devices", json_array());
    assert_int_equal(settle(&s, NOW + 1), 2);
    assert_int_equal(s.pool.generation, NOW + 101);
    server_done(&s);
}

/* The plugin starts again: what is there and right is left alone, and its generation goes on. */
static void test_started_again(void **state)
{
    (void)state;
    struct server s = server();
    pool_want_take(&s.pool, parts(2, "a", true));
    settle(&s, NOW);
    pool_done(&s.pool);
    s.pool = (struct pool){.owner = s.pool.owner, .version = "v1"};
    pool_want_take(&s.pool, parts(2, "a", true));
    assert_int_equal(settle(&s, NOW - 500), 0); /* the clock was set back */
    assert_int_equal(s.pool.generation, NOW);
    pool_want_take(&s.pool, parts(2, "b", true));
    settle(&s, NOW - 500);
    assert_int_equal(s.pool.generation, NOW + 1);
    server_done(&s);
}

/* A server without the feature drops taints; that is no reason to write again and again. It is
 * known from then on. */
static void test_dropped_fields(void **state)
{
    static const char *const versions[] = {"v1", "v1beta1"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct server s = server();
        s.pool.version = versions[i / 2];
        s.drops_taints = i % 2;
        pool_want_take(&s.pool, parts(1, "a", false));
        assert_int_equal(settle(&s, NOW), 1);
        assert_false(s.pool.drops_taints);
        pool_want_take(&s.pool, parts(1, "a", true));
        assert_int_equal(settle(&s, NOW), 1);
        assert_int_equal(settle(&s, NOW), 0);
        assert_int_equal(s.pool.drops_taints, s.drops_taints);
        pool_want_take(&s.pool, parts(1, "a", false));
        settle(&s, NOW);
        assert_int_equal(s.pool.drops_taints, s.drops_taints);
        server_done(&s);
    }
}

/* A taint that stays keeps the time since when it is there. */
static void test_times_of_taints(void **state)
{
    (void)state;
    struct server s = server();
    const char *time = NULL;
    pool_want_take(&s.pool, parts(1, "a", true));
    settle(&s, NOW);
    pool_want_take(&s.pool, parts(2, "a", true));
    assert_int_equal(settle(&s, NOW), 2);
    assert_int_equal(json_unpack(json_array_get(s.held, 0), "{s:{s:[{s:[{s:s}]}]}}", "spec",
                                 "devices", "taints", "timeAdded", &time),
                     0);
    assert_string_equal(time, "t1");
    server_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_and_again),
        cmocka_unit_test(test_change_during_a_write),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_changed_by_another),
        cmocka_unit_test(test_started_again),
        cmocka_unit_test(test_dropped_fields),
        cmocka_unit_test(test_times_of_taints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
