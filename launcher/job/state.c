/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/state.h"

#include <stddef.h>

#include "lib/base/cleanup.h"

static const struct job_step job_steps[] = {
    {JOB_CONNECTING, JOB_GREETED, JOB_CHECKING, JOB_DO_CHECK},
    {JOB_CONNECTING, JOB_CAUSE, JOB_ENDING, JOB_DO_END},
    {JOB_CONNECTING, JOB_INTERRUPT, JOB_ENDING, JOB_DO_CANCEL},
    {JOB_CONNECTING, JOB_GONE, JOB_DRAINING, JOB_DO_DRAIN},

    {JOB_CHECKING, JOB_CHECKED, JOB_PREPARING, JOB_DO_LAUNCH},
    {JOB_CHECKING, JOB_CAUSE, JOB_ENDING, JOB_DO_END},
    {JOB_CHECKING, JOB_INTERRUPT, JOB_ENDING, JOB_DO_CANCEL},
    {JOB_CHECKING, JOB_GONE, JOB_DRAINING, JOB_DO_DRAIN},

    {JOB_PREPARING, JOB_READY, JOB_RUNNING, JOB_DO_START},
    {JOB_PREPARING, JOB_CAUSE, JOB_ENDING, JOB_DO_END},
    {JOB_PREPARING, JOB_INTERRUPT, JOB_ENDING, JOB_DO_CANCEL},
    {JOB_PREPARING, JOB_GONE, JOB_DRAINING, JOB_DO_DRAIN},

    {JOB_RUNNING, JOB_CAUSE, JOB_ENDING, JOB_DO_END},
    {JOB_RUNNING, JOB_INTERRUPT, JOB_ENDING, JOB_DO_FORWARD},
    {JOB_RUNNING, JOB_GONE, JOB_DRAINING, JOB_DO_DRAIN},

    /* late news change nothing */
    {JOB_ENDING, JOB_GREETED, JOB_ENDING, JOB_DO_NOTHING},
    {JOB_ENDING, JOB_READY, JOB_ENDING, JOB_DO_NOTHING},
    {JOB_ENDING, JOB_GRACE_OVER, JOB_ENDING, JOB_DO_END},
    {JOB_ENDING, JOB_FINAL, JOB_ENDING, JOB_DO_END_NOW},
    {JOB_ENDING, JOB_OVERDUE, JOB_ENDING, JOB_DO_DROP},
    {JOB_ENDING, JOB_GONE, JOB_DRAINING, JOB_DO_DRAIN},

    {JOB_DRAINING, JOB_CAUSE, JOB_DRAINING, JOB_DO_NOTHING},
    {JOB_DRAINING, JOB_FINAL, JOB_ENDED, JOB_DO_LEAVE},
    {JOB_DRAINING, JOB_OVERDUE, JOB_ENDED, JOB_DO_LEAVE},
    {JOB_DRAINING, JOB_DRAINED, JOB_ENDED, JOB_DO_LEAVE},
};

const struct job_step *job_step_find(enum job_state state, enum job_event event)
{
    for (size_t i = 0; i < ARRAY_LEN(job_steps); i++)
        if (job_steps[i].state == state && job_steps[i].event == event)
            return &job_steps[i];
    return NULL;
}

static const struct agent_step agent_steps[] = {
    {AGENT_CONNECTING, AGENT_CONNECTED, AGENT_GREETING},
    {AGENT_CONNECTING, AGENT_CLOSED, AGENT_LOST},

    {AGENT_GREETING, AGENT_HELLO, AGENT_GREETED},
    {AGENT_GREETING, AGENT_TELL, AGENT_GREETING},
    {AGENT_GREETING, AGENT_ENDED, AGENT_DONE},
    {AGENT_GREETING, AGENT_CLOSED, AGENT_LOST},

    {AGENT_GREETED, AGENT_TELL, AGENT_GREETED},
    {AGENT_GREETED, AGENT_READY, AGENT_PREPARED},
    {AGENT_GREETED, AGENT_ENDED, AGENT_DONE},
    {AGENT_GREETED, AGENT_CLOSED, AGENT_LOST},

    {AGENT_PREPARED, AGENT_TELL, AGENT_PREPARED},
    {AGENT_PREPARED, AGENT_WORK, AGENT_PREPARED},
    {AGENT_PREPARED, AGENT_ENDED, AGENT_DONE},
    {AGENT_PREPARED, AGENT_CLOSED, AGENT_LOST},

    {AGENT_DONE, AGENT_TELL, AGENT_DONE},
    {AGENT_DONE, AGENT_CLOSED, AGENT_DONE},
    {AGENT_LOST, AGENT_CLOSED, AGENT_LOST},
};

const struct agent_step *agent_step_find(enum agent_phase phase, enum agent_event event)
{
    for (size_t i = 0; i < ARRAY_LEN(agent_steps); i++)
        if (agent_steps[i].phase == phase && agent_steps[i].event == event)
            return &agent_steps[i];
    return NULL;
}

static const char *name(const char *const *names, size_t count, size_t index)
{
    return index < count && names[index] ? names[index] : "?";
}

const char *job_state_name(enum job_state state)
{
    static const char *const names[] = {
        [JOB_CONNECTING] = "connecting", [JOB_CHECKING] = "checking", [JOB_PREPARING] = "preparing",
        [JOB_RUNNING] = "running",       [JOB_ENDING] = "ending",     [JOB_DRAINING] = "draining",
        [JOB_ENDED] = "ended",
    };
    return name(names, ARRAY_LEN(names), state);
}

const char *job_event_name(enum job_event event)
{
    static const char *const names[] = {
        [JOB_GREETED] = "all agents said hello",
        [JOB_CHECKED] = "nothing is wrong with what they hold",
        [JOB_READY] = "all agents are prepared",
        [JOB_CAUSE] = "the job must end",
        [JOB_INTERRUPT] = "a signal",
        [JOB_GRACE_OVER] = "the ranks had time to end",
        [JOB_FINAL] = "another signal",
        [JOB_OVERDUE] = "agents are overdue",
        [JOB_GONE] = "all agents are done or lost",
        [JOB_DRAINED] = "nothing remains",
    };
    return name(names, ARRAY_LEN(names), event);
}

const char *agent_phase_name(enum agent_phase phase)
{
    static const char *const names[] = {
        [AGENT_CONNECTING] = "connecting",
        [AGENT_GREETING] = "greeting",
        [AGENT_GREETED] = "greeted",
        [AGENT_PREPARED] = "prepared",
        [AGENT_DONE] = "done",
        [AGENT_LOST] = "lost",
    };
    return name(names, ARRAY_LEN(names), phase);
}

const char *agent_event_name(enum agent_event event)
{
    static const char *const names[] = {
        [AGENT_CONNECTED] = "connected",      [AGENT_HELLO] = "hello",
        [AGENT_TELL] = "note or failure",     [AGENT_READY] = "ready",
        [AGENT_WORK] = "news of ranks",       [AGENT_ENDED] = "done",
        [AGENT_CLOSED] = "connection closed",
    };
    return name(names, ARRAY_LEN(names), event);
}
