/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "launcher/job/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define STOP_MS 1000 /* the longest that we wait for agents to hear of a stop */
/* Signals so close to each other are one: systemd sends SIGTERM and SIGHUP to what is left of a
 * login, timeout(1) sends its signal to the process and to its group. */
#define TOGETHER_MS 200

/* It is no second wish: the first came just now, or the ranks got SIGTERM and their time from us,
 * since what took a worker or our reader away may come for us as well. */
static bool is_under_way(const struct job *job)
{
    const struct job_interrupt *interrupt = &job->interrupt;
    if (interrupt->asked_ms)
        return clock_ms() - interrupt->asked_ms < TOGETHER_MS;
    return job->state == JOB_ENDING && (interrupt->leaving || interrupt->unread);
}

static void pass_on(struct job *job, int signo)
{
    job->interrupt.signo = signo;
    cause_interrupted(job->cause, signo);
    job_event(job, JOB_INTERRUPT);
}

/* The user wants the job to end: the ranks get the signal and time to end by themselves; a second
 * one is final. */
static void on_end_signal(struct job *job, int signo)
{
    bool under_way = is_under_way(job);
    if (!job->interrupt.asked_ms)
        job->interrupt.asked_ms = clock_ms();
    if (under_way) {
        log_verbose("signal %d: the ranks are ending already; send it again to kill them", signo);
        cause_interrupted(job->cause, signo);
        return;
    }
    if (job->state >= JOB_ENDING) {
        cause_interrupted(job->cause, signo);
        job_event(job, JOB_FINAL);
        return;
    }
    log_verbose("signal %d: passed on to the ranks; send it again to kill them", signo);
    const struct request_pods *pods = job->request->pods;
    job->interrupt.leaving = pods && pods->entry && signo == SIGTERM; /* our own pod goes */
    pass_on(job, signo);
}

void job_on_reader_gone(void *arg)
{
    struct job *job = arg;
    if (job->state >= JOB_ENDING)
        return;
    job->interrupt.unread = true;
    pass_on(job, SIGTERM);
    job_look(job);
}

/* The first process of a container does not stop, and so nobody continues it, and its ranks. */
static void stop_now(struct job *job)
{
    sigset_t pending;
    event_del(job->pause.clock);
    job->pause.undrained = 0;
    console_clear(job->console);
    raise(SIGSTOP);
    if (sigpending(&pending) == 0 && !sigismember(&pending, SIGCONT))
        job_send_signal(job, SIGCONT);
}

void job_on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (job->pause.undrained > 0)
        stop_now(job);
}

static void on_told(void *arg)
{
    struct job *job = arg;
    if (job->pause.undrained > 0 && --job->pause.undrained == 0)
        stop_now(job);
}

/* ^Z. The ranks are in sessions of their own, where SIGTSTP does nothing (POSIX: orphaned process
 * groups), so they get SIGSTOP; and they must have heard of it before we stop ourselves. */
static void on_stop_signal(struct job *job)
{
    job_send_signal(job, SIGSTOP);
    job->pause.undrained = 1; /* ourselves, until all are asked */
    for (uint32_t i = 0; i < job->count; i++) {
        if (!job->agents[i].channel)
            continue;
        job->pause.undrained++;
        channel_on_drained(job->agents[i].channel, on_told, job);
    }
    job_start_clock(job->pause.clock, STOP_MS);
    on_told(job);
}

void job_on_late_signal(void *arg, int signo)
{
    struct job *job = arg;
    if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT)
        job->interrupt.got = signo;
}

static void heed(struct job *job, int signo)
{
    switch (signo) {
    case SIGCHLD:
        agents_reap(job);
        break;
    case SIGTSTP:
        on_stop_signal(job);
        break;
    case SIGCONT:
        job_send_signal(job, SIGCONT);
        if (job->input.source)
            input_look(job->input.source);
        break;
    case SIGUSR1:
    case SIGUSR2:
    case SIGWINCH:
        job_send_signal(job, signo);
        break;
    default:
        on_end_signal(job, signo);
    }
    job_look(job);
}

void job_interrupt(struct job *job, int signo)
{
    heed(job, signo);
}

void job_on_signal(void *arg, int signo)
{
    job_on_late_signal(arg, signo);
    heed(arg, signo);
}
