/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is, and how calls are answered. What a task does is the test's. */
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
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/preparer_private.h"

static char done[2048]; /* a line for each thing that was done */
static struct task *running[8];
static size_t running_count;
static bool at_once; /* tasks end in their turn */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t n = strlen(done);
    va_list args;
    va_start(args, format);
    vsnprintf(done + n, sizeof done - n, format, args);
    va_end(args);
}

static void did(const char *expected)
{
    assert_string_equal(done, expected);
    done[0] = '\0';
}

/* A reply is a number here. */
static struct dra_reply *reply(uintptr_t number)
{
    return (struct dra_reply *)(number * 8);
}

static unsigned number_of(const struct dra_reply *r)
{
    return (unsigned)((uintptr_t)r / 8);
}

void __wrap_dra_reply_prepared_take(struct dra_reply *r, const struct dra_device *devices,
                                    size_t count);
void __wrap_dra_reply_prepared_take(struct dra_reply *r, const struct dra_device *devices,
                                    size_t count)
{
    note("%u prepared\n", number_of(r));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(devices[i].request_count, 1);
        note("  %s %s %s", devices[i].requests[0], devices[i].pool, devices[i].name);
        for (size_t id = 0; id < devices[i].cdi_id_count; id++)
            note(" %s", devices[i].cdi_ids[id]);
        note("\n");
    }
}

void __wrap_dra_reply_unprepared_take(struct dra_reply *r);
void __wrap_dra_reply_unprepared_take(struct dra_reply *r)
{
    note("%u unprepared\n", number_of(r));
}

void __wrap_dra_reply_failed_take(struct dra_reply *r, const struct drarun_error *err);
void __wrap_dra_reply_failed_take(struct dra_reply *r, const struct drarun_error *err)
{
    note("%u failed: %s\n", number_of(r), err->text);
}

static void held_changed(void *arg)
{
    (void)arg;
    note("held changed\n");
}

static void begin(struct task *task)
{
    note("%s %s\n", task->prepares ? "prepare" : "unprepare", task->uid);
    assert_true(running_count < ARRAY_LEN(running));
    running[running_count++] = task;
    if (at_once) {
        running_count--;
        task_unprepared(task);
    }
}

static const struct preparer_config config = {.driver = "d", .held_changed = held_changed};

static struct preparer new_preparer(void)
{
    done[0] = '\0';
    running_count = 0;
    at_once = false;
    return (struct preparer){.config = &config, .queue = {.prepare = begin, .unprepare = begin}};
}

static void start(struct preparer *preparer, const char *uid, unsigned number, bool prepares)
{
    const struct dra_claim claim = {"ns", "one", uid};
    task_start(preparer, &claim, reply(number), prepares);
}

static void calls_of_a_claim_follow_each_other(void **state)
{
    struct preparer p = new_preparer();
    struct drarun_error err = {0};
    (void)state;
    start(&p, "u-1", 1, true);
    start(&p, "u-1", 2, false);
    start(&p, "u-2", 3, true);
    start(&p, "u-1", 4, true);
    did("prepare u-1\nprepare u-2\n");
    assert_true(preparer_is_given_back(&p, "u-1"));
    assert_false(preparer_is_given_back(&p, "u-2"));
    error_set(&err, EIO, "no claim");
    task_failed(running[0], &err);
    did("1 failed: no claim\nunprepare u-1\n");
    task_unprepared(running[2]);
    did("held changed\n2 unprepared\nprepare u-1\n");
    assert_false(preparer_is_given_back(&p, "u-1"));
    task_failed(running[1], &err);
    task_failed(running[3], &err);
    did("3 failed: no claim\n4 failed: no claim\n");
    assert_null(p.queue.tasks);
    assert_int_equal(p.counts.prepared, 0);
    assert_int_equal(p.counts.not_prepared, 3);
    assert_int_equal(p.counts.unprepared, 1);
    assert_int_equal(p.counts.not_unprepared, 0);
}

static void tasks_that_end_at_once(void **state)
{
    struct preparer p = new_preparer();
    (void)state;
    at_once = true;
    start(&p, "u-1", 1, false);
    start(&p, "u-1", 2, false);
    did("unprepare u-1\nheld changed\n1 unprepared\n"
        "unprepare u-1\nheld changed\n2 unprepared\n");
    assert_int_equal(p.counts.unprepared, 2);
    assert_null(p.queue.tasks);
}

static void uids_that_are_none_are_refused(void **state)
{
    struct preparer p = new_preparer();
    (void)state;
    start(&p, "../etc", 1, true);
    did("1 failed: claim ns/one: \"../etc\" is no UID\n");
    assert_null(p.queue.tasks);
}

/* What the plugin does by itself is answered to nobody, and not counted. */
static void claims_are_taken_back_unasked(void **state)
{
    struct preparer p = new_preparer();
    const struct holding holding = {.uid = "u-1", .namespace_ = "ns", .name = "one"};
    struct drarun_error err = {0};
    (void)state;
    preparer_take_back(&p, &holding);
    did("unprepare u-1\n");
    assert_true(preparer_is_given_back(&p, "u-1"));
    task_unprepared(running[0]);
    did("held changed\n");
    preparer_take_back(&p, &holding);
    error_set(&err, EIO, "no");
    task_failed(running[1], &err);
    did("unprepare u-1\n");
    assert_int_equal(p.counts.unprepared, 0);
    assert_int_equal(p.counts.not_unprepared, 0);
    assert_null(p.queue.tasks);
}

static void claim_is_unprepared_first(void **state)
{
    struct preparer p = new_preparer();
    struct drarun_error err = {0};
    (void)state;
    start(&p, "u-2", 1, true);
    start(&p, "u-1", 2, true);
    did("prepare u-2\nprepare u-1\n");
    task_unprepare_first(running[1]);
    did("unprepare u-1\n");
    assert_false(running[1]->running);
    error_set(&err, EIO, "no");
    task_failed(running[2], &err); /* whether that has succeeded or not */
    did("prepare u-1\n");
    task_failed(running[0], &err);
    task_failed(running[3], &err);
    did("1 failed: no\n2 failed: no\n");
    assert_null(p.queue.tasks);
}

static void nothing_begins_at_the_end(void **state)
{
    struct preparer p = new_preparer();
    struct drarun_error err = {0};
    (void)state;
    start(&p, "u-1", 1, true);
    start(&p, "u-1", 2, true);
    did("prepare u-1\n");
    p.queue.ending = true;
    error_set(&err, EIO, "no");
    task_failed(running[0], &err);
    did("1 failed: no\n");
    task_failed(p.queue.tasks, &err);
    assert_null(p.queue.tasks);
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)arg;
    note("wakes %d\n", what);
}

/* Another claim's device has perhaps come back. */
static void those_that_wait_look_again(void **state)
{
    struct preparer p = new_preparer();
    struct event_base *base = event_base_new();
    struct drarun_error err = {0};
    (void)state;
    start(&p, "u-1", 1, true);
    start(&p, "u-2", 2, false);
    start(&p, "u-3", 3, true);
    running[0]->patience.clock = event_new(base, -1, 0, on_clock, NULL);
    done[0] = '\0';
    task_unprepared(running[1]);
    event_base_loop(base, EVLOOP_NONBLOCK);
    did("held changed\n2 unprepared\nwakes 2\n");
    error_set(&err, EIO, "no");
    task_failed(running[0], &err);
    task_failed(running[2], &err);
    event_base_free(base);
}

/* Each device with the ids that a container needs for it. */
static void devices_are_told(void **state)
{
    struct preparer p = new_preparer();
    json_t *document = checkpoint_document("d", "ns", "one", "u-1", "pod");
    CLEANUP(json_decrefp) json_t *spec = cdi_spec_new("d");
    struct drarun_error err = {0};
    (void)state;
    assert_true(checkpoint_add_take(document, "nic/fast", "n", "a", false, NULL, NULL));
    assert_true(checkpoint_add_take(document, "gpu", "n", "b", false, NULL, NULL));
    assert_true(checkpoint_set_device_cdi(document, "nvidia.com/gpu=GPU-a"));
    for (int agent = 0; agent < 2; agent++) {
        if (agent)
            assert_true(cdi_spec_add_agent(spec, "u-1", "/agent", false, 0));
        assert_true(checkpoint_set_cdi(document, spec));
        start(&p, "u-1", 1, true);
        did("prepare u-1\n");
        struct task *task = running[--running_count];
        if (checkpoint_of(document, &task->checkpoint, &err) < 0)
            fail_msg("%s", err.text);
        task_prepared(task);
        did(agent ? "1 prepared\n  nic/fast n a d/claim=u-1-a d/claim=u-1_agent\n"
                    "  gpu n b d/claim=u-1-b nvidia.com/gpu=GPU-a d/claim=u-1_agent\n"
                  : "1 prepared\n  nic/fast n a d/claim=u-1-a\n"
                    "  gpu n b d/claim=u-1-b nvidia.com/gpu=GPU-a\n");
    }
    assert_int_equal(p.counts.prepared, 2);
    assert_int_equal(p.counts.not_prepared, 0);
    assert_null(p.queue.tasks);
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_claim_follow_each_other),
        cmocka_unit_test(tasks_that_end_at_once),
        cmocka_unit_test(uids_that_are_none_are_refused),
        cmocka_unit_test(claims_are_taken_back_unasked),
        cmocka_unit_test(claim_is_unprepared_first),
        cmocka_unit_test(nothing_begins_at_the_end),
        cmocka_unit_test(those_that_wait_look_again),
        cmocka_unit_test(devices_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
