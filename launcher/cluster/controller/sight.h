/* SPDX-License-Identifier: Apache-2.0 */
/* A look at one DraJob: what there is of it, as the watches showed that when the look began, what
 * the look has asked for, and what it writes. looks.c has them side by side. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CONTROLLER_SIGHT_H
#define DRARUN_LAUNCHER_CLUSTER_CONTROLLER_SIGHT_H

#include "jobs/status/drajob.h"
#include "launcher/cluster/controller/private.h"
#include "lib/child/bounded.h"
#include "lib/kube/list.h"

#define SIGHT_CONFLICT_MS 200 /* until the watch has brought what another one wrote */
#define SIGHT_GOING_MS 500    /* after a deletion, until a look at what is to go */

/* What a look may ask for, each once: it decides from one view. */
enum sight_question {
    SIGHT_DOCUMENT = 1, /* the ConfigMap with its launcher's document */
    SIGHT_JOB,          /* the launcher's Job as it is now */
    SIGHT_REMAINS,      /* pods of a job of that name */
    SIGHT_LAUNCHERS,    /* those of the launcher's Job */
    SIGHT_LATE,         /* its workers' */
    SIGHT_LEFT,         /* its workers' that have not ended */
    SIGHT_WHOLE,        /* the DraJob with what drajob_trim does not leave */
    SIGHT_VERDICT,      /* whether its spec can be read */
    SIGHT_QUESTIONS
};

struct sight_answer {
    bool came;
    json_t *body;            /* or NULL */
    struct drarun_error err; /* code 0: none */
};

struct sight;
/* err NULL: it was done. */
typedef void (*sight_written_fn)(struct sight *s, const struct drarun_error *err);
typedef void (*sight_told_fn)(struct sight *s);

struct sight {
    struct controller *c;
    char key[CONTROLLER_KEY_SIZE]; /* NAMESPACE/NAME */
    char names[CONTROLLER_KEY_SIZE];
    const char *namespace, *name; /* in names */
    int64_t begin_ms;
    json_t *object;        /* what drajob_trim leaves; references of our own: the watch may drop
                            * them meanwhile */
    json_t *job;           /* the launcher's Job of that name, whatever its owner; or NULL */
    json_t *map;           /* metadata of NAME-status, whatever its owner; or NULL */
    bool own_job, own_map; /* they are this DraJob's */

    struct sight_answer answers[SIGHT_QUESTIONS];
    enum sight_question asked; /* last, */
    struct kube_call *call;    /* by one of these, which are NULL once it is answered */
    struct kube_listing *listing;
    struct bounded *reader;
    void (*trim)(json_t *object); /* of what comes, or NULL */
    bool waits;                   /* for that answer: the look decides again with it */
    bool paused;                  /* something could not be done, or is awaited */

    bool has_reader;      /* it has one of the places for who reads a spec */
    int64_t unread_ms;    /* since when it waits for one, if it has to */
    struct job_spec spec; /* once it is read, */
    size_t length;        /* of the object's text, then; 0: it is not */
    bool queued; /* this look has found that it waits for its turn; else a note says that an
                  * earlier one did, or that it has its turn now */
    bool held;   /* this look ends without having found whether it waits */

    struct kube_call *deletion, *writing; /* NULL: none is under way */
    sight_written_fn deleted, written;
    sight_told_fn told;
    json_t *status; /* that is written */
};

/* As it is now. NULL: out of memory, or such a name is too long. */
struct sight *sight_new(struct controller *c, const char *key);
/* Gives up what is under way. */
void sight_free(struct sight *s);
/* There is another version of the DraJob, or none any more. */
bool sight_is_outdated(const struct sight *s);
bool sight_has_place(const struct sight *s); /* among who waits to be created */
/* A call is, or a process reads its spec. */
bool sight_is_under_way(const struct sight *s);

/* Of its status; NULL: it has none. */
const char *sight_told_reason(const struct sight *s);

/* Looks at it again after this time at the latest. */
void sight_again(const struct sight *s, int64_t ms);
/* The pause before the next try of what could not be done. It doubles from one look to the next,
 * until the job's objects are made, or a look at a job that has them ends without one. */
int64_t sight_pause_ms(struct sight *s);
/* Looks again at what is to go, and whose end no watch brings: it may take as long as a lost node.
 */
void sight_await_end(struct sight *s);

/* What is remembered of it in one of the controller's books; NULL: nothing. Borrowed. */
const json_t *sight_noted(const struct sight *s, const json_t *book);
bool sight_is_noted(const struct sight *s, const json_t *book, const char *text);
void sight_note(const struct sight *s, json_t *book, json_t *value_take);
void sight_unnote(const struct sight *s, json_t *book);
/* In all books. */
void sight_forget(const struct sight *s);

/* Where the Lease was lost, what there is to do is another's. */
bool sight_is_leader(const struct sight *s);

/* ---- what it asks for (ask.c) ---- */

/* The answer, which stays until the look ends. NULL: it is awaited, and who has asked returns,
 * having changed nothing: the look decides from the start again. */
const struct sight_answer *sight_get(struct sight *s, enum sight_question question,
                                     const struct kube_target *target,
                                     void (*trim)(json_t *object));
const struct sight_answer *sight_list(struct sight *s, enum sight_question question,
                                      const struct kube_target *target,
                                      const struct kube_select *select);
/* As bounded_start. */
const struct sight_answer *sight_call(struct sight *s, enum sight_question question,
                                      const struct bounded_limits *limits, bounded_fn fn,
                                      void *arg);
/* An answer that is not needed any more, and may be large. */
void sight_drop(struct sight *s, enum sight_question question);

/* ---- what it asks about its job (questions.c): each needs an answer, or more ---- */

/* Its spec, into s->spec: first by a process that it may take along. What that has read within the
 * limits this one can read too, since to read is a function of the object alone. 1: not now, since
 * the look waits, or waits for a place to read in, or the object is another version than the one
 * that we know, and that one is looked at when the watch has brought it. */
int sight_read_spec(struct sight *s, struct drarun_error *err);
/* The same of one that was accepted. False: not now, and where it cannot be read another look tries
 * it again, after saying so. */
bool sight_has_spec(struct sight *s);
/* The document of this run's launcher, as it is now; *ret_doc untouched: it has written none.
 * False: the look waits, or it cannot be read, and another look tries it again. */
bool sight_find_document(struct sight *s, const char *launcher, json_t **ret_doc);
/* When the API server took it, by its own clock; 0: not known. */
int64_t sight_document_written_ms(const struct sight *s);
/* The launcher's Job of that uid: the watches do not keep step, and one that was just made may not
 * be seen yet. False: it is there, or the look waits. */
bool sight_job_is_gone(struct sight *s, const char *uid);
/* The pods of the launcher's Job; NULL: the look waits. fields: as of kube_select. */
const struct sight_answer *sight_list_launchers(struct sight *s, const char *fields,
                                                void (*trim)(json_t *pod));
/* Of their metadata what says whose they are: anybody who may create pods may label them so. */
void sight_trim_pod(json_t *pod);
/* 1: pods or claims of a job of that name are there still; nothing while the look waits. */
int sight_pods_remain(struct sight *s, struct drarun_error *err);
/* Of its workers, those that are not terminating; nothing while the look waits. */
int sight_count_late_pods(struct sight *s, struct drarun_error *err);
/* Those of them, and of the Job of its workers, that have not ended either; likewise. */
int sight_count_left_pods(struct sight *s, struct drarun_error *err);

/* ---- what it writes: each but one at a time ---- */

/* fn is called unless the Lease is lost; what is not there is deleted. */
void sight_delete(struct sight *s, const struct kube_target *target, const char *uid,
                  sight_written_fn fn);
/* Until the watch brings what was written, the object that it has is out of date. */
void sight_write_status(struct sight *s, json_t *status_take, sight_written_fn fn);
/* Looks at it again after a write of its status that failed so: after a pause that doubles with
 * each refusal, until one is written. */
void sight_write_again(const struct sight *s, const struct drarun_error *err);
/* The status that said leads to, and an Event of what has changed with it. told: NULL, or what
 * follows once the status is as it should be. What somebody else has changed meanwhile comes by the
 * watch, and is looked at then. */
void sight_tell(struct sight *s, const struct drajob_input *said, sight_told_fn told);
void sight_tell_stage(struct sight *s, enum drajob_stage stage, const char *reason,
                      const char *text, sight_told_fn told);

#endif
