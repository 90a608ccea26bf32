// SPDX-License-Identifier: Apache-2.0
// pause: the process that holds a pod's namespaces, and process 1 of a node. It reaps, and leaves
// on a signal.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signo)
{
    (void)signo;
    _exit(0);
}

static void reap(int signo)
{
    (void)signo;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void)
{
    signal(SIGINT, leave);
    signal(SIGTERM, leave);
    signal(SIGCHLD, reap);
    reap(SIGCHLD);
    for (;;)
        pause();
}
