/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <event2/event.h>

#include "launcher/cluster/public/public.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/unconst.h"

static const char config[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
    "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    "users: [{name: u, user: {}}]\n"
    "contexts: [{name: a, context: {cluster: c, user: u, namespace: home}}]\n";

static char path[] = "/tmp/drarun-public-XXXXXX";

static int make_config(void **state)
{
    (void)state;
    cleanup_close int fd = mkstemp(path);
    return fd >= 0 && write(fd, config, strlen(config)) == (ssize_t)strlen(config) ? 0 : -1;
}

static int remove_config(void **state)
{
    (void)state;
    return unlink(path);
}

static struct drarun_cluster *open_it(struct event_base *base)
{
    struct drarun_cluster_options options = drarun_cluster_options_init();
    struct drarun_cluster *cluster = NULL;
    struct drarun_error err = {0};
    options.kubeconfig = path;
    options.base = base;
    if (drarun_cluster_open(&options, &cluster, &err) < 0)
        fail_msg("%s", err.text);
    return cluster;
}

static void test_open(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    assert_string_equal(drarun_cluster_namespace(cluster), "home");
    drarun_cluster_interrupt(cluster);
    drarun_cluster_close(cluster);
    drarun_cluster_close(NULL);
}

static void test_no_such_context(void **state)
{
    (void)state;
    struct drarun_cluster_options options = drarun_cluster_options_init();
    struct drarun_cluster *cluster = NULL;
    struct drarun_error err = {0};
    options.kubeconfig = path;
    options.context = "moon";
    assert_true(drarun_cluster_open(&options, &cluster, &err) < 0);
    assert_null(cluster);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_non_null(strstr(err.text, "moon"));
}

/* The caller's loop is as it was: no event of ours is left on it. */
static void test_callers_loop(void **state)
{
    (void)state;
    struct event_base *base = event_base_new();
    drarun_cluster_close(open_it(base));
    assert_int_equal(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
    event_base_free(base);
}

static void test_one_call_at_a_time(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    struct drarun_error err = {0};
    struct public_call outer, inner;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(public_begin(&outer, cluster, &err), 0);
    raise(SIGPIPE); /* as a write to a connection that broke */
    assert_int_equal(public_begin(&inner, cluster, &err), -EBUSY);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    public_end(&outer);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
    assert_int_equal(public_begin(&outer, cluster, &err), 0);
    public_end(&outer);
    drarun_cluster_close(cluster);
}

static void test_in_a_child(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    struct drarun_job *job = NULL;
    struct drarun_error err = {0};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int rc = drarun_job_open(cluster, "job", &job, &err);
        drarun_cluster_close(cluster);
        _exit(rc == -EINVAL && err.kind == DRARUN_ERR_USAGE ? 7 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
    drarun_cluster_close(cluster);
}

/* ---- beside other work; nobody answers here ---- */

struct ends {
    int count;
    struct drarun_error last;
    struct drarun_following *to_free; /* by the next end */
};

static void on_ended(void *arg, int status, const struct drarun_error *err)
{
    struct ends *ends = arg;
    (void)status;
    ends->count++;
    ends->last = *err;
    drarun_following_free(TAKE_PTR(ends->to_free));
}

static struct drarun_following *wait_for(struct drarun_cluster *cluster, long long timeout_ms,
                                         struct ends *ends)
{
    struct drarun_job job = {cluster, unconst("job"), unconst("home"), unconst("uid")};
    struct drarun_following *following = NULL;
    struct drarun_error err = {0};
    if (drarun_job_wait_start(&job, timeout_ms, on_ended, ends, &following, &err) < 0)
        fail_msg("%s", err.text);
    return following;
}

/* By a loop of the caller's own make. */
static void poll_until(struct drarun_cluster *cluster, const struct ends *ends, int count)
{
    struct drarun_error err = {0};
    struct pollfd ready = {.fd = drarun_cluster_fd(cluster, &err), .events = POLLIN};
    if (ready.fd < 0)
        fail_msg("%s", err.text);
    while (ends->count < count) {
        assert_int_equal(poll(&ready, 1, 60000), 1);
        assert_int_equal(drarun_cluster_dispatch(cluster, &err), 0);
    }
}

static void test_several_are_followed_by_poll(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    struct ends ends = {0};
    struct drarun_following *freed = wait_for(cluster, 10, &ends);
    struct drarun_following *first = wait_for(cluster, 50, &ends);
    struct drarun_following *second = wait_for(cluster, 0, &ends);
    drarun_following_free(freed);
    poll_until(cluster, &ends, 1);
    assert_int_equal(ends.last.code, ETIMEDOUT);
    assert_int_equal(ends.last.kind, DRARUN_ERR_TIMEOUT);
    ends.to_free = second; /* itself, while it ends */
    drarun_cluster_interrupt(cluster);
    poll_until(cluster, &ends, 2);
    assert_null(ends.to_free);
    drarun_following_free(first);
    drarun_following_free(NULL);
    drarun_cluster_close(cluster);
}

static void test_followed_on_the_callers_loop(void **state)
{
    (void)state;
    struct event_base *base = event_base_new();
    struct drarun_cluster *cluster = open_it(base);
    struct ends ends = {0};
    struct drarun_following *first = wait_for(cluster, 20, &ends);
    struct drarun_following *second = wait_for(cluster, 0, &ends);
    assert_int_equal(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 1);
    while (ends.count < 1)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
    drarun_following_free(first);
    ends.to_free = second;
    drarun_cluster_interrupt(cluster);
    while (ends.count < 2)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
    assert_int_equal(ends.last.code, ECANCELED);
    assert_int_equal(ends.last.kind, DRARUN_ERR_INTERRUPTED);
    /* nothing is followed any more, so that the loop may end */
    assert_int_equal(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
    drarun_cluster_close(cluster);
    event_base_free(base);
}

/* What was started goes on within a blocking call, with and without a loop of the caller's. */
static void test_blocking_beside_following(void **state)
{
    (void)state;
    struct event_base *base = event_base_new();
    struct event_base *const bases[] = {NULL, base};
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        struct drarun_cluster *cluster = open_it(bases[i]);
        struct drarun_job job = {cluster, unconst("job"), unconst("home"), unconst("uid")};
        struct ends ends = {0};
        struct drarun_error err = {0};
        struct drarun_following *beside = wait_for(cluster, 10, &ends);
        assert_int_equal(drarun_job_wait(&job, 60, NULL, &err), -ETIMEDOUT);
        assert_int_equal(ends.count, 1);
        drarun_cluster_interrupt(cluster); /* for the next one */
        assert_int_equal(drarun_job_wait(&job, 60000, NULL, &err), -ECANCELED);
        drarun_following_free(beside);
        drarun_cluster_close(cluster);
    }
    event_base_free(base);
}

/* What a child frees is its parent's still. */
static void test_following_in_a_child(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    struct ends ends = {0};
    struct drarun_error err = {0};
    struct drarun_following *following = wait_for(cluster, 300, &ends);
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int rc = drarun_cluster_dispatch(cluster, &err);
        drarun_following_free(following);
        drarun_cluster_close(cluster);
        _exit(rc == -EINVAL && err.kind == DRARUN_ERR_USAGE && ends.count == 0 ? 7 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
    poll_until(cluster, &ends, 1);
    assert_int_equal(ends.last.code, ETIMEDOUT);
    drarun_following_free(following);
    drarun_cluster_close(cluster);
}

static void test_what_cannot_be_started(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    struct drarun_job job = {cluster, unconst("job"), unconst("home"), unconst("uid")};
    struct drarun_follow_options options = drarun_follow_options_init();
    struct drarun_following *following = NULL;
    struct drarun_error err = {0};
    options.cancel = 1;
    assert_int_equal(drarun_job_follow_start(&job, &options, on_ended, NULL, &following, &err),
                     -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_null(following);
    drarun_cluster_close(cluster);
}

/* Of a job that is known by its name alone, it is asked first what there is: the time goes on, and
 * an interrupt comes through. */
static void test_asking_first(void **state)
{
    (void)state;
    struct drarun_cluster *cluster = open_it(NULL);
    struct drarun_job job = {cluster, unconst("job"), unconst("home"), NULL};
    struct drarun_following *first = NULL, *second = NULL, *freed = NULL;
    struct ends ends = {0};
    struct drarun_error err = {0};
    int64_t begin = clock_ms();
    assert_int_equal(drarun_job_wait(&job, 20, NULL, &err), -ETIMEDOUT);
    assert_int_equal(err.kind, DRARUN_ERR_TIMEOUT);
    assert_true(clock_ms() - begin < KUBE_CALL_MS / 2);
    assert_int_equal(drarun_job_wait_start(&job, 20, on_ended, &ends, &first, &err), 0);
    assert_int_equal(drarun_job_wait_start(&job, 0, on_ended, &ends, &second, &err), 0);
    assert_int_equal(drarun_job_wait_start(&job, 20, on_ended, &ends, &freed, &err), 0);
    drarun_following_free(freed);
    poll_until(cluster, &ends, 1);
    assert_int_equal(ends.last.code, ETIMEDOUT);
    ends.to_free = second; /* itself, while it ends */
    drarun_cluster_interrupt(cluster);
    poll_until(cluster, &ends, 2);
    assert_int_equal(ends.last.code, ECANCELED);
    drarun_cluster_interrupt(cluster); /* for the next one */
    assert_int_equal(drarun_job_wait(&job, 60000, NULL, &err), -ECANCELED);
    assert_int_equal(err.kind, DRARUN_ERR_INTERRUPTED);
    drarun_following_free(first);
    drarun_cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_no_such_context),
        cmocka_unit_test(test_callers_loop),
        cmocka_unit_test(test_one_call_at_a_time),
        cmocka_unit_test(test_in_a_child),
        cmocka_unit_test(test_several_are_followed_by_poll),
        cmocka_unit_test(test_followed_on_the_callers_loop),
        cmocka_unit_test(test_blocking_beside_following),
        cmocka_unit_test(test_asking_first),
        cmocka_unit_test(test_following_in_a_child),
        cmocka_unit_test(test_what_cannot_be_started),
    };
    return cmocka_run_group_tests(tests, make_config, remove_config);
}
