/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/wire/dial.h"
#include "lib/wire/peer.h"

#define STRANGER 65534

/* A connection that a child made as that user; the child waits until it is killed. */
struct visit {
    int listener, fd;
    pid_t child;
};

static struct visit visit_by(uid_t uid)
{
    struct visit v;
    uint16_t port;
    struct drarun_error err = {0};
    assert_int_equal(listen_on("127.0.0.1:0", &v.listener, &port, &err), 0);
    v.child = fork();
    if (v.child == 0) {
        struct sockaddr_in to = {
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = setuid(uid) == 0 ? socket(AF_INET, SOCK_STREAM, 0) : -1;
        if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
            _exit(1);
        pause();
    }
    for (v.fd = -1; v.fd < 0; usleep(1000)) {
        assert_int_equal(waitpid(v.child, NULL, WNOHANG), 0);
        v.fd = accept(v.listener, NULL, NULL);
    }
    return v;
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

/* As in sandboxes: socket(AF_NETLINK) fails. */
static void forbid_netlink(void)
{
    struct sock_filter list[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_LEN(list), .filter = list};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* The last test: its filter stays. */
static void users_are_told_without_netlink(void **state)
{
    (void)state;
    forbid_netlink();
    assert_int_equal(socket(AF_NETLINK, SOCK_RAW, 0), -1);
    assert_visitors_are_known();
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
        cmocka_unit_test(what_is_no_connection),
        cmocka_unit_test(users_are_told_without_netlink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
