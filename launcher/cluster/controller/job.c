/* SPDX-License-Identifier: Apache-2.0 */
/* What a look decides: begin.c makes a job, course.c follows one. */
#include <string.h>

#include "jobs/status/drajob.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/controller/sight.h"
#include "launcher/cluster/submit/cancel.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"

static void decide(struct sight *s)
{
    const char *launcher = drajob_launcher(s->object);
    if (sight_is_noted(s, s->c->made, launcher)) /* the answer to that write may have been lost */
        sight_unnote(s, s->c->made);
    if (drajob_has_ended(s->object))
        course_tidy(s);
    else if (launcher)
        course_follow(s, launcher);
    else
        begin_job(s);
}

/* A finalizer keeps one that is deleted, and with it its Job and the ranks: the account that set it
 * may wait for the job's end. Nothing is made any more, and what there is goes with the object. */
static void follow_deleted(struct sight *s)
{
    const char *launcher = drajob_launcher(s->object);
    if (launcher && !drajob_has_ended(s->object) && s->own_job && !kube_is_terminating(s->job))
        course_follow(s, launcher);
}

/* Its controller makes it, reports it and deletes it. Its status may be another cluster's: a
 * launcherUID there is of no Job here. */
static void leave_alone(const struct sight *s, const char *manager)
{
    log_verbose("%s/%s: ignored, because %s manages it", s->namespace, s->name, manager);
    sight_forget(s);
}

/* So does its namespace's own controller. */
static void leave_to_own(const struct sight *s)
{
    log_verbose("%s/%s: ignored, because its namespace has a controller of its own", s->namespace,
                s->name);
    sight_forget(s);
}

static void look(struct sight *s)
{
    const char *manager = drajob_manager(s->object);
    if (!s->object)
        sight_forget(s);
    else if (manager)
        leave_alone(s, manager);
    else if (controller_is_ceded(s->c, s->namespace))
        leave_to_own(s);
    else if (sight_is_noted(s, s->c->outdated, kube_resource_version(s->object)))
        s->held = true;
    else if (kube_is_terminating(s->object))
        follow_deleted(s);
    else
        decide(s);
}

/* ---- what is being made ---- */

/* `drarun cancel` asks its launcher for it. */
static bool is_cancelled(const json_t *job)
{
    const json_t *metadata = json_object_get(job, "metadata");
    return json_object_get(json_object_get(metadata, "annotations"), CANCEL_ANNOTATION);
}

/* Its launcher ends the job of which it has created the rest, or which is cancelled meanwhile;
 * nothing while the look waits. */
static bool is_ending(struct sight *s, const char *launcher)
{
    CLEANUP(json_decrefp) json_t *doc = NULL;
    if (!launcher)
        return false;
    if (!s->own_job || strcmp(kube_uid(s->job), launcher) != 0)
        return sight_job_is_gone(s, launcher);
    if (kube_is_terminating(s->job) || is_cancelled(s->job))
        return true;
    return s->own_map && sight_find_document(s, launcher, &doc) && doc && status_doc_exit(doc) >= 0;
}

/* Why nobody wants the rest any more from us; NULL: it is wanted. */
static const char *unwanted(const struct sight *s, const struct making *making)
{
    const json_t *object = s->object;
    if (!object || kube_is_terminating(object) || strcmp(kube_uid(object), making->uid) != 0)
        return "its DraJob was deleted";
    if (controller_is_ceded(s->c, s->namespace))
        return "its namespace has a controller of its own";
    return drajob_is_suspended(object) ? "its DraJob was suspended" : NULL;
}

static void leave_making(const struct sight *s, const struct making *making)
{
    submission_leave(making->submission);
    course_await_late(s);
}

/* False: the look waits. */
static bool check_making(struct sight *s, const struct making *making)
{
    const char *why = unwanted(s, making);
    bool ending = !why && is_ending(s, submission_launcher(making->submission));
    if (s->waits)
        return false;
    if (why)
        submission_cancel(making->submission, why);
    else if (ending)
        leave_making(s, making);
    else
        log_verbose("%s/%s: its objects are being created", s->namespace, s->name);
    return true;
}

/* True: its objects are being created, or what came of it has been taken. */
static bool is_being_made(struct sight *s)
{
    struct drarun_error err = {0};
    cleanup_free char *uid = NULL;
    struct making *making = controller_find_making(s->c, s->key);
    if (!making)
        return false;
    bool wanted_at_once = s->c->stop || !sight_is_leader(s);
    if (!wanted_at_once && !making->undoing && !check_making(s, making))
        return true;
    controller_go_on(s->c, making);
    if (!making->over || controller_undo(making))
        return true;
    int rc = submission_end(TAKE_PTR(making->submission), &uid, &err);
    if (!s->object || strcmp(kube_uid(s->object), making->uid) != 0)
        return false; /* they were of one that is deleted, and are deleted with it */
    begin_take_result(s, rc, uid, &err);
    return true;
}

void job_decide(struct sight *s)
{
    if (!is_being_made(s))
        look(s);
}
