/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a job from one attempt to the next, as a table. Within an attempt jobs/gang decides
 * until the ranks start, and launcher/job/state.h from then on. Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_COURSE_H
#define DRARUN_LAUNCHER_CLUSTER_COURSE_H

#include <stdbool.h>

enum course_phase {
    COURSE_PLACING = 1, /* until the workers are up */
    COURSE_READING,     /* until what else their ranks need has been read */
    COURSE_RUNNING,     /* until the ranks have ended, or an allocation's workers are checked */
    COURSE_KEEPING,     /* an allocation's workers, until its shell ends */
    COURSE_ORPHANED,    /* the ranks of a lost launcher are given up */
    COURSE_RELEASING, /* an earlier launcher had begun to: the next attempt's workers are created */
    COURSE_QUEUEING,  /* the same, after a queue has taken the workers back */
    COURSE_RESTARTING, /* the same, after ranks or workers have failed */
    COURSE_OVER,
};

enum course_event {
    COURSE_DONE = 1,   /* the phase has done what it is for */
    COURSE_CHECKED,    /* likewise, and an allocation's workers are up and checked */
    COURSE_TAKEN_BACK, /* the attempt is over: by a queue */
    COURSE_RESTART,    /* it is over, and another one may follow */
    COURSE_END,        /* it is over, and none follows */
};

struct course_step {
    enum course_phase phase;
    enum course_event event;
    enum course_phase next;
};

/* NULL: that event cannot come in that phase. */
const struct course_step *course_step_find(enum course_phase phase, enum course_event event);
/* Whether the phase creates the workers of another attempt. */
bool course_creates(enum course_phase phase);
const char *course_phase_name(enum course_phase phase);
const char *course_event_name(enum course_event event);

#endif
