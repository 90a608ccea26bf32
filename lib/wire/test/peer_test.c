/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/skip.h"
#include "lib/wire/dial.h"
#include "lib/wire/peer.h"
#include "lib/wire/test/no_netlink.h"

#define STRANGER 65534
#define NOBODYS 254 /* a protocol that no kernel has sockets of (RFC 3692) */

/* With it each question to sock_diag is about such a protocol: what the kernel answers then is what
 * one without tcp_diag answers about TCP. */
static bool without_tcp_diag;

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t to_size)
{
    char copy[sizeof(struct nlmsghdr) + sizeof(struct inet_diag_req_v2)];
    if (without_tcp_diag && size == sizeof copy) {
        memcpy(copy, data, size);
        ((struct inet_diag_req_v2 *)NLMSG_DATA(copy))->sdiag_protocol = NOBODYS;
        data = copy;
    }
    return syscall(SYS_sendto, fd, data, size, flags, to, to_size);
}

/* A connection that a child made as that user; the child waits until it is killed. */
struct visit {
    int listener, fd;
    pid_t child;
};

static struct visit visit_at(const char *listener, const char *address, uid_t uid)
{
    struct visit v;
    uint16_t port;
    struct drarun_error err = {0};
    if (listen_on(listener, &v.listener, &port, &err) < 0)
        skip_for("no IPv6 on this machine");
    v.child = fork();
    if (v.child == 0) {
        char to[64];
        int fd = -1;
        snprintf(to, sizeof to, "%s:%u", address, port);
        if (setuid(uid) < 0 || dial_start(to, &fd, &err) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    for (v.fd = -1; v.fd < 0; usleep(1000)) {
        assert_int_equal(waitpid(v.child, NULL, WNOHANG), 0);
        v.fd = accept(v.listener, NULL, NULL);
    }
    return v;
}

static struct visit visit_by(uid_t uid)
{
    return visit_at("127.0.0.1:0", "127.0.0.1", uid);
}

static void visit_leave(struct visit *v)
{
    kill(v->child, SIGKILL);
    assert_int_equal(waitpid(v->child, NULL, 0), v->child);
}

static void visit_end(struct visit *v)
{
    close(v->fd);
    close(v->listener);
}

static void assert_visitors_are_known(void)
{
    const uid_t users[] = {geteuid(), STRANGER};
    for (size_t i = 0; i < (geteuid() == 0 ? 2 : 1); i++) {
        uid_t uid = 1;
        struct visit v = visit_by(users[i]);
        assert_int_equal(peer_uid(v.fd, &uid), 0);
        assert_int_equal(uid, users[i]);
        visit_leave(&v);
        assert_int_equal(peer_uid(v.fd, &uid), -ESRCH);
        visit_end(&v);
    }
}

static void users_are_told(void **state)
{
    (void)state;
    assert_visitors_are_known();
}

static void users_are_told_quickly(void **state)
{
    const uid_t user = geteuid() == 0 ? STRANGER : geteuid();
    uid_t uid = 1;
    (void)state;
    struct visit v = visit_by(user);
    assert_int_equal(peer_uid_quickly(v.fd, &uid), 0);
    assert_int_equal(uid, user);
    visit_leave(&v);
    assert_int_equal(peer_uid_quickly(v.fd, &uid), -ESRCH);
    visit_end(&v);
}

static void users_are_told_of_ipv6(void **state)
{
    static const char *const ways[][2] = {{"[::1]:0", "[::1]"}, {"[::]:0", "127.0.0.1"}};
    const uid_t user = geteuid() == 0 ? STRANGER : geteuid();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        uid_t uid = 1;
        struct visit v = visit_at(ways[i][0], ways[i][1], user);
        assert_int_equal(peer_uid(v.fd, &uid), 0);
        assert_int_equal(uid, user);
        visit_leave(&v);
        assert_int_equal(peer_uid(v.fd, &uid), -ESRCH);
        visit_end(&v);
    }
}

static void users_are_told_without_tcp_diag(void **state)
{
    int status = 0;
    (void)state;
    /* in a process of its own, since what the kernel lacks is remembered */
    pid_t child = fork();
    if (child == 0) {
        without_tcp_diag = true;
        assert_visitors_are_known();
        uid_t uid = 1;
        struct visit v = visit_by(geteuid());
        int quickly = peer_uid_quickly(v.fd, &uid);
        visit_leave(&v);
        visit_end(&v);
        _exit(quickly == -EPROTONOSUPPORT ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The last test: its filter stays. */
static void users_are_told_without_netlink(void **state)
{
    (void)state;
    assert_int_equal(forbid_netlink(), 0);
    assert_int_equal(socket(AF_NETLINK, SOCK_RAW, 0), -1);
    assert_visitors_are_known();
    struct visit v = visit_by(geteuid());
    uid_t uid = 1;
    assert_int_equal(peer_uid_quickly(v.fd, &uid), -EAFNOSUPPORT);
    visit_leave(&v);
    visit_end(&v);
}

static void what_is_no_connection(void **state)
{
    int pair[2];
    uid_t uid;
    uint16_t port;
    struct drarun_error err = {0};
    cleanup_close int listener = -1;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(peer_uid(pair[0], &uid), -EAFNOSUPPORT);
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(listen_on("127.0.0.1:0", &listener, &port, &err), 0);
    assert_int_equal(peer_uid(listener, &uid), -ESRCH);
    assert_int_equal(peer_uid(-1, &uid), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_told),
        cmocka_unit_test(users_are_told_quickly),
        cmocka_unit_test(users_are_told_of_ipv6),
        cmocka_unit_test(what_is_no_connection),
        cmocka_unit_test(users_are_told_without_tcp_diag),
        cmocka_unit_test(users_are_told_without_netlink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
