/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a name is another driver's, by the sockets on the node and by slices. The test is the API
 * server, and answers at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/kube/discover.h"
#include "lib/kube/list.h"
#include "plugin/takeover.h"

static struct {
    struct event_base *base;
    const char *served;        /* version; NULL: none */
    const char *slices[3];     /* names of those that are there */
    unsigned failures, forgot; /* failures: of the list, before it succeeds */
    unsigned lists;
    int64_t waited_ms;
    char fields[128], version[16];
} api;

int __wrap_kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                         struct kube_discovery **ret_discovery, struct drarun_error *err);
int __wrap_kube_discover(struct kube_client *client, kube_discover_fn fn, void *arg,
                         struct kube_discovery **ret_discovery, struct drarun_error *err)
{
    (void)client, (void)err;
    *ret_discovery = NULL;
    fn((const struct kube_served *)&api, NULL, arg);
    return 0;
}

void __wrap_kube_discover_forget(struct kube_client *client);
void __wrap_kube_discover_forget(struct kube_client *client)
{
    (void)client;
    api.forgot++;
    api.served = "v1beta1 and more"; /* by the next try */
}

const char *__wrap_kube_serves_one_of(const struct kube_served *served, const char *group,
                                      const char *versions, const char *plural, size_t *ret_length);
const char *__wrap_kube_serves_one_of(const struct kube_served *served, const char *group,
                                      const char *versions, const char *plural, size_t *ret_length)
{
    (void)served;
    assert_string_equal(group, "resource.k8s.io");
    assert_string_equal(versions, "v1 v1beta2 v1beta1");
    assert_string_equal(plural, "resourceslices");
    *ret_length = api.served ? strcspn(api.served, " ") : 0;
    return api.served;
}

int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err);
int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *body = json_pack("{s:[]}", "items");
    const struct kube_answer answer = {.status = 200, .body = body};
    struct drarun_error failure = {0};
    (void)client, (void)err;
    snprintf(api.fields, sizeof api.fields, "%s", select->fields);
    snprintf(api.version, sizeof api.version, "%s", target->resource->version);
    *ret_listing = NULL;
    for (size_t i = 0; i < ARRAY_LEN(api.slices) && api.slices[i]; i++)
        json_array_append_new(json_object_get(body, "items"),
                              json_pack("{s:{s:s}}", "metadata", "name", api.slices[i]));
    if (api.lists++ < api.failures) {
        error_set(&failure, EIO, "no etcd");
        fn(NULL, &failure, arg);
    } else {
        fn(&answer, NULL, arg);
    }
    return 0;
}

/* Time passes at once. */
int __real_event_add(struct event *timer, const struct timeval *after);
int __wrap_event_add(struct event *timer, const struct timeval *after);
int __wrap_event_add(struct event *timer, const struct timeval *after)
{
    const struct timeval now = {0};
    api.waited_ms += after->tv_sec * 1000 + after->tv_usec / 1000;
    return __real_event_add(timer, &now);
}

static int check_driver(const char *registry, struct drarun_error *err)
{
    const struct takeover takeover = {.driver = "gpu.test", .node = "n", .registry_dir = registry};
    memset(err, 0, sizeof *err);
    api.lists = api.forgot = 0;
    api.waited_ms = 0;
    return takeover_check(api.base, NULL, &takeover, err);
}

static int set_up(void **state)
{
    (void)state;
    memset(&api, 0, sizeof api);
    api.base = event_base_new();
    api.served = "v1 v1beta2 v1beta1";
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    event_base_free(api.base);
    return 0;
}

static void names_are_subdomains(void **state)
{
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        {"gpu.nvidia.com", true},
        {"a", true},
        {"0", true},
        {"a-b.c", true},
        {"", false},
        {"-a", false},
        {"a-", false},
        {".a", false},
        {"a.", false},
        {"a..b", false},
        {"a.-b", false},
        {"a-.b", false},
        {"A", false},
        {"a_b", false},
        {"a/b", false},
        {"a--b", true},
    };
    char name[65];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (takeover_name_valid(rows[i].name) != rows[i].valid)
            fail_msg("%s", rows[i].name);
    memset(name, 'a', 64);
    name[64] = '\0';
    assert_false(takeover_name_valid(name));
    name[63] = '\0';
    assert_true(takeover_name_valid(name));
}

static void slices_of_another_driver(void **state)
{
    static const struct {
        const char *slices[3];
        const char *other; /* NULL: all are this plugin's */
    } rows[] = {
        {{NULL}, NULL},
        {{"n-gpu.test-0", "n-gpu.test-99"}, NULL},
        {{"n-gpu.test-0", "n-gpu.test-100"}, "n-gpu.test-100"}, /* more than a node has */
        {{"n-gpu.test-abcde", "other"}, "n-gpu.test-abcde"},
    };
    struct drarun_error err;
    char expected[400];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        memcpy(api.slices, rows[i].slices, sizeof api.slices);
        assert_int_equal(check_driver("/nonexistent", &err), rows[i].other ? -EBUSY : 0);
        assert_string_equal(api.fields, "spec.nodeName=n,spec.driver=gpu.test");
        assert_string_equal(api.version, "v1");
        if (!rows[i].other)
            continue;
        snprintf(expected, sizeof expected,
                 "driver gpu.test is present on node n: slice %s is not this plugin's; remove that "
                 "driver first (the kubelet deletes its slices half a minute later), or run "
                 "without --takeover",
                 rows[i].other);
        assert_string_equal(err.text, expected);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    }
}

/* Until the server has answered. */
static void server_is_asked_again(void **state)
{
    struct drarun_error err;
    (void)state;
    api.failures = 2;
    assert_int_equal(check_driver("/nonexistent", &err), 0);
    assert_int_equal(api.lists, 3);
    assert_int_equal(api.waited_ms, 4000);
    assert_int_equal(api.forgot, 0);
    api.failures = 0;
    api.served = NULL;
    assert_int_equal(check_driver("/nonexistent", &err), 0);
    assert_int_equal(api.forgot, 1);
    assert_int_equal(api.waited_ms, 2000);
    assert_string_equal(api.version, "v1beta1");
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* A process of another name listens there. */
static pid_t other_listens_on(const char *path)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "other");
        listen_on(path);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void sockets_of_another_driver(void **state)
{
    static const struct {
        const char *name;
        bool busy;
    } rows[] = {{"gpu.test-reg.sock", true},   {"gpu.test-u1-reg.sock", true},
                {"gpu.test.reg.sock", false},  {"gpu.test2-reg.sock", false},
                {"gpu.test-reg.sock2", false}, {"a-gpu.test-reg.sock", false},
                {"gpu.tes-reg.sock", false}};
    char dir[] = "/tmp/takeover_test.XXXXXX", path[128], expected[400];
    struct drarun_error err;
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, rows[i].name);
        pid_t pid = other_listens_on(path);
        if (check_driver(dir, &err) != (rows[i].busy ? -EBUSY : 0))
            fail_msg("%s: %s", rows[i].name, err.text);
        if (rows[i].busy) {
            snprintf(expected, sizeof expected,
                     "driver gpu.test is present on node n: somebody listens on %s; remove that "
                     "driver first, or run without --takeover",
                     path);
            assert_string_equal(err.text, expected);
            assert_int_equal(err.kind, DRARUN_ERR_USAGE);
            assert_int_equal(api.lists, 0);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(check_driver(dir, &err), 0); /* nobody listens any more */
        assert_int_equal(unlink(path), 0);
    }
    snprintf(path, sizeof path, "%s/gpu.test-reg.sock", dir);
    cleanup_close int own = listen_on(path); /* of an instance of this program */
    assert_int_equal(check_driver(dir, &err), 0);
    assert_int_equal(check_driver(path, &err), -ENOTDIR);
    snprintf(expected, sizeof expected, "%s: Not a directory", path);
    assert_string_equal(err.text, expected);
    tree_remove(AT_FDCWD, dir);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_are_subdomains),
        CASE(slices_of_another_driver),
        CASE(server_is_asked_again),
        CASE(sockets_of_another_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
