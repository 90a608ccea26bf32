/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a tunnel's port, and how much of it, while the API server answers nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cluster/alloc/tunnel.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "lib/kube/config.h"
#include "lib/wire/dial.h"

#define NOBODY 65534
#define PATIENCE_MS 60000
#define CALLERS (TUNNEL_PASSAGES_MAX + 20)

struct fixture {
    struct cluster cluster;
    struct tunnel *tunnel;
    int api; /* listens and accepts nobody */
    char address[32];
    int callers[CALLERS];
};

static int open_client(struct fixture *f, struct drarun_error *err)
{
    char path[] = "/tmp/tunnel-XXXXXX", text[512];
    uint16_t port = 0;
    if (listen_on("127.0.0.1:0", &f->api, &port, err) < 0)
        return -1;
    int n = snprintf(text, sizeof text,
                     "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                     "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                     "users: [{name: u, user: {}}]\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}]\n",
                     port);
    cleanup_close int fd = mkostemp(path, O_CLOEXEC);
    const struct kube_config_choice choice = {.path = path};
    bool written = fd >= 0 && write(fd, text, (size_t)n) == n;
    int rc = written ? kube_config_load(&choice, &f->cluster.config, err) : -1;
    unlink(path);
    return rc < 0 ? rc
                  : kube_client_new(f->cluster.base, f->cluster.config, &f->cluster.client, err);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct drarun_error err = {0};
    uint16_t port = 0;
    for (size_t i = 0; i < CALLERS; i++)
        f->callers[i] = -1;
    f->cluster.base = event_base_new();
    if (open_client(f, &err) < 0 ||
        tunnel_new(&f->cluster, "default", "train-w-0", 7173, &f->tunnel, &port, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    snprintf(f->address, sizeof f->address, "127.0.0.1:%u", port);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tunnel_free(f->tunnel);
    kube_client_free(f->cluster.client);
    kube_config_free(f->cluster.config);
    event_base_free(f->cluster.base);
    close_fd(&f->api);
    for (size_t i = 0; i < CALLERS; i++)
        close_fd(&f->callers[i]);
    free(f);
    return 0;
}

static void run_for(struct fixture *f, int64_t ms)
{
    for (int64_t end = clock_ms() + ms; clock_ms() < end; usleep(1000))
        event_base_loop(f->cluster.base, EVLOOP_NONBLOCK);
}

static bool api_was_called(const struct fixture *f)
{
    struct pollfd queue = {.fd = f->api, .events = POLLIN};
    return poll(&queue, 1, 0) == 1;
}

static void run_until_called(struct fixture *f)
{
    for (int64_t end = clock_ms() + PATIENCE_MS; !api_was_called(f) && clock_ms() < end;)
        run_for(f, 10);
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void our_own_connection(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(dial_start(f->address, &f->callers[0], NULL), 0);
    run_until_called(f);
    assert_true(api_was_called(f));
    run_for(f, 200); /* it stays open */
    assert_false(is_closed(f->callers[0]));
}

static void connection_of_another_user(void **state)
{
    struct fixture *f = *state;
    int status = 0;
    if (geteuid() != 0)
        skip_for("needs root"); /* nobody else can be another user, too */
    pid_t child = fork();
    if (child == 0) {
        struct pollfd end = {.events = POLLIN};
        if (setuid(NOBODY) < 0 || dial_start(f->address, &end.fd, NULL) < 0)
            _exit(2);
        _exit(poll(&end, 1, PATIENCE_MS) == 1 && is_closed(end.fd) ? 0 : 1);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
        run_for(f, 10);
    assert_int_equal(status, 0);
    assert_false(api_was_called(f));
}

static size_t count_closed(const struct fixture *f)
{
    size_t closed = 0;
    for (size_t i = 0; i < CALLERS; i++)
        closed += is_closed(f->callers[i]);
    return closed;
}

static void too_many_connections(void **state)
{
    struct fixture *f = *state;
    const size_t too_many = CALLERS - TUNNEL_PASSAGES_MAX;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(dial_start(f->address, &f->callers[i], NULL), 0);
    for (int64_t end = clock_ms() + PATIENCE_MS; count_closed(f) < too_many && clock_ms() < end;)
        run_for(f, 10);
    run_for(f, 200); /* and no more */
    assert_int_equal(count_closed(f), too_many);
}

/* What comes before the way is open stays in the kernel. */
static void much_at_once(void **state)
{
    static char piece[65536];
    struct fixture *f = *state;
    size_t sent = 0;
    ssize_t n = 0;
    assert_int_equal(dial_start(f->address, &f->callers[0], NULL), 0);
    run_for(f, 20);
    for (int i = 0; i < 4000 && sent < 64u << 20; i++) {
        n = send(f->callers[0], piece, sizeof piece, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        event_base_loop(f->cluster.base, EVLOOP_NONBLOCK);
    }
    assert_true(n < 0);
    assert_true(sent < 32u << 20);
    assert_false(is_closed(f->callers[0]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(our_own_connection),
        TEST(connection_of_another_user),
        TEST(too_many_connections),
        TEST(much_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
