/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <event2/event.h>

#include "launcher/cluster/public.h"
#include "lib/base/cleanup.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),         cmocka_unit_test(test_no_such_context),
        cmocka_unit_test(test_callers_loop), cmocka_unit_test(test_one_call_at_a_time),
        cmocka_unit_test(test_in_a_child),
    };
    return cmocka_run_group_tests(tests, make_config, remove_config);
}
