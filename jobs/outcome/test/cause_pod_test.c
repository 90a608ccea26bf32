/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that the cluster ended: sentences, statuses, and which of several events is the first
 * cause. */
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/outcome/cause.h"
#include "lib/base/cleanup.h"

/* Ranks 0 and 1 on worker 0, ranks 2 and 3 on worker 1. */
static const struct rank_block blocks[] = {{0, 2, 0, 0}, {2, 2, 1, 0}};

static const struct sentence {
    struct cause_pod pod;
    int status;
    struct cause_restart restart;
    const char *text;
} sentences[] = {
    {{.end = POD_END_OOM, .exit_code = 137},
     137,
     {.retry = true},
     "worker 1 (job-w-1 on node-b) was killed as a whole by the kernel's OOM killer\n"
     "  its processes need more memory than the container's limit; /dev/shm counts too: raise "
     "resources.limits.memory\n"},
    {{.end = POD_END_EVICTED, .message = "The node was low on resource: memory.", .exit_code = -1},
     70,
     {.retry = true},
     "worker 1 (job-w-1 on node-b) was evicted: The node was low on resource: memory.\n"
     "  by a drain, or by its node for lack of memory or disk: restarts: N in the spec runs the "
     "job again\n"},
    {{.end = POD_END_PREEMPTED, .exit_code = -1},
     70,
     {.retry = true},
     "worker 1 (job-w-1 on node-b) was preempted\n"
     "  a pod of higher priority took its place: a priorityClassName in the template protects "
     "it\n"},
    {{.end = POD_END_TAINT, .exit_code = -1},
     70,
     {.retry = true, .new_claims = true},
     "worker 1 (job-w-1 on node-b) was ended by a taint of its node\n"
     "  kubectl describe node shows its taints: a toleration in the template lets the pods stay\n"},
    {{.end = POD_END_DEVICE_TAINT, .exit_code = -1},
     70,
     {.retry = true, .new_claims = true},
     "worker 1 (job-w-1 on node-b) was ended by a taint of one of its devices\n"
     "  a driver or an administrator found the device faulty: kubectl get "
     "resourceslices,devicetaintrules\n"},
    {{.end = POD_END_NODE_LOST, .message = "PodGC: node no longer exists", .exit_code = -1},
     70,
     {.retry = true, .avoid_node = true, .new_claims = true},
     "worker 1 (job-w-1 on node-b) was lost with its node: PodGC: node no longer exists\n"
     "  kubectl get nodes shows whether it answers again: restarts: N in the spec runs the job on "
     "another node\n"},
    {{.end = POD_END_NODE_SHUTDOWN, .exit_code = -1},
     70,
     {.retry = true, .avoid_node = true, .new_claims = true},
     "worker 1 (job-w-1 on node-b) was ended by the shutdown of its node\n"
     "  restarts: N in the spec runs the job again on another node\n"},
    {{.end = POD_END_DEADLINE, .exit_code = -1},
     124,
     {.retry = false},
     "worker 1 (job-w-1 on node-b) reached the pod's activeDeadlineSeconds\n"
     "  timeouts.total bounds the whole job instead\n"},
    {{.end = POD_END_DELETED, .exit_code = -1},
     70,
     {.retry = true},
     "worker 1 (job-w-1 on node-b) was deleted\n"
     "  somebody deleted the pod; drarun cancel ends a whole job\n"},
    {{.end = POD_END_REFUSED, .message = "Node didn't have enough resource: cpu", .exit_code = -1},
     70,
     {.retry = true, .avoid_node = true, .new_claims = true},
     "worker 1 (job-w-1 on node-b) was not admitted by its node: Node didn't have enough resource: "
     "cpu\n"
     "  its node had no room or no working device for it: kubectl describe node; with restarts: N "
     "the next attempt takes another\n"},
    {{.end = POD_END_START, .message = "hook: no NIC", .exit_code = 128},
     70,
     {.retry = true, .avoid_node = true, .new_claims = true},
     "worker 1 (job-w-1 on node-b) could not be started: hook: no NIC\n"
     "  its node could not make the container: with restarts: N the next attempt takes another "
     "node; kubectl describe pod has the runtime's message\n"},
    {{.end = POD_END_EXIT, .exit_code = 3},
     70,
     {.retry = true},
     "worker 1 (job-w-1 on node-b): its agent ended with status 3\n"},
    {{.end = POD_END_EXIT, .exit_code = 255},
     70,
     {.retry = true},
     "worker 1 (job-w-1 on node-b): its agent ended with status 255, which is the container "
     "runtime's: an image for another architecture than the node's has no agent for it (its log: "
     "exec format error)\n"},
    {{.end = POD_END_UNKNOWN, .exit_code = -1},
     70,
     {.retry = true},
     "worker 1 (job-w-1 on node-b) ended for a reason that the cluster does not know\n"
     "  kubectl describe node shows what happened there: restarts: N in the spec runs the job "
     "again\n"},
};

/* What the reference page has of an end is what the report says of it. */
static void every_end_has_its_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sentences); i++) {
        enum pod_end end = sentences[i].pod.end;
        const char *advice = strstr(sentences[i].text, "\n  ");
        assert_int_equal(cause_pod_end_status(end), sentences[i].status);
        assert_non_null(cause_pod_cure(end));
        if (end != POD_END_EXIT) {
            assert_non_null(strstr(sentences[i].text, cause_pod_deed(end)));
            assert_non_null(advice);
            assert_memory_equal(advice + 3, cause_pod_cure(end), strlen(cause_pod_cure(end)));
        }
    }
}

static struct cause *begin(struct rankmap *map)
{
    struct cause *cause = cause_new(map);
    assert_non_null(cause);
    cause_expect_pods(cause);
    return cause;
}

static void explain(const struct cause *cause, const char *expected)
{
    struct buf text = BUF_INIT;
    cause_explain(cause, true, &text);
    assert_string_equal(text.data, expected);
    buf_done(&text);
}

static struct rankmap four_ranks(void)
{
    struct rankmap map;
    assert_int_equal(rankmap_from_blocks(blocks, ARRAY_LEN(blocks), 2, &map, NULL), 0);
    return map;
}

static void every_end(void **state)
{
    (void)state;
    CLEANUP(rankmap_done) struct rankmap map = four_ranks();
    for (size_t i = 0; i < ARRAY_LEN(sentences); i++) {
        const struct sentence *s = &sentences[i];
        struct cause *cause = begin(&map);
        struct cause_pod pod = s->pod;
        pod.worker = 1;
        pod.pod = "job-w-1";
        pod.node = "node-b";
        pod.by_us = true;
        assert_false(cause_pod(cause, &pod));
        pod.by_us = false;
        assert_true(cause_pod(cause, &pod));
        assert_false(cause_pod(cause, &pod));
        explain(cause, s->text);
        assert_int_equal(cause_status(cause), s->status);
        struct cause_restart restart = cause_restart(cause);
        assert_int_equal(restart.retry, s->restart.retry);
        assert_int_equal(restart.avoid_node, s->restart.avoid_node);
        assert_int_equal(restart.new_claims, s->restart.new_claims);
        CLEANUP(json_decrefp) json_t *report = cause_json(cause);
        const json_t *inner = json_object_get(report, "cause");
        assert_string_equal(json_string_value(json_object_get(inner, "kind")), "pod");
        assert_string_equal(json_string_value(json_object_get(inner, "end")),
                            pod_end_name(s->pod.end));
        assert_int_equal(json_integer_value(json_object_get(inner, "worker")), 1);
        assert_string_equal(json_string_value(json_object_get(inner, "host")), "node-b");
        restart = cause_restart_told(inner);
        assert_int_equal(restart.retry, s->restart.retry);
        assert_int_equal(restart.avoid_node, s->restart.avoid_node);
        assert_int_equal(restart.new_claims, s->restart.new_claims);
        cause_free(cause);
    }
}

static const struct cause_pod oom = {
    .worker = 1, .pod = "job-w-1", .node = "node-b", .end = POD_END_OOM, .exit_code = 137};

/* The connection breaks, peers abort, and only then the API tells why. */
static void the_pod_is_known_last(void **state)
{
    (void)state;
    CLEANUP(rankmap_done) struct rankmap map = four_ranks();
    struct drarun_error lost = {.kind = DRARUN_ERR_INFRASTRUCTURE, .text = "lost worker 1"};
    struct cause *cause = begin(&map);
    assert_true(cause_worker_failure(cause, 1, "node-b", &lost));
    assert_true(cause_may_change(cause));
    CLEANUP(json_decrefp) json_t *report = cause_json(cause);
    const json_t *told = json_object_get(report, "cause");
    assert_int_equal(json_integer_value(json_object_get(told, "worker")), 1);
    assert_string_equal(json_string_value(json_object_get(told, "host")), "node-b");
    struct cause_end echo = {.rank = 0, .worker = 0, .signo = SIGSEGV, .ran_us = 1000};
    assert_false(cause_rank_end(cause, &echo));
    assert_int_equal(cause_kind(cause), CAUSE_FAILURE);
    struct cause_pod other = oom;
    other.worker = 0; /* not the worker that was lost */
    assert_false(cause_pod(cause, &other));
    assert_int_equal(cause_kind(cause), CAUSE_FAILURE);
    assert_false(cause_pod(cause, &oom));
    assert_int_equal(cause_kind(cause), CAUSE_POD);
    assert_int_equal(cause_status(cause), 137);
    cause_free(cause);

    /* an agent that could not serve, and something else at its port: it left its reason */
    cause = begin(&map);
    assert_true(cause_worker_failure(cause, 1, "node-b", &lost));
    struct cause_pod ended = oom;
    ended.end = POD_END_EXIT;
    ended.exit_code = 70;
    assert_false(cause_pod(cause, &ended));
    assert_int_equal(cause_kind(cause), CAUSE_FAILURE); /* an echo */
    ended.message = "cannot listen on port 7173: Address in use";
    assert_false(cause_pod(cause, &ended));
    assert_int_equal(cause_kind(cause), CAUSE_POD);
    assert_int_equal(cause_status(cause), 70);
    cause_free(cause);

    /* a peer's abort overtakes it */
    cause = begin(&map);
    assert_true(cause_abort(cause, 0, 0, "node-a", 1, "peer vanished"));
    assert_false(cause_pod(cause, &oom));
    assert_int_equal(cause_kind(cause), CAUSE_POD);
    cause_free(cause);

    /* the kubelet's SIGTERM of an eviction overtakes its condition */
    cause = begin(&map);
    struct cause_end killed = {.rank = 2, .worker = 1, .signo = SIGTERM, .ran_us = 1000};
    assert_true(cause_rank_end(cause, &killed));
    assert_true(cause_may_change(cause));
    struct cause_pod evicted = oom;
    evicted.end = POD_END_EVICTED;
    assert_false(cause_pod(cause, &evicted));
    assert_int_equal(cause_status(cause), 70);
    cause_free(cause);
}

static void what_stays(void **state)
{
    (void)state;
    CLEANUP(rankmap_done) struct rankmap map = four_ranks();
    struct cause_end end = {.rank = 2, .worker = 1, .code = 7, .ran_us = 1000};
    /* the agent's own end after its rank's is an echo */
    struct cause *cause = begin(&map);
    assert_true(cause_rank_end(cause, &end));
    struct cause_pod pod = oom;
    pod.end = POD_END_EXIT;
    assert_false(cause_pod(cause, &pod));
    assert_int_equal(cause_status(cause), 7);
    /* once it was told, it stays */
    cause_settle(cause);
    assert_false(cause_pod(cause, &oom));
    assert_int_equal(cause_status(cause), 7);
    cause_free(cause);

    /* a crash is no echo of a pod that ends after it */
    cause = begin(&map);
    end.code = 0;
    end.signo = SIGSEGV;
    assert_true(cause_rank_end(cause, &end));
    assert_false(cause_may_change(cause));
    assert_false(cause_pod(cause, &oom));
    assert_int_equal(cause_status(cause), 139);
    cause_free(cause);

    /* without pods nobody waits for what cannot come */
    cause = cause_new(&map);
    end.signo = SIGKILL;
    assert_true(cause_rank_end(cause, &end));
    assert_false(cause_may_change(cause));
    cause_free(cause);
}

static void the_launcher(void **state)
{
    (void)state;
    CLEANUP(rankmap_done) struct rankmap map = four_ranks();
    struct cause *cause = begin(&map);
    assert_true(cause_launcher_lost(cause, "job-x2x"));
    explain(cause, "the launcher job-x2x was lost, and its ranks were ended\n");
    assert_int_equal(cause_status(cause), 70);
    assert_true(cause_restart(cause).retry);
    cause_free(cause);
}

static void what_is_tried_again(void **state)
{
    (void)state;
    CLEANUP(rankmap_done) struct rankmap map = four_ranks();
    static const struct {
        enum drarun_errkind kind;
        bool retry;
    } errors[] = {{DRARUN_ERR_INFRASTRUCTURE, true}, {DRARUN_ERR_CLUSTER, true},
                  {DRARUN_ERR_SPEC, false},          {DRARUN_ERR_PREFLIGHT, false},
                  {DRARUN_ERR_CAPACITY, false},      {DRARUN_ERR_NOT_FOUND, false}};
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        struct drarun_error err = {.kind = errors[i].kind, .text = "x"};
        struct cause *cause = begin(&map);
        assert_true(cause_failure(cause, &err));
        assert_int_equal(cause_restart(cause).retry, errors[i].retry);
        cause_free(cause);
    }
    struct cause *cause = begin(&map);
    assert_false(cause_restart(cause).retry);
    struct cause_end end = {.rank = 2, .worker = 1, .code = 7, .host = "node-b", .ran_us = 1};
    assert_true(cause_rank_end(cause, &end));
    assert_true(cause_restart(cause).retry);
    assert_false(cause_restart(cause).avoid_node);
    cause_free(cause);
    cause = begin(&map);
    assert_true(cause_interrupted(cause, SIGINT));
    assert_false(cause_restart(cause).retry);
    cause_free(cause);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end),
        cmocka_unit_test(every_end_has_its_words),
        cmocka_unit_test(the_pod_is_known_last),
        cmocka_unit_test(what_stays),
        cmocka_unit_test(the_launcher),
        cmocka_unit_test(what_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
