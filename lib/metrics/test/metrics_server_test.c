/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/metrics/metrics_server.h"
#include "lib/base/clock.h"
#include "lib/base/test/skip.h"

#define ASK "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
#define PATIENCE_MS 30000

struct fixture {
    struct event_base *base;
    struct metrics_server *server;
    struct sockaddr_in address;
    bool none;
};

static void on_text(void *arg, struct buf *out)
{
    if (!((struct fixture *)arg)->none)
        buf_add_str(out, "answer 42\n");
}

/* A port of the loopback that is free now: another program may take it before the server does. */
static int find_port(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int any = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int rc = bind(any, (struct sockaddr *)address, length);
    if (rc == 0)
        rc = getsockname(any, (struct sockaddr *)address, &length);
    close(any);
    return rc;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct drarun_error err = {0};
    int rc = -EADDRINUSE;
    f->base = event_base_new();
    *state = f;
    for (int tries = 0; rc == -EADDRINUSE && tries < 20; tries++)
        rc = find_port(&f->address) < 0 ? -1
                                        : metrics_server_new(f->base, ntohs(f->address.sin_port),
                                                             on_text, f, &f->server, &err);
    return rc;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    metrics_server_free(f->server);
    event_base_loop(f->base, EVLOOP_NONBLOCK);
    event_base_free(f->base);
    free(f);
    return 0;
}

static int dial(struct fixture *f, const char *text)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&f->address, sizeof f->address), 0);
    assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* All that comes until the server closes; then closes too. */
static void receive(struct fixture *f, int fd, char *text, size_t size)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    size_t used = 0;
    for (;;) {
        ssize_t n = recv(fd, text + used, size - used - 1, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        used += n > 0 ? (size_t)n : 0;
        if (clock_ms() > end)
            fail_msg("no end of the answer within %d ms", PATIENCE_MS);
        struct timeval tick = timeval_from_ms(10);
        event_base_loopexit(f->base, &tick);
        event_base_loop(f->base, EVLOOP_ONCE);
    }
    text[used] = '\0';
    close(fd);
}

static void test_answers(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *request, *head, *body;
        bool none;
    } cases[] = {
        {ASK, "HTTP/1.1 200 OK", "\r\n\r\nanswer 42\n", false},
        {ASK, "HTTP/1.1 503", "", true},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404", "", false},
        {"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 501", "", false},
        {"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 ", "",
         false},
        {"nothing of HTTP\r\n\r\n", "", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[4096];
        f->none = cases[i].none;
        receive(f, dial(f, cases[i].request), text, sizeof text);
        if (strncmp(text, cases[i].head, strlen(cases[i].head)) != 0 ||
            !strstr(text, cases[i].body))
            fail_msg("%s: %s", cases[i].request, text);
        assert_true(i == 0 || !strstr(text, "answer"));
    }
}

static void test_a_head_without_end(void **state)
{
    struct fixture *f = *state;
    char text[4096], line[1024];
    memset(line, 'a', sizeof line);
    int fd = dial(f, "GET /metrics HTTP/1.1\r\nX-Long: ");
    for (int i = 0; i < 32; i++) /* the server may have closed by then */
        (void)!send(fd, line, sizeof line, MSG_NOSIGNAL);
    receive(f, fd, text, sizeof text);
    assert_null(strstr(text, "200 OK"));
}

static size_t count_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void turn(struct fixture *f, int64_t ms)
{
    int64_t end = clock_ms() + ms;
    while (clock_ms() < end) {
        struct timeval tick = timeval_from_ms(10);
        event_base_loopexit(f->base, &tick);
        event_base_loop(f->base, EVLOOP_ONCE);
    }
}

static void turn_until(struct fixture *f, size_t fds)
{
    for (int64_t end = clock_ms() + PATIENCE_MS; count_fds() != fds && clock_ms() < end;)
        turn(f, 10);
    turn(f, 300); /* and no longer */
    assert_int_equal(count_fds(), fds);
}

/* Those who come when all places are taken wait until one has gone, which all do in time. */
static void test_crowd(void **state)
{
    struct fixture *f = *state;
    int crowd[4 * METRICS_GUESTS];
    char text[4096];
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        crowd[i] = dial(f, "GET /metr");
    size_t before = count_fds();
    turn_until(f, before + METRICS_GUESTS);
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        close(crowd[i]);
    receive(f, dial(f, ASK), text, sizeof text);
    assert_non_null(strstr(text, "answer 42"));
    int64_t begin = clock_ms(); /* one that says nothing is sent away */
    receive(f, dial(f, "GET /metr"), text, sizeof text);
    assert_string_equal(text, "");
    assert_true(clock_ms() - begin >= METRICS_STAY_S * 1000 - 100);
    turn_until(f, before - ARRAY_LEN(crowd));
}

static void test_taken_port(void **state)
{
    struct fixture *f = *state;
    struct metrics_server *other = NULL;
    struct drarun_error err = {0};
    int rc = metrics_server_new(f->base, ntohs(f->address.sin_port), on_text, f, &other, &err);
    assert_int_equal(rc, -EADDRINUSE);
    assert_non_null(strstr(err.text, "Address already in use"));
    assert_null(other);
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

/* In a network of its own. */
static int make_six_only(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (unshare(CLONE_NEWNET) < 0 || write_text("/proc/sys/net/ipv6/bindv6only", "1") < 0)
        return -1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = ioctl(fd, SIOCSIFFLAGS, &lo);
    close(fd);
    return rc;
}

/* Prometheus may scrape an address of IPv4. The last test: this process is in that network now. */
static void test_sockets_of_ipv6_alone(void **state)
{
    char text[4096];
    if (make_six_only() < 0)
        skip_for("needs root, with a network namespace of its own");
    assert_int_equal(set_up(state), 0);
    receive(*state, dial(*state, ASK), text, sizeof text);
    assert_non_null(strstr(text, "answer 42"));
    tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_head_without_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_crowd, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_taken_port, set_up, tear_down),
        cmocka_unit_test(test_sockets_of_ipv6_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
