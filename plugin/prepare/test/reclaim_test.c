/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/kube/object.h"
#include "lib/topo/test/tree.h"
#include "plugin/prepare/preparer_private.h"

/* A claim has two devices, each with its attach order (NULL: none): whether a pod that still runs
 * can use one of them after both were taken back. */
static void test_what_is_left(void **state)
{
    static const struct {
        const char *first, *second;
        bool admin;          /* the second one */
        bool shared, moving; /* nothing is left, by whether RDMA devices are moved */
    } rows[] = {
        {"{'host': {'name': 'eth1'}}", NULL, true, true, true},
        {"{'host': {'name': 'eth1'}, 'rdma': 'mlx5_0'}", NULL, true, false, true},
        {"{'rdma': 'mlx5_0'}", NULL, true, false, true},
        {"{'host': {'name': 'eth1'}}", "{'rdma': 'mlx5_0'}", false, false, true},
        {"{'host': {'name': 'eth1'}}", NULL, false, false, false}, /* a GPU */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct checkpoint_device devices[2] = {{.device = "a"},
                                               {.device = "b", .admin = rows[i].admin}};
        const struct checkpoint checkpoint = {.devices = devices, .count = 2};
        for (int k = 0; k < 2; k++) {
            char text[128];
            const char *order = k ? rows[i].second : rows[i].first;
            snprintf(text, sizeof text, "%s", order ? order : "");
            for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
            devices[k].order = order ? json_loads(text, 0, NULL) : NULL;
            assert_true(!order || devices[k].order);
        }
        assert_int_equal(reclaim_leaves_nothing(&checkpoint, false), rows[i].shared);
        assert_int_equal(reclaim_leaves_nothing(&checkpoint, true), rows[i].moving);
        json_decref(devices[0].order);
        json_decref(devices[1].order);
    }
}

static time_t now_s = 1000;

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    *now = (struct timespec){.tv_sec = now_s};
    return 0;
}

static struct {
    int count; /* of questions to the API server */
    char claim[64];
    kube_call_fn answer;
    void *arg;
} asked;

int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)err;
    asked.count++;
    snprintf(asked.claim, sizeof asked.claim, "%s/%s", target->namespace_, target->name);
    asked.answer = fn;
    asked.arg = arg;
    *ret_call = (struct kube_call *)&asked; /* under way */
    return 0;
}

static int taken_back; /* claims that were unprepared unasked */

void __wrap_preparer_take_back(struct preparer *preparer, const struct holding *holding);
void __wrap_preparer_take_back(struct preparer *preparer, const struct holding *holding)
{
    (void)preparer;
    assert_string_equal(holding->uid, "u0");
    taken_back++;
}

/* The claim of this UID has the device. */
static void answer_that_it_has(const char *uid, const char *device)
{
    json_t *claim =
        json_pack("{s:{s:s}, s:{s:{s:{s:[{s:s, s:s, s:s}]}}}}", "metadata", "uid", uid, "status",
                  "allocation", "devices", "results", "driver", "d", "pool", "n", "device", device);
    const struct kube_answer answer = {.status = 200, .body = claim};
    assert_non_null(claim);
    asked.answer(&answer, NULL, asked.arg);
    json_decref(claim);
}

/* One call at a time, and not one after the other: the task looks again several times a second. */
static void test_how_often_is_asked(void **state)
{
    char uid[] = "u0", own_uid[] = "u1";
    const struct preparer_config config = {.driver = "d", .node = "n"};
    struct holding holder = {
        .device = "a", .uid = "u0", .known = true, .namespace_ = "default", .name = "holder"};
    struct preparer preparer = {.config = &config, .holdings.list = &holder};
    struct task task = {.preparer = &preparer, .uid = own_uid, .prepares = true};
    (void)state;
    preparer.queue.tasks = &task;
    reclaim_ask(&task, &holder);
    assert_int_equal(asked.count, 1);
    assert_string_equal(asked.claim, "default/holder");
    now_s += 60;
    reclaim_ask(&task, &holder); /* the answer is still to come */
    assert_int_equal(asked.count, 1);
    answer_that_it_has(uid, "a");
    assert_null(task.call);
    reclaim_ask(&task, &holder);
    assert_int_equal(asked.count, 2);
    answer_that_it_has(uid, "a");
    for (int i = 0; i < 10; i++)
        reclaim_ask(&task, &holder); /* within the same second */
    assert_int_equal(asked.count, 2);
    now_s += 60;
    holder.known = false; /* it was salvaged */
    reclaim_ask(&task, &holder);
    assert_int_equal(asked.count, 2);
    holder.known = true;
    struct task back = {.preparer = &preparer, .uid = uid};
    task.next = &back; /* Unprepare waits for its turn */
    reclaim_ask(&task, &holder);
    assert_int_equal(asked.count, 2);
    task.next = NULL;
    reclaim_ask(&task, &holder);
    assert_int_equal(asked.count, 3);
}

static void answer_failed(int code)
{
    const struct kube_answer answer = {0};
    struct drarun_error err = {0};
    error_set(&err, code, "no");
    asked.answer(&answer, &err, asked.arg);
}

/* Of a claim whose pod cannot use the device any more, and of one whose pod still can. */
static void test_what_an_answer_means(void **state)
{
    static const struct {
        const char *uid, *device; /* of the claim that is there; NULL: */
        int failure;
        bool lost; /* the holder has lost the device */
    } rows[] = {
        {"u0", "a", 0, false},      {"u0", "b", 0, true},     {"u9", "a", 0, true},
        {NULL, NULL, ENOENT, true}, {NULL, NULL, EIO, false}, {NULL, NULL, ETIMEDOUT, false},
    };
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        const size_t row = i / 2;
        const bool usable = i % 2 == 1;
        const struct preparer_config config = {.driver = "d", .node = "n"};
        struct holding holder = {
            .device = "a", .uid = "u0", .known = true, .namespace_ = "default", .name = "holder"};
        struct preparer preparer = {.config = &config, .holdings.list = &holder};
        char own_uid[] = "u1", place[] = "default", name[] = "next";
        struct task task = {.preparer = &preparer,
                            .uid = own_uid,
                            .namespace_ = place,
                            .name = name,
                            .prepares = true};
        struct tree tree = tree_new();
        CLEANUP(json_decrefp)
        json_t *document = checkpoint_document("d", "default", "holder", "u0", "");
        snprintf(preparer.dir, sizeof preparer.dir, "%s", tree.name);
        assert_true(checkpoint_add_take(document, "r", "n", "a", false,
                                        usable ? NULL : json_pack("{s:{}}", "host"), NULL));
        CLEANUP(json_decrefp) json_t *cdi = json_object();
        assert_true(checkpoint_set_cdi(document, cdi));
        assert_int_equal(checkpoint_save(document, tree.name, "u0", NULL), 0);
        preparer.queue.tasks = &task;
        taken_back = 0;
        reclaim_ask(&task, &holder);
        if (rows[row].failure)
            answer_failed(rows[row].failure);
        else
            answer_that_it_has(rows[row].uid, rows[row].device);
        assert_int_equal(taken_back, rows[row].lost && !usable);
        assert_int_equal(task.reclaim.kept, rows[row].lost && usable);
        preparer.holdings.list = NULL; /* it was given back meanwhile */
        taken_back = 0;
        answer_failed(ENOENT);
        assert_int_equal(taken_back, 0);
        tree_drop(&tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_left),
                                       cmocka_unit_test(test_how_often_is_asked),
                                       cmocka_unit_test(test_what_an_answer_means)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
