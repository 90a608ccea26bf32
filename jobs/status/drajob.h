/* SPDX-License-Identifier: Apache-2.0 */
/* A DraJob as an object of the API (docs/design/035-drajob-objects.md): the job that it asks for,
 * and the status that it is given. Pure. */
#ifndef DRARUN_JOBS_DRAJOB_H
#define DRARUN_JOBS_DRAJOB_H

#include <jansson.h>
#include "drarun/error.h"
#include "jobs/spec/spec.h"

/* On a DraJob that a run or submit wrote, which makes the job's objects itself. */
#define DRAJOB_CLIENT "drarun.dev/made-by-client"

/* The job of the object, with all that a client checks before it makes anything, and not suspended:
 * that is the object's own affair. Errors of the spec have kind DRARUN_ERR_SPEC and name the path:
 * "spec.workers: expected ..."; further findings follow, a line each. */
int drajob_spec(const json_t *object, struct job_spec *ret_spec, struct drarun_error *err);

/* The object that a client writes of a job. NULL: out of memory. */
json_t *drajob_object(const struct job_spec *spec, const char *namespace);

/* The controller that spec.managedBy names, where that is another one than drarun's: drarun leaves
 * the object alone. NULL: it is drarun's. Borrowed. */
const char *drajob_manager(const json_t *object);

bool drajob_is_suspended(const json_t *object);
bool drajob_is_of_client(const json_t *object);

/* Leaves of the object what all below and above but drajob_spec read: its author decides how large
 * the rest is. A status that is not ours by its size loses its conditions and its cause. */
void drajob_trim(json_t *object);

/* ---- status ---- */

enum drajob_stage {
    DRAJOB_INVALID_SPEC = 1, /* the spec was refused: text */
    DRAJOB_PENDING,          /* accepted, its objects are not there yet: reason and text, or NULL */
    DRAJOB_SUSPENDED,        /* accepted, and none of its objects is there */
    DRAJOB_SUSPENDING,       /* they are going */
    DRAJOB_LED,              /* its launcher has it: doc */
    DRAJOB_LOST,             /* it ended without a word of its launcher: result, reason, text */
};

struct drajob_input {
    const json_t *object; /* with the status that it has */
    int64_t now_ms;
    enum drajob_stage stage;
    const char *reason, *text; /* NULL: the stage's own. text of DRAJOB_LED: why there is no doc */
    const char *result;        /* DRAJOB_LOST: "succeeded", "failed" or "cancelled" */
    int exit;                  /* DRAJOB_LOST */
    const char *silence;       /* DRAJOB_LED: that the launcher does not renew its Lease; NULL */
    const char *launcher;      /* uid of the launcher Job, once everything is made; NULL */
    const json_t *doc;         /* the status document (jobs/status/status_doc.h); NULL: none yet */
    int64_t written_ms;        /* when the API server took doc, by its clock; 0: not known */
    int64_t site_ttl_ms;       /* of ended jobs whose spec has none; 0: none */
};

/* The devices that the job asks for, of all its workers and roles: {"gpus": "16", "nics": "8+all"}.
 * A number is the sum of what roles count; "all" stands for roles that take all of a node. A kind
 * that no role asks for is left out. object: the document, or the object; one that was refused,
 * too. NULL: out of memory. */
json_t *drajob_devices(const json_t *object);

/* The object's next status, in which nothing has changed that need not: a condition keeps its
 * lastTransitionTime while its status stands. NULL: out of memory. */
json_t *drajob_status(const struct drajob_input *input);

struct drajob_event { /* borrowed from the next status */
    const char *reason, *text;
    bool warning;
};

/* What `kubectl describe` is to show of the step from the status that the object has to the next
 * one. false: nothing. */
bool drajob_event(const json_t *object, const json_t *next, struct drajob_event *ret_event);

/* Of the status that the object has. */
bool drajob_has_ended(const json_t *object);
bool drajob_status_has_ended(const json_t *status);
/* When it ended, in milliseconds since 1970; 0: it has not, or does not say. */
int64_t drajob_end_ms(const json_t *object);
/* When an ended job is to be deleted, in milliseconds since 1970: after
 * spec.ttlSecondsAfterFinished, or after the site's time to live where the spec has none. 0: never,
 * or it has not ended. site_ttl_ms: 0: the site has none. */
int64_t drajob_expiration_ms(const json_t *object, int64_t site_ttl_ms);
/* The status of an ended job with that time, which changes with the site's setting, and with the
 * spec's generation. A new reference; NULL: out of memory. */
json_t *drajob_dated_status(const json_t *object, int64_t site_ttl_ms);
const char *drajob_launcher(const json_t *object); /* or NULL */
/* The spec that is there was accepted, and its objects may be made. */
bool drajob_is_accepted(const json_t *object);
bool drajob_is_refused(const json_t *object); /* likewise, was refused */

/* What an object that has not ended waits for; borrowed. */
const char *drajob_words(const json_t *object);

/* The status document that verbs show of a job whose launcher has written none, or whose document
 * is gone: made of the object's status. NULL: out of memory. */
json_t *drajob_doc(const json_t *object);
/* Writes into a document of an ended job when it will be deleted, and by whose setting: as the
 * object's status says; without an object (NULL), or one whose status does not say, after ttl_s
 * seconds (-1: never), which the spec has. */
void drajob_date_doc(const json_t *object, int64_t ttl_s, json_t *doc);

#endif
