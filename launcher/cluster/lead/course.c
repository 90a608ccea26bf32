/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/course.h"

#include <stddef.h>

#include "lib/base/cleanup.h"

static const struct course_step steps[] = {
    {COURSE_PLACING, COURSE_DONE, COURSE_READING},
    {COURSE_PLACING, COURSE_TAKEN_BACK, COURSE_QUEUEING},
    {COURSE_PLACING, COURSE_RESTART, COURSE_RESTARTING},
    {COURSE_PLACING, COURSE_END, COURSE_OVER},

    {COURSE_READING, COURSE_DONE, COURSE_RUNNING},
    {COURSE_READING, COURSE_TAKEN_BACK, COURSE_QUEUEING},
    {COURSE_READING, COURSE_RESTART, COURSE_RESTARTING},
    {COURSE_READING, COURSE_END, COURSE_OVER},

    {COURSE_RUNNING, COURSE_CHECKED, COURSE_KEEPING},
    {COURSE_RUNNING, COURSE_TAKEN_BACK, COURSE_QUEUEING},
    {COURSE_RUNNING, COURSE_RESTART, COURSE_RESTARTING},
    {COURSE_RUNNING, COURSE_END, COURSE_OVER},

    {COURSE_KEEPING, COURSE_TAKEN_BACK, COURSE_QUEUEING},
    {COURSE_KEEPING, COURSE_RESTART, COURSE_RESTARTING},
    {COURSE_KEEPING, COURSE_END, COURSE_OVER},

    {COURSE_ORPHANED, COURSE_TAKEN_BACK, COURSE_QUEUEING},
    {COURSE_ORPHANED, COURSE_RESTART, COURSE_RESTARTING},
    {COURSE_ORPHANED, COURSE_END, COURSE_OVER},

    {COURSE_RELEASING, COURSE_DONE, COURSE_PLACING},
    {COURSE_RELEASING, COURSE_CHECKED, COURSE_KEEPING},
    {COURSE_RELEASING, COURSE_END, COURSE_OVER},

    {COURSE_QUEUEING, COURSE_DONE, COURSE_PLACING},
    {COURSE_QUEUEING, COURSE_CHECKED, COURSE_KEEPING},
    {COURSE_QUEUEING, COURSE_END, COURSE_OVER},

    {COURSE_RESTARTING, COURSE_DONE, COURSE_PLACING},
    {COURSE_RESTARTING, COURSE_CHECKED, COURSE_KEEPING},
    {COURSE_RESTARTING, COURSE_END, COURSE_OVER},
};

static const char *const phase_names[] = {
    [COURSE_PLACING] = "placing",   [COURSE_READING] = "reading",
    [COURSE_RUNNING] = "running",   [COURSE_KEEPING] = "keeping",
    [COURSE_ORPHANED] = "orphaned", [COURSE_RELEASING] = "releasing",
    [COURSE_QUEUEING] = "queueing", [COURSE_RESTARTING] = "restarting",
    [COURSE_OVER] = "over",
};

static const char *const event_names[] = {
    [COURSE_DONE] = "done",       [COURSE_CHECKED] = "checked", [COURSE_TAKEN_BACK] = "taken back",
    [COURSE_RESTART] = "restart", [COURSE_END] = "end",
};

const struct course_step *course_step_find(enum course_phase phase, enum course_event event)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i].phase == phase && steps[i].event == event)
            return &steps[i];
    return NULL;
}

bool course_creates(enum course_phase phase)
{
    return phase == COURSE_RELEASING || phase == COURSE_QUEUEING || phase == COURSE_RESTARTING;
}

const char *course_phase_name(enum course_phase phase)
{
    return (size_t)phase < ARRAY_LEN(phase_names) && phase_names[phase] ? phase_names[phase] : "?";
}

const char *course_event_name(enum course_event event)
{
    return (size_t)event < ARRAY_LEN(event_names) && event_names[event] ? event_names[event] : "?";
}
