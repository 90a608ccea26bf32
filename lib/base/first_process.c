/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/first_process.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

/* A child that has not yet started another program has the handler, and no need of it. */
static void end(int signo)
{
    if (getpid() == 1)
        _exit(128 + signo);
    signal(signo, SIG_DFL);
    raise(signo);
}

void first_process_begin(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end};
    struct sigaction before;
    if (getpid() != 1)
        return;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
}
