/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/socket_hook.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Atomic since the library's thread accepts while ours opens the gate. */
static atomic_int armed = -1;
static atomic_int gated = -1; /* the library's descriptor while nobody may come in */
static atomic_bool used;

void socket_hook_arm(int listener)
{
    atomic_store(&used, false);
    atomic_store(&armed, listener);
}

bool socket_hook_disarm(void)
{
    atomic_store(&armed, -1);
    return atomic_load(&used);
}

void socket_hook_open_gate(void)
{
    atomic_store(&gated, -1);
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
    atomic_store(&gated, fd);
    return dup3(listener, fd, O_CLOEXEC) < 0 ? -1 : 0;
}

int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict size)
{
    if (fd == atomic_load(&gated)) {
        /* the library asks again at once, as the connection still waits: no faster than needed */
        struct timespec pause = {.tv_nsec = 50000};
        nanosleep(&pause, NULL);
        errno = EAGAIN;
        return -1;
    }
    return (int)syscall(SYS_accept4, fd, address, size, SOCK_CLOEXEC);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    ssize_t n = syscall(SYS_sendto, fd, data, size, flags | MSG_NOSIGNAL, NULL, 0);
    return n < 0 && (errno == EPIPE || errno == ECONNRESET) ? (ssize_t)size : n;
}
