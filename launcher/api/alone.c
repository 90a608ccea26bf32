/* SPDX-License-Identifier: Apache-2.0 */
/* What libdrarun has in place of the C library's own where its libraries are linked into it, as in
 * the Python package (the linker's --wrap):
 * - functions that are newer than glibc 2.34, with which distributions of 2021 come;
 * - stdin and stderr, since the archives of distributions are position independent but for other
 *   libraries' variables. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTBEGIN: names that the linker makes */
extern FILE *__real_stdin, *__real_stderr;
FILE *__wrap_stdin, *__wrap_stderr;

uint32_t __wrap_arc4random(void);
void __wrap_arc4random_buf(void *bytes, size_t length);
int __wrap_pidfd_open(pid_t pid, unsigned int flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned int flags);

__attribute__((constructor)) static void set_streams(void)
{
    __wrap_stdin = __real_stdin;
    __wrap_stderr = __real_stderr;
}

/* As glibc's: nobody expects an error. */
void __wrap_arc4random_buf(void *bytes, size_t length)
{
    char *at = bytes;
    while (length > 0) {
        ssize_t n = getrandom(at, length, 0);
        if (n < 0 && errno != EINTR)
            abort();
        if (n > 0) {
            at += n;
            length -= (size_t)n;
        }
    }
}

uint32_t __wrap_arc4random(void)
{
    uint32_t number = 0;
    __wrap_arc4random_buf(&number, sizeof number);
    return number;
}

int __wrap_pidfd_open(pid_t pid, unsigned int flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned int flags)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, info, flags);
}
/* NOLINTEND */
