/* SPDX-License-Identifier: Apache-2.0 */
/* The API server is away when the status is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "launcher/cluster/lead/status_writer.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/kube/call.h"

#define PATIENCE_MS 20000 /* of a busy machine */

/* ---- the API server ---- */

static struct server {
    unsigned asked;
    kube_call_fn fn; /* of the call that is under way, or NULL */
    void *arg;
    char text[64]; /* that it is to write */
} server;

/* NOLINTBEGIN: a name that the linker makes */
int __wrap_kube_merge_patch(struct kube_client *client, const struct kube_target *target,
                            const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                            void *arg, struct kube_call **ret_call, struct drarun_error *err);

int __wrap_kube_merge_patch(struct kube_client *client, const struct kube_target *target,
                            const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                            void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    static char call; /* is never looked into */
    const json_t *text = json_object_get(json_object_get(patch, "data"), "status.json");
    (void)client, (void)target, (void)options, (void)err;
    assert_null(server.fn);
    assert_non_null(text);
    snprintf(server.text, sizeof server.text, "%s", json_string_value(text));
    server.asked++;
    server.fn = fn;
    server.arg = arg;
    *ret_call = (void *)&call;
    return 0;
}
/* NOLINTEND */

/* code 0: it is written. */
static void answer(enum drarun_errkind kind, int code)
{
    struct drarun_error err = {0};
    const struct kube_answer none = {.reason = ""};
    kube_call_fn fn = server.fn;
    error_kind(&err, kind, code, "no");
    server.fn = NULL;
    fn(&none, code ? &err : NULL, server.arg);
}

/* ---- tests ---- */

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

static int make(void **state)
{
    static struct cluster cluster;
    cluster = (struct cluster){.base = event_base_new()};
    cluster.turn = evtimer_new(cluster.base, on_turn, NULL);
    server = (struct server){0};
    *state = &cluster;
    return 0;
}

static int drop(void **state)
{
    struct cluster *cluster = *state;
    event_free(cluster->turn);
    event_base_free(cluster->base);
    return 0;
}

static struct status_writer *put(struct cluster *cluster, const char *phase)
{
    struct status_writer *writer = NULL;
    assert_int_equal(status_writer_new(cluster, "job", "default", &writer, NULL), 0);
    status_writer_put(writer, json_pack("{s:s}", "phase", phase));
    return writer;
}

static void turn_until_asked(struct cluster *cluster, unsigned times)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    while (server.asked < times && clock_ms() < end)
        cluster_turn(cluster, end - clock_ms());
    assert_int_equal(server.asked, times);
}

/* That the ranks run is the last that is told of them for days. */
static void test_written_again(void **state)
{
    struct cluster *cluster = *state;
    struct status_writer *writer = put(cluster, "running");
    answer(DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT);
    assert_int_equal(server.asked, 1); /* after a pause */
    turn_until_asked(cluster, 2);
    answer(DRARUN_ERR_CLUSTER, EIO);
    turn_until_asked(cluster, 3);
    assert_string_equal(server.text, "{\"phase\":\"running\"}");
    answer(DRARUN_ERR_NONE, 0);
    assert_int_equal(status_writer_flush(writer, 0, NULL), 0);
    assert_int_equal(server.asked, 3);
    status_writer_free(writer);
}

/* What came meanwhile is written in its place. */
static void test_later_document(void **state)
{
    struct cluster *cluster = *state;
    struct status_writer *writer = put(cluster, "starting");
    status_writer_put(writer, json_pack("{s:s}", "phase", "running"));
    answer(DRARUN_ERR_INFRASTRUCTURE, ECONNREFUSED);
    status_writer_put(writer, json_pack("{s:s}", "phase", "ended"));
    turn_until_asked(cluster, 2);
    assert_string_equal(server.text, "{\"phase\":\"ended\"}");
    answer(DRARUN_ERR_NONE, 0);
    assert_int_equal(status_writer_flush(writer, 0, NULL), 0);
    status_writer_free(writer);
}

/* A write that was refused is not repeated; one that was not answered is no success. */
static void test_why_it_was_not_written(void **state)
{
    struct cluster *cluster = *state;
    struct drarun_error err = {0};
    struct status_writer *writer = put(cluster, "ended");
    assert_int_equal(status_writer_flush(writer, 10, &err), -ETIMEDOUT);
    answer(DRARUN_ERR_INFRASTRUCTURE, ECONNRESET);
    assert_int_equal(status_writer_flush(writer, 10, &err), -ECONNRESET);
    assert_true(status_writer_is_behind(writer));
    turn_until_asked(cluster, 2);
    assert_true(status_writer_is_behind(writer));
    answer(DRARUN_ERR_CLUSTER, EACCES);
    assert_false(status_writer_is_behind(writer));
    assert_int_equal(status_writer_flush(writer, PATIENCE_MS, &err), -EACCES);
    assert_int_equal(server.asked, 2);
    status_writer_free(writer);
}

static int64_t count_down(void *arg)
{
    int *times = arg;
    return --*times > 0 ? 10 : 0;
}

static int64_t never(void *arg)
{
    (void)arg;
    return PATIENCE_MS;
}

/* As when a launcher is told to go meanwhile. */
static void test_time_that_becomes_less(void **state)
{
    struct cluster *cluster = *state;
    struct drarun_error err = {0};
    int times = 3;
    struct status_writer *writer = put(cluster, "ended");
    assert_int_equal(status_writer_flush_for(writer, count_down, &times, &err), -ETIMEDOUT);
    assert_int_equal(times, 0);
    assert_true(status_writer_is_behind(writer));
    answer(DRARUN_ERR_NONE, 0);
    assert_int_equal(status_writer_flush_for(writer, never, NULL, &err), 0);
    status_writer_free(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_again, make, drop),
        cmocka_unit_test_setup_teardown(test_later_document, make, drop),
        cmocka_unit_test_setup_teardown(test_why_it_was_not_written, make, drop),
        cmocka_unit_test_setup_teardown(test_time_that_becomes_less, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
