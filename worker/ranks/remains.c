/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/remains.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/proctree.h"

bool remains_any(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

static void enter(struct remains *remains, enum remains_state state, int64_t now_us)
{
    remains->state = state;
    remains->since_us = now_us;
}

static int64_t kill_all(struct remains *remains, int64_t now_us)
{
    if (remains->state != REMAINS_KILLED)
        enter(remains, REMAINS_KILLED, now_us);
    proctree_signal(getpid(), SIGKILL, NULL, NULL);
    remains->again_us = now_us + REMAINS_REPEAT_MS * 1000;
    return remains->again_us;
}

static int64_t give_up(struct remains *remains, int64_t now_us)
{
    log_error("a process that the job left behind survived SIGKILL for %d s",
              REMAINS_STUCK_MS / 1000);
    enter(remains, REMAINS_GONE, now_us);
    return 0;
}

int64_t remains_step(struct remains *remains, int64_t kill_us, int64_t now_us,
                     bool (*skip)(pid_t pid, void *arg), void *arg)
{
    if (remains->state == REMAINS_GONE)
        return 0;
    if (!remains_any()) {
        enter(remains, REMAINS_GONE, now_us);
        return 0;
    }
    if (remains->state == REMAINS_KILLED) {
        if (now_us >= remains->since_us + REMAINS_STUCK_MS * 1000)
            return give_up(remains, now_us);
        return now_us >= remains->again_us ? kill_all(remains, now_us) : remains->again_us;
    }
    if (now_us >= kill_us)
        return kill_all(remains, now_us);
    if (remains->state == REMAINS_UNSEEN) {
        enter(remains, REMAINS_ASKED, now_us);
        proctree_signal(getpid(), SIGTERM, skip, arg);
        proctree_signal(getpid(), SIGCONT, NULL, NULL); /* a stopped process acts on no SIGTERM */
    }
    return kill_us;
}
