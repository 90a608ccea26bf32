/* SPDX-License-Identifier: Apache-2.0 */
/* How the workers of a job that is suspended no more go on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/lead/gates.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/quoted_json.h"

#define WORKERS 3

static struct {
    struct buf text;
    kube_call_fn fn[WORKERS];
    void *arg;
    size_t count;       /* of calls under way */
    int codes[WORKERS]; /* with which they end */
    int refusal;        /* of the next one */
} world;

int __wrap_kube_json_patch(struct kube_client *client, const struct kube_target *target,
                           const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                           void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_json_patch(struct kube_client *client, const struct kube_target *target,
                           const json_t *patch, const struct kube_write *options, kube_call_fn fn,
                           void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    cleanup_free char *text = json_dumps(patch, JSON_COMPACT | JSON_SORT_KEYS);
    (void)client, (void)ret_call;
    assert_ptr_equal(target->resource, &kube_pods);
    assert_true(options->repeat);
    buf_printf(&world.text, "%s/%s %s\n", target->namespace_, target->name, text);
    if (world.refusal)
        return error_set(err, world.refusal, "no patch");
    world.fn[world.count++] = fn;
    world.arg = arg;
    return 0;
}

void __wrap_cluster_turn(struct cluster *cluster, int64_t ms);
void __wrap_cluster_turn(struct cluster *cluster, int64_t ms)
{
    const struct kube_answer answer = {.status = 200};
    struct drarun_error err = {0};
    (void)cluster, (void)ms;
    assert_true(world.count > 0);
    world.count--;
    int code = world.codes[world.count];
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, code, "error %d", code);
    world.fn[world.count](&answer, code ? &err : NULL, world.arg);
}

int __wrap_cluster_merge_patch(struct cluster *cluster, const struct kube_target *target,
                               const json_t *patch, struct drarun_error *err);
int __wrap_cluster_merge_patch(struct cluster *cluster, const struct kube_target *target,
                               const json_t *patch, struct drarun_error *err)
{
    cleanup_free char *text = json_dumps(patch, JSON_COMPACT);
    (void)cluster, (void)err;
    assert_ptr_equal(target->resource, &kube_jobs);
    buf_printf(&world.text, "%s/%s %s\n", target->namespace_, target->name, text);
    return 0;
}

static void is_done(const char *expected)
{
    assert_string_equal(world.text.data ? world.text.data : "", expected);
    assert_int_equal(world.count, 0);
    buf_done(&world.text);
    memset(&world, 0, sizeof world);
}

#define PATCH(pod, index)                                                                          \
    "team/" pod " [{\"op\":\"test\",\"path\":\"/spec/schedulingGates/" index                       \
    "/name\",\"value\":\"drarun.dev/suspended\"},{\"op\":\"remove\",\"path\":\"/spec/"             \
    "schedulingGates/" index "\"}]\n"

struct made {
    struct cluster cluster;
    struct job_spec spec;
    struct pod_state workers[WORKERS];
    json_t *first, *second;
};

static void made_init(struct made *m)
{
    *m = (struct made){.spec = {.workers = WORKERS}};
    m->first = quoted_json("[{'name':'drarun.dev/suspended'}]", 0);
    m->second = quoted_json("[{'name':'example.com/x'},{},{'name':'drarun.dev/suspended'}]", 0);
    m->workers[0] = (struct pod_state){.phase = POD_GATED, .name = "p0", .gates = m->first};
    m->workers[1] = (struct pod_state){.phase = POD_GATED, .name = "p1", .gates = m->second};
    m->workers[2] = (struct pod_state){.phase = POD_GATED, .name = "p2", .gates = m->first};
}

static void made_done(struct made *m)
{
    json_decref(m->first);
    json_decref(m->second);
}

/* Each pod's own gate, wherever it stands, and no other. */
static void gates_that_are_opened(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m);
    assert_int_equal(resume_workers(&m.cluster, &m.spec, "team", m.workers, NULL, &err), 0);
    is_done(PATCH("p0", "0") PATCH("p1", "2") PATCH("p2", "0"));
    m.workers[0].phase = POD_RUNNING; /* it has none */
    m.workers[2].name = NULL;
    assert_int_equal(resume_workers(&m.cluster, &m.spec, "team", m.workers, NULL, &err), 0);
    is_done(PATCH("p1", "2"));
    json_array_remove(m.second, 2); /* nor has this one any more */
    assert_int_equal(resume_workers(&m.cluster, &m.spec, "team", m.workers, NULL, &err), 0);
    is_done("");
    made_done(&m);
}

/* A gate that is not where it was, and a pod that is gone, are fine; of other errors the first is
 * told, once all have been answered. */
static void gates_that_cannot_be_opened(void **state)
{
    static const struct {
        int codes[WORKERS], code;
    } rows[] = {{{0, 0, 0}, 0},
                {{EINVAL, ENOENT, 0}, 0},
                {{0, 0, EACCES}, EACCES},
                {{EINVAL, EACCES, ENOENT}, EACCES},
                {{EIO, 0, EACCES}, EACCES},
                {{EIO, ENOENT, EINVAL}, EIO}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        char text[32];
        made_init(&m);
        memcpy(world.codes, rows[i].codes, sizeof world.codes);
        assert_int_equal(resume_workers(&m.cluster, &m.spec, "team", m.workers, NULL, &err),
                         -rows[i].code);
        snprintf(text, sizeof text, "error %d", rows[i].code);
        assert_string_equal(err.text, rows[i].code ? text : "");
        assert_int_equal(err.kind, rows[i].code ? DRARUN_ERR_INFRASTRUCTURE : 0);
        is_done(PATCH("p0", "0") PATCH("p1", "2") PATCH("p2", "0"));
        made_done(&m);
    }
}

static void a_patch_that_cannot_be_sent(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m);
    world.refusal = ENOMEM;
    assert_int_equal(resume_workers(&m.cluster, &m.spec, "team", m.workers, NULL, &err), -ENOMEM);
    assert_string_equal(err.text, "no patch");
    is_done(PATCH("p0", "0"));
    made_done(&m);
}

/* With claims of a template the workers are a Job's, which is started unless a queue holds it. */
static void a_job_of_workers(void **state)
{
    static const struct {
        const char *job;
        bool queued, starts;
    } rows[] = {
        {"{'metadata':{'name':'w'},'spec':{'suspend':true}}", false, true},
        {"{'metadata':{'name':'w'},'spec':{'suspend':false}}", false, false},
        {"{'metadata':{'name':'w'},'spec':{}}", false, false},
        {"{'metadata':{'name':'w'},'spec':{'suspend':true}}", true, false},
        {"{'metadata':{'name':'w','labels':{'kueue.x-k8s.io/queue-name':'q'}},'spec':{'suspend':"
         "true}}",
         false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        CLEANUP(json_decrefp) json_t *job = quoted_json(rows[i].job, 0);
        made_init(&m);
        m.spec.claims = SPEC_CLAIMS_TEMPLATE;
        m.spec.queue = rows[i].queued ? "q" : NULL;
        assert_int_equal(resume_workers(&m.cluster, &m.spec, "team", m.workers, job, &err), 0);
        is_done(rows[i].starts ? "team/w {\"spec\":{\"suspend\":false}}\n" : "");
        made_done(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates_that_are_opened),
        cmocka_unit_test(gates_that_cannot_be_opened),
        cmocka_unit_test(a_patch_that_cannot_be_sent),
        cmocka_unit_test(a_job_of_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
