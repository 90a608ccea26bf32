/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/modes/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/proctree.h"
#include "lib/base/shm_clean.h"
#include "worker/host/session.h"

/* Shared with the child, so that its last word is known after it was killed. */
struct guard_page {
    char session_dir[256];
};

struct guard {
    struct guard_page *page;
    sigset_t signals; /* that it waits for; blocked between agents too, so that none is lost */
    sigset_t before;
};

struct guard *guard_new(void)
{
    struct guard *guard = calloc(1, sizeof *guard);
    void *page =
        mmap(NULL, sizeof *guard->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!guard || page == MAP_FAILED) {
        free(guard);
        return NULL;
    }
    guard->page = page;
    sigemptyset(&guard->signals);
    sigaddset(&guard->signals, SIGTERM);
    sigaddset(&guard->signals, SIGINT);
    sigaddset(&guard->signals, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would not say that the agent has ended */
    sigprocmask(SIG_BLOCK, &guard->signals, &guard->before);
    return guard;
}

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    sigprocmask(SIG_SETMASK, &guard->before, NULL);
    munmap(guard->page, sizeof *guard->page);
    free(guard);
}

void guard_note_session(const char *dir, void *arg)
{
    struct guard *guard = arg;
    snprintf(guard->page->session_dir, sizeof guard->page->session_dir, "%s", dir ? dir : "");
}

/* Kills every descendant and reaps them; they are ours since we adopt orphans. */
static void kill_descendants(void)
{
    for (int round = 0; round < 50; round++) {
        proctree_signal(getpid(), SIGKILL, NULL, NULL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
        struct timespec pause = {.tv_nsec = 10000000}; /* a killed process takes a moment to die */
        nanosleep(&pause, NULL);
    }
}

static void clean_up_after(struct guard *guard, struct shm_clean *shm)
{
    kill_descendants();
    if (guard->page->session_dir[0]) {
        char shm_dir[128];
        shm_clean_dir(guard->page->session_dir, shm_dir, sizeof shm_dir);
        session_remove(shm_dir);
        session_remove(guard->page->session_dir);
    }
    guard->page->session_dir[0] = '\0';
    if (shm)
        shm_clean_run(shm);
}

/* Waits for the child with signals blocked; SIGTERM and SIGINT are passed on. */
static int wait_for(pid_t child, const sigset_t *signals, bool *ret_stop)
{
    int status = 0;
    for (;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == child)
            return status;
        if (pid > 0)
            continue; /* an orphan of a rank */
        int signo = sigwaitinfo(signals, NULL);
        if (signo == SIGTERM || signo == SIGINT) {
            *ret_stop = true;
            kill(child, SIGTERM);
        }
    }
}

int guard_run(struct guard *guard, int (*agent)(struct guard *guard, void *arg), void *arg,
              bool *ret_stop, struct drarun_error *err)
{
    proctree_adopt_orphans();
    struct shm_clean *shm = shm_clean_begin();
    if (!shm && errno == ENOMEM)
        return error_set(err, ENOMEM, "out of memory for the list of /dev/shm");
    pid_t self = getpid();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != self)
            _exit(70);
        signal(SIGINT, SIG_IGN); /* a terminal's goes to all; the guard passes it on as SIGTERM */
        sigset_t mask = guard->before;
        sigaddset(&mask, SIGTERM); /* until the agent can take it */
        sigprocmask(SIG_SETMASK, &mask, NULL);
        _exit(agent(guard, arg));
    }
    if (child < 0) {
        shm_clean_free(shm);
        return error_set(err, errno, "fork: %s", strerror(errno));
    }
    int status = wait_for(child, &guard->signals, ret_stop);
    bool asked = *ret_stop && WTERMSIG(status) == SIGTERM; /* at its very end it takes none */
    if (WIFSIGNALED(status) && !asked)
        log_error("the agent was killed by signal %d: removing what it left", WTERMSIG(status));
    if (WIFSIGNALED(status) || guard->page->session_dir[0]) /* it ended for lack of memory */
        clean_up_after(guard, shm);
    shm_clean_free(shm);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}
