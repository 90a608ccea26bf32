/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the controller share: controller.c (the Lease, the watches), queue.c, looks.c
 * and places.c (looks side by side), job.c with begin.c, course.c and starting.c (what one of them
 * decides), questions.c, ask.c, readers.c and sight.c (what it sees), making.c (objects),
 * silence.c, ceded.c and metrics.c. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CONTROLLER_PRIVATE_H
#define DRARUN_LAUNCHER_CLUSTER_CONTROLLER_PRIVATE_H

#include "launcher/cluster/controller/controller.h"
#include "launcher/cluster/client/launcher_silence.h"
#include "launcher/cluster/client/lease.h"
#include "launcher/cluster/submit/submit.h"
#include "launcher/programs/signals.h"
#include "jobs/status/drajob_metrics.h"
#include "lib/base/buf.h"
#include "lib/kube/watch.h"
#include "lib/metrics/metrics_server.h"

#define CONTROLLER_LABEL "drarun.dev/job" /* of the parts of a job */
#define CONTROLLER_LEASE_LABEL "app.kubernetes.io/name"
/* A namespace is its own controller's until its Lease was not renewed for so long: a controller
 * that is restarted, or updated, keeps it. */
#define CONTROLLER_QUIET_MS 60000
/* In this time the controller of all namespaces sees that Lease, or begins nothing anywhere, and
 * what it had begun to create is created. */
#define CONTROLLER_LEAVE_MS 20000
/* As long as an admission webhook may take by default: while one does not answer, the jobs that it
 * holds back have the places of others for so long, and are looked at again after a pause. */
#define CONTROLLER_CREATE_MS 10000
#define CONTROLLER_OWNERS_MAX 8 /* of an object: how many are looked at; a part has one */

#define CONTROLLER_KEY_SIZE 512 /* NAMESPACE/NAME, each of at most 253 bytes */
/* Jobs whose objects are created at once. Each holds a spec, which anybody may make so large that
 * the controller's memory has room for few: a job with such a spec, or with many objects, is a
 * large one. */
#define CONTROLLER_LARGE_MAX 2
#define CONTROLLER_SMALL_MAX 8
#define CONTROLLER_MAKING_MAX (CONTROLLER_LARGE_MAX + CONTROLLER_SMALL_MAX)

/* Looks at once. With what creates objects they leave some calls of the client to the Lease, to
 * Events and to what else is asked for. */
#define CONTROLLER_LOOKS_MAX 12

struct sight; /* sight.h */

struct making {
    char key[CONTROLLER_KEY_SIZE];
    char uid[64];                  /* of the DraJob */
    struct submission *submission; /* NULL: this place is free */
    bool changed; /* since the last look: nothing more is created before the next */
    bool over;    /* nothing more is created: controller_look takes the result */
    bool undoing; /* what was created is deleted, or was: it has failed */
};

/* Who waits for a place, and has had one. Books as below. */
struct queue {
    json_t *turns;   /* when it had its last, by the server's clock; 0: not yet */
    json_t *waiting; /* since when, likewise; also while it is looked at */
};

/* One check of the launchers' Leases. */
struct silence_check {
    struct kube_listing *listing;    /* NULL: they have come, or none goes on */
    struct drarun_error unread;      /* why they have not; code 0: nothing */
    json_t *leases;                  /* NULL: not yet */
    size_t next;                     /* of them: which is looked at */
    struct launcher_silence silence; /* of that one, */
    struct cluster_read pod;         /* whose launcher's pod is being read */
    bool asked;                      /* it was asked for */
    json_t *found;                   /* what the book will have; NULL: no check goes on */
    bool confirm;                    /* a launcher is silent for the first time */
};

struct controller {
    struct cluster *cluster;
    const struct controller_options *options;
    struct kube_watch *drajobs, *jobs, *maps;
    struct lease *lease;
    struct signals *signals;
    /* Books of what is remembered, by "NAMESPACE/NAME" (controller_key): */
    json_t *due;      /* when to look at it, milliseconds of clock_ms */
    json_t *outdated; /* the resourceVersion on which our last write was based */
    json_t *pauses;   /* the last pause after something could not be done, milliseconds */
    json_t *going;    /* likewise, while something of it is to go */
    json_t *untold;   /* likewise after its status was refused, until one is written */
    json_t *made;     /* uid of the launcher Job that this process made, until its status has it */
    json_t *refused;  /* why its objects could not be made, as its last Event says */
    json_t *rests;    /* until when they are not tried again after that, by clock_ms */
    json_t *silent;   /* {"since", "map", "text", "over"}: controller_check_launchers */
    json_t *limits;   /* of a launcher that does not start: {"allocation", "nodes", "imagePull"} */
    struct queue large, small; /* for a place in making */
    json_t *held; /* null for who keeps its place there, and is not called when its turn comes: the
                   * last look at it could not tell, and what that lacked calls it */
    json_t *unread; /* who waits for a place to read its spec in: since when, by clock_ms */
    json_t *late;   /* of jobs that ended while they were made: when to look for pods that were
                     * created after that, milliseconds from the end */
    struct making making[CONTROLLER_MAKING_MAX]; /* the first places are for large ones */
    const struct making *asking; /* the one that asks the cluster what decides about it, or NULL */
    size_t made_last;            /* the one that was looked at last, before all that was due */
    bool made_first;             /* so was the last look */
    int64_t check_ms;            /* when to look for such, milliseconds of clock_ms */
    struct silence_check check;
    struct kube_listing *controllers; /* their Leases; NULL: none are asked for */
    int64_t ceded_ms;                 /* when to ask for them next */
    int64_t ceding_ms, known_ms;      /* when was asked for them last, and for the last that came */
    json_t *ceded;                    /* by namespace; NULL: not known yet */
    bool ceded_barred;                /* it has no right to list them */
    bool ceded_late;                  /* it has told that it does not know them */
    unsigned events;                  /* written so far: part of their names */
    int heartbeat;                    /* descriptor, or -1 */
    struct event *beat;
    struct metrics_server *metrics; /* NULL: none are served */
    struct drajob_tally tally;
    struct sight *looks[CONTROLLER_LOOKS_MAX]; /* NULL: this place is free */
    bool stop;
    bool discovered;          /* the API server has answered */
    struct drarun_error lost; /* the Lease; code 0: no */
};

/* ---- looks.c ---- */

/* Looks at what there is of a DraJob and does what is to be done next, beside other looks; asks to
 * be called again by controller_again where no change of an object will. controller_may_look has
 * said so. */
void controller_look(struct controller *c, const char *key);
/* For each turn of the loop. */
void controller_go_on_looking(struct controller *c);
/* Gives up those that only ask, and leaves those that write to controller_go_on_looking. */
void controller_stop_looking(struct controller *c);

/* ---- places.c ---- */

/* There is a place for it, none is under way, and not too many of its namespace are. */
bool controller_may_look(const struct controller *c, const char *key);
bool controller_is_looked_at(const struct controller *c, const char *key);
size_t controller_count_looks(const struct controller *c);
/* When that began which goes on longest, by clock_ms; 0: there is none. */
int64_t controller_oldest_look(const struct controller *c);
bool controller_same_namespace(const char *key, const char *other);

/* ---- readers.c ---- */

/* Whether it has one of the places for who reads a spec, of a namespace one at a time. False: it is
 * looked at when it may have one. */
bool controller_take_reader(struct sight *s);
/* Whose turn it is of those that wait for such a place; NULL: nobody's. Borrowed. */
const char *controller_first_reader(const struct controller *c);

/* ---- job.c ---- */

/* Does what is to be done next of what it sees, or asks for what it has to know for that and is
 * called again with the answer (sight.h). */
void job_decide(struct sight *s);

/* ---- begin.c ---- */

/* Makes a job of the DraJob, as far as that goes now. */
void begin_job(struct sight *s);
/* rc: of submission_end. */
void begin_take_result(struct sight *s, int rc, const char *uid, const struct drarun_error *err);

/* ---- course.c ---- */

/* Reports what the job does whose launcher's Job has that uid, and its end. */
void course_follow(struct sight *s, const char *launcher);
/* Of a job that has ended: deletes what is to go by now. */
void course_tidy(struct sight *s);
void course_suspend(struct sight *s);
/* The launcher's, and with it all that it owns. */
void course_delete_job(struct sight *s);
/* It ends while its objects are created: pods may be created after that. */
void course_await_late(const struct sight *s);

/* ---- starting.c ---- */

/* Why the job's launcher has written no document: what keeps it from starting, into words. NULL: it
 * has begun, or has not had the time, or the look waits. end: is set where it is not waited for any
 * longer, by the spec's timeouts or because no waiting cures it. */
const char *starting_words(struct sight *s, struct buf *words, struct drarun_error *end);

/* ---- silence.c ---- */

/* Looks for launchers that do not renew their Leases; for each turn of the loop, which goes on
 * meanwhile. What it finds is in the book of silent ones, which it changes only here: since when
 * (clock_ms), and the version of its document then; "text" once two lists have confirmed it;
 * "over": the launcher is lost for good, and its node with it. */
void controller_check_launchers(struct controller *c);
/* When to call that next, by clock_ms, if the loop does not turn before. */
int64_t controller_check_due(const struct controller *c);
/* Gives up the check that goes on, if there is one. */
void controller_stop_checking(struct controller *c);
/* Leaves of metadata.managedFields what kube_written_ms reads. */
void controller_trim_writes(json_t *object);
/* Leaves of a Lease what lease_last_write and we read: anybody who may create them may label them.
 */
void controller_trim_lease(json_t *lease);

/* ---- ceded.c ---- */

/* Asks now and then which namespaces have a controller of their own; for each turn of the loop. */
void controller_check_namespaces(struct controller *c);
/* When to call that next, by clock_ms, if the loop does not turn before. */
int64_t controller_check_namespaces_due(const struct controller *c);

/* ---- making.c ---- */

/* Whether the objects of this job, which waits, may be created now: of a namespace those of one
 * large job and of some small ones at a time, so that its other jobs, and not those of others, wait
 * for them; and of those that may, the one that waits longest. */
bool controller_may_make(const struct controller *c, const char *key, bool large);
/* Creates them from now on, beside looks at other DraJobs. controller_may_make has said so. */
void controller_make(struct controller *c, const char *key, const char *uid, bool large,
                     struct submission *submission_take);
/* NULL: its objects are not being created. */
struct making *controller_find_making(struct controller *c, const char *key);
/* For each turn of the loop. */
void controller_go_on_making(struct controller *c);
/* The same for one, which is wanted as it was just seen. */
void controller_go_on(struct controller *c, struct making *making);
/* Of one that is over: true: what was created is deleted first, after which it is over again. */
bool controller_undo(struct making *making);
/* There is another version of the DraJob, or of one of its objects: it is looked at. */
void controller_note_change(struct controller *c, const char *namespace, const char *name);
/* The key of one that is over, or has changed, of several in turn; NULL: there is none. Borrowed.
 */
const char *controller_next_making(struct controller *c);

/* ---- metrics.c ---- */

/* At options->metrics_port; 0: nowhere. */
int controller_serve_metrics(struct controller *c, struct drarun_error *err);

/* ---- queue.c ---- */

/* Since 1970, by the API server's clock once it has told. Ours is that of the machine when we
 * began, which may have been set, or have slept, since. It may go back by what an answer took. */
int64_t controller_now(const struct controller *c);
void controller_key(const char *namespace, const char *name, struct buf *key);
/* Looks at it again after this time at the latest. */
void controller_again(struct controller *c, const char *namespace, const char *name, int64_t ms);
void controller_again_key(struct controller *c, const char *key, int64_t ms);
/* What the books have of a DraJob that is gone, or is not ours: another one may get its name. */
void controller_forget(struct controller *c, const char *key);
/* The one that is due first of those that may be looked at, or NULL; borrowed. */
const char *controller_first_due(const struct controller *c, int64_t *ret_at);
size_t controller_count_due(const struct controller *c); /* now */
/* It knew just now which namespaces have a controller of their own (ceded.c); without that right
 * all are its. While it does not, it begins nothing, and goes on creating nothing. */
bool controller_knows_namespaces(const struct controller *c);
/* Its DraJobs are left to its own controller. */
bool controller_is_ceded(const struct controller *c, const char *namespace);
typedef bool (*controller_room_fn)(const struct controller *c, const char *key);
/* Of those for whom there is room, and who are looked at or may be, the one that waits longest, or
 * NULL; borrowed. waiting: a book, since when. */
const char *controller_first_waiting(const struct controller *c, json_t *waiting,
                                     controller_room_fn has_room);

#endif
