/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to a command's socket before the API server has opened it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/kube/config.h"
#include "lib/kube/socket.h"

/* A server that accepts nobody. */
static int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static int load(uint16_t port, struct kube_config **ret_config, struct drarun_error *err)
{
    char path[] = "/tmp/socket-XXXXXX", text[512];
    int n = snprintf(text, sizeof text,
                     "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                     "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                     "users: [{name: u, user: {}}]\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}]\n",
                     port);
    cleanup_close int fd = mkostemp(path, O_CLOEXEC);
    const struct kube_config_choice choice = {.path = path};
    assert_true(fd >= 0 && write(fd, text, (size_t)n) == n);
    int rc = kube_config_load(&choice, ret_config, err);
    unlink(path);
    return rc;
}

static void never(void *arg)
{
    (void)arg;
    fail();
}

static void no_data(unsigned channel, const char *bytes, size_t length, void *arg)
{
    (void)channel, (void)bytes, (void)length, (void)arg;
    fail();
}

static void no_end(const struct drarun_error *err, void *arg)
{
    (void)err, (void)arg;
    fail();
}

/* As a terminal whose size changes while `drarun exec -t` connects. */
static void size_of_a_terminal_before_it_is_open(void **state)
{
    static const struct kube_socket_events events = {
        .opened = never, .data = no_data, .ended = no_end};
    static const char size[] = "{\"Width\":80,\"Height\":24}";
    struct drarun_error err = {0};
    struct kube_config *config = NULL;
    struct kube_client *client = NULL;
    struct kube_socket *socket = NULL;
    struct strlist command = STRLIST_INIT;
    struct event_base *base = event_base_new();
    uint16_t port = 0;
    cleanup_close int api = listen_anywhere(&port);
    (void)state;
    strlist_add(&command, "sh");
    const struct kube_exec exec = {
        .namespace_ = "default", .pod = "w-0", .container = "c", .command = &command, .tty = true};
    assert_int_equal(load(port, &config, &err), 0);
    assert_int_equal(kube_client_new(base, config, &client, &err), 0);
    assert_int_equal(kube_exec_open(client, &exec, &events, NULL, &socket, &err), 0);
    assert_int_equal(kube_socket_send(socket, KUBE_CHANNEL_RESIZE, size, sizeof size - 1),
                     -ENOTCONN);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(kube_socket_send(socket, KUBE_CHANNEL_RESIZE, size, sizeof size - 1),
                     -ENOTCONN);
    kube_socket_free(socket);
    kube_client_free(client);
    kube_config_free(config);
    strlist_done(&command);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_of_a_terminal_before_it_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
