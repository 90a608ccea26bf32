/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/socket_hook.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/peer.h"

#define HANDSHAKE_S 2
#define PASS_MS 100 /* longer than the library's loop takes once */

/* Atomic since the library's thread accepts while ours opens the gate. */
static atomic_int armed = -1;
static atomic_int adopted = -1; /* the library's descriptor, which is our listening socket */
static atomic_bool gate_open;
static atomic_int first = -1; /* a connection that was accepted before the library started */
static atomic_bool used, told;

void socket_hook_arm(int listener)
{
    atomic_store(&used, false);
    atomic_store(&armed, listener);
}

static void tell_once(int rc, uid_t uid)
{
    if (rc == -ESRCH || atomic_exchange(&told, true))
        return;
    if (rc < 0)
        log_error("PMIx: the kernel does not say whose a connection is (%s): refused, and so may "
                  "the ranks' be",
                  strerror(-rc));
    else
        log_note("PMIx: refused a connection of user %u: only processes of user %u may connect",
                 (unsigned)uid, (unsigned)geteuid());
}

/* Asked of the kernel before a byte is read: the library believes what a client says. */
static bool is_of_our_user(int fd)
{
    uid_t uid = 0;
    int rc = peer_uid(fd, &uid);
    if (rc == 0 && uid == geteuid())
        return true;
    tell_once(rc, uid);
    return false;
}

static int accept_ours(int listener)
{
    /* within the handshake the library reads without a deadline, on its only thread */
    static const struct timeval patience = {.tv_sec = HANDSHAKE_S};
    int fd = (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -1;
    if (is_of_our_user(fd) &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0)
        return fd;
    close(fd);
    errno = EAGAIN;
    return -1;
}

bool socket_hook_admit(int listener)
{
    for (;;) {
        int fd = accept_ours(listener);
        if (fd >= 0) {
            atomic_store(&first, fd);
            return true;
        }
        struct pollfd more = {.fd = listener, .events = POLLIN};
        if (errno != EAGAIN || poll(&more, 1, 0) != 1)
            return false;
    }
}

bool socket_hook_disarm(void)
{
    atomic_store(&armed, -1);
    return atomic_load(&used);
}

/* The library looks at its listening socket alone: a connection that nobody keeps wakes it, so
 * that it accepts, and gets the one that was accepted before. */
static void wake_library(void)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    int listener = atomic_load(&adopted);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || getsockname(listener, (struct sockaddr *)&address, &size) < 0 ||
        (connect(fd, (struct sockaddr *)&address, size) < 0 && errno != EINPROGRESS))
        log_verbose("PMIx: the library was not woken: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
}

void socket_hook_open_gate(void)
{
    atomic_store(&gate_open, true);
    if (atomic_load(&first) >= 0)
        wake_library();
}

static bool is_loopback(const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    return size >= sizeof *v4 && v4->sin_family == AF_INET &&
           v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

/* These stand in for libc's in this program, linked statically or not: the linker finds them
 * first. */

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    int listener = atomic_load(&armed);
    if (listener < 0 || !is_loopback(address, size))
        return (int)syscall(SYS_bind, fd, address, size);
    atomic_store(&armed, -1);
    atomic_store(&used, true);
    atomic_store(&gate_open, false);
    atomic_store(&adopted, fd);
    return dup3(listener, fd, O_CLOEXEC) < 0 ? -1 : 0;
}

int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict size)
{
    if (fd != atomic_load(&adopted))
        return (int)syscall(SYS_accept4, fd, address, size, SOCK_CLOEXEC);
    if (!atomic_load(&gate_open)) {
        /* the library asks again at once, as the connection still waits: no faster than needed */
        struct timespec pause = {.tv_nsec = 50000};
        nanosleep(&pause, NULL);
        errno = EAGAIN;
        return -1;
    }
    int got = atomic_exchange(&first, -1);
    if (got < 0)
        got = accept_ours(fd);
    if (got >= 0 && address && getpeername(got, address, size) < 0)
        *size = 0; /* gone since: its first read says so */
    return got;
}

/* libpmix reads a handshake with this flag, and begins anew when a deadline has passed: to it the
 * peer has gone. */
ssize_t recv(int fd, void *data, size_t size, int flags)
{
    ssize_t n = syscall(SYS_recvfrom, fd, data, size, flags, NULL, NULL);
    return n < 0 && errno == EAGAIN && (flags & MSG_WAITALL) ? 0 : n;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    ssize_t n = syscall(SYS_sendto, fd, data, size, flags | MSG_NOSIGNAL, NULL, 0);
    return n < 0 && (errno == EPIPE || errno == ECONNRESET) ? (ssize_t)size : n;
}

/* Of a rank, or another client of the library: its address on our side is the listening socket's.
 */
static bool is_client(int fd)
{
    struct sockaddr_in ours, its;
    socklen_t size = sizeof ours, its_size = sizeof its;
    int listener = atomic_load(&adopted);
    return listener >= 0 && getsockname(fd, (struct sockaddr *)&its, &its_size) == 0 &&
           getsockname(listener, (struct sockaddr *)&ours, &size) == 0 &&
           is_loopback((struct sockaddr *)&its, its_size) && its.sin_port == ours.sin_port;
}

/* Whether the library may see this end now. It looks at each connection once a pass: the first that
 * was put off is looked at again in the next, unless the library has closed it for another reason.
 * Called on the library's thread alone. */
static bool is_its_turn(int fd)
{
    static bool one_ended;
    static int put_off = -1;
    static int64_t since_ms;
    if (one_ended && put_off < 0) {
        put_off = fd;
        since_ms = clock_ms();
        return false;
    }
    if (one_ended && put_off != fd && clock_ms() - since_ms < PASS_MS)
        return false;
    one_ended = true;
    put_off = -1;
    return true;
}

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    ssize_t n = __real_read(fd, data, size);
    int error = errno;
    bool ended = n == 0 || (n < 0 && error != EAGAIN && error != EINTR);
    bool put_off = ended && size > 0 && is_client(fd) && !is_its_turn(fd);
    errno = put_off ? EAGAIN : error;
    return put_off ? -1 : n;
}
