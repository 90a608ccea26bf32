/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job, and of the launcher's view of one agent, as tables. Pure. */
#ifndef DRARUN_LAUNCHER_JOB_STATE_H
#define DRARUN_LAUNCHER_JOB_STATE_H

enum job_state {
    JOB_CONNECTING = 1, /* agents are being started or dialled, and say hello */
    JOB_CHECKING,       /* what they hold is judged, and their NICs reach each other */
    JOB_PREPARING,      /* they hold the job and prepare it */
    JOB_RUNNING,
    JOB_ENDING,   /* something ended the job: the ranks are being ended */
    JOB_DRAINING, /* every agent is done or lost: output and processes remain */
    JOB_ENDED,
};

enum job_event {
    JOB_GREETED = 1, /* every agent has said hello */
    JOB_CHECKED,     /* nothing is wrong with what they hold */
    JOB_READY,       /* every agent is prepared */
    JOB_CAUSE,       /* something ended the job */
    JOB_INTERRUPT,   /* a first signal from the user */
    JOB_GRACE_OVER,  /* the ranks had time enough for that signal */
    JOB_FINAL,       /* another signal: now */
    JOB_OVERDUE,     /* agents that were told to end have not */
    JOB_GONE,        /* every agent is done or lost */
    JOB_DRAINED,     /* nothing remains */
};

enum job_action {
    JOB_DO_NOTHING = 1,
    JOB_DO_CHECK,   /* judge what the agents hold */
    JOB_DO_LAUNCH,  /* send each agent the job */
    JOB_DO_START,   /* tell them to start the ranks */
    JOB_DO_END,     /* tell them to end the ranks */
    JOB_DO_END_NOW, /* tell them to kill the ranks */
    JOB_DO_CANCEL,  /* tell them to end, or do as the next one if ranks may run already */
    JOB_DO_FORWARD, /* pass the signal on, and give the ranks time */
    JOB_DO_DROP,    /* kill or drop agents */
    JOB_DO_DRAIN,   /* dismiss the agents */
    JOB_DO_LEAVE,   /* leave the loop */
};

struct job_step {
    enum job_state state;
    enum job_event event;
    enum job_state next;
    enum job_action action;
};

/* NULL: that event cannot come in that state. */
const struct job_step *job_step_find(enum job_state state, enum job_event event);
const char *job_state_name(enum job_state state);
const char *job_event_name(enum job_event event);

enum agent_phase {
    AGENT_CONNECTING = 1,
    AGENT_GREETING, /* connected; its hello is awaited */
    AGENT_GREETED,
    AGENT_PREPARED, /* its ranks may run */
    AGENT_DONE,
    AGENT_LOST,
};

enum agent_event {
    AGENT_CONNECTED = 1,
    AGENT_HELLO,
    AGENT_TELL, /* a note or a failure */
    AGENT_READY,
    AGENT_WORK,  /* anything about ranks */
    AGENT_ENDED, /* its Done */
    AGENT_CLOSED,
};

struct agent_step {
    enum agent_phase phase;
    enum agent_event event;
    enum agent_phase next;
};

const struct agent_step *agent_step_find(enum agent_phase phase, enum agent_event event);
const char *agent_phase_name(enum agent_phase phase);
const char *agent_event_name(enum agent_event event);

#endif
